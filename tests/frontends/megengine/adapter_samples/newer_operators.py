"""Operators and functions on boxes, masks, packed tensors; attention."""

import numpy as np

from .common import X, call, made, numbers, rows

CHANNELS = numbers(2, 4, 6, 7)
PARTS = np.array([[0, 0, 0, 4, 4], [1, 1.5, 1, 5, 3], [1, -3, 2, 2, 9]], np.float32)
MOVES = numbers(3, 2, 2, 2)
RECTANGLES = np.array(
    [
        [[0, 0, 10, 10], [1, 1, 10, 10], [20, 20, 30, 30], [0, 0, 1, 1]],
        [[0, 0, 10, 10], [1, 1, 10, 10], [2, 2, 10, 10], [0, 0, 1, 1]],
    ],
    np.float32,
)
QUERY, KEY = numbers(2, 3, 8), numbers(2, 5, 8, seed=1)
PACKED = numbers(4 * 64 + 32, seed=2) / 8
SIZES = ("embeding_size", "k_size", "v_size", "qproj_size", "kproj_size", "vproj_size", "oproj_size")
PACKING = {"offsets": [0, 12, 12, 17]}


def pooled(no_trans, part, size, *args):
    shape = (part, part) if isinstance(size, int) else size
    moves = numbers(3, 2, *shape) / 4
    return [
        call(CHANNELS, PARTS, moves, no_trans, part, *shape, *args),
        call(CHANNELS, PARTS, moves, no_trans, part, *shape, *args, trans_std=0.3),
    ]


def attention(mask=(), **changes):
    state = {
        **dict.fromkeys(SIZES, 8),
        **dict.fromkeys(("qbias", "kbias", "vbias", "obias", "need_weights"), True),
        **dict.fromkeys(("reslink", "training", "add_zero_attn"), False),
        **dict.fromkeys(("attn_prob", "out_prob"), 0.0),
        "num_heads": 2,
        "sm_scaler": 0.5,
        "input_order": 0,
        "attn_mask_type": "user_defined_mask" if mask else "no_mask",
        "tensor_combination_type": "only_mask" if mask else "none",
    }
    return call(QUERY, KEY, KEY, PACKED, *mask, **{**state, **changes})


POOLED = [
    *pooled(False, 2, 2, 2, 1.0),
    *pooled(False, 3, 3, 3, 0.5),
    *pooled(True, 2, (3, 1), 2, 1.0),
    *pooled(False, 1, 1, 1, 2.0),
]
PSROI = {
    "no_trans": False,
    "part_size": 2,
    "pooled_h": 2,
    "pooled_w": 2,
    "sample_per_part": 2,
    "spatial_scale": 0.5,
    "trans_std": 0.1,
}
FUNCTIONS = {
    "functional.nn.deformable_psroi_pooling": POOLED,
    "module.deformable_psroi_pooling.DeformablePSROIPooling": [
        made(**PSROI)(CHANNELS, PARTS, MOVES),
    ],
    "module.quant_dequant.QuantStub": [made()(X)],
    "module.quant_dequant.DequantStub": [made()(X)],
    "functional.nn.layerPixelShuffle_traceable": [call(CHANNELS, 2)],
}
OPERATORS = rows(__file__, "OPERATORS", globals())
# MegEngine 1.13.0 does not have them: tests/frontends/megengine/test_newest.py
NEWEST = [
    *("megengine.functional.einsum.einsum", "megengine.functional.elemwise.erf"),
    *("megengine.functional.math.cross", "megengine.functional.tensor.non_zero"),
    *(f"megengine.functional.vision.{name}" for name in ("flip", "resize", "rot90", "rotate")),
    *(f"megengine.module.vision.{name}" for name in ("Flip", "Remap", "Resize", "Rot90", "Rotate")),
    *(f"opdef.{name}" for name in ("Cross", "Flip", "NonZero", "Rotate", "Where")),
]

SAMPLES = {
    **dict.fromkeys(NEWEST, ()),
    **{f"megengine.{name}": calls for name, calls in FUNCTIONS.items()},
    **{f"opdef.{name}": calls for name, calls in OPERATORS.items()},
}
