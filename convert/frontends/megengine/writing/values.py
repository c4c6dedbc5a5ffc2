"""Values of modules and calls as MegEngine stores them: tensors, element types, quantization records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tmconvert.errors import WriteError
from tmconvert.frontends.megengine.quantization import DTYPES, MODES
from tmconvert.frontends.megengine.writing.pickle_writer import CANNOT_SAVE
from tmconvert.frontends.megengine.writing.records import Record
from tmconvert.ir import QParams, TensorNode, TracedModule
from tmconvert.ir.fake_quant import quantize
from tmconvert.ir.inert import GlobalRef, Instance, Opaque

_COMP_NODE = Record(GlobalRef("megengine.core._imperative_rt.common", "CompNode"), state="xpux:0")
_TENSOR = {name: GlobalRef("megengine.tensor", name) for name in ("Tensor", "Parameter")}
_QUANTIZATION = "megengine.quantization.utils"
_DTYPE_META = GlobalRef("megengine.core.tensor.dtype", "QuantDtypeMeta")
# the name of each quantized type, and that of the tensors that MegEngine makes of it, if any
_QUANTIZED_NAMES = {
    "quint8": "Quantized8Asymm",
    "qint8": "QuantizedS8",
    "qint8_narrow": "QuantizedS8",
    "quint4": "Quantized4Asymm",
    "qint4": "QuantizedS4",
    "qint1": "QuantizedS1",
    "qint32": "QuantizedS32",
    "quint2": None,
    "qint2": None,
}
_MODE_NUMBERS = {name: number for number, name in MODES.items()}
_PARAMETERS = {"mode", "dtype_meta", "scale", "zero_point"}  # of quantization.plain
_META = {"name", "np_dtype_str", "qmin", "qmax"}
# element types of MegEngine's tensors
_TENSOR_DTYPES = {"bool", "float16", "float32", "int8", "int16", "int32", "uint8", "uint16", "int64"}


def device() -> Record:
    """Returns the default device, one object for all nodes."""
    return _COMP_NODE


def stored_dtype(dtype: np.dtype, qparams: QParams | None) -> np.dtype:
    """Returns MegEngine's element type for a tensor; that of a quantized tensor includes the scale."""
    dtype = np.dtype(dtype.newbyteorder("="))
    if qparams is None or dtype.kind not in "iu" or dtype.metadata:
        return dtype
    return quantized_dtype(qparams)


def quantized_dtype(qparams: QParams) -> np.dtype:
    """Returns the element type of tensors quantized with ``qparams``. Raises WriteError TM5005."""
    name = next((name for name, (kind, *_) in DTYPES.items() if kind == qparams.dtype), None)
    if name is None or qparams.channel_axis is not None:
        raise WriteError(CANNOT_SAVE, f"MegEngine has no tensors quantized as {qparams.dtype} with {qparams}")
    about = {"name": name, "scale": qparams.scale[0]}
    if not qparams.symmetric:
        about["zero_point"] = qparams.zero_point[0]
    storage = np.dtype("int32" if name == "QuantizedS32" else "uint8" if "Asymm" in name else "int8")
    return np.dtype(storage, metadata={"mgb_dtype": about})


class Values:
    """Makes records; the same array or quantized type gives the same record, as MegEngine shares them."""

    def __init__(self) -> None:
        self._tensors: dict[int, Record] = {}
        self._kept: list[Any] = []
        self._types: dict[str, Record] = {}

    def tensor(self, array: np.ndarray, path: str, is_parameter: bool = False) -> Record:
        """Returns the record of a Tensor or Parameter. Raises WriteError TM5005 for an unknown dtype."""
        known = self._tensors.get(id(array))
        if known is not None:
            return known
        qparams = getattr(array, "qparams", None)
        if qparams is None:
            dtype, stored = np.dtype(array.dtype.newbyteorder("=")), np.asarray(array)
        else:
            dtype = quantized_dtype(qparams)
            stored = quantize(np.asarray(array), qparams).astype(dtype)
        if dtype.name not in _TENSOR_DTYPES:
            raise WriteError(CANNOT_SAVE, f"MegEngine has no tensors of {dtype.name}, which {path} is")
        kind = _TENSOR["Parameter" if is_parameter else "Tensor"]
        made = self._tensors[id(array)] = Record(kind, (stored, dtype, "xpux:0"), state={})
        self._kept.append(array)
        return made

    def constant(self, value: object) -> Any:
        """Returns a constant argument of a call. Raises WriteError TM5005."""
        if isinstance(value, QParams):
            return quantized_dtype(value)
        if isinstance(value, Opaque):
            raise _only_a_name("an argument", value)
        return self._record(value, self.constant)

    def recorded_qparams(self, node: TensorNode) -> Record | None:
        """Returns the record of a float tensor's fake quantization; None for a tensor without one."""
        qparams = node.qparams
        name = "" if qparams is None else f"q{qparams.dtype}"
        if qparams is None or node.holds_integers or name not in _QUANTIZED_NAMES or len(qparams.scale) > 1:
            return None
        kind = qparams.dtype.partition("_")[0]
        zero = None if qparams.symmetric else np.array(qparams.zero_point[0], np.float32)
        made: Record = self.attribute(
            {
                "mode": "symmetric" if qparams.symmetric else "asymmetric",
                "dtype_meta": {
                    "name": name,
                    "np_dtype_str": kind if kind in ("int8", "uint8", "int32") else f"{kind[:-1]}8",
                    "qmin": qparams.quant_min,
                    "qmax": qparams.quant_max,
                },
                "scale": np.array(qparams.scale[0], np.float32),
                "zero_point": zero,
            },
            f"the qparams of {node}",
            _no_module,
        )
        return made

    def attribute(self, value: object, path: str, module: Callable[[TracedModule], Record]) -> Any:
        """Returns an attribute of a module; arrays in it are tensors, ``module`` makes the records of
        modules. Raises WriteError TM5005.
        """
        if isinstance(value, np.ndarray):
            return self.tensor(value, path)
        if isinstance(value, (list, tuple)):
            made = [self.attribute(item, f"{path}.{index}", module) for index, item in enumerate(value)]
            return made if isinstance(value, list) else tuple(made)
        if isinstance(value, dict) and not _is_quantization(value):
            return {key: self.attribute(item, f"{path}.{key}", module) for key, item in value.items()}
        if isinstance(value, QParams):
            return quantized_dtype(value)
        if isinstance(value, Opaque):
            raise _only_a_name(path, value)
        if isinstance(value, str) and path.endswith(".mode") and value in _MODE_NUMBERS:
            return self._mode(value)
        if isinstance(value, TracedModule):
            return module(value)
        return self._record(value, lambda item: self.attribute(item, path, module))

    def _record(self, value: object, inner: Callable[[Any], Any]) -> Any:
        if isinstance(value, Instance):
            return Record(value.reference, state={name: inner(item) for name, item in value.state.items()})
        if isinstance(value, dict) and set(value) == _META:
            return self._quantized_type(value)
        if isinstance(value, dict) and set(value) == _PARAMETERS:
            fields = {
                "mode": self._mode(value["mode"]),
                **{key: inner(value[key]) for key in ("dtype_meta", "scale", "zero_point")},
            }
            return Record(GlobalRef(_QUANTIZATION, "QParams"), state=(None, fields))
        return value

    def _mode(self, name: str) -> Record:
        """The member of the enumeration that ``quantization.plain`` calls so."""
        return Record(GlobalRef(_QUANTIZATION, "QuantMode"), (_MODE_NUMBERS[name],), called=True)

    def _quantized_type(self, value: dict[str, Any]) -> Record:
        """The record of a quantized type; MegEngine compares them by identity."""
        name = value["name"]
        if name not in self._types:
            is_unsigned = str(value["np_dtype_str"]).startswith("u")
            fields = (name, _QUANTIZED_NAMES.get(name), value["np_dtype_str"], value["qmin"], value["qmax"])
            self._types[name] = Record(_DTYPE_META, (*fields, is_unsigned))
        return self._types[name]


def _no_module(module: TracedModule) -> Record:
    raise WriteError(CANNOT_SAVE, f"quantization parameters have the module {module!r}")


def _only_a_name(place: str, value: Opaque) -> WriteError:
    return WriteError(CANNOT_SAVE, f"{place} is the object {value!r}, whose class is known only by its name")


def _is_quantization(value: dict[Any, Any]) -> bool:
    return set(value) in (_META, _PARAMETERS)
