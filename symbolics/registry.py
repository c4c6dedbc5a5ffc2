"""The catalogue: maps (target, op, version) to a symbolic."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tmconvert.errors import InternalError, UsageError
from tmconvert.ir.expr import CallFunction
from tmconvert.symbolics.op import Op
from tmconvert.symbolics.target_names import TARGETS
from tmconvert.symbolics.traits import T, Trait

if TYPE_CHECKING:
    from tmconvert.symbolics.custom import CustomOp


class Catalogue(Mapping[str, Op]):
    """All ops by name, immutable. ``ops`` replace those of the same name in ``shipped``, or are appended."""

    def __init__(self, ops: Iterable[Op], shipped: Mapping[str, Op] | None = None) -> None:
        table: dict[str, Op] = {}
        for op in ops:
            if op.name in table:
                raise InternalError("TM3005", f"{op.name} is registered twice")
            table[op.name] = op
        self._ops = MappingProxyType(table)
        self._shipped = shipped or {}
        self._found: dict[str, Op] = {}  # by what was asked for: passes ask for each call, many times

    def __getitem__(self, name: str) -> Op:
        op = self._found.get(name)
        if op is None:
            op = self._found[name] = self._ops[name] if name in self._ops else self._shipped[name]
        return op

    def found(self, name: str) -> Op | None:
        """Returns an op, or None, faster than ``get`` of Mapping, which raises and catches KeyError."""
        op = self._found.get(name)
        return self[name] if op is None and name in self else op

    def __contains__(self, name: object) -> bool:
        return name in self._ops or name in self._shipped

    def __iter__(self) -> Iterator[str]:
        return iter({**dict.fromkeys(self._shipped), **dict.fromkeys(self._ops)})

    def __len__(self) -> int:
        return len(self._ops.keys() | self._shipped.keys())

    def incomplete(self) -> list[tuple[str, str]]:
        """Returns (op, target) pairs with neither a symbolic, nor a decomposition, nor a reason."""
        return [
            (op.name, target)
            for op in self.values()
            for target in TARGETS
            if not op.symbolics.get(target) and op.decomposition is None and target not in op.reasons
        ]


class _Registry:
    """The ops of tmconvert, and those that users have registered, which replace them."""

    def __init__(self) -> None:
        self.shipped: Mapping[str, Op] | None = None
        self.registered: dict[str, Op] = {}
        self.catalogue: Catalogue | None = None

    def current(self) -> Catalogue:
        if self.shipped is None:
            from tmconvert.symbolics.ops import ShippedOps
            from tmconvert.symbolics.plugins import load_installed

            self.shipped = ShippedOps()
            try:
                load_installed()
            except UsageError:
                self.shipped = None  # the next access reports the error, too
                raise
        if self.catalogue is None:
            self.catalogue = Catalogue(self.registered.values(), self.shipped)
        return self.catalogue

    def set_registered(self, ops: dict[str, Op]) -> None:
        self.registered, self.catalogue = ops, None


_registry = _Registry()


def catalogue() -> Catalogue:
    """Returns the catalogue of tmconvert's ops and registered ops."""
    return _registry.current()


def trait_of(expr: object, kind: type[T]) -> T | None:
    """Returns a trait of the op that ``expr`` calls; None without it, or if ``expr`` is not a call."""
    if not isinstance(expr, CallFunction):
        return None
    op = catalogue().found(expr.function)
    return None if op is None else op.trait(kind)


def has_trait(expr: object, *kinds: type[Trait]) -> bool:
    """Whether ``expr`` calls an op with one of some traits."""
    return isinstance(expr, CallFunction) and op_has(expr.function, *kinds)


def op_has(name: str, *kinds: type[Trait]) -> bool:
    """Whether the op of this name has one of some traits; False without such an op."""
    op = catalogue().found(name)
    return op is not None and any(map(op.has, kinds))


def registered(name: str) -> Op | None:
    """Returns the op of this name that a user has registered."""
    catalogue()  # installed plugins register theirs
    return _registry.registered.get(name)


def custom_op(name: str) -> CustomOp | None:
    """Returns the op of this name that consists of functions of a user alone; None for others."""
    op = registered(name)
    if op is None:
        return None
    from tmconvert.symbolics.custom import CustomOp

    return op if isinstance(op, CustomOp) else None


def registered_ops() -> Mapping[str, Op]:
    """Returns all ops that users have registered, by name; the files of tmconvert's are not loaded."""
    catalogue()  # installed plugins register theirs
    return _registry.registered


def register(name: str, function: Callable[..., Any], **meaning: Any) -> None:
    """Adds a function to an op, or a new op; see ``tmconvert.register_symbolic``."""
    from tmconvert.symbolics.custom import extended

    op = extended(catalogue().get(name), name, function, catalogue=catalogue, **meaning)
    _registry.set_registered({**_registry.registered, name: op})


@contextmanager
def temporary_symbolics() -> Iterator[None]:
    """Returns a context manager at whose end registrations of symbolics are undone.

    Returns:
        The context manager.

    Raises:
        Exception: What the code within it raises.

    Example:
        >>> with tmconvert.temporary_symbolics():  # doctest: +SKIP
        ...     tmconvert.register_symbolic("aten::gelu", my_gelu, target="onnx")
    """
    catalogue()
    before = _registry.registered
    try:
        yield
    finally:
        _registry.set_registered(before)
