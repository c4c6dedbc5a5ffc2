"""What the error codes of quantization mean."""

from __future__ import annotations

from tmconvert.errors.explanation import Explanation

QUANTIZATION = {
    "TM6030": Explanation(
        "there are no scales to write integers with",
        "Integers stand for real numbers by scales and zero points. A model that was trained with fake "
        "quantization has them; of another they are measured on data.",
        "tmconvert tflite float_model.tm out.tflite --quantized",
        "Add --calibration DATA, with inputs as the model will see them.",
    ),
    "TM6031": Explanation(
        "the quantization cannot be said in this version of ONNX",
        "QuantizeLinear came with opset 10, a scale for each channel with opset 13; both know types of eight "
        "bits.",
        "tmconvert onnx qat.tm out.onnx --quantized --opset 9",
        "Convert for the opset that the message names.",
    ),
    "TM6032": Explanation(
        "a calibration cannot be done as asked",
        "There is no such method, a rule fits nothing, or the model has scales already.",
        "tmconvert calibrate net.tm -d data.npz -o net_q.tm --rule 'haed.*=float'",
        "The message says what there is to choose from.",
    ),
    "TM6033": Explanation(
        "the data of a calibration does not fit the model",
        "Samples have the shapes and types of the inputs: one in a file, or many along the first axis.",
        "a folder without .npy, .npz and image files",
        "The message names the file and what the model takes.",
    ),
    "TM6040": Explanation(
        "there are no quantization parameters to write",
        "A file of parameters, and weights rounded to their grids, need a model that was trained with fake "
        "quantization, or holds integers.",
        "tmconvert onnx float_model.tm out.onnx --qparams q.json",
        "Give a quantized model, or leave --qparams and --fake-quant-weights out.",
    ),
    "TM6041": Explanation(
        "a file format cannot carry the quantization of a tensor",
        "Formats of quantization parameters differ in what they can say: scales of single channels, zero "
        "points off the middle, integers of more or fewer bits, layers by name. What one cannot say is never "
        "changed without a word.",
        "tmconvert onnx asymmetric.tm out.onnx --qparams q.cache --qparams-format tensorrt",
        "Take a format that can, by the table in docs/quantization-parameters.md. What a format has "
        "no place for at all is left out by `tmconvert params convert --partial`.",
    ),
    "TM6042": Explanation(
        "a file of quantization parameters cannot be read",
        "The file is missing, damaged, or of another format than was expected. Numbers must be finite, zero "
        "points on their grids, and each tensor there once.",
        "tmconvert params show photo.png",
        "Correct the file where the message says, or name its format with --from.",
    ),
    "TM6043": Explanation(
        "quantization parameters are of another model",
        "The file names a tensor that the model has not, calls a constant an activation, or has another "
        "number of channels.",
        "tmconvert params convert q.json q.table --to ncnn --model other.onnx",
        "Give the model that the file was written with; `tmconvert params check` lists all differences.",
    ),
}
