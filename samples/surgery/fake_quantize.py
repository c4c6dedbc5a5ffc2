"""Quantizes by a pattern: fake quantization around the calls that match, with measured ranges.

    python samples/surgery/fake_quantize.py out/fake_quantized.onnx

For integers in the file see ``tmconvert calibrate``; this is how to try a scheme of one's own on a model.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

import tmconvert

LEVELS = 127  # int8, symmetric


class Ranges(tmconvert.Interpreter):
    """Measures the largest absolute value of each tensor."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.largest: dict[str, float] = {}

    def run_node(self, node: Any) -> Any:
        value = super().run_node(node)
        if isinstance(value, np.ndarray):
            self.largest[node.name] = max(self.largest.get(node.name, 0.0), float(np.abs(value).max()))
        return value


def fake_quantized(g: Any, x: Any, largest: float) -> Any:
    """Rounds a value to the multiples of a scale, in float."""
    scale = np.float32(largest / LEVELS)
    steps = g.call("aten::round", g.call("aten::div", x, g.constant(scale)))
    return g.call("aten::mul", g.call("aten::clamp", steps, -LEVELS, LEVELS), g.constant(scale))


def conv(g: Any, x: Any, weight: Any, bias: Any) -> Any:
    return g.call("aten::conv2d", x, weight, bias, ...)


def accuracy(model: Any, images: np.ndarray, labels: np.ndarray) -> float:
    found = np.array([model(image[None]).argmax() for image in images])
    return float(np.mean(found == labels))


def main(output: str) -> None:
    model = tmconvert.optimize("samples/digits.tm", "FuseConvBn")
    data = np.load("samples/digits_test.npz")
    images, labels = (data["images"][:, None] / 16).astype(np.float32), data["labels"]
    before = accuracy(model, images, labels)
    ranges = Ranges(model)
    for image in images[:20]:
        ranges.run(image[None])

    def quantized_conv(g: Any, x: Any, weight: Any, bias: Any, match: Any) -> Any:
        x = fake_quantized(g, x, ranges.largest[x.name])
        weight = fake_quantized(g, weight, float(np.abs(g.known(weight)).max()))
        result = g.call("aten::conv2d", x, weight, bias, **match.exprs[0].kwargs)
        return fake_quantized(g, result, ranges.largest[match.anchor.name])

    matches = tmconvert.replace_pattern(model, conv, quantized_conv)
    after = accuracy(model, images, labels)
    print(f"{len(matches)} convolutions; accuracy {before:.2f} before, {after:.2f} after")
    Path(output).parent.mkdir(parents=True, exist_ok=True)
    tmconvert.to_onnx(model, output)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "out/fake_quantized.onnx")
