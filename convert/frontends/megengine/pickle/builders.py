"""Implements REDUCE, NEWOBJ and BUILD by a closed table of inert builders.

``call`` and ``new_object`` look the class or function up in tables of this file; a name that is in
none of them is refused. No builder calls anything that the file named.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tmconvert.frontends.megengine.pickle import arrays
from tmconvert.frontends.megengine.pickle.allow_list import (
    OF_TYPE_HINTS,
    is_users_class,
    is_users_own,
    makes_instance,
)
from tmconvert.frontends.megengine.pickle.fault import damaged, over_limit, refused
from tmconvert.frontends.megengine.pickle.stand_ins import GlobalRef, Instance, Tensor, is_global

Arguments = tuple[object, ...]
Builder = Callable[[Arguments], object]

COMP_NODE = "megengine.core._imperative_rt.common.CompNode"

# What an object of the user's class was made with, in the state of its Instance.
ARGUMENTS = "arguments"

# Constructor arguments of records that pickle without a state.
RECORD_FIELDS = {
    "inspect.FullArgSpec": (
        *("args", "varargs", "varkw", "defaults", "kwonlyargs", "kwonlydefaults"),
        "annotations",
    ),
    "megengine.core.tensor.dtype.QuantDtypeMeta": (
        *("name", "cname", "np_dtype_str", "qmin", "qmax", "is_unsigned"),
    ),
    "megengine.quantization.utils.QuantMode": ("value",),
}

TENSOR_CLASSES = {"megengine.tensor.Tensor": False, "megengine.tensor.Parameter": True}

# Hashes of numbers can be made to collide, so that each look-up passes over all keys before.
COLLIDING_KEYS_LIMIT = 500
TUPLE_KEY_LIMIT = 16
SLOT_STATE_LIMIT = 16

PLAIN_KEYS = frozenset({str, GlobalRef, Instance, bool, type(None), type(Ellipsis)})
NUMBER_KEYS = frozenset({int, float})


class CopyBudget:
    """The number of elements that may still be copied: at most the number of bytes of the file.

    A pickle can refer to one long text or list from many calls, five bytes each. Valid files copy
    each of their bytes once at most.
    """

    excess = "the file copies the same values again and again"

    def __init__(self, file_size: int) -> None:
        self._left = file_size

    def spend(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise over_limit(self.excess)


class ObjectBudget(CopyBudget):
    """How many more objects may be made, by their memory: eight times as many bytes as the file has.

    An object may be one byte in a file and 216 in memory. Valid files need six times their size.
    """

    excess = "the file makes far more objects than a model of its size has"


def call(function: object, arguments: object, budget: CopyBudget) -> object:
    """Implements REDUCE: the value of an allowed call, created by one of our builders."""
    if not isinstance(function, GlobalRef):
        raise refused(f"refused to call a value that is not a named function, {_kind(function)}")
    if not isinstance(arguments, tuple):
        raise damaged(f"the arguments for {function} are {_kind(arguments)}, not a tuple")
    builder = CALLS.get(function.qualified_name)
    if builder is not None:
        if function.qualified_name in COPYING_CALLS:
            budget.spend(sum(len(part) for part in arguments if isinstance(part, (str, list, tuple))))
        return builder(arguments)
    if function.qualified_name in RECORD_FIELDS:
        return _record(function, arguments)
    if is_users_class(function):  # an enumeration pickles as a call of its class
        return Instance(function, {ARGUMENTS: arguments})
    raise refused(f"refused call of {function}")


def new_object(cls: object, arguments: object) -> object:
    """Implements NEWOBJ: a Tensor, a record, or an Instance without state."""
    if not isinstance(cls, GlobalRef):
        raise refused(f"refused to make an object of a value that is not a named class, {_kind(cls)}")
    if not isinstance(arguments, tuple):
        raise damaged(f"the arguments for {cls} are {_kind(arguments)}, not a tuple")
    if cls.qualified_name in TENSOR_CLASSES:
        return _tensor(arguments, TENSOR_CLASSES[cls.qualified_name])
    if cls.qualified_name in RECORD_FIELDS:
        return _record(cls, arguments)
    if not makes_instance(cls):
        raise refused(f"refused object of class {cls}")
    if arguments and is_users_class(cls):
        return Instance(cls, {ARGUMENTS: arguments})
    if arguments:
        raise refused(f"refused object of class {cls} with {len(arguments)} constructor arguments")
    return Instance(cls, {})


def set_state(target: object, state: object) -> None:
    """Implements BUILD for an Instance or a Tensor, once per object: the state is kept, not copied."""
    if isinstance(target, Tensor):
        _set_tensor_state(target, state)
        return
    if not isinstance(target, Instance):
        raise refused(f"refused to set the state of {_kind(target)}")
    if is_users_own(target.reference) and not (isinstance(state, dict) and "training" in state):
        return  # no module of 1.6: nothing of it will be used
    if target.state:
        raise damaged(f"the state of {target.reference} is set twice")
    if isinstance(state, tuple):
        target.state = _slot_state(state)
    elif isinstance(state, dict):
        target.state = state
    elif isinstance(state, str) and target.class_name == COMP_NODE:
        target.state = {"device": state}
    else:
        raise damaged(f"the state of {target.reference} must be a dict or a tuple, got {_kind(state)}")


def put_item(target: dict[object, object], key: object, value: object) -> None:
    """Sets ``target[key] = value``, for keys with cheap hash and comparison."""
    if type(key) is not str:
        check_key(key, len(target))
    target[key] = value


def check_key(key: object, position: int) -> None:
    """Rejects keys that hash in exponential time, and large numbers of keys that can collide."""
    kind = type(key)
    if kind in PLAIN_KEYS:
        return
    if kind is tuple:
        _check_tuple_key(key)  # type: ignore[arg-type]
    elif kind not in NUMBER_KEYS:
        raise damaged(f"a dictionary key or set element is {_kind(key)}")
    # Counting up from zero, as tables of class names do, cannot collide.
    if position >= COLLIDING_KEYS_LIMIT and not (kind is int and key == position):
        raise over_limit(f"a dictionary or set has more than {COLLIDING_KEYS_LIMIT} number or tuple keys")


def add_element(target: set[object], value: object) -> None:
    """Adds an element with cheap hash and comparison to a set."""
    check_key(value, len(target))
    target.add(value)


def _check_tuple_key(key: Arguments) -> None:
    if len(key) > TUPLE_KEY_LIMIT:
        raise over_limit(f"a dictionary key is a tuple of {len(key)} values")
    for part in key:
        if type(part) not in PLAIN_KEYS and type(part) not in NUMBER_KEYS:
            raise over_limit(f"a dictionary key is a tuple that holds {_kind(part)}")


def _record(cls: GlobalRef, arguments: Arguments) -> Instance:
    names = RECORD_FIELDS[cls.qualified_name]
    if len(arguments) != len(names):
        raise damaged(f"{cls} has {len(arguments)} arguments instead of {len(names)}")
    return Instance(cls, dict(zip(names, arguments, strict=True)))


def _tensor(arguments: Arguments, is_parameter: bool) -> Tensor:
    if len(arguments) != 3:
        raise damaged(f"a tensor has {len(arguments)} arguments instead of 3")
    array, dtype, _device = arguments
    if not isinstance(array, np.ndarray):
        raise damaged(f"a tensor's content is {_kind(array)}, not an array")
    if not isinstance(dtype, np.dtype):
        raise damaged(f"a tensor's dtype is {_kind(dtype)}")
    return Tensor(array, dtype, is_parameter)


def _set_tensor_state(target: Tensor, state: object) -> None:
    if not isinstance(state, dict):
        raise damaged(f"the state of a tensor is {_kind(state)}")
    qparams = state.get("qparams")
    if qparams is not None and not isinstance(qparams, Instance):
        raise damaged(f"the qparams of a tensor are {_kind(qparams)}")
    target.qparams = qparams


def _slot_state(state: Arguments) -> dict[str, object]:
    """The state of a class with slots: (dict or None, dict of slots)."""
    if len(state) != 2 or not all(part is None or isinstance(part, dict) for part in state):
        raise damaged("an object's state is neither a dict nor a pair of dicts")
    merged: dict[str, object] = {}
    for part in state:
        if not isinstance(part, dict):
            continue
        if len(part) > SLOT_STATE_LIMIT:
            raise over_limit(f"an object has {len(part)} slots")
        merged.update(part)
    return merged


def _type_of(arguments: Arguments) -> GlobalRef:
    """``type(None)`` and ``type(Ellipsis)``; with three arguments ``type`` would create a class."""
    if len(arguments) == 1 and arguments[0] is None:
        return GlobalRef("builtins", "NoneType")
    if len(arguments) == 1 and arguments[0] is Ellipsis:
        return GlobalRef("builtins", "ellipsis")
    raise refused("refused call of builtins.type with an argument other than None or Ellipsis")


def _latin1_bytes(arguments: Arguments) -> bytes:
    """Bytes in protocol 2, which are written as ``_codecs.encode(text, 'latin1')``."""
    text, encoding = arguments if len(arguments) == 2 else (None, None)
    if not isinstance(text, str) or not isinstance(encoding, str) or encoding != "latin1":
        raise refused("refused call of _codecs.encode with arguments other than a text and 'latin1'")
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError as error:
        raise damaged("bytes written as text hold a character above U+00FF") from error


def _empty_dict(arguments: Arguments) -> dict[object, object]:
    if any(not is_global(argument, "builtins.list") for argument in arguments):
        raise refused("refused call of a dict class with arguments")
    return {}


def _slice(arguments: Arguments) -> slice:
    # Bounds that are slices themselves would nest without limit.
    if len(arguments) != 3 or any(type(bound) not in (int, type(None)) for bound in arguments):
        raise damaged("a slice's bounds are not three integers or None")
    return slice(*arguments)


def _dtype_class(arguments: Arguments) -> GlobalRef:
    if len(arguments) != 1 or not isinstance(arguments[0], np.dtype):
        raise damaged("_DType_reconstruct is called with an argument that is not a dtype")
    return GlobalRef("numpy.dtypes", type(arguments[0]).__name__)


def _complex(arguments: Arguments) -> complex:
    if len(arguments) != 2 or any(type(part) is not float for part in arguments):
        raise damaged("a complex number is not built from two floats")
    real, imaginary = arguments
    assert isinstance(real, float) and isinstance(imaginary, float)
    return complex(real, imaginary)


def _bytes(arguments: Arguments) -> object:
    if not arguments:
        return memoryview(b"")
    if len(arguments) == 1 and isinstance(arguments[0], (bytes, memoryview)):
        return arguments[0]
    raise refused("refused call of bytes or bytearray with an argument that is not bytes")


def _set(arguments: Arguments) -> set[object]:
    values = arguments[0] if len(arguments) == 1 else None
    if not isinstance(values, (list, tuple)):
        raise damaged("a set is not built from one list")
    result: set[object] = set()
    for value in values:
        add_element(result, value)
    return result


def _annotation(arguments: Arguments) -> Instance:
    """A type hint such as ``Optional[Tensor]``, pickled as a subscription of a typing name."""
    generic = arguments[0] if len(arguments) == 2 else None
    if not isinstance(generic, GlobalRef) or generic.module not in ("builtins", *OF_TYPE_HINTS):
        raise refused("refused call of operator.getitem on an object that is not a type hint")
    return Instance(GlobalRef("operator", "getitem"), {"generic": generic, "parameters": arguments[1]})


def _union(arguments: Arguments) -> Instance:
    """The type hint ``int | None``, pickled as a reduction by ``|``."""
    if len(arguments) != 2 or not is_global(arguments[0], "operator.or_"):
        raise refused("refused call of functools.reduce on an object that is not a type hint")
    return Instance(GlobalRef("operator", "or_"), {"parameters": arguments[1]})


def _alias(arguments: Arguments) -> Instance:
    """The type hint ``list[int]``."""
    return Instance(GlobalRef("types", "GenericAlias"), {"parameters": arguments})


def _kind(value: object) -> str:
    return f"a {type(value).__name__}"


CALLS: dict[str, Builder] = {
    "_codecs.encode": _latin1_bytes,
    "builtins.bytearray": _bytes,
    "builtins.bytes": _bytes,
    "builtins.complex": _complex,
    "builtins.frozenset": lambda arguments: frozenset(_set(arguments)),
    "builtins.set": _set,
    "builtins.slice": _slice,
    "builtins.type": _type_of,
    "collections.OrderedDict": _empty_dict,
    "collections.defaultdict": _empty_dict,
    "functools.reduce": _union,
    "numpy.core._DType_reconstruct": _dtype_class,
    "numpy.core.multiarray._reconstruct": arrays.begin_array,
    "numpy.core.multiarray.scalar": arrays.numpy_scalar,
    "numpy.core.numeric._frombuffer": arrays.array_from_buffer,
    "numpy.dtype": arrays.begin_dtype,
    "operator.getitem": _annotation,
    "types.GenericAlias": _alias,
}

COPYING_CALLS = {"_codecs.encode", "builtins.frozenset", "builtins.set"}
