"""What the error codes of quantization mean."""

from __future__ import annotations

from .explanation import Explanation

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
}
