"""Fuses batch norms into convolutions by a pattern, as torch.fx's example of conv-bn fusion does.

    python samples/surgery/fuse_conv_bn.py out/fused.onnx

``tmconvert.optimize(model, "FuseConvBn")`` does the same, and groups and transposed convolutions, too.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

import tmconvert


def conv_bn(g: Any, x: Any, weight: Any, gamma: Any, beta: Any, mean: Any, variance: Any, eps: Any) -> Any:
    """The pattern: parameters stand for any value, ``...`` for the attributes of the convolution."""
    y = g.call("aten::conv2d", x, weight, None, ...)
    return g.call("aten::batch_norm", y, gamma, beta, mean, variance, eps)


def conv(
    g: Any, x: Any, weight: Any, gamma: Any, beta: Any, mean: Any, variance: Any, eps: Any, match: Any
) -> Any:
    """The replacement: one convolution, whose weights and bias are computed here."""
    gamma, beta, mean, variance, kernel = (g.known(each) for each in (gamma, beta, mean, variance, weight))
    scale = gamma / np.sqrt(variance + eps)
    name = weight.expr.name
    return g.call(
        "aten::conv2d",
        x,
        g.parameter((kernel * scale.reshape(-1, 1, 1, 1)).astype(np.float32), f"{name}_fused"),
        g.parameter((beta - mean * scale).astype(np.float32), f"{name}_bias"),
        **match.exprs[0].kwargs,
    )


def main(output: str) -> None:
    model = tmconvert.load("samples/digits.tm")
    images = np.load("samples/digits_test.npz")["images"]
    x = (images[:1, None] / 16).astype(np.float32)
    before = model(x)
    matches = tmconvert.replace_pattern(model, conv_bn, conv)
    error = np.abs(model(x) - before).max()
    print(f"{len(matches)} batch norms were fused; outputs differ by {error:.1e}")
    Path(output).parent.mkdir(parents=True, exist_ok=True)
    tmconvert.to_onnx(model, output)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "out/fused.onnx")
