"""Explanations of the error codes of reading ONNX files."""

from __future__ import annotations

from tmconvert.errors.explanation import Explanation

ONNX = {
    "TM1031": Explanation(
        "an ONNX file is damaged or describes an inconsistent model",
        "The file cannot be parsed, a tensor has another number of bytes than its shape requires, or a node "
        "uses a value that nothing computes before it. The message names the node.",
        "head -c 100000 model.onnx > part.onnx; tmconvert inspect part.onnx",
        "Copy the file again, or export the model again. onnx.checker.check_model shows what is wrong.",
    ),
    "TM1032": Explanation(
        "the external data of an ONNX model cannot be read",
        "The model refers to a file of weights that does not exist, is too short, or is not in the folder of "
        "the model. A model must not refer to files outside of its folder, also not by symbolic links.",
        "cp model.onnx elsewhere/; tmconvert inspect elsewhere/model.onnx",
        "Put the files of external data (model.onnx.data, for example) into the folder of the model, as they "
        "were exported.",
    ),
    "TM1033": Explanation(
        "an ONNX model has a part that tmconvert does not read",
        "Strings, complex numbers, inputs without a rank, newer opsets and very large sparse tensors are not "
        "read.",
        "a model with an input of strings",
        "Follow the help of the message: export the model without this part, or for an earlier opset.",
    ),
}
