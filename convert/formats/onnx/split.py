"""Splits an ONNX model into nodes that stay as they are and a model of the others, and joins them again."""

from __future__ import annotations

import copy
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from tmconvert.formats.onnx.model import infer_shapes

STANDARD = ("", "ai.onnx")
PLAIN = frozenset((*range(1, 8), *range(9, 14)))  # element types that graphs hold as they are
# operators whose random numbers need a permission
RANDOM = frozenset((
    *("Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike"),
    *("RandomUniform", "RandomUniformLike"),
))  # fmt: skip
_NAME = re.compile(r"node#(\d+)")  # of nodes in ``part``
_GRAPHS = (5, 10)  # AttributeProto.AttributeType


class CannotStay(Exception):
    """Nodes of a model cannot stay in what was made of the others, for the reason that is the text."""


class SplitModel:
    """A model without functions, some of whose nodes are kept; ``part`` is a model of the other ones.

    Values of kept nodes that others read are inputs of ``part``, and values that kept nodes read are its
    outputs. Where such a value has no known type and rank, or is no plain tensor, both of its nodes are kept.
    The nodes of ``part``, and those of their subgraphs, have names, from which ``number_of`` finds them.
    """

    def __init__(self, model: Any) -> None:
        self.model, self.graph = model, model.graph
        self.nodes = list(self.graph.node)
        inferred = infer_shapes(model).graph
        self.types = {each.name: each for each in (*self.graph.input, *inferred.value_info, *inferred.output)}
        self.stored = {each.name for each in self.graph.initializer}
        self.stored |= {each.values.name for each in self.graph.sparse_initializer}
        self.results = [each.name for each in self.graph.output]
        self.reads = [list(dict.fromkeys(names_read([node]))) for node in self.nodes]
        self.makers = {name: number for number, node in enumerate(self.nodes) for name in node.output if name}
        self.needed = self._needed()
        named = Counter(each.name for each in _all_nodes(self.nodes))
        self.named = {
            each.name: number
            for number, node in enumerate(self.nodes)
            for each in _all_nodes([node])
            if named[each.name] == 1
        }
        self.kept = self._with_neighbors(set())
        self.part = self._part()

    def keep(self, numbers: Iterable[int]) -> SplitModel:
        """Returns the model with further nodes kept."""
        kept = self._with_neighbors(self.kept | self.needed.intersection(numbers))
        if kept == self.kept:
            return self
        found = copy.copy(self)
        found.kept = kept
        found.part = found._part()
        return found

    def number_of(self, name: str) -> int | None:
        """Returns the index of the node with a name in ``part`` or in the model; None for other names."""
        found = _NAME.fullmatch(name)
        return int(found[1]) if found is not None else self.named.get(name)

    def with_names(self, text: str) -> str:
        """Returns a text with the names of the model in place of those in ``part``."""

        def name_of(found: re.Match[str]) -> str:
            node = self.nodes[int(found[1])]
            return str(node.name or node.op_type)

        return _NAME.sub(name_of, text)

    def grown(self, converted: Any) -> set[int]:
        """Returns the nodes from which several nodes of ``converted`` were made each."""
        counts = Counter(
            int(found[1])
            for node in _all_nodes(converted.graph.node)
            if node.op_type != "Constant" and (found := _NAME.search(node.name)) is not None
        )
        return {number for number, count in counts.items() if count > size_of([self.nodes[number]])}

    def joined(self, converted: Any) -> Any:
        """Returns a model of the nodes of ``converted``, which was made of ``part``, and the kept nodes.

        Raises CannotStay where ``converted`` has other inputs or outputs than ``part``, or an opset in which
        kept nodes are other operators, and where the nodes have no order.
        """
        if not _have_same_edges(converted.graph, self.part.graph):
            raise CannotStay("its inputs or outputs would have other names or types")
        outside = self._outside()
        changed = self.changed(_opset(converted))
        if changed:
            raise CannotStay(f"{', '.join(changed)} cannot stay, since it is another operator in that opset")
        read = {*names_read(outside), *self.results}
        graph = converted.graph
        taken = {*read, *(each.name for each in self.graph.input), *_names_made(outside)}
        edges = {each.name for each in (*graph.input, *graph.output)}
        _rename(graph, taken - edges)
        known = {each.name for each in graph.initializer}
        graph.initializer.extend(
            each for each in self.graph.initializer if each.name in read and each.name not in known
        )
        graph.sparse_initializer.extend(
            each for each in self.graph.sparse_initializer if each.values.name in read
        )
        for node in _all_nodes(graph.node):
            node.name = self.with_names(node.name)
        ordered = _in_order([*graph.node, *outside])
        for field in ("node", "input", "output", "value_info"):
            graph.ClearField(field)
        graph.node.extend(ordered)
        graph.input.extend(each for each in self.graph.input if each.name not in self.stored)
        graph.output.extend(self._described(name) for name in self.results)
        _drop_identities(graph)
        imported = {each.domain for each in converted.opset_import}
        converted.opset_import.extend(
            each
            for each in self.model.opset_import
            if each.domain not in imported
            and not (each.domain in STANDARD and imported.intersection(STANDARD))
        )
        converted.ir_version = max(converted.ir_version, self.model.ir_version)
        return converted

    def alone(self, opset: int) -> Any:
        """Returns the model, all of whose nodes are kept, with another opset."""
        made = type(self.model)()
        made.CopyFrom(self.model)
        imported = next((each for each in made.opset_import if each.domain in STANDARD), None)
        imported = made.opset_import.add() if imported is None else imported
        imported.version = opset
        del made.graph.node[:]
        made.graph.node.extend(self.nodes[number] for number in sorted(self.needed))
        return made

    def changed(self, opset: int) -> list[str]:
        """Returns the operators of kept nodes that are others in an opset."""
        return _changed(self._outside(), _opset(self.model), opset)

    def nearest_opset(self, opset: int) -> int:
        """Returns the opset in which the kept nodes are as in the model that is nearest to ``opset``."""
        own = _opset(self.model)
        between = range(opset, own, 1 if own > opset else -1)
        return next((each for each in between if not self.changed(each)), own)

    def makes_random_numbers(self) -> bool:
        return any(each.op_type in RANDOM for each in _all_nodes(self._outside()))

    def has_standard_nodes(self) -> bool:
        """Whether there are kept nodes of ONNX's own operators, which ONNX Runtime should know."""
        return any(each.domain in STANDARD for each in self._outside())

    def _described(self, name: str) -> Any:
        """Returns the description of an output, with the inferred shape where it states none."""
        (described,) = (each for each in self.graph.output if each.name == name)
        has_shape = described.type.tensor_type.HasField("shape") or not described.type.HasField("tensor_type")
        return described if has_shape else self.types.get(name, described)

    def _outside(self) -> list[Any]:
        return [self.nodes[number] for number in sorted(self.kept | self._copied_constants())]

    def _needed(self) -> set[int]:
        """Returns the nodes that an output needs."""
        waiting = [self.makers[name] for name in self.results if name in self.makers]
        found = set(waiting)
        while waiting:
            makers = {self.makers[name] for name in self.reads[waiting.pop()] if name in self.makers} - found
            found |= makers
            waiting += makers
        return found

    def _with_neighbors(self, kept: set[int]) -> set[int]:
        kept = kept | {
            number
            for number in self.needed
            for name in self.reads[number]
            if name not in self.makers and name not in self.stored and not self._is_plain(name, rank=False)
        }
        pairs = [
            {self.makers[name], number}
            for number in sorted(self.needed)
            for name in self.reads[number]
            if name in self.makers and not self._is_constant(self.makers[name]) and not self._is_plain(name)
        ]
        while True:
            found = kept.union(*(pair for pair in pairs if pair & kept))
            if found == kept:
                return kept
            kept = found

    def _is_plain(self, name: str, *, rank: bool = True) -> bool:
        """Whether a value is a tensor of a type that no graph widens, and of known rank."""
        if name not in self.types:
            return False
        type_ = self.types[name].type.tensor_type
        return type_.elem_type in PLAIN and (type_.HasField("shape") or not rank)

    def _is_constant(self, number: int) -> bool:
        node = self.nodes[number]
        return node.op_type == "Constant" and node.domain in STANDARD

    def _copied_constants(self) -> set[int]:
        """Returns the nodes Constant that kept nodes read, which both sides have."""
        read = {self.makers[name] for n in self.kept for name in self.reads[n] if name in self.makers}
        return {
            number
            for number in read - self.kept
            if self._is_constant(number) and self.nodes[number].output[0] not in self.results
        }

    def _part(self) -> Any:
        model = self.model  # not copied: a copy would have all weights
        part = type(model)(
            ir_version=model.ir_version, opset_import=model.opset_import, producer_name=model.producer_name
        )
        graph = part.graph
        graph.name = self.graph.name
        own, copied = sorted(self.needed - self.kept), self._copied_constants()
        for number in own:
            graph.node.add().CopyFrom(self.nodes[number])
            for node in _all_nodes([graph.node[-1]]):
                node.name = f"node#{number}"
        read, made = set(names_read(graph.node)), set(_names_made(graph.node))
        left_out = {name for number in copied for name in self.nodes[number].output}
        inputs = [each.name for each in self.graph.input if each.name not in self.stored]
        inputs += [name for number in sorted(self.kept) for name in self.nodes[number].output if name]
        graph.input.extend(self.types[name] for name in inputs if name in read)
        wanted = [*self.results, *(name for number in sorted(self.kept) for name in self.reads[number])]
        for name in dict.fromkeys(wanted):
            if name in made - left_out:
                described = graph.output.add(name=name)
                if name in self.types:
                    described.CopyFrom(self.types[name])
        graph.initializer.extend(each for each in self.graph.initializer if each.name in read)
        graph.sparse_initializer.extend(
            each for each in self.graph.sparse_initializer if each.values.name in read
        )
        return part


def _opset(model: Any) -> int:
    return next((int(each.version) for each in model.opset_import if each.domain in STANDARD), 1)


def _changed(nodes: Iterable[Any], opset: int, other: int) -> list[str]:
    """Returns the operators of nodes that two opsets define differently."""
    if opset == other:
        return []
    from onnx import defs

    kinds = {each.op_type for each in _all_nodes(nodes) if each.domain in STANDARD} - {"Identity"}

    def since(kind: str, version: int) -> int:
        try:
            return int(defs.get_schema(kind, version).since_version)
        except defs.SchemaError:
            return 0

    return sorted(kind for kind in kinds if since(kind, opset) != since(kind, other))


def _have_same_edges(one: Any, other: Any) -> bool:
    """Whether two graphs have inputs and outputs of the same names, and of types that the other states."""
    for first, second in ((one.input, other.input), (one.output, other.output)):
        types, others = (
            {each.name: each.type.tensor_type.elem_type for each in edge} for edge in (first, second)
        )
        if types.keys() != others.keys() or any(
            types[name] != others[name] and others[name] for name in types
        ):
            return False
    return True


def _graphs(node: Any) -> Iterator[Any]:
    for attribute in node.attribute:
        if attribute.type in _GRAPHS:
            yield from (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else []))


def _all_nodes(nodes: Iterable[Any]) -> Iterator[Any]:
    for node in nodes:
        yield node
        for graph in _graphs(node):
            yield from _all_nodes(graph.node)


def size_of(nodes: Iterable[Any]) -> int:
    """Returns the number of nodes other than constants, with those of subgraphs."""
    return sum(each.op_type != "Constant" for each in _all_nodes(nodes))


def names_read(nodes: Iterable[Any]) -> Iterator[str]:
    """Yields the values that nodes read, without those that their subgraphs make."""
    for node in nodes:
        yield from filter(None, node.input)
        for graph in _graphs(node):
            own = {each.name for each in (*graph.input, *graph.initializer)}
            own |= {name for each in graph.node for name in each.output}
            read = (*names_read(graph.node), *(each.name for each in graph.output))
            yield from (name for name in read if name not in own)


def _names_made(nodes: Iterable[Any]) -> Iterator[str]:
    """Yields the values that nodes make, with those of their subgraphs."""
    for node in nodes:
        yield from filter(None, node.output)
        for graph in _graphs(node):
            yield from (each.name for each in (*graph.input, *graph.initializer))
            yield from _names_made(graph.node)


def _rename(graph: Any, taken: set[str]) -> None:
    """Gives values of a graph, and of its subgraphs, other names than those that are taken."""
    made = {*_names_made(graph.node), *(each.name for each in graph.initializer)}
    free = (name for number in itertools.count() if (name := f"value_{number}") not in taken | made)
    names = {name: next(free) for name in sorted(made & taken)}
    _rename_in(graph, names)


def _rename_in(graph: Any, names: dict[str, str]) -> None:
    if not names:
        return
    for each in (*graph.input, *graph.output, *graph.initializer):
        each.name = names.get(each.name, each.name)
    for node in graph.node:
        for values in (node.input, node.output):
            values[:] = [names.get(name, name) for name in values]
        for inner in _graphs(node):
            _rename_in(inner, names)


def _drop_identities(graph: Any) -> None:
    """Removes Identity nodes of a graph, apart from those between an input and an output."""
    results = {each.name for each in graph.output}
    makers = {name for node in graph.node for name in node.output}
    number = 0
    while number < len(graph.node):
        node = graph.node[number]
        number += 1
        if node.op_type != "Identity" or node.domain not in STANDARD:
            continue
        source, result = node.input[0], node.output[0]
        if result not in results:
            names = {result: source}
        elif source in makers and source not in results:
            names = {source: result}
        else:
            continue
        number -= 1
        del graph.node[number]
        for each in graph.node:
            for values in (each.input, each.output):
                values[:] = [names.get(name, name) for name in values]
            for inner in _graphs(each):
                _rename_in(inner, names)


def _in_order(nodes: list[Any]) -> list[Any]:
    """Returns nodes so that each is after those that make what it reads. Raises CannotStay for a cycle."""
    makers = {name: number for number, node in enumerate(nodes) for name in node.output if name}
    sources = [{makers[name] for name in names_read([node]) if name in makers} for node in nodes]
    ordered: dict[int, None] = {}
    for start in range(len(nodes)):
        waiting = [start]
        while waiting:
            missing = sources[waiting[-1]] - ordered.keys()
            if len(waiting) > len(nodes):
                raise CannotStay("the nodes read one another's results")
            if missing:
                waiting.append(min(missing))
            else:
                ordered[waiting.pop()] = None
    return [nodes[number] for number in ordered]
