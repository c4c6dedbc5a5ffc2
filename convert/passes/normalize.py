"""Converts a flat graph of source calls to a graph of catalogued ATen-style ops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tmconvert.errors import Refusal, UnsupportedError
from tmconvert.ir import (
    CallFunction,
    Constant,
    Expr,
    GetAttr,
    Input,
    InternalGraph,
    Node,
    TensorNode,
    TensorType,
    TracedModule,
)
from tmconvert.ir.emitter import GraphEmitter, OpDefinition
from tmconvert.ir.random_calls import draws_random
from tmconvert.ir.subgraphs import subgraphs_of
from tmconvert.ir.symbolic.dims import Dim, Size
from tmconvert.ir.symbolic.journal import current_journal, retried
from tmconvert.ir.tree import Tree, leaves, leaves_of, map_leaves
from tmconvert.ir.types import name_of

if TYPE_CHECKING:
    from tmconvert.passes.unsupported import Unsupported


_OUTSIDE_HELP = "make them outside of the branch or loop, or pass them as an input"
_RANDOM_HELP = (
    "make them inputs of the file (--noise input, of what PyTorch draws outside of TorchScript), or write "
    "operators that draw them (--noise operator, --allow-random, allow_random=True); leave out --training "
    "and write training=self.training if the call is of training"
)


@dataclass
class Normalized:
    """The graph, and the calls of the source that are not supported.

    If ``unsupported`` is not empty, the graph has all other calls, for a report. ``disagreements`` are
    results whose element type or rank is another than the source recorded when it ran, as (place, recorded,
    computed): an edited model, or an adapter that is wrong. ``types`` has the computed type of each tensor of
    the source. ``random`` are the calls of the source that draw random numbers, each with the calls that draw
    them in ``graph``.
    """

    graph: InternalGraph
    unsupported: list[Unsupported] = field(default_factory=list)
    disagreements: list[tuple[str, TensorType, TensorType]] = field(default_factory=list)
    types: dict[Node, TensorType] = field(default_factory=dict)
    random: list[tuple[Expr, list[Expr]]] = field(default_factory=list)

    def random_calls(self, *, is_allowed: bool) -> list[Unsupported]:
        """Returns the calls of the source whose random numbers reach an output and cannot be written.

        Those of branches and loops cannot be verified, and are returned also where others are allowed.
        """
        if not self.random:
            return []
        from tmconvert.passes.unsupported import Unsupported

        needed, found = set(self.graph.outputs), list[Unsupported]()
        for expr in reversed(list(self.graph)):
            if not needed.isdisjoint(expr.outputs):
                needed.update(expr.inputs)
        for expr, drawing in self.random:
            drawn = [each for each in drawing if not needed.isdisjoint(each.outputs)]
            if drawn and not is_allowed:
                found.append(Unsupported(expr, f"{_word(expr)} makes random numbers", _RANDOM_HELP))
            elif any(subgraphs_of(each) for each in drawn):
                reason = f"{_word(expr)} makes random numbers inside of a branch or loop"
                found.append(Unsupported(expr, reason, _OUTSIDE_HELP))
        return found

    @property
    def refused(self) -> bool:
        """Whether a call is unsupported for another reason than that a guard of the trace does not hold."""
        return any(each.op != "tm.assume" for each in self.unsupported)

    def notes(self) -> list[str]:
        """Returns the notes for a report."""
        if not self.disagreements:
            return []
        place, recorded, computed = self.disagreements[0]
        return [
            f"types differ from what the model recorded, in {len(self.disagreements)} results; "
            f"the first is {place}: {recorded} recorded, {computed} computed"
        ]


def normalize(
    flat: TracedModule,
    catalogue: Mapping[str, OpDefinition],
    shapes: Mapping[str, Sequence[Size]] | None = None,
    *,
    emitter: type[GraphEmitter] = GraphEmitter,
    stops: bool = False,
) -> Normalized:
    """Converts every call of a flattened module to ATen-style ops.

    The inputs keep their names, without ``self``; results keep the names of the source's nodes. ``shapes``
    are those of inputs by name where they are other than the source recorded; their Dims are propagated
    through the graph (see ``ir/symbolic/journal.py``). Raises SizesSettled where one has to be specialized.
    ``emitter`` is the class that emits the ops. With ``stops`` it ends at the first call that is unsupported
    for another reason than a guard of the trace.
    """
    return _Normalizer(flat, catalogue, shapes or {}, emitter).run(stops)


class _Normalizer:
    def __init__(
        self,
        flat: TracedModule,
        catalogue: Mapping[str, OpDefinition],
        shapes: Mapping[str, Sequence[Size]],
        emitter: type[GraphEmitter],
    ) -> None:
        assert flat.graph is not None and flat.vocabulary is not None
        self.source = flat.graph
        self.vocabulary = flat.vocabulary
        self.shapes = shapes
        self.journal = current_journal()
        self.result = Normalized(InternalGraph(flat.graph.name))
        self.catalogue = catalogue
        self.emitter = emitter(self.result.graph, catalogue)
        self.values: dict[Node, Any] = {self.source.inputs[0]: flat}

    def run(self, stops: bool = False) -> Normalized:
        graph = self.result.graph
        for node in self.source.inputs[1:]:
            assert isinstance(node.expr, Input)
            shape = self.shapes.get(node.expr.name, getattr(node, "shape", None))
            if not isinstance(node, TensorNode) or shape is None or node.dtype is None:
                raise UnsupportedError(
                    "TM2009", f"the model does not record the shape and type of {node.name!r}"
                )
            counterpart = TensorNode(
                graph.free_name(node.name), tuple(shape), _type(node).dtype, qparams=node.qparams
            )
            self.values[node] = graph.add_input(counterpart, node.expr.name, source=node.expr.source)
        for expr in self.source:
            self._expr(expr)
            self.journal.check()
            if stops and self.result.refused:
                return self.result
        graph.set_result(map_leaves(self._value, self.source.result))
        self._name_results()
        self._check_result()
        self.result.types = {
            node: value.type
            for node, value in self.values.items()
            if isinstance(value, TensorNode) and value.shape is not None
        }
        return self.result

    def _value(self, leaf: object) -> Any:
        return self.values[leaf] if isinstance(leaf, Node) else leaf

    def _expr(self, expr: Expr) -> None:
        self.emitter.begin(expr.outputs[0].name if expr.outputs else "unnamed", expr.source)
        if isinstance(expr, Constant):
            self.values[expr.outputs[0]] = self._captured(expr.value, expr.name)
        elif isinstance(expr, GetAttr):
            path = expr.name if expr.args[0] is self.source.inputs[0] else None
            self.values[expr.outputs[0]] = self._captured(self.values[expr.args[0]].get(expr.name), path)
        else:
            self._call(expr)

    def _captured(self, value: object, name: str | None) -> Any:
        if not isinstance(value, np.ndarray):
            return value
        return self.emitter.parameter(value, name) if name else self.emitter.constant(value)

    def _call(self, expr: Expr) -> None:
        args, kwargs = map_leaves(self._value, expr.args), map_leaves(self._value, expr.kwargs)
        last = self.result.graph.last
        place = self.emitter.name if expr.outputs or expr.source is None else str(expr.source)
        self.journal.at(f"{place} ({self.vocabulary.name(expr)})", expr.source)
        try:
            result = retried(lambda: self.vocabulary.apply(self.emitter, expr, args, kwargs), Refusal)
            self._bind(expr.result, result)
        except Refusal as refusal:
            # of a call that was refused itself, which is what the user has to know
            is_consequence = any(isinstance(leaf, _Unknown) for leaf in leaves((args, kwargs)))
            if not is_consequence and self._specialize((args, kwargs), refusal):
                self._stand_in(expr)
                return
            if not is_consequence or refusal.reason.endswith("is not supported"):
                from tmconvert.passes.unsupported import Unsupported

                self.result.unsupported.append(Unsupported(expr, refusal.reason, refusal.help))
            self._stand_in(expr)
        else:
            self._rename(expr, last)
            self._compare_types(expr)
            drawing = [each for each in self._made_after(last) if draws_random(each, self.catalogue)]
            if drawing:
                self.result.random.append((expr, drawing))

    def _specialize(self, arguments: Tree, refusal: Refusal) -> bool:
        """Specializes a size in the arguments of an unsupported call, so that it may be supported.

        What is computed from the data is no constant at any size.
        """
        if refusal.reason.endswith("computed from the data"):
            return False
        shapes = [tensor.shape for tensor in leaves_of(TensorNode, arguments)]
        sizes = [size for size in leaves((shapes, arguments)) if isinstance(size, Dim)]
        return self.journal.give_up(sizes, f"requires a static size: {refusal.reason}")

    def _bind(self, structure: Tree, result: object) -> None:
        if isinstance(structure, Node):
            self.values[structure] = result
            return
        if not isinstance(structure, (dict, list, tuple)):  # a constant, which the source returned
            return
        children = list(structure.values()) if isinstance(structure, dict) else list(structure)
        if not isinstance(result, (list, tuple)) or len(result) != len(children):
            raise Refusal("the call was recorded with another number of results than it has")
        for child, part in zip(children, result, strict=True):
            self._bind(child, part)

    def _compare_types(self, expr: Expr) -> None:
        """Compares the computed types with those that the source recorded, if any.

        Extents are left out: a module that is called at two sizes has one graph, which recorded one.
        """
        for node in expr.outputs:
            value = self.values[node]
            if not isinstance(node, TensorNode) or not isinstance(value, TensorNode):
                continue
            if node.shape is None or node.dtype is None:
                continue
            recorded = _type(node)
            if (recorded.dtype, recorded.rank) != (value.type.dtype, value.type.rank):
                self.result.disagreements.append((f"{node} in {expr.source}", recorded, value.type))

    def _rename(self, expr: Expr, last: Expr | None) -> None:
        """Gives the results the source's names, unless they are existing values."""
        graph = self.result.graph
        made = {node for each in self._made_after(last) for node in each.outputs}
        for node in expr.outputs:
            value = self.values[node]
            if isinstance(value, TensorNode) and value in made:
                graph.rename(value, graph.free_name(node.name or f"v{node.id}"))

    def _made_after(self, last: Expr | None) -> Iterator[Expr]:
        """Yields the calls of the graph after ``last``, the latest first."""
        current = self.result.graph.last
        while current is not None and current is not last:
            yield current
            current = current.previous

    def _name_results(self) -> None:
        """Names the model's outputs as in the source, even where its last calls are identities."""
        for node in self.source.outputs:
            value = self.values[node]
            if not isinstance(value, TensorNode) or isinstance(value.expr, Input):
                continue
            if node.name and value.name != node.name:
                self.result.graph.rename(value, self.result.graph.free_name(node.name))

    def _stand_in(self, expr: Expr) -> None:
        """Creates placeholders for the results of an unsupported call, with the recorded types."""
        for node in expr.outputs:
            if isinstance(node, TensorNode) and node.shape is not None and node.dtype is not None:
                counterpart = TensorNode(self.result.graph.free_name(node.name or f"v{node.id}"))
                counterpart.type = _type(node)
                call = CallFunction(self.vocabulary.name(expr), (), result=counterpart, source=expr.source)
                self.result.graph.insert(call)
                self.values[node] = counterpart
            else:
                self.values[node] = _Unknown()

    def _check_result(self) -> None:
        for node in self.source.outputs:
            value = self.values[node]
            for leaf in leaves(value):
                if not isinstance(leaf, TensorNode) and not self.result.unsupported:
                    raise UnsupportedError("TM2010", f"the model returns {leaf!r}, which is not a tensor")


def _word(expr: Expr) -> str:
    name = expr.function if isinstance(expr, CallFunction) else getattr(expr, "method", "")
    return str(name).removesuffix(".default").rpartition(".")[2]


def _type(node: TensorNode) -> TensorType:
    """Returns the recorded type, without MegEngine's metadata on dtypes."""
    type_ = node.real_type
    return TensorType(np.dtype(name_of(type_.dtype)), type_.shape)


class _Unknown:
    """The result of an unsupported call whose type is not recorded."""
