"""The tree of modules of generated code: which parameters, buffers and modules of ``torch.nn`` are where."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from tmconvert.ir import CallFunction, Constant, InternalGraph, Node, TracedModule
from tmconvert.ir.subgraphs import nested
from tmconvert.torch_code.literals import dtype_text
from tmconvert.torch_code.names import attribute_name, identifier, is_plain, name_in

EMPTY = "nn.Module()"
MOST_EMPTY = 16  # entries of a list of modules that are filled with identities


@dataclass
class Slot:
    """A parameter or buffer; only those that are ``is_persistent`` are in the ``state_dict``."""

    array: np.ndarray
    is_parameter: bool
    is_persistent: bool = True


@dataclass
class Holder:
    """A module of the generated code. ``made_by`` is its constructor, which makes the ``own`` tensors.

    ``class_name`` is that of its own class, if it has a ``forward``.
    """

    made_by: str = EMPTY
    children: dict[str, Holder] = field(default_factory=dict)
    slots: dict[str, Slot] = field(default_factory=dict)
    own: frozenset[str] = frozenset()
    settings: TracedModule | None = None
    class_name: str = ""

    @property
    def base(self) -> str:
        """Returns the constructor of what only holds modules."""
        return "nn.ModuleList()" if self.is_list else EMPTY

    @property
    def is_list(self) -> bool:
        """Whether the children have the names 0, 1, 2, ..., perhaps with gaps."""
        names = self.children
        if not names or not all(
            name.isdecimal() and name.isascii() and str(int(name)) == name for name in names
        ):
            return False
        return max(map(int, names)) < 2 * len(names) + MOST_EMPTY


class ModuleTree:
    """The modules of a model by path, for the constants of a graph.

    ``paths`` has, by node of a constant, the path of its tensor; ``aliases`` maps the further paths of shared
    tensors and modules to their first paths.
    """

    def __init__(self, module: TracedModule, graph: InternalGraph) -> None:
        self.root = Holder(made_by="", settings=module)
        self.paths: dict[Node, tuple[str, ...]] = {}
        self.aliases: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._renamed: dict[str, tuple[str, ...]] = {"": ()}
        self._modules: dict[int, tuple[str, ...]] = {}
        self._arrays: dict[int, tuple[str, ...]] = {}
        self._addresses: dict[object, tuple[str, ...]] = {}  # of parameters, by what they are in memory
        self._add(module, "", (), self.root)
        used: dict[tuple[str, ...], Constant] = {}
        for each in nested(graph):
            for expr in each:
                if isinstance(expr, Constant):
                    self._place(expr, used)

    def _add(self, module: TracedModule, source: str, path: tuple[str, ...], holder: Holder) -> None:
        self._modules[id(module)] = path
        for name, tensor in module.tensors.items():
            own = (*path, attribute_name(name, holder.slots))
            self._renamed[f"{source}.{name}" if source else name] = own
            first = self._arrays.setdefault(id(tensor), own)
            if first != own:
                self.aliases[own] = first
                continue
            is_parameter = name not in module.buffers and tensor.dtype.kind == "f"
            holder.slots[own[-1]] = Slot(np.asarray(tensor), is_parameter)
            if is_parameter and tensor.size:
                self._addresses[_address(tensor)] = own
        for name, child in module.children.items():
            own = (*path, attribute_name(name, {**holder.slots, **holder.children}))
            below = f"{source}.{name}" if source else name
            self._renamed[below] = own
            known = self._modules.get(id(child))
            if known is not None:
                self.aliases[own] = known
                continue
            holder.children[own[-1]] = Holder(settings=child)
            self._add(child, below, own, holder.children[own[-1]])

    def _place(self, expr: Constant, used: dict[tuple[str, ...], Constant]) -> None:
        path = self._renamed.get(expr.name) if expr.name else self._addresses.get(_address(expr.value))
        path = self.aliases.get(path, path) if path else None
        holder = self.holder(path[:-1]) if path else None
        is_free = path not in used or _address(used[path].value) == _address(expr.value)
        if path and holder is not None and path[-1] in holder.slots and is_free:
            used[path] = expr
            holder.slots[path[-1]].array = np.asarray(expr.value)
        else:
            path = self._new(expr)
        self.paths[expr.output] = path

    def _new(self, expr: Constant) -> tuple[str, ...]:
        """Adds a constant that the model does not store as such, and returns its path.

        A weight that the adapter of a module fused from its parameters is trained. An attribute, which is not
        registered, and an unnamed constant are left out of the ``state_dict``.
        """
        array = np.asarray(expr.value)
        source, _, name = (expr.name or "").rpartition(".")
        above = self._renamed.get(source) if expr.name else None
        holder = None if above is None else self.holder(self.aliases.get(above, above))
        if above is None or holder is None or holder.settings is None:
            above, holder, name = self._scope_of(expr)
            known = _stored_scale(expr, holder)
            if known is not None:
                return (*self.aliases.get(above, above), known)
        own = attribute_name(name, {**holder.slots, **holder.children})
        is_fused = expr.name is not None and holder.settings is not None and array.dtype.kind == "f"
        is_fused = is_fused and name not in holder.settings.attributes and own == name  # type: ignore[union-attr]
        holder.slots[own] = Slot(array, is_fused, is_persistent=is_fused)
        return (*self.aliases.get(above, above), own)

    def _scope_of(self, expr: Constant) -> tuple[tuple[str, ...], Holder, str]:
        """Returns the path and the module whose ``forward`` uses a constant, and a name for it."""
        scope = expr.source.scope if expr.source is not None else ""
        path = self.path_of(scope) if scope and not expr.name else None
        holder = self.holder(path) if path else None
        if path is None or holder is None:
            return (), self.root, identifier(expr.name or expr.output.name, "constant")
        return path, holder, identifier(name_in(expr.output.name, identifier(scope), "constant"), "constant")

    def holder(self, path: tuple[str, ...]) -> Holder | None:
        """Returns the module at a path of the generated code."""
        holder: Holder | None = self.root
        for name in path:
            holder = None if holder is None else holder.children.get(name)
        return holder

    def path_of(self, source: str) -> tuple[str, ...] | None:
        """Returns the path in the generated code of a module's path in the source."""
        path = self._renamed.get(source)
        return None if path is None else self.aliases.get(path, path)

    def drop(self, node: Node) -> None:
        """Removes an unnamed constant that the code writes as a number."""
        path = self.paths.pop(node, None)
        holder = None if path is None else self.holder(path[:-1])
        if path is not None and holder is not None and not holder.slots[path[-1]].is_persistent:
            del holder.slots[path[-1]]

    def prune(self, called: Iterable[tuple[str, ...]]) -> None:
        """Removes the modules without contents that are not called."""
        named = [*self.aliases.values(), *(path[:-1] for path in self.aliases), *called]
        kept = {path[:end] for path in named for end in range(len(path) + 1)}
        for path, holder in reversed(list(self.walk())):
            if (
                path
                and path not in kept
                and holder.made_by == EMPTY
                and not (holder.slots or holder.children)
            ):
                parent = self.holder(path[:-1])
                assert parent is not None
                del parent.children[path[-1]]

    def walk(self) -> Iterator[tuple[tuple[str, ...], Holder]]:
        """Yields all modules with their paths, parents before children."""
        stack: list[tuple[tuple[str, ...], Holder]] = [((), self.root)]
        while stack:
            path, holder = stack.pop()
            yield path, holder
            children = list(holder.children.items())
            if holder.is_list:
                children.sort(key=lambda item: int(item[0]))
            stack += [((*path, name), child) for name, child in reversed(children)]

    def weights(self) -> dict[str, np.ndarray]:
        """Returns all tensors by path, shared ones once."""
        return {
            ".".join((*path, name)): slot.array
            for path, holder in self.walk()
            for name, slot in holder.slots.items()
        }

    def within(self, path: tuple[str, ...], base: tuple[str, ...]) -> tuple[str, ...] | None:
        """Returns a path of the same tensor or module that is below ``base``; None if there is none."""
        if path[: len(base)] == base:
            return path
        for other, first in self.aliases.items():
            if other[: len(base)] == base and path[: len(first)] == first:
                return (*other, *path[len(first) :])
        return None

    def text(self, path: tuple[str, ...], base: tuple[str, ...] = ()) -> str:
        """Returns the expression of what is at a path, in a method of the module at ``base``."""
        text, holder = "self", self.holder(base)
        for name in path[len(base) :]:
            if holder is not None and holder is not self.root and holder.is_list and name in holder.children:
                text = f"{text}[{name}]"
            else:
                text = f"{text}.{name}" if is_plain(name) else f"getattr({text}, {name!a})"
            holder = holder.children.get(name) if holder is not None else None
        return text

    def definitions(self) -> list[str]:
        """Returns the statements that make all modules, parameters and buffers."""
        lines: list[str] = []
        for path, holder in self.walk():
            if path:
                lines += self._definition(path, holder)
            for name, slot in holder.slots.items():
                if name not in holder.own:
                    lines.append(_tensor(self.text(path), name, slot))
        for path, first in self.aliases.items():
            parent = self.text(path[:-1])
            target = f"{parent}.{path[-1]}" if is_plain(path[-1]) else None
            value = self.text(first)
            lines.append(f"{target} = {value}" if target else f"setattr({parent}, {path[-1]!a}, {value})")
        return lines

    def _definition(self, path: tuple[str, ...], holder: Holder) -> list[str]:
        parent = self.holder(path[:-1])
        assert parent is not None
        where, name = self.text(path[:-1]), path[-1]
        made = holder.made_by
        if made == EMPTY:
            made = f"{holder.class_name}()" if holder.class_name else holder.base
        if parent is not self.root and parent.is_list:
            before = [int(other) for other in parent.children if int(other) < int(name)]
            gap = int(name) - (max(before) + 1 if before else 0)
            lines = [f"{where}.append(nn.Identity())"] * gap
            return [*lines, f"{where}.append({made})"]
        if is_plain(name):
            return [f"{where}.{name} = {made}"]
        return [f"{where}.add_module({name!a}, {made})"]


def _stored_scale(expr: Constant, holder: Holder) -> str | None:
    """Returns the buffer of a fake-quantization module that has the scales or zero points of its call."""
    calls = {user.function if isinstance(user, CallFunction) else "" for user in expr.output.users}
    if calls != {"tm::fake_quantize_channels"}:
        return None
    array = np.asarray(expr.value)
    for name, slot in holder.slots.items():
        is_like = (slot.array.dtype, slot.array.shape) == (array.dtype, array.shape)
        if not slot.is_parameter and is_like and np.array_equal(slot.array, array):
            return name
    return None


def _address(array: np.ndarray) -> object:
    array = np.asarray(array)
    return array.__array_interface__["data"][0], array.shape, array.strides, array.dtype


def _tensor(where: str, name: str, slot: Slot) -> str:
    shape = ", ".join(map(str, slot.array.shape)) or "()"
    dtype = slot.array.dtype.name
    made = f"torch.zeros({shape}{'' if dtype == 'float32' else f', dtype={dtype_text(dtype)}'})"
    if not slot.is_parameter:
        persistent = "" if slot.is_persistent else ", persistent=False"
        return f"{where}.register_buffer({_quoted(name)}, {made}{persistent})"
    if is_plain(name):
        return f"{where}.{name} = nn.Parameter({made})"
    return f"{where}.register_parameter({_quoted(name)}, nn.Parameter({made}))"


def _quoted(name: str) -> str:
    return f'"{name}"' if is_plain(name) else ascii(name)
