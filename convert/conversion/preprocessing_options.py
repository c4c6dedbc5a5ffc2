"""Declarations of the options of preprocessing in the file; ``options.py`` has those of conversions."""

from __future__ import annotations

from tmconvert.targets.option import Option, switch

PREPROCESS = (
    Option(
        "preprocess",
        "input",
        "Images that the file takes: '[NAME:] rgb, nhwc, uint8, mean=..., std=..., resize=HxW'. They are "
        "converted to the input NAME of MODEL, (pixel/255-mean)/std, in the file.",
        "entries",
        metavar="TEXT",
    ),
    switch("softmax", "input", "Apply softmax to the classes of the output."),
    switch("argmax", "input", "Return the index of the best class."),
)
