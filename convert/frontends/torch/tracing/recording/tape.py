"""The tape: all calls of one run of a module, from which graphs are built."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tmconvert.errors.source import Source
from tmconvert.frontends.torch.tracing.sizes.code_constants import SizeReads
from tmconvert.ir import QParams
from tmconvert.ir.tree import Tree, leaves, leaves_of


class Value:
    """A tensor or size at one point of the run; a call that writes to a tensor creates a new Value.

    ``scope`` is the module call that made it. ``depends`` states whether it depends on the data of the
    model's inputs, ``is_open`` whether its shape does. ``captured`` is the tensor itself if it existed before
    the run: a parameter, a buffer, a constant. ``shape`` and ``dtype`` (a name) are None for a size. A
    quantized tensor has the type of its integers, and ``qparams``.
    """

    __slots__ = ("captured", "depends", "dtype", "hint", "is_open", "qparams", "scope", "shape")

    def __init__(
        self,
        scope: Scope,
        hint: str,
        shape: tuple[int, ...] | None = None,
        dtype: Any = None,
        *,
        depends: bool = False,
        is_open: bool = False,
        captured: Any = None,
        qparams: QParams | None = None,
    ) -> None:
        self.scope = scope
        self.hint = hint
        self.shape = shape
        self.dtype = dtype
        self.depends = depends
        self.is_open = is_open
        self.captured = captured
        self.qparams = qparams

    def __repr__(self) -> str:
        return f"<{self.hint} {self.dtype}{list(self.shape or ())}>"


@dataclass(frozen=True, slots=True)
class CalledModule:
    """A module among the arguments of a call, the one that is called: a leaf, at its path from the top.

    ``module`` is the TracedModule itself where it was traced before; its path is empty where no module of
    the model holds it.
    """

    path: str
    module: Any = None


@dataclass(eq=False, slots=True)
class Record:
    """One call. ``is_method`` distinguishes tensor methods from functions; Values are leaves of the trees.

    ``function`` is the called function, until the run ends. ``subgraphs`` are the traced functions among the
    arguments; see ``branches.py``.
    """

    name: str
    is_method: bool
    args: tuple[Tree, ...]
    kwargs: dict[str, Tree]
    result: Tree
    source: Source
    function: Any = None
    subgraphs: tuple[Scope, ...] = ()

    def values(self) -> Iterator[Value]:
        """Returns the Values among the arguments."""
        return (leaf for leaf in leaves((self.args, self.kwargs)) if isinstance(leaf, Value))

    def results(self) -> Iterator[Value]:
        return (leaf for leaf in leaves(self.result) if isinstance(leaf, Value))


ROUNDS = ("", "range")  # among the places of decisions: the counters of all loops over open sizes


class Side(NamedTuple):
    """A side of a decision that was run; ``inputs`` lead there, None where none were found."""

    place: str
    answer: bool
    inputs: tuple[Any, ...] | None


class Forced(NamedTuple):
    """The answers that a run is given: the ``first``, then those of its ``loops``, by their lines, and those
    at ``others``.

    A loop has the answer with which it goes on, and the number of rounds after which it stops.
    The run ends where the module decides more than ``most`` times. Decisions on data whose number
    ``otherwise`` selects get the other answer. With ``sizes`` the ``first`` answers are also given to
    decisions on sizes that lead to the other answer.
    """

    first: tuple[bool, ...] = ()
    loops: Mapping[str, tuple[bool, int]] = {}
    others: Mapping[str, bool] = {}
    most: int | None = None
    otherwise: Callable[[int], bool] | None = None
    sizes: bool = False


@dataclass(eq=False, slots=True)
class Scope:
    """One call of a module: its records and the calls of submodules, in order.

    ``path`` is the dotted path of the module from the top, ``parameters`` the names of ``forward``'s.
    """

    path: str
    class_name: str
    parent: Scope | None = None
    args: tuple[Tree, ...] = ()
    kwargs: dict[str, Tree] = field(default_factory=dict)
    result: Tree = None
    items: list[Record | Scope] = field(default_factory=list)
    source: Source | None = None
    parameters: tuple[str, ...] = ()
    subgraphs: int = 0  # functions that were run within

    def ancestors(self) -> Iterator[Scope]:
        """Yields this scope and its parents up to the top."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    def arguments(self) -> list[Value]:
        return leaves_of(Value, (self.args, self.kwargs))

    def formal_inputs(self) -> list[tuple[str, Value]]:
        """Returns the Values among the arguments by name: ``x``, ``states.0``, ``batch.mask``."""
        named = [*zip(self.parameters, self.args, strict=False), *self.kwargs.items()]
        return [pair for name, tree in named for pair in named_leaves(name, tree)]

    def nested(self) -> Iterator[Scope]:
        """Yields this scope and those of the module calls and subgraphs within."""
        yield self
        for item in self.items:
            for inner in [item] if isinstance(item, Scope) else item.subgraphs:
                yield from inner.nested()

    def records(self) -> Iterator[Record]:
        """Yields all records of this scope and its children, in execution order."""
        for item in self.items:
            if isinstance(item, Record):
                yield item
                for body in item.subgraphs:
                    yield from body.records()
            else:
                yield from item.records()


# outcomes of comparisons of sizes, and lost numbers, in order, by the line and the operator
Outcomes = dict[tuple[str, str], list[Any]]


@dataclass
class Tape:
    """The record of a whole run.

    ``decisions`` are the locations where Python code read data (``freeze_control_flow``), ``written`` the
    names of parameters and buffers that the run wrote to, ``notes`` are for the report. ``reads`` are the
    sizes that the module reads, ``texts`` the locations where it converts one to text or a hash.
    ``unlike_plain`` describes how the module differs when sizes are plain integers; it is empty if it does
    not. ``conversions`` are the sizes that the module converts to plain numbers, in order, and ``outcomes``
    those of its comparisons of sizes. ``checks`` are the places where it checks its data, and ``data_texts``
    those where it turns an element into text.
    """

    top: Scope
    decisions: list[str] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    reads: SizeReads = field(default_factory=SizeReads)
    texts: dict[str, None] = field(default_factory=dict)
    unlike_plain: str = ""
    checks: dict[str, None] = field(default_factory=dict)
    data_texts: dict[str, None] = field(default_factory=dict)
    takes_gradients: bool = False  # by a transform of torch.func
    is_batched: bool = False  # by torch.vmap, whose ATen ops have sizes as plain numbers
    conversions: list[Any] = field(default_factory=list)
    int_files: dict[str, None] = field(default_factory=dict)  # modules whose code made them by ``int``
    outcomes: Outcomes = field(default_factory=dict)
    lost: dict[tuple[str, str], Any] = field(default_factory=dict)  # those of lost numbers, with their sizes
    is_recovered: bool = False  # sizes were recovered on it
    decided: list[Record] = field(default_factory=list)  # decisions, whose other sides are not on it
    forced: Forced | None = None  # answers that decisions are given
    deciding: Collection[tuple[str, str]] = ()  # comparisons of sizes that are decisions, as in ``outcomes``
    with_floats: Any = None  # see ``data/floats.py``; None where no float was read
    answering: Any = None  # what gives them
    has_data_loops: bool = False
    has_ranges: bool = False  # it has loops over the numbers of a size
    calls: int = 0  # before its loops were rolled
    data_numbers: dict[Value, Any] = field(default_factory=dict)  # Values and tensors that Python read, by
    # the result of ``torch.arange`` whose size is the number
    rejoins: bool = False  # it has calls for joins of parts, which may be unused now

    @property
    def has_plain_sizes(self) -> bool:
        """Whether sizes may be plain numbers: of ATen ops that functorch made, or made by the module."""
        return self.is_batched or self.takes_gradients or bool(self.conversions)

    def with_tensors(self, arguments: Any) -> Any:
        """Returns the arguments of a call with tensors in the place of floats that were read of them."""
        return arguments if self.with_floats is None else self.with_floats(arguments)

    def note(self, text: str) -> None:
        """Adds a note for the report, once."""
        if text not in self.notes:
            self.notes.append(text)


def captured_tensors(tape: Tape) -> set[int]:
    """Returns the ids of the captured tensors that the calls on the tape use, or that it returns."""
    used = leaves_of(Value, tape.top.result)
    used += [value for record in tape.top.records() for value in record.values()]
    return {id(value.captured) for value in used if value.captured is not None}


def results_of_constants(steps: Sequence[Record | Scope]) -> set[Value]:
    """Returns the results of calls that take nothing of the inputs, not even sizes."""
    found = set[Value]()
    for step in steps:
        if isinstance(step, Record) and all(
            each.captured is not None or each in found for each in step.values()
        ):
            found.update(step.results())
    return found


def named_leaves(name: str, tree: Tree) -> list[tuple[str, Value]]:
    """Returns the Values in a tree, with names that are their paths in it."""
    if isinstance(tree, Value):
        return [(name, tree)]
    if isinstance(tree, dict):
        children = [(f"{name}.{key}", child) for key, child in tree.items()]
    elif isinstance(tree, (list, tuple)):
        children = [(f"{name}.{i}", child) for i, child in enumerate(tree)]
    else:
        return []
    return [pair for child in children for pair in named_leaves(*child)]
