"""The tree of modules that the page folds and unfolds.

Each level of the tree has few children, so that the page lays it out at once: long runs of nodes are divided
into the blocks that repeat in them, and what remains into sections.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby, pairwise

from tmconvert.frontends.shared.view_graph import Path, ViewGraph
from tmconvert.viewer.repeated_blocks import SHORTEST, find_repeats, tensors_alive

MOST_CHILDREN = 60
SECTION = 40
BLOCK = "block "


@dataclass(eq=False)
class Module:
    """A box of the page. ``children`` are modules, and indices of nodes, in the order of execution.

    ``is_section`` is set for a block or a section, which the model does not name.
    """

    name: str
    class_name: str = ""
    is_section: bool = False
    children: list[Module | int] = field(default_factory=list)

    def walk(self) -> Iterator[Module]:
        """Returns this module and those in it, each before its children."""
        yield self
        for child in self.children:
            if isinstance(child, Module):
                yield from child.walk()


def module_tree(graph: ViewGraph) -> Module:
    """Returns the root of the modules of a graph.

    A module around a single node or module is left out, and so is one that is called several times and is
    one operator. What is too long is divided into blocks and sections.
    """
    root = Module("")
    made: dict[Path, Module] = {(): root}
    for number, node in enumerate(graph.nodes):
        _module_at(node.module, made, graph).children.append(number)
    _simplify(root, graph)
    alive = tensors_alive(graph)
    modules = [each for each in root.walk() if len(each.children) > MOST_CHILDREN]
    while modules:
        module = modules.pop()
        nodes = [child for child in module.children if isinstance(child, int)]
        if len(nodes) == len(module.children):
            module.children = _blocks(nodes, graph, alive)
            modules += [
                block
                for block in module.children
                if isinstance(block, Module) and len(block.children) > MOST_CHILDREN
            ]
        _divide(module)
    return root


def _module_at(path: Path, made: dict[Path, Module], graph: ViewGraph) -> Module:
    for length in range(1, len(path) + 1):
        part = path[:length]
        if part not in made:
            made[part] = Module(part[-1], graph.classes.get(part, ""))
            made[part[:-1]].children.append(made[part])
    return made[path]


def _simplify(module: Module, graph: ViewGraph) -> None:
    stack, order = [module], []
    while stack:
        each = stack.pop()
        order.append(each)
        stack += [child for child in each.children if isinstance(child, Module)]
    for each in reversed(order):
        each.children = sorted((part for child in each.children for part in _parts(child, graph)), key=_first)


def _parts(child: Module | int, graph: ViewGraph) -> list[Module | int]:
    """Returns what is drawn of a child: the child, or the only module, node or nodes in it."""
    if isinstance(child, int):
        return [child]
    if len(child.children) == 1:
        (inner,) = child.children
        if isinstance(inner, Module):
            inner.name = f"{child.name}.{inner.name}"
        return [inner]
    nodes = [each for each in child.children if isinstance(each, int)]
    is_reused = len(nodes) == len(child.children) and len({graph.nodes[each].type for each in nodes}) == 1
    if is_reused and all(after - before > 1 for before, after in pairwise(nodes)):
        return list(nodes)  # an operator for each call of the module
    return [child]


def _blocks(children: list[int], graph: ViewGraph, alive: list[int]) -> list[Module | int]:
    """Returns nodes with the blocks that repeat among them as modules."""
    pending, found = [(0, len(children))], []
    types = [graph.nodes[child].type for child in children]
    crossing = [alive[child] for child in children]
    while pending:
        start, end = pending.pop()
        repeats = find_repeats(types[start:end], crossing[start:end])
        if repeats is not None:
            first, period, count = start + repeats[0], repeats[1], repeats[2]
            found += [(first + number * period, period) for number in range(count)]
            pending += [(start, first), (first + count * period, end)]
    result: list[Module | int] = []
    position = 0
    for number, (start, period) in enumerate(sorted(found)):
        block = Module(f"{BLOCK}{number + 1}", is_section=True, children=[*children[start : start + period]])
        result += [*children[position:start], block]
        position = start + period
    return result + children[position:]


def _first(child: Module | int) -> int:
    while isinstance(child, Module):
        child = child.children[0]
    return child


def _divide(module: Module) -> None:
    if len(module.children) > MOST_CHILDREN and any(isinstance(child, Module) for child in module.children):
        module.children = list(_loose_nodes_in_sections(module.children))
    size = SECTION
    while len(module.children) > MOST_CHILDREN:
        groups = [
            module.children[start : start + SECTION] for start in range(0, len(module.children), SECTION)
        ]
        module.children = [
            Module(_title(group, number * size, size), is_section=True, children=group)
            for number, group in enumerate(groups)
        ]
        size *= SECTION


def _loose_nodes_in_sections(children: list[Module | int]) -> Iterator[Module | int]:
    """Yields children with the nodes between two modules as sections, so that no section hides a module."""
    start = 0
    for is_node, group in groupby(children, lambda child: isinstance(child, int)):
        run = list(group)
        if not is_node or len(run) < SHORTEST:
            yield from run
        else:
            for begin in range(0, len(run), SECTION):
                part = run[begin : begin + SECTION]
                yield Module(_title(part, start + begin, len(part)), is_section=True, children=part)
        start += len(run)


def _title(group: list[Module | int], start: int, size: int) -> str:
    """Returns the name of a section: its first and its last module, or the numbers of its nodes."""
    first, last = group[0], group[-1]
    if isinstance(first, Module) and isinstance(last, Module):
        return f"{first.name.partition(' to ')[0]} to {last.name.rpartition(' to ')[2].removeprefix(BLOCK)}"
    return f"nodes {start + 1} to {start + size}"
