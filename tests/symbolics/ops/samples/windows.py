"""Convolutions, pooling, normalization and rearrangement over any number of axes."""

from typing import Any

from tests.symbolics.ops.harness import Const, normal

from .common import Sample, X

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
    "aten::conv1d": [
        Sample([LINE, Const(normal(1, 6, 4, 3)), Const(normal(2, 6))], {"stride": [2], "padding": [1]}),
        Sample([LINE, Const(normal(1, 6, 2, 3)), None], {"dilation": [2], "groups": 2}),
    ],
    "aten::conv3d": [
        Sample(
            [VOLUME, Const(normal(1, 6, 4, 3, 2, 3)), Const(normal(2, 6))],
            {"stride": [1, 2, 1], "padding": [1, 0, 2], "dilation": [1, 1, 2]},
        ),
        Sample([VOLUME, Const(normal(1, 6, 4, 2, 3, 2)), None], {"stride": [2, 1, 1], "padding": [1, 0, 0]}),
        Sample([VOLUME, Const(normal(1, 6, 2, 2, 3, 1)), None], {"groups": 2}),
    ],
    "aten::conv_transpose1d": [
        Sample([LINE, Const(normal(1, 4, 3, 3)), Const(normal(2, 3))], {"stride": [2], "padding": [1]}),
        Sample(
            [LINE, Const(normal(1, 4, 3, 3)), None],
            {"stride": [3], "output_padding": [2]},
            ("onnx", "tflite"),
        ),
        Sample([LINE, Const(normal(1, 4, 3, 3)), None], {"stride": [3], "groups": 2}),
    ],
    "aten::conv_transpose2d": [
        Sample(
            [X, Const(normal(1, 3, 4, 3, 2)), Const(normal(2, 4))],
            {"stride": [2, 3], "padding": [1, 0], "output_padding": [1, 2]},
            ("onnx", "tflite"),
        ),
        Sample(
            [X, Const(normal(1, 3, 4, 3, 2)), Const(normal(2, 4))],
            {"stride": [2, 3], "padding": [1, 2], "output_padding": [0, 1]},
        ),
        Sample(
            [X, Const(normal(1, 3, 2, 2, 3)), None], {"dilation": [1, 2], "groups": 3}, ("onnx", "tflite")
        ),
        Sample([X, Const(normal(1, 3, 2, 2, 3)), None], {"stride": [2, 1], "groups": 3}),
        Sample([X, normal(1, 3, 2, 2, 3), normal(2, 2)], {"stride": [1, 2]}, ("onnx", "tflite")),
        Sample(
            [X, Const(normal(1, 3, 2, 3, 3)), None],
            {"padding": [2, 2], "output_padding": [1, 2], "dilation": [2, 3]},
            ("onnx", "tflite"),
        ),
    ],
    "aten::conv_transpose3d": [
        Sample(
            [VOLUME, Const(normal(1, 4, 3, 2, 3, 2)), Const(normal(2, 3))],
            {"stride": [1, 2, 2], "padding": [0, 1, 1], "output_padding": [0, 1, 0]},
        ),
        Sample([VOLUME, Const(normal(1, 4, 3, 2, 2, 2)), None], {"groups": 2}),
    ],
    "torchvision::deform_conv2d": [
        deformed(2, (6, 2, 3, 2), (5, 7), 2, padding=[1, 1]),
        deformed(1, (6, 4, 3, 2), (3, 2), 1, stride=[2, 3], dilation=[1, 2], padding=[1, 0]),
        deformed(1, (6, 4, 1, 1), (5, 6), 1, bias=False),
        deformed(1, (6, 4, 1, 1), (5, 6), 1, bias=False, mask=False),
    ],
    "aten::max_pool1d": [
        Sample([LINE], {"kernel_size": [3], "stride": [2], "padding": [1]}),
        Sample([LINE], {"kernel_size": [2], "stride": [2], "ceil_mode": True}),
    ],
    "aten::max_pool3d": [
        Sample([VOLUME], {"kernel_size": [3, 2, 3], "stride": [1, 2, 2], "padding": [1, 0, 1]}),
        Sample([VOLUME], {"kernel_size": [2, 2, 2], "stride": [3, 3, 4], "ceil_mode": True}),
    ],
    "aten::avg_pool1d": [
        Sample([LINE], {"kernel_size": [3], "stride": [2], "padding": [1]}),
        Sample([LINE], {"kernel_size": [4], "stride": [2], "ceil_mode": True, "count_include_pad": False}),
    ],
    "aten::avg_pool3d": [
        Sample([VOLUME], {"kernel_size": [3, 2, 3], "stride": [1, 2, 2], "padding": [1, 0, 1]}),
        Sample(
            [VOLUME],
            {"kernel_size": [3, 2, 3], "stride": [1, 2, 2], "padding": [1, 1, 1], "count_include_pad": False},
        ),
        Sample([VOLUME], {"kernel_size": [2, 2, 3], "stride": [2, 2, 2], "divisor_override": 5}),
        Sample([VOLUME], {"kernel_size": [4, 5, 6], "stride": [1, 1, 1]}),
    ],
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
    "aten::layer_norm": [
        Sample([X, Const(normal(1, 7)), Const(normal(2, 7))], {"normalized_shape": [7]}),
        Sample([X, None, None], {"normalized_shape": [5, 7], "eps": 0.1}),
        Sample([LINE, Const(normal(1, 9)), None], {"normalized_shape": [9]}, ("onnx", "tflite")),
    ],
    "aten::rms_norm": [
        Sample([X, Const(normal(1, 7))], {"normalized_shape": [7], "eps": 1e-6}),
        Sample([X, None], {"normalized_shape": [5, 7]}),
    ],
    "aten::group_norm": [
        Sample([normal(0, 2, 4, 3, 5), Const(normal(1, 4)), Const(normal(2, 4))], {"num_groups": 2}),
        Sample([LINE, None, Const(normal(2, 4))], {"num_groups": 4, "eps": 0.1}, ("onnx", "tflite")),
        Sample([normal(0, 3, 4), None, None], {"num_groups": 2}, ("onnx", "tflite")),
    ],
    "aten::instance_norm": [
        Sample([X, Const(normal(1, 3)), Const(normal(2, 3))]),
        Sample([VOLUME, None, None], {"eps": 0.1}, ("onnx", "tflite")),
        Sample([LINE, Const(normal(1, 4)), None], {}, ("onnx", "tflite")),
    ],
    "aten::local_response_norm": [
        Sample([normal(0, 2, 7, 3, 5)], {"size": 5, "alpha": 0.3, "beta": 0.75, "k": 2.0}),
        Sample([normal(0, 2, 4, 3)], {"size": 3, "alpha": 0.1}),
    ],
    "aten::_pad_circular": [
        Sample([X], {"pad": [1, 2, 3, 0]}),
        Sample([LINE], {"pad": [9, 0]}, ("onnx", "tflite")),
    ],
    "aten::im2col": [
        Sample([X], {"kernel_size": [3, 2], "dilation": [1, 1], "padding": [1, 0], "stride": [2, 1]}),
        Sample([X], {"kernel_size": [2, 3], "dilation": [2, 2], "padding": [0, 0], "stride": [1, 2]}),
    ],
    "aten::col2im": [
        Sample(
            [normal(0, 2, 18, 9)],
            {
                "output_size": [5, 5],
                "kernel_size": [3, 2],
                "dilation": [1, 1],
                "padding": [1, 1],
                "stride": [2, 2],
            },
            ("onnx", "tflite"),
        ),
        Sample(
            [normal(0, 1, 12, 8)],
            {
                "output_size": [4, 7],
                "kernel_size": [2, 2],
                "dilation": [2, 3],
                "padding": [0, 0],
                "stride": [1, 1],
            },
            ("onnx", "tflite"),
        ),
        Sample(
            [normal(0, 1, 4, 6)],
            {
                "output_size": [5, 3],
                "kernel_size": [2, 2],
                "dilation": [1, 1],
                "padding": [1, 0],
                "stride": [2, 1],
            },
        ),
    ],
    "aten::pixel_shuffle": [
        Sample([normal(0, 2, 8, 3, 5)], {"upscale_factor": 2}),
        Sample([normal(0, 9, 3, 5)], {"upscale_factor": 3}, ("onnx", "tflite")),
    ],
    "aten::pixel_unshuffle": [
        Sample([normal(0, 2, 3, 4, 6)], {"downscale_factor": 2}),
        Sample([normal(0, 2, 2, 3, 3, 6)], {"downscale_factor": 3}, ("onnx", "tflite")),
    ],
    "aten::channel_shuffle": [
        Sample([normal(0, 2, 6, 4, 5)], {"groups": 3}),
        Sample([normal(0, 2, 6, 4)], {"groups": 2}, ("onnx", "tflite")),
    ],
}
