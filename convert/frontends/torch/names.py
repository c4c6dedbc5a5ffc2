"""Public names of torch's functions."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from tmconvert.ir.function_names import register_namer

# where an internal module's functions are found by users
HOMES = {
    None: "torch",
    "torch._C._VariableFunctions": "torch",
    "torch.functional": "torch",
    "torch._VF": "torch",
    "torch._C": "torch",
    "torch._C._nn": "torch.nn.functional",
    "torch._C._linalg": "torch.linalg",
    "torch._C._special": "torch.special",
    "torch._C._fft": "torch.fft",
    "torch._C._nested": "torch.nested",
    "torch._C._sparse": "torch.sparse",
}
# the catalogue's prefix for functions of a home
PREFIXES = {
    "torch": "",
    "torch.nn.functional": "",
    "torch.linalg": "linalg_",
    "torch.special": "special_",
    "torch.fft": "fft_",
}
# functions that join tensors
JOINS = frozenset(("cat", "concat", "concatenate", "stack"))


class Name(NamedTuple):
    """``text`` is qualified for a function (``torch.nn.functional.relu6``), bare for a method of a tensor."""

    text: str
    is_method: bool
    is_python: bool = False


def name_of(function: Any) -> Name:
    """Returns the name of a function that a TorchFunctionMode or TorchDispatchMode receives."""
    own = getattr(function, "__name__", "") or ""
    if own == "__get__" and hasattr(function, "__self__"):  # a property
        return Name(function.__self__.__name__, True)
    if own == "__set__" and hasattr(function, "__self__"):
        return Name(f"{function.__self__.__name__}.__set__", True)
    namespace = getattr(function, "namespace", None)  # OpOverload
    if namespace is not None and hasattr(function, "_schema"):
        return Name(f"torch.ops.{str(function).replace('::', '.')}", False)
    qualified = getattr(function, "_qualified_op_name", None)  # OpOverloadPacket
    if isinstance(qualified, str):
        return Name(f"torch.ops.{qualified.replace('::', '.')}", False)
    is_python = hasattr(function, "__code__")
    if hasattr(function, "__objclass__") or getattr(function, "__qualname__", "").startswith("Tensor."):
        return Name(own, True, is_python)
    module = getattr(function, "__module__", None)
    home = HOMES.get(module, module)
    if home == "torch.linalg":
        own = own.removeprefix("linalg_")
    elif home == "torch.special":
        own = own.removeprefix("special_")
    elif home == "torch.fft":
        own = own.removeprefix("fft_")
    return Name(f"{home}.{own}", False, is_python)


def _name_of_torch_function(function: object) -> str | None:
    """Returns the recorded name of a function of torch or of an operator library; None for other objects."""
    if isinstance(function, type) or not callable(function):
        return None
    home = getattr(function, "__module__", None)
    is_of_torch = home in HOMES or str(home).partition(".")[0] == "torch"
    return name_of(function).text if is_of_torch else None


register_namer(_name_of_torch_function)


@cache
def aten_name(name: str, is_method: bool) -> str:
    """Returns the name of the ATen op of a torch function: ``linalg_norm`` for ``torch.linalg.norm``."""
    if is_method:
        return name
    if name.startswith("torch.ops."):
        namespace, _, rest = name.removeprefix("torch.ops.").partition(".")
        own = rest.partition(".")[0]
        return own if namespace in ("aten", "prims") else f"{namespace}::{own}"
    home, _, own = name.rpartition(".")
    prefix = PREFIXES.get(home)
    return name if prefix is None else prefix + own


def functional(name: str) -> str | None:
    """Removes the mark of in-place functions from a name: ``add`` for ``add_`` and ``__iadd__``."""
    if name in IN_PLACE_OPERATORS:
        return IN_PLACE_OPERATORS[name]
    if name.endswith("_") and not name.endswith("__"):
        return name[:-1]
    return None


IN_PLACE_OPERATORS = {
    f"__i{operator}__": f"__{operator}__"
    for operator in (
        "add",
        "sub",
        "mul",
        "div",
        "truediv",
        "floordiv",
        "mod",
        "pow",
        "and",
        "or",
        "xor",
        "lshift",
        "rshift",
    )
}


def join_of(name: Name) -> str | None:
    """Returns the function that joins tensors, of those in ``JOINS``; None for other functions."""
    own = aten_name(name.text, name.is_method).rpartition(":")[2].partition(".")[0]
    return own if own in JOINS else None
