"""Convolutions, pooling, normalization and rearrangement over any number of axes."""

from typing import Any

from tests.symbolics.ops.harness import Const, normal

from .common import Sample, rows

LINE = normal(5, 2, 4, 9)
VOLUME = normal(6, 2, 4, 4, 5, 6)
ONNX = ("onnx",)


def deformed(
    batch: int,
    weight: Any,
    outputs: Any,
    groups: int,
    *,
    mask: bool = True,
    bias: bool = True,
    **attributes: Any,
) -> Sample:
    """A deformable convolution of 5 x 6 elements, with ``groups`` of offsets."""
    taps = groups * weight[2] * weight[3]
    tensors = [
        normal(0, batch, 4, 5, 6),
        Const(normal(1, *weight)),
        2 * normal(2, batch, 2 * taps, *outputs),
        normal(3, batch, taps, *outputs) if mask else None,
        Const(normal(4, weight[0])) if bias else None,
    ]
    return Sample(tensors, attributes, ("onnx", "tflite"))


SAMPLES: dict[str, list[Sample]] = {
    **rows(__file__, "SAMPLES", globals()),
    **{
        f"aten::adaptive_{kind}_pool1d": [Sample([LINE], {"output_size": [size]}) for size in (3, 4)]
        for kind in ("avg", "max")
    },
    **{
        f"aten::adaptive_{kind}_pool2d": [
            Sample([normal(0, 2, 3, 6, 9)], {"output_size": size})
            for size in ([3, 3], [4, 3], [5, 2], [1, 1])
        ]
        for kind in ("avg", "max")
    },
    **{
        f"aten::adaptive_{kind}_pool3d": [
            Sample([VOLUME], {"output_size": size}) for size in ([2, 3, 3], [1, 1, 1])
        ]
        for kind in ("avg", "max")
    },
}
