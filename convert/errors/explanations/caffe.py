"""Explanations of the error codes of reading Caffe nets."""

from __future__ import annotations

from tmconvert.errors.explanation import Explanation

CAFFE = {
    "TM1051": Explanation(
        "the layers of a Caffe net do not fit together",
        "A layer reads a blob that no layer before it computes, inputs have other numbers of shapes, or the "
        "net has no output. The message names the layer and its line.",
        "a prototxt in which a layer was removed by hand",
        "`tmconvert lint FILE.prototxt --dialect NAME` lists all errors with their lines.",
    ),
    "TM1052": Explanation(
        "a Caffe net has a part that tmconvert does not read",
        "Layers for training (data, losses, accuracy), layers of the format V0, and fields that no dialect "
        "of tmconvert has are not read.",
        "a train_val.prototxt",
        "Follow the help of the message: pass the deploy.prototxt, or remove the field.",
    ),
    "TM1053": Explanation(
        "the weights of a Caffe net are missing, or belong to another net",
        "The weights are in a caffemodel next to the prototxt, under the same name, or in the only "
        "caffemodel of its folder. Layers are found by name; each must have as many blobs as its type.",
        "a deploy.prototxt without its caffemodel",
        "Put the caffemodel next to the prototxt, under the same name.",
    ),
}
