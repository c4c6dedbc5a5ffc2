"""How quantization packages store matrices of integers in safetensors: one layout a row of a table.

Sources: the code of GPTQModel, AutoAWQ, AutoRound and compressed-tensors, and the files that they write.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from tmconvert.ir.fake_quant import IntegerMatrix

_WORD = 32  # bits


class Layout(NamedTuple):
    """The layout of a matrix [N, K] in groups along K.

    ``weight``, ``scale``, ``zero_point`` and ``order`` are the endings of names of tensors; ``order`` has the
    group of each column. Words of 32 bits hold the elements along ``axis`` of ``weight``, and along
    ``zero_axis`` of ``zero_point``, from the lowest bits on; None stands for elements that are not packed.
    ``places`` are the elements of a word, where they are not in order. ``is_transposed`` is true for tensors
    of shape [K, N]. ``zero_offset`` is added to zero points. ``is_signed`` is true for integers with a sign,
    to which packing adds 2^(bits - 1).
    """

    weight: str
    scale: str
    zero_point: str
    order: str = ""
    others: tuple[str, ...] = ()
    axis: int | None = 1
    zero_axis: int | None = 1
    places: tuple[int, ...] = ()
    is_transposed: bool = False
    zero_offset: int = 0
    is_signed: bool = False

    @property
    def endings(self) -> tuple[str, ...]:
        return tuple(each for each in (self.weight, self.scale, self.zero_point, self.order) if each) + (
            self.others
        )


_GPTQ = Layout("qweight", "scales", "qzeros", "g_idx", axis=0, is_transposed=True)
_COMPRESSED = Layout("weight_packed", "weight_scale", "weight_zero_point", "weight_g_idx", ("weight_shape",))
_INTEGERS = Layout("weight", "weight_scale", "weight_zero_point", "weight_g_idx", axis=None, zero_axis=None)
LAYOUTS: Mapping[str, Layout] = {
    "gptq": _GPTQ._replace(zero_offset=1),
    "gptq_v2": _GPTQ,
    "awq": Layout("qweight", "scales", "qzeros", places=(0, 2, 4, 6, 1, 3, 5, 7), is_transposed=True),
    "pack-quantized": _COMPRESSED._replace(zero_axis=0, is_signed=True),
    "int-quantized": _INTEGERS,
    "naive-quantized": _INTEGERS,
}


class Scheme(NamedTuple):
    """A layout, and the bits of an integer in it."""

    layout: Layout
    bits: int


def scheme_of(config: object) -> Scheme | str:
    """Returns the scheme of a ``quantization_config``, or why its weights cannot be read.

    >>> scheme_of({"quant_method": "gptq", "bits": 4}).layout.weight
    'qweight'
    >>> scheme_of({"quant_method": "bitsandbytes"})
    "there is no layout of the method 'bitsandbytes'"
    """
    if not isinstance(config, Mapping):
        return "it is not a mapping"
    method, bits = config.get("quant_method"), config.get("bits")
    name: Any = method
    if method == "gptq":
        name = config.get("checkpoint_format") or "gptq"
        if config.get("dynamic"):
            return "its modules differ in bits (dynamic)"
    elif method == "awq" and config.get("version", "gemm") not in ("gemm", "GEMM"):
        return f"its version is {config['version']!r:.40}, not gemm"
    elif method == "auto-round":
        packing = str(config.get("packing_format", ""))
        name = next((each for each in ("awq", "gptq") if each in packing), packing)
        if config.get("extra_config"):
            return "its modules differ in bits (extra_config)"
    elif method == "compressed-tensors":
        return _compressed_scheme(config)
    if not isinstance(name, str) or name not in LAYOUTS or LAYOUTS[name].axis is None:
        return f"there is no layout of the method {name!r:.40}"
    if bits not in (4, 8) or (name == "awq" and bits != 4):
        return f"its integers have {bits!r:.40} bits"
    return Scheme(LAYOUTS[name], bits)


def _compressed_scheme(config: Mapping[str, Any]) -> Scheme | str:
    name, groups = config.get("format"), config.get("config_groups")
    if not isinstance(name, str) or name not in LAYOUTS or not isinstance(groups, Mapping):
        return f"there is no layout of the format {name!r:.40}"
    found: set[Any] = set()
    for group in groups.values():
        weights = group.get("weights") if isinstance(group, Mapping) else None
        if not isinstance(weights, Mapping) or weights.get("type", "int") != "int":
            return "some of its weights are of another type than integers"
        if group.get("input_activations") or group.get("output_activations"):
            return "it quantizes activations, too"
        found.add(weights.get("num_bits"))
    if len(found) != 1 or not found <= {4, 8}:
        return f"its integers have {sorted(map(str, found))} bits"
    return Scheme(LAYOUTS[name], found.pop())


def matrix_of(scheme: Scheme, tensors: Mapping[str, np.ndarray]) -> IntegerMatrix | str:
    """Returns the matrix in ``tensors``, by the endings of their names; or why they do not hold one."""
    try:
        return _matrix(scheme, tensors)
    except (ValueError, IndexError, TypeError) as error:  # of tensors whose shapes or types contradict
        return f"its tensors do not fit: {error!s:.200}"


def _matrix(scheme: Scheme, tensors: Mapping[str, np.ndarray]) -> IntegerMatrix | str:
    layout, bits = scheme
    words, scale = tensors[layout.weight], tensors[layout.scale].astype(np.float32)
    values = _elements(words, bits, layout.axis, layout.places)
    zeros = tensors.get(layout.zero_point)
    if zeros is not None:
        zeros = _elements(zeros, bits, layout.zero_axis, layout.places)
        zeros = zeros + np.uint8(layout.zero_offset) if zeros.dtype == np.uint8 else zeros
    if layout.is_transposed:
        values, scale = values.T, scale.T
        zeros = None if zeros is None else zeros.T
    shape = tensors.get("weight_shape")
    if shape is not None:
        values = values[:, : int(shape[-1])]
        zeros = None if zeros is None else zeros[: int(shape[0])]
    scale = scale.reshape(-1, 1) if scale.ndim < 2 else scale
    rows, columns = values.shape
    if values.dtype not in (np.int8, np.uint8):
        return f"its integers are {values.dtype}"
    if scale.shape[0] not in (1, rows) or not scale.shape[1] or columns % scale.shape[1]:
        return f"scales of shape {scale.shape} do not divide integers of shape {values.shape}"
    scale = np.ascontiguousarray(np.broadcast_to(scale, (rows, scale.shape[1])))
    if zeros is not None and zeros.size != scale.size:
        return f"{zeros.size} zero points belong to {scale.size} scales"
    if layout.is_signed and values.dtype == np.uint8:
        values = _signed(values, bits)
        zeros = None if zeros is None else _signed(zeros, bits)
    if zeros is not None:
        zeros = np.ascontiguousarray(zeros.reshape(scale.shape))
        zeros = zeros if zeros.any() or values.dtype == np.uint8 else None
    order = _order(tensors.get(layout.order), columns, scale.shape[1])
    if isinstance(order, str):
        return order
    values = values if order is None else values[:, order]
    return IntegerMatrix(np.ascontiguousarray(values), scale, zeros, order)


def _signed(integers: np.ndarray, bits: int) -> np.ndarray:
    return (integers.astype(np.int16) - (1 << (bits - 1))).astype(np.int8)


def _order(groups: np.ndarray | None, columns: int, count: int) -> np.ndarray | str | None:
    """Returns the columns by their group; None where they are in order."""
    if groups is None or groups.size != columns or groups.min() < 0:
        return None
    order = np.argsort(groups, kind="stable")
    if not np.array_equal(groups[order], np.repeat(np.arange(count), columns // count)):
        return "its groups are of different sizes"
    return None if np.array_equal(order, np.arange(columns)) else order


def _elements(array: np.ndarray, bits: int, axis: int | None, places: tuple[int, ...]) -> np.ndarray:
    """Returns the integers in words of 32 bits along an axis; others as they are."""
    if axis is None or array.dtype != np.int32:
        return array
    words = np.moveaxis(array, axis, -1)
    count = _WORD // bits
    made = np.empty((*words.shape, count), np.uint8)
    for number in range(count):
        place = places[number] if places else number
        made[..., place] = (words >> (bits * number)) & ((1 << bits) - 1)
    return np.moveaxis(made.reshape(*words.shape[:-1], -1), -1, axis)
