"""Fake quantization: QParams of observers and fake quants, and their application."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.megengine.adapters.quantized.observers import HELP, OBSERVERS, Scales, scalar
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.shared.recorded_qparams import integers_of_range
from tmconvert.ir import QParams, TracedModule
from tmconvert.ir.emitter import Emitter
from tmconvert.ir.fake_quant import fake_quantize

FUNCTIONS = Table()


class Quantizer(NamedTuple):
    """QParams of an observer and a fake quant. ``applied`` is whether values are rounded.

    ``scale`` and ``zero_point`` are arrays that MegEngine would broadcast against the tensor.
    """

    dtype: str
    quant_min: int
    quant_max: int
    scale: np.ndarray
    zero_point: np.ndarray
    symmetric: bool
    source: str
    applied: bool

    def qparams(self, rank: int) -> QParams:
        """Returns QParams for a tensor of ``rank`` axes. Raises Refusal."""
        scale, zero_point = np.broadcast_arrays(self.scale, self.zero_point)
        long = [axis - scale.ndim for axis, extent in enumerate(scale.shape) if extent != 1]
        if len(long) > 1 or (long and -long[0] > rank):
            raise Refusal(
                f"the scale has shape {list(scale.shape)}; it must have one element, or one per channel "
                "along a single axis"
            )
        if not np.isfinite(zero_point).all() or (zero_point != np.rint(zero_point)).any():
            raise Refusal("a zero point is not an integer", HELP)
        return QParams(
            self.dtype,
            tuple(map(float, scale.reshape(-1))),
            tuple(map(int, zero_point.reshape(-1))),
            self.quant_min,
            self.quant_max,
            rank + long[0] if long else None,
            self.symmetric,
            self.source,
        )

    def is_grouped(self, rank: int) -> bool:
        """Whether channels cover the first two axes, as in the weight of a grouped convolution."""
        shape = np.broadcast_shapes(self.scale.shape, self.zero_point.shape)
        return len(shape) == rank and min(shape[:2]) > 1

    def merged(self) -> Quantizer:
        """Returns the quantizer of a tensor whose first two axes were merged."""
        scale, zero_point = np.broadcast_arrays(self.scale, self.zero_point)
        shape = [-1, *scale.shape[2:]]
        return self._replace(scale=scale.reshape(shape), zero_point=zero_point.reshape(shape))

    def apply(self, g, value):
        """Fake-quantizes ``value``, or only annotates it."""
        type_ = g.type(value)
        if type_.dtype != np.float32:
            raise Refusal(f"MegEngine quantizes only float32, not {type_.dtype}")
        rounded = fake_quantize if self.applied else None
        return g.quantized(value, self.qparams(type_.rank), rounded)


def applied(g, value, fake_quant, observer):
    """Returns the result of ``QATModule._apply_fakequant_with_observer`` for a value."""
    quantizer = quantizer_of(fake_quant, observer, g.known(value))
    return value if quantizer is None else quantizer.apply(g, value)


def quantizer_of(fake_quant: Any, observer: Any, seen: np.ndarray | None) -> Quantizer | None:
    """Returns the quantizer of two modules, each of which may be None; None if the tensor is not quantized.

    A fake quant with parameters of its own comes before the observer, which sees the tensor ``seen``.
    """
    enabled = is_enabled(fake_quant)
    made = None
    for module, classes in ((fake_quant, FAKE_QUANTS), (observer, OBSERVERS)):
        if module is None or made is not None:
            continue
        name = module.class_name.rpartition(".")[2]
        if not isinstance(module, TracedModule) or name not in classes:
            raise Refusal(f"{getattr(module, 'class_name', module)} is not an observer that tmconvert knows")
        with np.errstate(all="ignore"):
            scales = classes[name](module, seen)
        if scales is not None:
            made = _quantizer(module, scales, name, enabled)
    if made is None and enabled:
        raise Refusal(f"{fake_quant.name} has no quantization parameters", HELP)
    own = dtype_of(fake_quant) if enabled else None
    if made is not None and own is not None and own != (made.dtype, made.quant_min, made.quant_max):
        raise Refusal(f"the fake quant has dtype {own[0]}, but its observer has {made.dtype}")
    return made


def _quantizer(module: TracedModule, scales: Scales, name: str, enabled: bool) -> Quantizer:
    dtype, low, high = dtype_of(module)
    scale, zero_point = (None if array is None else np.asarray(array, np.float32) for array in scales)
    held = module.attributes.get("qparams")
    mode = held["mode"] if isinstance(held, dict) else module.attributes.get("mode", "symmetric")
    symmetric = mode == "symmetric"
    if symmetric or zero_point is None:
        zero_point = np.zeros(1, np.float32)
    assert scale is not None
    return Quantizer(dtype, low, high, scale, zero_point, symmetric, name, enabled)


def dtype_of(module: TracedModule) -> tuple[str, int, int]:
    """(name, smallest, largest) of a module's quantized type; the name as in ``QParams.dtype``."""
    meta = module.attributes["dtype"]
    name = re.sub(r"\W", "_", str(meta["name"]).removeprefix("q"), flags=re.ASCII)
    if str(meta["np_dtype_str"]).startswith("u") and not name.startswith("u"):
        name = f"u{name}"
    return name, int(meta["qmin"]), int(meta["qmax"])


def is_enabled(fake_quant: Any) -> bool:
    return fake_quant is not None and bool(fake_quant.attributes.get("enabled", True))


def bias_qparams(x: QParams | None, weight: QParams | None) -> QParams | None:
    """Returns MegEngine's QParams of a bias vector, from input and weight; None if it is not quantized."""
    if x is None or weight is None or not (x.symmetric and weight.symmetric):
        return None
    if not (_is_int8(x) and _is_int8(weight)) or len(x.scale) != 1:
        return None
    products = np.asarray(x.scale, np.float32) * np.asarray(weight.scale, np.float32)
    axis = 0 if len(products) > 1 else None
    low, high = -(2**31), 2**31 - 1
    zeros = (0,) * len(products)
    return QParams("int32", tuple(map(float, products)), zeros, low, high, axis, True, "input * weight")


def _is_int8(qparams: QParams) -> bool:
    return qparams.is_signed and qparams.quant_min >= -128 and qparams.quant_max <= 127


# ---- fake quants that have parameters of their own


def _tqt(module: TracedModule, seen: np.ndarray | None) -> Scales:
    """TQT learns the binary logarithm of the scale."""
    return _power_of_two(scalar(module, "scale")), None


def _power_of_two(exponent: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):  # an infinite scale is refused where it is used
        return np.exp2(np.asarray(exponent, np.float32))


def _lsq(module: TracedModule, seen: np.ndarray | None) -> Scales:
    step = np.abs(scalar(module, "step_size")) + scalar(module, "eps")
    return step, scalar(module, "zero_point")


def _fake_quantize(module: TracedModule, seen: np.ndarray | None) -> Scales | None:
    """FakeQuantize uses its observer's parameters; the one that tracing inserts for user classes, its own."""
    held = module.attributes.get("qparams")
    if held is None or held["scale"] is None:
        return None
    return np.asarray(held["scale"], np.float32), held["zero_point"]


FAKE_QUANTS: dict[str, Callable[[TracedModule, Any], Any]] = {
    "FakeQuantize": _fake_quantize,
    "TQT": _tqt,
    "LSQ": _lsq,
}


# ---- calls that a graph holds


@FUNCTIONS.add("megengine.module.qat.module.QATModule._apply_fakequant_with_observer")
def apply_fakequant_with_observer(g, module, target, fake_quant, observer):
    return applied(g, target, fake_quant, observer)


def _by_operator(
    g: Emitter, x, scale: np.ndarray, zero_point: np.ndarray | None, low: int, high: int, source: str
) -> Any:
    name = integers_of_range(low, high)
    zeros = np.zeros(1, np.float32) if zero_point is None else zero_point
    symmetric = not zeros.any()
    scale, zeros = (np.asarray(array, np.float32) for array in (scale, zeros))
    return Quantizer(name, low, high, scale, zeros, symmetric, source, True).apply(g, x)


def _constant(g: Emitter, value) -> np.ndarray:
    array = g.known(value)
    if array is None:
        raise Refusal("a scale is computed from the data", "make it a constant of the model")
    return array


@FUNCTIONS.add("opdef.FakeQuant")
def fake_quant(g, x, scale, zero_point, qmin, qmax, **_):
    return _by_operator(g, x, _constant(g, scale), _constant(g, zero_point), qmin, qmax, "FakeQuant")


@FUNCTIONS.add("opdef.TQT")
def tqt(g, x, scale, qmin, qmax, **_):
    return _by_operator(g, x, _power_of_two(_constant(g, scale)), None, qmin, qmax, "TQT")


@FUNCTIONS.add("opdef.LSQ")
def lsq(g, x, scale, zero_point, grad_scale, qmin, qmax, **_):
    return _by_operator(g, x, _constant(g, scale), _constant(g, zero_point), qmin, qmax, "LSQ")
