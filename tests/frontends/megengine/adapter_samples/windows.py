"""Convolutions, normalization, pooling, sliding windows: functions, modules and raw operators."""

import numpy as np

from .common import X, numbers, rows

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

NN = rows(__file__, "NN", globals())

MODULES = rows(__file__, "MODULES", globals())


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
OPDEF = rows(__file__, "OPDEF", globals())

SAMPLES = {
    **{f"megengine.functional.nn.{name}": calls for name, calls in NN.items()},
    **{f"megengine.module.{name}": calls for name, calls in MODULES.items()},
    **{f"opdef.{name}": calls for name, calls in OPDEF.items()},
}
