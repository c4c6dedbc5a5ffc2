"""Digits models that were trained for integers, as integer TFLite and ONNX: how much accuracy that costs.

Needs tmconvert, `ai-edge-litert` and `onnxruntime`, and no training framework. Its status is 1 where the
integer TFLite reads more than 0.3 points fewer of the held-out images than the fake-quantized model.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

import tmconvert

HERE = Path(__file__).parent
MODELS = {"MegEngine": HERE / "digits_qat.tm", "PyTorch": HERE / "digits_qat_torch.tm"}
BRIGHTEST = 16
MOST_LOST = 0.3  # points

Logits = Callable[[np.ndarray], np.ndarray]  # of one image [1, 1, 8, 8] in 0..1


def fake_quantized(model: Path) -> Logits:
    """What the source computes, rounding included."""
    module = tmconvert.load(model)
    return lambda image: np.asarray(module(image))


def onnx(model: Path, folder: Path, *, quantized: bool) -> Logits:
    """The model in float, or with QuantizeLinear and DequantizeLinear."""
    import onnxruntime

    path = folder / f"{model.stem}_{quantized}.onnx"
    tmconvert.to_onnx(model, path, quantized=quantized)
    session = onnxruntime.InferenceSession(str(path))
    name = session.get_inputs()[0].name
    return lambda image: session.run(None, {name: image})[0]


def integer_tflite(model: Path, folder: Path) -> Logits:
    """The model in int8: input and output, too."""
    from ai_edge_litert.interpreter import Interpreter

    path = folder / f"{model.stem}.tflite"
    report = tmconvert.to_tflite(model, path, quantized=True)
    print("   ", "; ".join(report.notes))
    interpreter = Interpreter(model_path=str(path))
    interpreter.allocate_tensors()
    given, made = interpreter.get_input_details()[0], interpreter.get_output_details()[0]
    scale, zero_point = given["quantization"]
    to_real, zero_of_result = made["quantization"]

    def logits(image: np.ndarray) -> np.ndarray:
        steps = np.clip(np.rint(image.transpose(0, 2, 3, 1) / scale) + zero_point, -128, 127)
        interpreter.set_tensor(given["index"], steps.astype(np.int8))
        interpreter.invoke()
        result: np.ndarray = interpreter.get_tensor(made["index"])
        return (result.astype(np.float32) - zero_of_result) * to_real

    return logits


def accuracy(logits: Logits, images: np.ndarray, labels: np.ndarray) -> float:
    """In percent."""
    inputs = (images[:, None, None] / BRIGHTEST).astype(np.float32)
    right = sum(int(logits(image).argmax()) == label for image, label in zip(inputs, labels, strict=True))
    return 100 * right / len(labels)


def main() -> int:
    argparse.ArgumentParser(description=__doc__).parse_args()
    with np.load(HERE / "digits_held_out.npz") as stored:
        images, labels = stored["images"], stored["labels"]
    status = 0
    for source, model in MODELS.items():
        print(f"{model.name}, trained in {source}, {len(images)} held-out images")
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            found = {
                "integer TFLite": accuracy(integer_tflite(model, folder), images, labels),
                "Q/DQ ONNX": accuracy(onnx(model, folder, quantized=True), images, labels),
                "float ONNX": accuracy(onnx(model, folder, quantized=False), images, labels),
                "fake-quantized": accuracy(fake_quantized(model), images, labels),
            }
        for kind, percent in found.items():
            print(f"    {kind:<15}{percent:7.2f} %")
        if found["integer TFLite"] < found["fake-quantized"] - MOST_LOST:
            print(f"    the integers cost more than {MOST_LOST} points")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
