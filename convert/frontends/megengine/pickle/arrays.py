"""Rebuilds NumPy's pickled dtypes and arrays from validated parts.

NumPy pickles an array in two steps: ``_reconstruct`` makes an empty one, BUILD fills it. The steps
in between are held in ``UnfinishedArray`` and ``UnfinishedDtype``, which the reader replaces by the
finished value; a file that uses them before that is refused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tmconvert.frontends.megengine.pickle.fault import PickleFault, damaged, over_limit, refused
from tmconvert.frontends.megengine.pickle.stand_ins import is_global

# NumPy 1 allows 32, and no MegEngine tensor has more than 7.
RANK_LIMIT = 32
# NumPy multiplies sizes in 64 bits, zero-sized axes left out.
BYTES_LIMIT = 2**48

# Never np.dtype(text): its small language knows records, objects and repeat counts.
DTYPES = {
    text: np.dtype(text)
    for text in ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16")
}
BYTE_ORDERS = ("<", ">", "=", "|")
QUANTIZATION_FIELDS = {"name", "scale", "zero_point"}


@dataclass(eq=False, slots=True)
class UnfinishedArray:
    """An array after ``_reconstruct`` and before BUILD."""


@dataclass(eq=False, slots=True)
class UnfinishedDtype:
    """A dtype after ``numpy.dtype`` and before BUILD, which has the byte order."""

    dtype: np.dtype


def begin_array(arguments: tuple[object, ...]) -> UnfinishedArray:
    """An array without content, as ``numpy.core.multiarray._reconstruct`` gives."""
    if len(arguments) != 3 or not is_global(arguments[0], "numpy.ndarray"):
        raise refused("refused to rebuild an array of another class than numpy.ndarray")
    return UnfinishedArray()


def finish_array(state: object) -> np.ndarray:
    """The array of a state (version, shape, dtype, Fortran order, bytes)."""
    if not isinstance(state, tuple) or len(state) != 5:
        raise damaged("an array's state is not (version, shape, dtype, order, bytes)")
    _, shape, dtype, is_fortran, content = state
    if type(is_fortran) not in (bool, int):
        raise damaged("an array's order flag is not a bool")
    return array_of(content, dtype, shape, "F" if is_fortran else "C")


def array_from_buffer(arguments: tuple[object, ...]) -> np.ndarray:
    """The array of ``numpy.core.numeric._frombuffer(bytes, dtype, shape, order)`` (protocol 5)."""
    if len(arguments) != 4:
        raise damaged(f"_frombuffer has {len(arguments)} arguments instead of 4")
    content, dtype, shape, order = arguments
    if not isinstance(order, str) or order not in ("C", "F"):
        raise damaged("an array's order is neither 'C' nor 'F'")
    return array_of(content, dtype, shape, order)


def array_of(content: object, dtype: object, shape: object, order: str) -> np.ndarray:
    """Returns a read-only array over ``content``, whose length must match dtype and shape."""
    if not isinstance(dtype, np.dtype):
        raise damaged(f"an array's dtype is {_kind(dtype)}")
    size = _element_count(shape, dtype.itemsize)
    if not isinstance(content, (bytes, memoryview)):
        raise damaged(f"an array's content is {_kind(content)}, not bytes")
    if len(content) != size * dtype.itemsize:
        raise damaged(
            f"an array of dtype {dtype} and shape {shape} needs {size * dtype.itemsize} bytes, "
            f"the file has {len(content)}"
        )
    assert isinstance(shape, tuple)
    # np.frombuffer refuses an empty buffer.
    flat = np.frombuffer(content, dtype) if size else np.empty(0, dtype)
    array = flat.reshape(shape, order="F" if order == "F" else "C")
    array.flags.writeable = False
    return array


def numpy_scalar(arguments: tuple[object, ...]) -> object:
    """The value of ``numpy.core.multiarray.scalar(dtype, bytes)``."""
    if len(arguments) != 2:
        raise damaged(f"numpy's scalar has {len(arguments)} arguments instead of 2")
    return array_of(arguments[1], arguments[0], (), "C")[()]


def begin_dtype(arguments: tuple[object, ...]) -> UnfinishedDtype:
    """The dtype of ``numpy.dtype(text, align, copy)``, byte order and metadata still to come."""
    text = arguments[0] if arguments else None
    if isinstance(text, np.dtype) and len(arguments) == 3:
        return UnfinishedDtype(text)
    if len(arguments) != 3 or not isinstance(text, str):
        raise damaged("numpy.dtype is called with arguments other than (name, bool, bool)")
    if text[:1] == "O":
        raise refused("refused numpy dtype object: its elements are Python objects, not numbers")
    if text not in DTYPES:
        raise _unknown_dtype(text)
    return UnfinishedDtype(DTYPES[text])


def finish_dtype(unfinished: UnfinishedDtype, state: object) -> np.dtype:
    """The dtype of a state (version, order, None, None, None, -1, -1, 0 [, metadata])."""
    if not isinstance(state, tuple) or len(state) not in (8, 9):
        raise damaged("a dtype's state is not a tuple of 8 or 9 values")
    order = state[1]
    if any(part is not None for part in state[2:5]):
        raise refused("refused numpy dtype with fields or a sub-array")
    if not isinstance(order, str) or order not in BYTE_ORDERS:
        raise damaged("a dtype's byte order must be one of < > = |")
    dtype = unfinished.dtype
    if order == ">":
        dtype = dtype.newbyteorder(">")
    metadata = state[8] if len(state) == 9 else None
    if metadata is None:
        return dtype
    return np.dtype(dtype, metadata={"mgb_dtype": _quantization(metadata)})


def _quantization(metadata: object) -> dict[str, object]:
    """Returns a validated copy of the quantization in the metadata of a MegEngine dtype."""
    fields = metadata.get("mgb_dtype") if isinstance(metadata, dict) else None
    if not isinstance(fields, dict) or not QUANTIZATION_FIELDS.issuperset(fields):
        raise damaged("a dtype's metadata is not MegEngine's mgb_dtype")
    name, scale, zero_point = (fields.get(key) for key in ("name", "scale", "zero_point"))
    if not isinstance(name, str):
        raise damaged(f"the name of a quantized dtype is {_kind(name)}")
    if scale is not None and not isinstance(scale, (float, np.floating)):
        raise damaged(f"the scale of a quantized dtype must be a number, got {_kind(scale)}")
    if zero_point is not None and not isinstance(zero_point, (int, np.integer)):
        raise damaged(f"the zero point of a quantized dtype is {_kind(zero_point)}")
    return {
        "name": name,
        "scale": None if scale is None else float(scale),
        "zero_point": None if zero_point is None else int(zero_point),
    }


def _element_count(shape: object, item_size: int) -> int:
    if not isinstance(shape, tuple) or any(type(size) is not int or size < 0 for size in shape):
        raise damaged("an array's shape is not a tuple of sizes")
    if len(shape) > RANK_LIMIT:
        raise over_limit(f"an array has {len(shape)} axes")
    extent = item_size
    for size in shape:
        extent *= max(size, 1)
        if extent > BYTES_LIMIT:
            raise over_limit("an array has more bytes than any file can have")
    return math.prod(shape)


def _unknown_dtype(text: str) -> PickleFault:
    return damaged(f"unknown numpy dtype {text[:32]!r}")


def _kind(value: object) -> str:
    return f"a {type(value).__name__}"
