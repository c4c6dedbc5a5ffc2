"""Tensors of a written file, by the node of the lowered graph that each represents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tmconvert.ir import Node
from tmconvert.lowering.origins import Role
from tmconvert.lowering.target_graph import TargetGraph, Value
from tmconvert.verification.observed import Observed

# the forms that an operator in the file may take of a tensor, those first that its own operator computes
OPERANDS = (Role.TENSOR, Role.QUANTIZED, Role.REQUANTIZED)


@dataclass(frozen=True)
class Tensors:
    """Tensors of one run of a file, by node and role, in the order of the file.

    ``taken`` are the operands of the operators of the file, by the nodes of a result and of the operand.
    """

    found: dict[Node, dict[Role, list[Observed]]] = field(default_factory=dict)
    taken: dict[tuple[Node, Node], Observed] = field(default_factory=dict)

    def __contains__(self, node: Node) -> bool:
        """Whether the file has the tensor itself."""
        return Role.TENSOR in self.found.get(node, {})

    def forms(self, node: Node, roles: Sequence[Role]) -> list[Observed]:
        """Returns all tensors of the node with one of ``roles``, in the order of these."""
        known = self.found.get(node, {})
        return [each for role in roles for each in known.get(role, [])]

    def form(self, node: Node, *roles: Role) -> Observed | None:
        """Returns the first tensor of the node with one of ``roles``; None without one."""
        return next(iter(self.forms(node, roles)), None)

    def add(self, node: Node, role: Role, observed: Observed) -> None:
        self.found.setdefault(node, {}).setdefault(role, []).append(observed)

    def items(self) -> Iterator[tuple[Node, Role, Observed]]:
        for node, roles in self.found.items():
            for role, values in roles.items():
                yield from ((node, role, each) for each in values)


def tensors_of(graph: TargetGraph, observed: Mapping[str, Observed]) -> Tensors:
    """Maps ``observed``, with tensor names of the file, to tensors of nodes."""
    made = Tensors()
    nodes: dict[Value, Node] = {}
    for value in graph.values():
        origin = graph.origins.get(value)
        if origin is not None and not origin.is_inner and value.name in observed:
            made.add(origin.node, origin.role, observed[value.name])
            nodes[value] = origin.node
    for operator in graph.all_operators():
        for result in operator.outputs:
            for operand in operator.inputs:
                if operand in nodes and result in nodes:
                    made.taken[nodes[result], nodes[operand]] = observed[operand.name]
    return made
