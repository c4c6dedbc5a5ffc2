"""Explanations of the error codes of reading TFLite files."""

from __future__ import annotations

from tmconvert.errors.explanation import Explanation

TFLITE = {
    "TM1041": Explanation(
        "a TFLite file is damaged or describes an inconsistent model",
        "An offset or an index of the file leads outside of it, a constant has another number of bytes than "
        "its shape requires, an operator uses a tensor that nothing computes before it, or a subgraph calls "
        "itself. The message names the operator or the tensor.",
        "head -c 100000 model.tflite > part.tflite; tmconvert inspect part.tflite",
        "Copy the file again, or convert the model again. LiteRT's interpreter refuses such a file, too.",
    ),
    "TM1042": Explanation(
        "a TFLite model has a part that tmconvert does not read",
        "Strings, complex inputs and outputs, resources and versions of the schema other than 3 are not "
        "read.",
        "a model with an input of strings",
        "Follow the help of the message: convert the model again without this part.",
    ),
}
