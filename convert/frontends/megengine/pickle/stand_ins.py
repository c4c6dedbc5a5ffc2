"""Inert records that replace MegEngine's classes when a ``.tm`` pickle is read.

    in the pickle                                     here
    None, bool, int, float, complex, str, Ellipsis    themselves
    tuple, list, set, frozenset, slice                themselves
    dict, OrderedDict, defaultdict                    dict, in the order of the file
    bytes, bytearray                                  read-only memoryview over the file
    numpy array                                       read-only np.ndarray over the file
    numpy scalar                                      np.generic
    numpy.dtype instance                              np.dtype; a quantized one keeps its metadata,
                                                      which ``quantization_of`` reads
    numpy scalar class (numpy.float32)                the np.dtype of that class
    megengine Tensor, Parameter                       Tensor
    object of a class of MegEngine                    Instance: its class and its state
    object of the user's own class                    Instance: its class, what it was made with
    class or function as a value                      GlobalRef, never resolved, never called

    type(None), type(Ellipsis) are GlobalRef("builtins", "NoneType") and ("builtins", "ellipsis").
    Enums and named tuples are Instances whose state names the constructor's arguments:
    QuantMode {value}; QuantDtypeMeta {name, cname, np_dtype_str, qmin, qmax, is_unsigned};
    inspect.FullArgSpec {args, varargs, varkw, defaults, kwonlyargs, kwonlydefaults, annotations}.
    The state of CompNode is {device}. An object written without a state has the state {}.

Identity is kept: what the pickle writes once and refers to again is one object here, so a shared
``_ModuleState`` is the same Instance. The graph is cyclic and may be deep: walk it with an explicit
stack. ``Instance`` and ``Tensor`` compare and hash by identity, so ``argdef_graph_map`` is a dict
whose keys are TreeDef Instances: go over ``items()``, compare by structure
(``arguments.py``, ``ir.traced_module.call_structure``).

The types of the values in a state are those of the file: check them before use.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tmconvert.ir.inert import GlobalRef, Instance, Opaque

__all__ = ["GlobalRef", "Instance", "Opaque", "Quantization", "Tensor", "is_global", "quantization_of"]


# Comparing a value of the file with == is not safe: arrays compare element by element.
def is_global(value: object, qualified_name: str) -> bool:
    """Whether a value is the GlobalRef of that name."""
    return isinstance(value, GlobalRef) and value.qualified_name == qualified_name


@dataclass(eq=False, slots=True, repr=False)
class Tensor:
    """A MegEngine Tensor or Parameter.

    ``array`` holds the raw numbers (integers if quantized). ``qparams`` is the Instance of
    QParams or LSQParams set on the tensor, or None.
    """

    array: np.ndarray
    dtype: np.dtype
    is_parameter: bool
    qparams: Instance | None = None

    def __repr__(self) -> str:
        kind = "Parameter" if self.is_parameter else "Tensor"
        return f"<{kind} {self.dtype}{list(self.array.shape)}>"


@dataclass(frozen=True, slots=True)
class Quantization:
    """The quantization in a dtype's metadata: real value = scale * (stored - zero_point).

    ``name`` is MegEngine's, such as ``QuantizedS8``. ``scale`` is None for names that are not
    quantized (``BFloat16``), ``zero_point`` is None if symmetric.
    """

    name: str
    scale: float | None
    zero_point: int | None


def quantization_of(dtype: np.dtype) -> Quantization | None:
    """Returns the quantization recorded in a dtype of a pickle; None for a plain one."""
    metadata = dtype.metadata
    if metadata is None or "mgb_dtype" not in metadata:
        return None
    fields = metadata["mgb_dtype"]
    return Quantization(fields["name"], fields["scale"], fields["zero_point"])
