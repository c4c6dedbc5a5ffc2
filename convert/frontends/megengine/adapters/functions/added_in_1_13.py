"""Functions, operators and modules added in MegEngine 1.13.1 to 1.13.4."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.megengine.adapters.functions import sampling, tensor
from tmconvert.frontends.megengine.adapters.functions.elemwise import unary, where
from tmconvert.frontends.megengine.adapters.modules.functional_forms import parameter
from tmconvert.frontends.megengine.adapters.operators import images as image_operators
from tmconvert.frontends.megengine.adapters.values import axis_of, cast, promoted, rank, static_int
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.shared.indexing import places_of
from tmconvert.ir.emitter import Emitter

FUNCTIONS = Table("megengine.functional.")
OPERATORS = Table("opdef.")
MODULES = Table("megengine.module.vision.")

FUNCTIONS.add("elemwise.erf")(unary("ERF"))
OPERATORS.add("Where")(where)


@FUNCTIONS.add("einsum.einsum")
def einsum(g, equation, *args):
    return g.call("aten::einsum", promoted(g, *args), str(equation))


@FUNCTIONS.add("math.cross")
def cross(g, a, b, axisa=-1, axisb=-1, axisc=-1, axis=None):
    """Cross product; a vector of two elements is padded with a zero."""
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = promoted(g, *(_in_space(g, each) for each in (a, b)))
    last = [_axis_last(g, each, place) for each, place in ((a, axisa), (b, axisb))]
    result = g.call("aten::linalg_cross", *last, -1)
    order = list(range(rank(g, result) - 1))
    order.insert(axis_of(g, result, axisc), rank(g, result) - 1)
    return g.call("aten::permute", result, order)


def _in_space(g, vector):
    return g.call("aten::pad", vector, [0, 1]) if g.type(vector).shape == (2,) else vector


def _axis_last(g: Emitter, x, axis: int) -> Any:
    where = axis_of(g, x, axis)
    return g.call("aten::permute", x, [*(i for i in range(rank(g, x)) if i != where), where])


OPERATORS.add("Cross")(lambda g, a, b, *, axisa, axisb, axisc: cross(g, a, b, axisa, axisb, axisc))


@OPERATORS.add("NonZero")
def non_zero_operator(g, condition):
    """[axes, found], int32."""
    zero = g.constant(0, g.type(condition).dtype)
    is_mask = g.type(condition).dtype.kind == "b"
    mask = condition if is_mask else g.call("aten::ne", condition, zero)
    return tensor.stack(g, [cast(g, places, np.int32) for places in places_of(g, mask)], 0)


@FUNCTIONS.add("tensor.non_zero")
def non_zero(g, condition, as_tuple=False):
    places = non_zero_operator(g, condition)
    if as_tuple:
        return [g.call("aten::select", places, 0, i) for i in range(rank(g, condition))]
    return g.call("aten::permute", places, [1, 0])


# ---- images


@OPERATORS.add("Flip")
@FUNCTIONS.add("vision.flip")
def flip(g, inp, vertical=True, horizontal=True):
    """Flips images [N, H, W, C] vertically and horizontally."""
    axes = [axis for axis, wanted in ((1, vertical), (2, horizontal)) if wanted]
    return g.call("aten::flip", _image(g, inp), axes) if axes else inp


@OPERATORS.add("Rotate")
@FUNCTIONS.add("vision.rot90")
def rot90(g, inp, clockwise=True):
    """Rotates images [N, H, W, C] to [N, W, H, C]."""
    transposed = g.call("aten::permute", _image(g, inp), [0, 2, 1, 3])
    return g.call("aten::flip", transposed, [2 if clockwise else 1])


def _image(g, inp):
    if rank(g, inp) != 4:
        raise Refusal(f"an image must have four axes, got {g.type(inp)}")
    return inp


@FUNCTIONS.add("vision.resize")
def resize(g, inp, size, format="NCHW", imode="bilinear", max_size=None):
    mode = imode.removeprefix("bi") if imode in ("bilinear", "bicubic") else imode
    if max_size is not None:
        size = [min(static_int(g, each), static_int(g, max_size)) for each in size]
    return image_operators.resize(g, inp, size, format=format, imode=mode)


@FUNCTIONS.add("vision.rotate")
def rotate(g, inp, angle=0.0, format="NCHW", interp_mode="bilinear"):
    """Rotates around the centre of the image by an angle in degrees, with zeros outside."""
    if (format, interp_mode) != ("NCHW", "bilinear"):
        raise Refusal(f"rotate in format {format!r} with mode {interp_mode!r} is not supported", "use NCHW")
    height, width = g.type(_image(g, inp)).shape[2:]
    cos, sin = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    middle = (width - 1) / 2, (height - 1) / 2
    matrix = [
        [cos, -sin, (1 - cos) * middle[0] + sin * middle[1]],
        [sin, cos, -sin * middle[0] + (1 - cos) * middle[1]],
    ]
    rows = g.constant(np.array([matrix] * int(g.type(inp).shape[0]), np.float32))
    return sampling.warp_affine(g, inp, rows, (height, width), "constant", 0.0, format, "linear")


# ---- modules


@MODULES.add("Flip")
def flip_module(g, module, inp):
    return flip(g, inp, module.attributes["vertical"], module.attributes["horizontal"])


MODULES.add("Rot90")(lambda g, module, inp: rot90(g, inp, module.attributes["clockwise"]))


@MODULES.add("Resize")
def resize_module(g, module, inp):
    size = parameter(g, module, "size")
    return resize(g, inp, size, module.attributes["format"], module.attributes["imode"])


@MODULES.add("Rotate")
def rotate_module(g, module, inp):
    return rotate(g, inp, *(module.attributes[name] for name in ("angle", "format", "interp_mode")))


@MODULES.add("Remap")
def remap_module(
    g, module, inp, map_1, map_2, interpolation="linear", borderMode="replicate", borderValue=0.0
):
    """Remaps by coordinates in one tensor, or x and y in two."""
    alone = not all(g.type(map_2).shape)
    places = map_1 if alone else tensor.stack(g, [map_1, map_2], rank(g, map_1))
    return sampling.remap(g, inp, places, borderMode, borderValue, interpolation)
