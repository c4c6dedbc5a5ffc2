"""The tree of modules that the page folds and unfolds.

Each level of the tree has few children, so that the page lays it out at once: long runs of nodes are divided
into sections.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tmconvert.frontends.shared.view_graph import Path, ViewGraph

MOST_CHILDREN = 60
SECTION = 40


@dataclass(eq=False)
class Module:
    """A box of the page. ``children`` are modules, and indices of nodes, in the order of execution."""

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

    A module around a single node or module is left out, and what is too long is divided into sections.
    """
    root = Module("")
    made: dict[Path, Module] = {(): root}
    for number, node in enumerate(graph.nodes):
        _module_at(node.module, made, graph).children.append(number)
    _simplify(root)
    for module in list(root.walk()):
        _divide(module)
    return root


def _module_at(path: Path, made: dict[Path, Module], graph: ViewGraph) -> Module:
    for length in range(1, len(path) + 1):
        part = path[:length]
        if part not in made:
            made[part] = Module(part[-1], graph.classes.get(part, ""))
            made[part[:-1]].children.append(made[part])
    return made[path]


def _simplify(module: Module) -> None:
    stack, order = [module], []
    while stack:
        each = stack.pop()
        order.append(each)
        stack += [child for child in each.children if isinstance(child, Module)]
    for each in reversed(order):
        each.children = [_only(child) for child in each.children]


def _only(child: Module | int) -> Module | int:
    if isinstance(child, int) or len(child.children) != 1:
        return child
    (inner,) = child.children
    if isinstance(inner, Module):
        inner.name = f"{child.name}.{inner.name}"
    return inner


def _divide(module: Module) -> None:
    size = SECTION
    while len(module.children) > MOST_CHILDREN:
        groups = [
            module.children[start : start + SECTION] for start in range(0, len(module.children), SECTION)
        ]
        module.children = [
            Module(f"{number * size + 1} to {number * size + size}", is_section=True, children=group)
            for number, group in enumerate(groups)
        ]
        size *= SECTION
