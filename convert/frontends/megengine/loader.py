"""Builds a TracedModule from the inert records of a ``.tm`` file."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tmconvert.errors import GraphError, LoadError
from tmconvert.errors.source import Source
from tmconvert.frontends.megengine import versions
from tmconvert.frontends.megengine.arguments import unflatten
from tmconvert.frontends.megengine.expressions import GraphBuilder
from tmconvert.frontends.megengine.pickle.allow_list import is_users_own
from tmconvert.frontends.megengine.pickle.budget import DAMAGED, OVER_LIMIT, Budget, text, text_key
from tmconvert.frontends.megengine.pickle.stand_ins import GlobalRef, Instance, Tensor
from tmconvert.frontends.megengine.pickle.unpickler import read_file
from tmconvert.frontends.megengine.quantization import plain, real
from tmconvert.frontends.megengine.release_differences import release_called
from tmconvert.frontends.megengine.vocabulary import VOCABULARY, vocabulary_of
from tmconvert.ir import CallMethod, Expr, InternalGraph, ModuleNode, TensorNode, TracedModule
from tmconvert.ir.call_structure import call_structure
from tmconvert.ir.ids import share_ids
from tmconvert.ir.ownership import assign_owners

MAX_MODULE_DEPTH = 100
MAX_PATH = 5000  # characters of a dotted path
MODULE_PACKAGES = ("megengine.module.", "megengine.quantization.", "megengine.traced_module.")
MODULE_STATE = "megengine.traced_module.serialization._ModuleState"
# what every module carries and no conversion asks for
IGNORED_ATTRIBUTES = frozenset({"_modules", "_forward_pre_hooks", "_forward_hooks", "_name", "_short_name"})
GRAPH_FIELDS = frozenset({
    "argdef_graph_map", "argdef_outdef_map", "_is_top", "argspec", "watch_points", "watch_node_value",
    "end_points", "dump_info",
})  # fmt: skip


def load_megengine(path: str) -> TracedModule:
    """Loads a ``.tm`` file that MegEngine 1.6 or later wrote.

    Raises LoadError: TM1001 to TM1006 as in ``unpickler.py``; TM1007 when the pickle is valid but its content
    is not a graph.
    """
    root = read_file(path)
    try:
        return _Loader(path, _file_size(path)).load(root)
    except LoadError as error:
        if error.source is not None:
            raise
        raise LoadError(error.code, error.message, source=Source(path), notes=error.notes) from error
    except GraphError as error:
        raise _damaged(path, error.message) from error
    # The content is untrusted: a field may be missing or of any type. Whatever such a thing breaks
    # on its way through the loader is the file's fault.
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise _damaged(path, f"{type(error).__name__}: {error}") from error


def _file_size(path: str) -> int:
    """Returns the size of the file in bytes; 0 if it was removed since it was read."""
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0


def _damaged(path: str, detail: str) -> LoadError:
    return LoadError(
        DAMAGED,
        "the file contains no valid TracedModule",
        source=Source(path),
        notes=[
            ("cause", detail),
            ("help", "the file is damaged: copy it again, or save it again in MegEngine"),
        ],
    )


class _Loader:
    def __init__(self, path: str, file_size: int) -> None:
        self.path = path
        self.budget = Budget(file_size)
        self.modules: dict[int, TracedModule] = {}
        self.vocabulary = VOCABULARY

    def load(self, root: Instance) -> TracedModule:
        self.vocabulary = vocabulary_of(release_called(versions.version_of(root)))
        versions.upgrade(root)
        module = self.module(root, "", 0)
        if module.graph is None:
            raise LoadError(DAMAGED, "the TracedModule has no graph")
        module.producer = f"MegEngine {versions.version_of(root)}"
        module.name = module.graph.name or "model"
        _number(module.graph)
        share_ids(module)
        return module

    def module(self, value: Instance, path: str, depth: int) -> TracedModule:
        """Returns the module of one record; the same record gives the same module."""
        if id(value) in self.modules:
            return self.modules[id(value)]
        if depth > MAX_MODULE_DEPTH or len(path) > MAX_PATH:
            raise LoadError(OVER_LIMIT, f"modules are nested more than {MAX_MODULE_DEPTH} deep")
        class_name = value.class_name
        state: dict[str, Any] = value.state
        if class_name == MODULE_STATE:
            package, name = state["module"]
            class_name, state = f"{text(package, 'a module')}.{text(name, 'a class')}", state["state"]
        module = self.modules[id(value)] = TracedModule(path, class_name, vocabulary=self.vocabulary)
        module.source_file = self.path
        for name, item in state.items():
            if name not in IGNORED_ATTRIBUTES and name not in GRAPH_FIELDS:
                self._attribute(module, text(name, "the name of an attribute"), item, depth)
        if "argdef_graph_map" in state:
            self._graphs(module, state, depth)
        return module

    def _attribute(self, module: TracedModule, name: str, value: Any, depth: int) -> None:
        if isinstance(value, Tensor):
            module.tensors[name] = real(value)
            if not value.is_parameter:
                module.buffers.add(name)
        elif _is_module(value):
            path = f"{module.name}.{name}" if module.name else name
            module.children[name] = self.module(value, path, depth + 1)
        else:
            module.attributes[name] = self._constant(value, f"{module.name}.{name}".lstrip("."), depth + 1)

    def _constant(self, value: Any, path: str, depth: int) -> Any:
        """Converts a plain attribute, including modules and tensors in lists and dicts (cells of an LSTM)."""
        self.budget.spend(1)
        if depth > MAX_MODULE_DEPTH or len(path) > MAX_PATH:
            raise LoadError(OVER_LIMIT, "attributes are nested too deeply")
        if _is_module(value):
            return self.module(value, path, depth + 1)
        if isinstance(value, Tensor):
            return real(value)
        value = plain(value)
        if isinstance(value, (list, tuple)):
            return type(value)(
                self._constant(item, f"{path}.{index}", depth + 1) for index, item in enumerate(value)
            )
        if isinstance(value, dict):
            return {
                text_key(key): self._constant(item, f"{path}.{key}", depth + 1) for key, item in value.items()
            }
        return self.budget.constant(value)

    def _graphs(self, module: TracedModule, state: dict[str, Any], depth: int) -> None:
        results = {id(key): definition for key, definition in state["argdef_outdef_map"].items()}
        by_structure = {
            call_structure(*self._formal_arguments(key)): definition
            for key, definition in state["argdef_outdef_map"].items()
        }
        for key, stand_in in state["argdef_graph_map"].items():
            structure = call_structure(*self._formal_arguments(key))
            definition = results.get(id(key), by_structure.get(structure))
            builder = GraphBuilder(
                self.path, lambda value, name: self.module(value, name, depth + 1), self.budget
            )
            module.graphs[structure] = builder.build(stand_in, definition)
            assign_owners(module.graphs[structure], module)
        first = module.graph
        if first is not None and first.name and not module.class_name.startswith("user."):
            module.class_name = f"user.{first.name}"

    def _formal_arguments(self, definition: Instance) -> tuple[Any, Any]:
        """Returns (args, kwargs) of a graph's argument structure, with empty nodes as tensors and modules."""

        def leaf(leaf_definition: Instance) -> Any:
            kinds = _kinds(leaf_definition.state.get("type"))
            if "Tensor" in kinds:
                return TensorNode()
            if "Module" in kinds:
                return ModuleNode()
            return self.budget.constant(leaf_definition.state.get("const_val"))

        args, kwargs = unflatten(definition, leaf, self.budget)
        return args, kwargs


def _number(graph: InternalGraph) -> None:
    """Numbers expressions like MegEngine does after loading a file: depth first, each graph once."""
    numbers = itertools.count()
    visited = {id(graph)}

    def visit(graph: InternalGraph) -> None:
        for node in graph.inputs:
            if node.expr is not None:
                node.expr.id = next(numbers)
        for expr in graph:
            expr.id = next(numbers)
            expr.source = Source(expr.source.file if expr.source else "", expr.id)
            callee = _called_graph(expr)
            if callee is not None and id(callee) not in visited:
                visited.add(id(callee))
                visit(callee)

    visit(graph)


def _called_graph(expr: Expr) -> InternalGraph | None:
    if not isinstance(expr, CallMethod) or expr.method != "__call__":
        return None
    node = expr.args[0]
    owner = node.owner if isinstance(node, ModuleNode) else None
    return owner.graph_for(expr.args, expr.kwargs) if isinstance(owner, TracedModule) else None


def _is_module(value: object) -> bool:
    if not isinstance(value, Instance):
        return False
    name = value.class_name
    if name == MODULE_STATE or (is_users_own(value.reference) and "training" in value.state):
        return True
    return name.startswith(MODULE_PACKAGES) and not name.startswith(
        ("megengine.quantization.utils.", "megengine.traced_module.expr.", "megengine.traced_module.node.")
    )


def _kinds(types: object) -> set[str]:
    if not isinstance(types, Iterable):
        types = (types,)
    return {kind.name.rpartition(".")[2] for kind in types if isinstance(kind, GlobalRef)}
