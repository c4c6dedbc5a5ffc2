"""Explanations of the error codes of quantization."""

from __future__ import annotations

from tmconvert.errors.explanation import Explanation

QUANTIZATION = {
    "TM6030": Explanation(
        "there are no quantization parameters to write an integer file with",
        "Integers represent real numbers by scales and zero points. A model trained with fake "
        "quantization has them; for other models they are measured on calibration data.",
        "tmconvert tflite float_model.tm out.tflite --quantized",
        "Add --calibration DATA, with inputs that are typical for the model.",
    ),
    "TM6031": Explanation(
        "this version of ONNX cannot express the quantization",
        "QuantizeLinear was added in opset 10, per-channel scales in opset 13; before opset 21 both "
        "support 8-bit types only.",
        "tmconvert onnx qat.tm out.onnx --quantized --opset 9",
        "Convert for the opset that the message names.",
    ),
    "TM6032": Explanation(
        "the calibration options cannot be applied",
        "The method does not exist, a rule matches no tensor, no rules reach --min-sqnr, or the model "
        "already has quantization parameters.",
        "tmconvert calibrate net.tm -d data.npz -o net_q.tm --rule 'haed.*=float'",
        "The message lists the valid choices.",
    ),
    "TM6033": Explanation(
        "the calibration data does not fit the model",
        "Samples have the shapes and dtypes of the inputs: one per file, or many along the first axis.",
        "a folder without .npy, .npz and image files",
        "The message names the file and the inputs that the model expects.",
    ),
    "TM6040": Explanation(
        "there are no quantization parameters to write",
        "A file of quantization parameters, and --fake-quant-weights, require a model that was "
        "trained with fake quantization, or that has integer tensors.",
        "tmconvert onnx float_model.tm out.onnx --qparams q.json",
        "Convert a quantized model, or omit --qparams and --fake-quant-weights.",
    ),
    "TM6041": Explanation(
        "a file format cannot carry the quantization of a tensor",
        "Formats of quantization parameters differ in what they can store: per-channel scales, "
        "asymmetric zero points, bit widths other than 8, layers by name. Parameters that a format "
        "cannot store are never changed silently.",
        "tmconvert onnx asymmetric.tm out.onnx --qparams q.cache --qparams-format tensorrt",
        "Choose a format that can, by the table in docs/quantization-parameters.md. `tmconvert params "
        "convert --partial` leaves out what the format cannot store.",
    ),
    "TM6042": Explanation(
        "a file of quantization parameters cannot be read",
        "The file is missing, damaged, or of another format than expected. Values must be finite, "
        "zero points within the integer range, and each tensor may appear only once.",
        "tmconvert params show photo.png",
        "Correct the file at the location that the message names, or name its format with --from.",
    ),
    "TM6043": Explanation(
        "quantization parameters do not belong to the model",
        "The file names a tensor that the model does not have, calls a constant an activation, or has "
        "another number of channels.",
        "tmconvert params convert q.json q.table --to ncnn --model other.onnx",
        "Pass the model that the file was written for; `tmconvert params check` lists all differences.",
    ),
}
