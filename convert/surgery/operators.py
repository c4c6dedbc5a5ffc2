"""Operators of Python and functions of torch on tensor nodes: each is recorded as a call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from tmconvert.ir.types import AnyCallable, Kwargs
from tmconvert.surgery.active import current, required

if TYPE_CHECKING:
    from tmconvert.ir.node import ModuleNode


def _operator(name: str) -> AnyCallable:
    def operator(self: object, *others: object) -> Any:
        return required(f"the operator {name} of a node").call_method(name, self, *others)

    operator.__name__ = operator.__qualname__ = name
    operator.__doc__ = f"Records ``{name}`` inside of ``graph.insert_exprs()``."
    return operator


class TensorOperators:
    """Operators, indexing and methods of tensors, recorded inside of ``with graph.insert_exprs()``.

    ``==`` and ``!=`` compare nodes themselves; ``x.eq(y)`` records a comparison.
    """

    __slots__ = ()
    __array_ufunc__ = None  # an array leaves ``array * node`` to the node
    __iter__ = None

    __add__, __sub__, __mul__, __truediv__ = map(_operator, ("__add__", "__sub__", "__mul__", "__truediv__"))
    __radd__, __rsub__, __rmul__, __rtruediv__ = map(
        _operator, ("__radd__", "__rsub__", "__rmul__", "__rtruediv__")
    )
    __floordiv__, __mod__, __pow__, __matmul__ = map(
        _operator, ("__floordiv__", "__mod__", "__pow__", "__matmul__")
    )
    __rfloordiv__, __rmod__, __rpow__, __rmatmul__ = map(
        _operator, ("__rfloordiv__", "__rmod__", "__rpow__", "__rmatmul__")
    )
    __and__, __or__, __xor__ = map(_operator, ("__and__", "__or__", "__xor__"))
    __lt__, __le__, __gt__, __ge__ = map(_operator, ("__lt__", "__le__", "__gt__", "__ge__"))
    __neg__, __pos__, __abs__, __invert__ = map(_operator, ("__neg__", "__pos__", "__abs__", "__invert__"))
    __getitem__ = _operator("__getitem__")

    def __getattr__(self, name: str) -> AnyCallable:
        """Returns a method of tensors that records itself."""
        insertion = None if name.startswith("_") else current()
        if insertion is None or not insertion.knows_method(name):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return lambda *args, **kwargs: insertion.call_method(name, self, *args, **kwargs)

    @classmethod
    def __torch_function__(
        cls, function: AnyCallable, types: object, args: tuple[object, ...] = (), kwargs: Kwargs | None = None
    ) -> Any:
        """Records a function of torch that is called with nodes."""
        name = getattr(function, "__name__", "function")
        return required(f"torch's {name} of a node").call_function(function, *args, **(kwargs or {}))


class ModuleOperators:
    """Attributes and calls of module nodes, recorded inside of ``with graph.insert_exprs()``.

    >>> with graph.insert_exprs():  # doctest: +SKIP
    ...     y = graph.inputs[0].layer1.conv(x)
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        """Returns the node of an attribute: a submodule, a parameter; or a constant."""
        insertion = None if name.startswith("_") else current()
        if insertion is None or not insertion.has_attribute(self, name):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return insertion.get_attr(name, self)

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Records a call of the module."""
        return required("a call of a module node").call_module(cast("ModuleNode", self), *args, **kwargs)
