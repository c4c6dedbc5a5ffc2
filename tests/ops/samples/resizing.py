"""Images resized in other ways, sampled and pooled by boxes."""

from tests.ops.harness import normal

from .common import Sample, X

FILES = ("onnx", "tflite")
ROW = normal(0, 2, 3, 5)
VOLUME = normal(0, 1, 2, 3, 4, 5)
MIXED = [
    Sample([X], {"output_size": [10, 4]}, ("onnx",)),
    Sample([X], {"output_size": [3, 14], "align_corners": True}, ("onnx",)),
    Sample([X], {"output_size": [5, 9]}, ("onnx",)),
]

SAMPLES: dict[str, list[Sample]] = {
    "aten::upsample_nearest1d": [
        Sample([ROW], {"output_size": [10]}, FILES),
        Sample([ROW], {"output_size": [3]}, FILES),
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
    ],
    "aten::upsample_trilinear3d": [
        Sample([VOLUME], {"output_size": [6, 4, 10]}, FILES),
        Sample([VOLUME], {"output_size": [2, 5, 3], "align_corners": True}, FILES),
    ],
    "aten::upsample_bicubic2d": MIXED,
    "aten::_upsample_bilinear2d_aa": MIXED,
    "aten::_upsample_bicubic2d_aa": MIXED,
}
