"""Images resized in other ways, sampled and pooled by boxes."""

import numpy as np

from tests.symbolics.ops.harness import Const, normal

from .common import Sample, X

BORDERS = ("replicate", "reflect", "reflect_101", "wrap", "constant")

FILES = ("onnx", "tflite")
ROW = normal(0, 2, 3, 5)
VOLUME = normal(0, 1, 2, 3, 4, 5)
MIXED = [
    Sample([X], {"output_size": [10, 4]}, FILES),
    Sample([X], {"output_size": [3, 14], "align_corners": True}, FILES),
    Sample([X], {"output_size": [5, 9]}, FILES),
    Sample([X], {"output_size": [8, 5], "scales": [1.7, 0.8]}, FILES),
]

PLACES = normal(5, 2, 4, 3, 2) * 5
GRID = normal(6, 2, 4, 3, 2) * np.float32(0.75)

BOXES = np.array([[0, 0.5, 0.5, 4, 4], [1, 1.2, 0, 5.9, 3.3], [0, -1, -1, 2, 2], [1, 3, 3, 2, 2]], np.float32)

SAMPLES: dict[str, list[Sample]] = {
    "aten::upsample_nearest1d": [
        Sample([ROW], {"output_size": [10]}, FILES),
        Sample([ROW], {"output_size": [3]}, FILES),
        Sample([ROW], {"output_size": [8], "scales": [1.7]}, FILES),
    ],
    "aten::upsample_nearest3d": [
        Sample([VOLUME], {"output_size": [6, 4, 10]}, FILES),
        Sample([VOLUME], {"output_size": [2, 5, 3]}, FILES),
    ],
    "aten::_upsample_nearest_exact1d": [Sample([ROW], {"output_size": [7]}, FILES)],
    "aten::_upsample_nearest_exact2d": [Sample([X], {"output_size": [3, 10]}, FILES)],
    "aten::_upsample_nearest_exact3d": [Sample([VOLUME], {"output_size": [2, 5, 3]}, FILES)],
    "aten::upsample_linear1d": [
        Sample([ROW], {"output_size": [10]}, FILES),
        Sample([ROW], {"output_size": [3], "align_corners": True}, FILES),
        Sample([ROW], {"output_size": [8], "scales": [1.7]}, FILES),
    ],
    "aten::upsample_trilinear3d": [
        Sample([VOLUME], {"output_size": [6, 4, 10]}, FILES),
        Sample([VOLUME], {"output_size": [2, 5, 3], "align_corners": True}, FILES),
    ],
    "aten::upsample_bicubic2d": MIXED,
    "aten::_upsample_bilinear2d_aa": MIXED,
    "aten::_upsample_bicubic2d_aa": MIXED,
    "tm::resize": [
        Sample([ROW], {"output_size": [8], "dims": [2], "scales": [1.7], "mode": "linear"}, FILES),
        Sample([ROW], {"output_size": [3], "dims": [2], "coordinates": "asymmetric"}, FILES),
        *(
            Sample([X], {"output_size": [9, 3], "dims": [2, 3], "mode": "linear", "coordinates": each}, FILES)
            for each in ("asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric")
        ),
        *(
            Sample([X], {"output_size": [9, 1], "dims": [2, 3], "rounding": each, "coordinates": to}, FILES)
            for each, to in zip(
                ("floor", "ceil", "round_prefer_ceil"),
                ("tf_half_pixel_for_nn", "pytorch_half_pixel", "align_corners"),
                strict=True,
            )
        ),
        Sample(
            [X],
            {"output_size": [9, 3], "dims": [2, 3], "mode": "cubic", "excludes_outside": True},
            FILES,
        ),
    ],
    "tm::remap": [
        *(Sample([X, PLACES, None], {"border": border, "value": 0.5}, FILES) for border in BORDERS),
        Sample([X, PLACES, None], {"border": "replicate", "mode": "cubic"}, FILES),
        Sample([X, PLACES, None], {"border": "reflect", "mode": "nearest"}, FILES),
        Sample([X, PLACES[:1], np.array([1])], {}, FILES),
        Sample([X, Const(PLACES), Const(np.array([1, 0]))], {}, FILES),
        Sample([X[:, :, :1], PLACES, None], {"border": "reflect_101"}, FILES),
    ],
    "aten::grid_sampler": [
        Sample(
            [X, GRID],
            {"interpolation_mode": mode, "padding_mode": padding, "align_corners": corners},
            FILES,
        )
        for mode, padding, corners in (
            *((0, 0, False), (0, 1, True), (0, 2, False), (0, 2, True)),
            *((1, 0, True), (1, 1, False), (2, 0, False), (2, 1, True)),
        )
    ],
    "torchvision::roi_pool": [
        Sample([X, BOXES], {"output_size": [2, 3]}, FILES),
        Sample([X, BOXES], {"output_size": [1, 2], "spatial_scale": 0.7}, FILES),
    ],
}
