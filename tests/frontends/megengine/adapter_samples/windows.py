"""Convolutions, normalization, pooling, sliding windows: functions, modules and raw operators."""

import numpy as np

from .common import ADAPTIVE, CHANNEL, CUBE, POOLING, SMALL, Known, X, call, made, numbers

LINE = numbers(2, 4, 9)
VOLUME = numbers(2, 4, 4, 5, 6)
HALF = X.astype(np.float16)
SIGNS = np.sign(numbers(4, 3, 2, 2)).astype(np.float16)  # sums of products are exact
PLACES = numbers(2, 4, 5, 6)
REGIONS = np.arange(60).reshape(2, 5, 6).astype(np.int32) // 7 % 3
OTHER_REGIONS = np.arange(60).reshape(2, 5, 6).astype(np.int32) // 4 % 3
OFFSETS = numbers(1, 18, 5, 6) / 4
MASK = numbers(1, 9, 5, 6, seed=2)
AFFINE = (numbers(4), numbers(4, seed=2))
BIAS = numbers(1, 3, 1, 1)
SPREAD = numbers(4, 3, 3, 2)
SPREAD_3D = numbers(4, 3, 2, 3, 2)
BY_CHANNEL = numbers(4, 1, 1, 3, 3)

NN = {
    "conv2d": [
        call(numbers(1, 4, 5, 6), numbers(2, 3, 2, 2, 3), groups=Known(2)),
        call(X, numbers(4, 3, 3, 2)),
        call(X, numbers(4, 3, 3, 2), numbers(1, 4, 1, 1), (2, 1), (1, 0)),
        call(X, numbers(4, 3, 2, 2), None, stride=2, padding=1, dilation=(1, 2)),
        call(X, numbers(3, 2, 1, 3, 3), numbers(1, 6, 1, 1), padding=1, groups=3),
        call(numbers(1, 4, 5, 6), numbers(2, 3, 2, 2, 3), bias=None, groups=2),
        call(X, numbers(4, 3, 1, 1), conv_mode="cross_correlation", compute_mode="default"),
        call(X.astype(np.float16), SIGNS),
        call(X.astype(np.float16), numbers(4, 3, 2, 2), numbers(1, 4, 1, 1)),
        call(X, SIGNS),
        call(X.astype(np.float16), SIGNS, numbers(1, 4, 1, 1)),
        call(X, numbers(4, 3, 2, 2), numbers(6)),
        call(X, numbers(4, 3, 2, 2), numbers(1)),
        call(X, numbers(3, 4, 1, 2, 2), None, [2, 1], [1, 2], [1, 2], 3),
    ],
    "batch_norm": [
        call(X, CHANNEL, np.abs(CHANNEL) + 1, numbers(1, 3, 1, 1, seed=1), numbers(1, 3, 1, 1, seed=2)),
        call(X, CHANNEL, np.abs(CHANNEL) + 1, training=False),
        call(X, CHANNEL, np.abs(CHANNEL) + 1, numbers(1, 3, 1, 1), numbers(1, 3, 1, 1, seed=2), eps=0.5),
        call(CUBE, CHANNEL, np.abs(CHANNEL) + 1, numbers(1, 3, 1, 1), numbers(1, 3, 1, 1, seed=2)),
        call(numbers(4, 3), CHANNEL, np.abs(CHANNEL) + 1),
        call(X, CHANNEL, np.abs(CHANNEL) + 1, numbers(3), numbers(3, seed=2)),
        call(X, training=True),
        call(X, None, None, numbers(1, 3, 1, 1), numbers(1, 3, 1, 1, seed=2), training=True, eps=0.5),
        call(CUBE, training=True),
    ],
    "max_pool2d": [
        *POOLING,
        call(X, 2, 2, 2),
        call((numbers(1, 2, 4, 5) * 4).astype(np.int8), 3, 2, 1),
    ],
    "avg_pool2d": [
        *POOLING,
        call(X, 3, 2, 1, "average"),
        call(X, 3, 2, 1, mode="average_count_exclude_padding"),
        call(X, (3, 2), (1, 2), (0, 1), mode="average"),
        call(X, (2, 1), 2, (2, 0), "average"),
        call(X.astype(np.float16), 3, 2, 1),
    ],
    "adaptive_avg_pool2d": ADAPTIVE,
    "adaptive_max_pool2d": ADAPTIVE,
    "conv1d": [
        call(LINE, numbers(6, 4, 3)),
        call(LINE, numbers(6, 4, 3), numbers(1, 6, 1), 2, 1, 2),
        call(LINE, numbers(6, 4, 1), bias=None, padding=1),
        call(LINE.astype(np.float16), np.sign(numbers(6, 4, 3)).astype(np.float16)),
    ],
    "conv3d": [
        call(VOLUME, numbers(6, 4, 3, 2, 3), numbers(1, 6, 1, 1, 1), (1, 2, 1), 1, (1, 2, 1)),
        call(VOLUME, numbers(2, 3, 2, 3, 2, 3), None, 1, (1, 0, 2), groups=2),
        call(VOLUME, numbers(6, 4, 1, 2, 2), stride=2),
    ],
    "conv_transpose2d": [
        call(SMALL, SPREAD),
        call(SMALL, SPREAD, BIAS, (2, 3), (1, 0)),
        call(SMALL, SPREAD, BIAS, (2, 3), (1, 0), (1, 2), (1, 1)),
        call(SMALL, SPREAD, None, (2, 3), (1, 0), (0, 1), (1, 1)),
        call(SMALL, SPREAD, None, (2, 3), (1, 0), (1, 0), (1, 1)),
        call(SMALL, numbers(2, 2, 3, 3, 2), numbers(1, 6, 1, 1), 2, 1, groups=2),
        call(SMALL, numbers(4, 1, 2, 3, 3), stride=2, groups=4),
        call(SMALL, SPREAD, dilation=(2, 1), padding=1),
        call(SMALL, SPREAD, numbers(1)),
        call(SMALL.astype(np.float16), np.sign(SPREAD).astype(np.float16)),
    ],
    "conv_transpose3d": [
        call(VOLUME, SPREAD_3D, numbers(1, 3, 1, 1, 1), (1, 2, 3), (0, 1, 1)),
        call(VOLUME, SPREAD_3D, None, (1, 2, 3), (0, 1, 1), (0, 0, 1), (1, 1, 1)),
        call(VOLUME, numbers(2, 2, 3, 2, 1, 2), None, 2, groups=2),
        call(VOLUME, SPREAD_3D, dilation=2),
    ],
    "local_conv2d": [
        call(SMALL, numbers(1, 3, 5, 4, 3, 2, 6)),
        call(SMALL, numbers(1, 3, 3, 4, 3, 3, 3), None, 2, 1),
        call(SMALL, numbers(1, 5, 6, 4, 3, 3, 2), numbers(1, 2, 1, 1), padding=(1, 1)),
    ],
    "deformable_conv2d": [
        call(SMALL, numbers(6, 4, 3, 3), OFFSETS, MASK, None, 1, 1),
        call(SMALL, numbers(2, 3, 2, 3, 3), OFFSETS, MASK, numbers(1, 6, 1, 1), padding=1, groups=2),
        call(SMALL, numbers(4, 4, 2, 2), numbers(1, 16, 2, 3) / 8, numbers(1, 8, 2, 3), None, 2, 0, (2, 1)),
    ],
    "region_restricted_conv": [
        call(PLACES, BY_CHANNEL, REGIONS, OTHER_REGIONS, None, 1, 1, 1, 4),
        call(PLACES, BY_CHANNEL, REGIONS, OTHER_REGIONS, numbers(1, 4, 1, 1), padding=1, groups=4),
    ],
    "sliding_window": [
        call(X, 2),
        call(X, (3, 2), 1, 2, 1),
        call(X, (2, 3), (1, 0), (2, 1), (2, 1)),
        call((X * 8).astype(np.int32), 3, padding=1),
        call((X * 8).astype(np.int8), 3, stride=2),
        call(HALF, 2),
    ],
    "sliding_window_transpose": [
        call(numbers(2, 4, 3, 3, 3, 2), (5, 5), (3, 2), 1, 2, 1),
        call(numbers(1, 2, 4, 5, 2, 2), (5, 6), 2),
        call(numbers(1, 2, 3, 2, 2, 3), 5, (2, 3), padding=(0, 1), dilation=(2, 2), stride=(1, 2)),
    ],
    "layer_norm": [
        call(CUBE, (4,), False),
        call(CUBE, (4,), True, *AFFINE),
        call(X, (5, 7), True, numbers(5, 7), numbers(5, 7, seed=1), 0.5),
        call(X, 7, False, None, None, eps=1e-3),
        call(CUBE, (4,), False, *AFFINE),
        call(numbers(2, 4), (4,), True, *AFFINE),
        call(CUBE.astype(np.float16), (4,), False),
        call(VOLUME, (4, 4, 5, 6), False),
    ],
    "general_norm": [
        call(X, (2, 3), True, numbers(5, 7), numbers(5, 7, seed=1)),
        call(X, (1, 3), True, numbers(3, 7), numbers(3, 7, seed=1)),
        call(X, (0, -2), False),
        call(X, -1, False, eps=0.5),
        call(X, [1], affine=True, weight=numbers(3), bias=numbers(3, seed=1)),
        call(VOLUME, (1, 2, 4), False),
    ],
    "group_norm": [
        call(SMALL, 2, False),
        call(SMALL, 4, True, *AFFINE),
        call(SMALL, num_groups=1, affine=True, weight=numbers(4), bias=numbers(4), eps=0.5),
        call(SMALL.astype(np.float16), 2, False),
    ],
    "instance_norm": [
        call(SMALL, False),
        call(SMALL, True, *AFFINE),
        call(SMALL, affine=False, weight=numbers(4), bias=numbers(4), eps=0.5),
    ],
    "local_response_norm": [
        call(SMALL),
        call(SMALL, 3, 2.0, 0.001, 0.5),
        call(numbers(1, 9, 3, 2), kernel_size=7, k=1.5, alpha=0.25, beta=1.25),
    ],
    "sync_batch_norm": [
        call(X, CHANNEL, np.abs(CHANNEL) + 1, BIAS, numbers(1, 3, 1, 1, seed=1)),
        call(X, CHANNEL, np.abs(CHANNEL), eps=0.5, eps_mode="max"),
    ],
    "pixel_shuffle": [
        call(SMALL, 2),
        call(numbers(9, 2, 3), 3),
        call(numbers(2, 3, 8, 2, 3), upscale_factor=2),
        call(SMALL, 1),
        call((SMALL * 8).astype(np.int32), 2),
    ],
}

MODULES = {
    "conv.Conv2d": [
        made(4, 3, 3)(SMALL),
        made(4, 3, (3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 2), bias=False)(SMALL),
        made(4, 6, 3, padding=1, groups=2)(SMALL),
        made(4, 4, (2, 3), groups=4)(SMALL),
        made(4, 8, 3, padding=(1, 2), groups=4, bias=False)(SMALL),
        made(4, 3, 3, padding=(1, 2), padding_mode="reflect")(SMALL),
        made(4, 3, 3, padding=(2, 1), padding_mode="replicate")(SMALL),
        made(4, 3, 3, padding=0, padding_mode="reflect")(SMALL),
    ],
    "conv.ConvRelu2d": [made(4, 3, 3)(SMALL), made(4, 4, 3, 2, 1, groups=2, bias=False)(SMALL)],
    "conv_bn.ConvBn2d": [
        made(4, 3, 3)(SMALL),
        made(4, 4, 3, padding=1, groups=4, bias=False, eps=0.5)(SMALL),
    ],
    "conv_bn.ConvBnRelu2d": [
        made(4, 3, 3)(SMALL),
        made(4, 4, 3, groups=2, padding=1, padding_mode="reflect")(SMALL),
    ],
    "batchnorm.BatchNorm1d": [
        made(4)(numbers(2, 4)),
        made(4)(numbers(2, 4, 5)),
        made(4, affine=False)(numbers(2, 4)),
        made(4, track_running_stats=False)(numbers(3, 4, 5)),
    ],
    "batchnorm.BatchNorm2d": [
        made(4)(SMALL),
        made(4, eps=0.5)(SMALL),
        made(4, affine=False)(SMALL),
        made(4, freeze=True)(SMALL),
        made(4, track_running_stats=False)(SMALL),
        made(4, affine=False, freeze=True, eps=0.5)(SMALL),
    ],
    "batchnorm.SyncBatchNorm": [
        made(4)(SMALL),
        made(4, affine=False)(SMALL),
        made(4)(numbers(2, 4)),
        made(4)(numbers(2, 4, 5)),
        made(4, freeze=True)(SMALL),
    ],
    "pooling.MaxPool2d": [made(2)(X), made((3, 2), (2, 1), (1, 0))(X), made(3, stride=1, padding=1)(X)],
    "pooling.AvgPool2d": [made(2)(X), made((3, 2), (2, 1), (1, 0))(X), made(3, 2, 1, mode="average")(X)],
    "adaptive_pooling.AdaptiveAvgPool2d": [made(2)(X), made((2, 3))(X)],
    "adaptive_pooling.AdaptiveMaxPool2d": [made(2)(X), made((3, 5))(X)],
    "conv.Conv1d": [
        made(4, 6, 3)(LINE),
        made(4, 6, 3, 2, 1, 2, bias=False)(LINE),
        made(4, 6, 3, padding=2, padding_mode="reflect")(LINE),
        made(4, 6, 3, padding=2, padding_mode="replicate")(LINE),
    ],
    "conv.Conv3d": [made(4, 6, 2)(VOLUME), made(4, 6, (1, 2, 3), (1, 2, 1), 1, groups=2, bias=False)(VOLUME)],
    "conv.ConvTranspose2d": [
        made(4, 6, 3)(SMALL),
        made(4, 6, 3, 2, 1, 1)(SMALL),
        made(4, 6, 3, 2, 1, (0, 1))(SMALL),
        made(4, 6, 3, 2, 1, groups=2, bias=False)(SMALL),
        made(4, 6, (3, 2), dilation=2)(SMALL),
    ],
    "conv.ConvTranspose3d": [made(4, 6, 2, 2, 1)(VOLUME), made(4, 6, 2, 2, 1, (0, 0, 1), bias=False)(VOLUME)],
    "conv.ConvTransposeRelu2d": [made(4, 6, 3, 2)(SMALL)],
    "conv.LocalConv2d": [made(4, 6, 5, 6, 3, 1, 1)(SMALL), made(4, 6, 5, 6, 3, 2, 1)(SMALL)],
    "conv.DeformableConv2d": [
        made(4, 6, 3, padding=1)(SMALL, OFFSETS, MASK),
        made(4, 6, 3, padding=1, groups=2, bias=False)(SMALL, OFFSETS, MASK),
    ],
    "conv.RegionRestrictedConv": [made(4, 4, 3, groups=4, padding=1)(PLACES, REGIONS, OTHER_REGIONS)],
    "conv_transpose_bn.ConvTransposeBn2d": [made(4, 6, 3, 2, 1)(SMALL), made(4, 6, 3, groups=2)(SMALL)],
    "conv_transpose_bn.ConvTransposeBnRelu2d": [made(4, 6, 3, 2, 1, bias=False)(SMALL)],
    "sliding_window.SlidingWindow": [made(2)(X), made((3, 2), 1, 2)(X)],
    "sliding_window.SlidingWindowTranspose": [made((5, 5), (3, 2), 1, 2)(numbers(2, 4, 3, 3, 3, 2))],
    "pixel_shuffle.PixelShuffle": [made(2)(SMALL)],
    "lrn.LocalResponseNorm": [made()(SMALL), made(3, 1.0, 0.5, 0.5)(SMALL)],
    "normalization.LayerNorm": [made(6)(SMALL), made((5, 6), 0.5)(SMALL), made(4, affine=False)(CUBE)],
    "normalization.GroupNorm": [made(2, 4)(SMALL), made(4, 4, 0.5, affine=False)(SMALL)],
    "normalization.InstanceNorm": [made(4)(SMALL), made(4, 0.5, False)(SMALL)],
    "normalization.GeneralNorm": [
        made((4, 6), (1, 3))(SMALL),
        made((6,), (-1,), 0.5)(SMALL),
        made((5, 6), (2, 3), affine=False)(SMALL),
    ],
}


def each(name, *sizes):
    """{"pad_h": ..., "pad_w": ...}; three sizes are those of d, h and w."""
    return {f"{name}_{'dhw'[i - len(sizes)]}": size for i, size in enumerate(sizes)}


def geometry(stride, pad, dilate, sparse="DENSE"):
    return {**each("stride", *stride), **each("pad", *pad), **each("dilate", *dilate), "sparse": sparse}


PLAIN = geometry((1, 1), (0, 0), (1, 1))
AROUND = geometry((1, 1), (1, 1), (1, 1))
GROUPED = geometry((1, 1), (1, 1), (1, 1), "GROUP")
UNEVEN = geometry((2, 1), (1, 0), (1, 2))
UNEVEN_3D = geometry((2, 1, 1), (1, 0, 0), (1, 2, 1))
WINDOW = {**each("window", 3, 2), **each("pad", 1, 0), **each("stride", 2, 1)}
OPDEF = {
    "Convolution": [
        call(SMALL, numbers(3, 4, 3, 2), **UNEVEN),
        call(SMALL, numbers(2, 3, 2, 3, 2), mode="CROSS_CORRELATION", **GROUPED),
    ],
    "ConvolutionBackwardData": [
        call(SPREAD, SMALL, **UNEVEN),
        call(numbers(2, 2, 3, 3, 2), SMALL, **GROUPED),
        call(numbers(2, 2, 3, 3, 2), SMALL, mode="CONVOLUTION", **GROUPED),
    ],
    "Convolution3D": [
        call(VOLUME, numbers(3, 4, 3, 2, 1), mode=mode, **UNEVEN_3D)
        for mode in ("CROSS_CORRELATION", "CONVOLUTION")
    ],
    "Convolution3DBackwardData": [
        call(numbers(4, 3, 3, 2, 1), VOLUME, mode=mode, **UNEVEN_3D)
        for mode in ("CROSS_CORRELATION", "CONVOLUTION")
    ],
    "DeformableConv": [call(SMALL, numbers(6, 4, 3, 3), OFFSETS, MASK, **AROUND)],
    "GroupLocal": [call(SMALL, numbers(1, 3, 5, 4, 3, 2, 6), **PLAIN)],
    "RegionRestrictedConvolution": [call(PLACES, BY_CHANNEL, REGIONS, OTHER_REGIONS, **GROUPED)],
    "Pooling": [call(X, mode=mode, **WINDOW) for mode in ("MAX", "AVERAGE", "AVERAGE_COUNT_EXCLUDE_PADDING")],
    "AdaptivePooling": [call(X, Known(2, 5), mode=mode, shape=[]) for mode in ("MAX", "AVERAGE")],
    "Images2Neibs": [call(X, **WINDOW, **each("dilate", 1, 2))],
    "SlidingWindowTranspose": [
        call(numbers(2, 4, 3, 5, 3, 2), **each("out", 5, 7), **WINDOW, **each("dilate", 1, 2))
    ],
    "PixelShuffle": [call(SMALL, factor=2)],
    "LRN": [call(SMALL, n=3, k=1.5, alpha=0.5, beta=0.75)],
    "Padding": [
        call(CUBE, front_offset_dim1=2, back_offset_dim2=1, padding_mode="CONSTANT", padding_val=1.5),
        call(CUBE, front_offset_dim1=2, back_offset_dim2=1, padding_mode="REFLECT"),
    ],
}

SAMPLES = {
    **{f"megengine.functional.nn.{name}": calls for name, calls in NN.items()},
    **{f"megengine.module.{name}": calls for name, calls in MODULES.items()},
    **{f"opdef.{name}": calls for name, calls in OPDEF.items()},
}
