"""Programs of calls: what a module of PyTorch calls, as text of a file with a class ``Reduced``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from math import prod
from typing import Any, NamedTuple

import numpy as np

MODULE, CLASS = "reduced", "Reduced"
SMALL = 16  # elements of a constant that is kept
_INDENT = " " * 8


class NoForm(ValueError):
    """A value or function that has no form as text."""


class Value(NamedTuple):
    """A result of a call, or what calls take, by its number."""

    number: int


class Code(str):
    """Text of an argument, such as ``torch.float32``."""

    def __repr__(self) -> str:
        return str(self)


class Call(NamedTuple):
    """A call of a function by its full name, or of a method of the first argument: ``.name`` is a property.

    ``results`` is a tree of values, with None for what is no tensor.
    """

    function: str
    is_method: bool
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    results: Any

    def without(self, index: int, dropped: Set[tuple[int, str | int]]) -> Call:
        """Returns the call without arguments: ``index`` is its number in ``dropped``."""
        count = len(self.args)
        while count > 1 and (index, count - 1) in dropped:
            count -= 1
        words = {name: each for name, each in self.kwargs.items() if (index, name) not in dropped}
        return self._replace(args=self.args[:count], kwargs=words)

    def operands(self) -> list[Value]:
        return values_in((self.args, dict(self.kwargs)))


@dataclass
class Edits:
    """Sizes to write in place of others, and the arguments to leave out, by call and name or position."""

    sizes: dict[int, int] = field(default_factory=dict)
    dropped: set[tuple[int, str | int]] = field(default_factory=set)

    def size(self, value: int) -> int:
        return self.sizes.get(value, value)


class Written(NamedTuple):
    """A program: its ``text``, the types of its inputs, and the call of each line."""

    text: str
    inputs: list[str]
    lines: dict[int, int]


@dataclass
class Program:
    """Calls in order; ``types`` are the element type and shape of tensors by number, ``constants`` what no
    call makes: small ones with their values.
    """

    calls: list[Call] = field(default_factory=list)
    types: dict[int, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    constants: dict[int, np.ndarray | None] = field(default_factory=dict)
    imports: set[str] = field(default_factory=set)

    def write(self, kept: Sequence[int], edits: Edits, head: str, inputs: bool = False) -> Written | None:
        """Returns the program of some calls, whose other operands are inputs; None if it takes no tensor.

        ``head`` is the first line; with ``inputs`` the program has a tuple of inputs for other tools.
        """
        names, free = dict[int, str](), dict[int, str]()
        lines: list[str] = []
        at: dict[int, int] = {}
        made: dict[int, str] = {}
        calls = {index: self.calls[index].without(index, edits.dropped) for index in kept}
        for index, call in calls.items():
            for number, *_ in call.operands():
                if number not in names:
                    kind = "w" if number in self.constants else "x"
                    names[number] = free[number] = f"{kind}{sum(kind in each for each in free.values())}"
            text = call_text(call, names, edits)
            for number, *_ in values_in(call.results):
                if names.get(number, "w")[0] == "w":  # a global that is assigned would be local
                    names[number] = f"t{len(made)}"
                made.setdefault(number, names[number])
            target = _target(call.results, names)
            at[len(lines)] = index
            lines.append(f"{target} = {text}" if target else text)
        taken = [number for number, name in free.items() if name.startswith("x")]
        used = {each.number for call in calls.values() for each in call.operands()}
        free_calls = (each for each in calls.values() if not used & {n for n, *_ in values_in(each.results)})
        last = [n for each in free_calls for n, *_ in values_in(each.results)] or [*made][-1:] or taken[:1]
        if not taken or any(number not in self.types for number in free):
            return None
        weights = [f"{name} = {self._weight(n, edits)}" for n, name in free.items() if name[0] == "w"]
        if any("rand" in each for each in weights):
            weights = ["torch.manual_seed(0)", *weights]
        types = [self._shape(number, edits) for number in taken]
        if inputs:
            made_up = ", ".join(_made_up(dtype, shape) for dtype, shape in types)
            weights.append(f"inputs = ({made_up},)")
        arguments = ", ".join(free[number] for number in taken)
        before = [head, "", *(f"import {each}" for each in ("torch", *sorted(self.imports)))]
        before += ["", *weights] if weights else []
        before += ["", "", f"class {CLASS}(torch.nn.Module):", f"    def forward(self, {arguments}):"]
        returned = ", ".join(names[n] + ".real" * self._is_complex(n) for n in dict.fromkeys(last))
        body = [_INDENT + each for each in (*lines, f"return {returned}")]
        texts = [f"{dtype}[{','.join(map(str, shape))}]" for dtype, shape in types]
        return Written(
            "\n".join([*before, *body, ""]),
            texts,
            {len(before) + line + 1: index for line, index in at.items()},
        )

    def sizes(self, kept: Sequence[int]) -> list[int]:
        """Returns the sizes of the operands of calls, largest first."""
        numbers = {each.number for index in kept for each in self.calls[index].operands()}
        return sorted({size for each in numbers if each in self.types for size in self.types[each][1]})[::-1]

    def attributes(self, kept: Sequence[int]) -> list[tuple[int, str | int]]:
        """Returns the arguments that calls may do without, the last ones first."""
        found: list[tuple[int, str | int]] = []
        for index in kept:
            call = self.calls[index]
            needed = 2 if call.function == "__getitem__" or call.function.endswith(".__set__") else 1
            found += [(index, name) for name in call.kwargs]
            found += [(index, position) for position in range(len(call.args) - 1, needed - 1, -1)]
        return found

    def _shape(self, number: int, edits: Edits) -> tuple[str, tuple[int, ...]]:
        dtype, shape = self.types[number]
        return dtype, tuple(map(edits.size, shape))

    def _is_complex(self, number: int) -> bool:
        """Whether a tensor is one that models cannot return."""
        return self.types[number][0].startswith("complex")

    def _weight(self, number: int, edits: Edits) -> str:
        value = self.constants[number]
        dtype, shape = self._shape(number, edits)
        if value is not None and value.size <= SMALL and (value.dtype.kind != "f" or value.ndim == 0):
            return f"torch.tensor({value.tolist()}, dtype=torch.{dtype})"
        return _made_up(dtype, shape)


def _made_up(dtype: str, shape: tuple[int, ...]) -> str:
    sizes = ", ".join(map(str, shape)) or "()"
    if dtype == "float32":
        scale = round(prod(shape[1:]) ** 0.5)  # so that values neither grow nor vanish from layer to layer
        return f"torch.rand({sizes})" if scale < 2 else f"torch.randn({sizes}) / {scale}"
    if dtype.startswith(("float", "bfloat", "complex")):
        return f"torch.rand({sizes}).to(torch.{dtype})"
    return f"torch.ones({sizes}, dtype=torch.{dtype})"


def call_text(call: Call, names: Mapping[int, str], edits: Edits) -> str:
    """Returns the text of a call. Raises NoForm."""
    args = [repr(_literal(each, names, edits)) for each in call.args]
    words = [f"{name}={_literal(each, names, edits)!r}" for name, each in call.kwargs.items()]
    if not call.is_method:
        return f"{call.function}({', '.join([*args, *words])})"
    base, *rest = args
    if call.function == "__getitem__":
        return f"{base}[{rest[0]}]"
    if call.function.endswith(".__set__"):
        return f"{base}.{call.function.removesuffix('.__set__')} = {rest[0]}"
    if call.function.startswith("."):  # a property
        return f"{base}{call.function}"
    return f"{base}.{call.function}({', '.join([*rest, *words])})"


def _literal(value: object, names: Mapping[int, str], edits: Edits) -> Any:
    """Returns a value whose repr is its text. Raises NoForm."""
    if isinstance(value, Value):
        return Code(names[value.number])
    if isinstance(value, Code) or value is None or value is Ellipsis:
        return Code("..." if value is Ellipsis else str(value))
    if isinstance(value, (bool, str, bytes, complex)):
        return value
    if isinstance(value, (int, np.integer)):
        return edits.size(int(value))
    if isinstance(value, (float, np.floating)):
        return float(value) if np.isfinite(value) else Code(f'float("{float(value)}")')
    if isinstance(value, slice):
        parts = [_literal(each, names, edits) for each in (value.start, value.stop, value.step)]
        return Code(f"slice({', '.join(map(repr, parts))})")
    if isinstance(value, (tuple, list)):
        return type(value)(_literal(each, names, edits) for each in value)
    if isinstance(value, dict) and all(isinstance(each, str) for each in value):
        return {key: _literal(each, names, edits) for key, each in value.items()}
    raise NoForm(type(value).__name__)


def map_values(function: Callable[[Any], Any], tree: Any) -> Any:
    """Returns a tree of plain tuples, lists, dicts and slices with ``function`` of each leaf."""
    if isinstance(tree, (tuple, list)) and not isinstance(tree, Value):
        kind = list if isinstance(tree, list) else tuple
        return kind(map_values(function, each) for each in tree)
    if isinstance(tree, dict):
        return {key: map_values(function, each) for key, each in tree.items()}
    if isinstance(tree, slice):
        return slice(*(map_values(function, each) for each in (tree.start, tree.stop, tree.step)))
    return function(tree)


def values_in(tree: object) -> list[Value]:
    """Returns the values of a tree, in order."""
    found: list[Value] = []
    map_values(lambda each: found.append(each) if isinstance(each, Value) else None, tree)
    return found


def _target(results: object, names: Mapping[int, str]) -> str:
    """Returns the left side of an assignment; empty where there is nothing to keep."""
    if isinstance(results, Value):
        return names[results.number]
    if isinstance(results, (tuple, list)) and values_in(results):
        parts = [_target(each, names) or "_" for each in results]
        inner = ", ".join(f"({each})" if "," in each else each for each in parts)
        return inner + ("," if len(parts) == 1 else "")
    return ""
