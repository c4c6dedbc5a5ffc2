"""Modules as records of MegEngine's TracedModule and _ModuleState."""

from __future__ import annotations

from typing import Any

from tmconvert.errors import WriteError
from tmconvert.frontends.megengine.vocabulary import MegEngineVocabulary
from tmconvert.frontends.megengine.writing.argument_trees import call_tree, flattened
from tmconvert.frontends.megengine.writing.aten_to_megengine import in_words
from tmconvert.frontends.megengine.writing.call_structures import Arguments, formal_arguments
from tmconvert.frontends.megengine.writing.graph_records import GraphRecords, is_traced_module
from tmconvert.frontends.megengine.writing.pickle_writer import CANNOT_SAVE
from tmconvert.frontends.megengine.writing.records import TRACED_MODULE, Record, class_reference, ordered_dict
from tmconvert.frontends.megengine.writing.values import Values
from tmconvert.ir import CallFunction, CallMethod, Input, InternalGraph, ModuleNode, Node, TracedModule
from tmconvert.ir.call_structure import call_structure
from tmconvert.ir.inert import GlobalRef

_MODULE_STATE = GlobalRef("megengine.traced_module.serialization", "_ModuleState")
_ARGUMENT_NAMES = GlobalRef("inspect", "FullArgSpec")


def _wordless(root: TracedModule) -> list[tuple[str, str]]:
    """Returns a note with the functions and methods in a model that no function of MegEngine means."""
    found: dict[str, None] = {}
    for expr in (expr for _, each in root.modules() for graph in each.graphs.values() for expr in graph):
        if isinstance(expr, CallFunction):
            try:
                in_words(expr)
            except WriteError:
                found[expr.function] = None
        elif isinstance(expr, CallMethod) and expr.method != "__call__":
            found[f"the method {expr.method}"] = None
    return [("note", f"no function of MegEngine means {', '.join(found)}")] if found else []


class ModuleRecords:
    """Makes the records of a model and of all its modules, each once."""

    def __init__(self, root: TracedModule) -> None:
        if not isinstance(root.vocabulary, MegEngineVocabulary):
            raise WriteError(
                CANNOT_SAVE,
                "the model has no calls of MegEngine",
                notes=[*_wordless(root), ("help", "only models that MegEngine traced can be saved for it")],
            )
        self.root = root
        self.release = root.vocabulary.release
        self.version = ".".join(map(str, self.release))
        self.values = Values()
        self.calls = _calls(root)
        self._traced: dict[int, Record] = {}
        self._plain: dict[tuple[int, bool], Record] = {}

    def record(self) -> Record:
        """Returns the record of the model."""
        return self._traced_module(self.root)

    # ---- modules

    def _module(self, module: TracedModule, in_traced: bool) -> Record:
        """The record of a module; one of MegEngine's own inside of a TracedModule is a _ModuleState."""
        if is_traced_module(module):
            return self._traced_module(module)
        key = id(module), in_traced
        if key not in self._plain:
            reference = class_reference(module.class_name)
            made = self._plain[key] = Record(_MODULE_STATE if in_traced else reference)
            state = self._state(module, {}, in_traced=False)
            made.state = (
                {"module": (reference.module, reference.name), "state": state, "version": self.version}
                if in_traced
                else state
            )
        return self._plain[key]

    def _traced_module(self, module: TracedModule) -> Record:
        if id(module) in self._traced:
            return self._traced[id(module)]
        made = self._traced[id(module)] = Record(TRACED_MODULE)
        graphs: dict[Record, Record] = {}
        results: dict[Record, Record] = {}
        for structure, graph in module.graphs.items():
            self._graph(module, structure, graph, graphs, results)
        own = {
            "argdef_graph_map": graphs,
            "argdef_outdef_map": results,
            "_is_top": module is self.root,
            "watch_points": [],
            "watch_node_value": {},
            "end_points": [],
            "is_qat": False,
            "argspec": _argument_names(self._formals(module)) if module is self.root else None,
        }
        made.state = self._state(module, own, in_traced=True)
        if module is self.root:
            lists = ("register_type", "register_container_type", "register_mdule", "register_function")
            made.state["dump_info"] = {"version": self.version, **{name: [] for name in lists}}
        return made

    def _state(self, module: TracedModule, own: dict[str, Any], in_traced: bool) -> dict[str, Any]:
        is_inner = module is not self.root
        state: dict[str, Any] = {"_modules": []}
        for name, value in module.attributes.items():
            state[name] = self.values.attribute(value, _path(module, name), self._nested)
        usual = {
            "name": None,
            "training": False,
            "quantize_disabled": False,
            "_forward_pre_hooks": ordered_dict(),
            "_forward_hooks": ordered_dict(),
            "_name": module.name or None if is_inner else None,
            "_short_name": module.name.rpartition(".")[2] or None if is_inner else None,
            **own,
        }
        state |= {name: value for name, value in usual.items() if name not in state}
        for name, array in module.tensors.items():
            state[name] = self.values.tensor(array, _path(module, name), name not in module.buffers)
        for name, child in module.children.items():
            self._check_source(child, _path(module, name))
            state[name] = self._module(child, in_traced)
        containers = {name for name, value in state.items() if isinstance(value, (list, tuple, dict))}
        hooks = {"_forward_pre_hooks", "_forward_hooks"}
        listed = containers - {"_modules"} | hooks | set(module.children)
        state["_modules"] = [name for name in state if name in listed]
        return state

    def _check_source(self, module: TracedModule, path: str) -> None:
        if is_traced_module(module) and module.vocabulary is not self.root.vocabulary:
            raise WriteError(
                CANNOT_SAVE,
                f"the module {path} ({module.class_name}) is not one of MegEngine {self.version}",
                notes=[("help", "insert functions of MegEngine in its place, or save without a format")],
            )

    def _nested(self, module: TracedModule) -> Record:
        return self._module(module, in_traced=False)

    # ---- graphs

    def _graph(
        self,
        module: TracedModule,
        structure: str,
        graph: InternalGraph,
        graphs: dict[Record, Record],
        results: dict[Record, Record],
    ) -> None:
        version = self.version if self.release >= (1, 7) else None
        values = self.values
        made = GraphRecords(
            graph, self._qualname(module), version, self._held, values.constant, values.recorded_qparams
        )
        record = made.record()
        result = made.results(graph.result)[1]
        calls = self.calls.get(id(graph)) or [formal_arguments(structure, graph)]
        for arguments in calls:
            definition = flattened(call_tree(*arguments), self.values.constant)[1]
            graphs[definition] = record
            results[definition] = result

    def _formals(self, module: TracedModule) -> Arguments:
        ((structure, graph), *_) = module.graphs.items()
        return formal_arguments(structure, graph)

    def _qualname(self, module: TracedModule) -> str:
        top = self.root.graph.name if self.root.graph is not None else ""
        return f"{top}.{module.name}" if module is not self.root and module.name else top

    def _held(self, value: Any) -> Record:
        if isinstance(value, TracedModule):
            self._check_source(value, value.name)
            return self._module(value, in_traced=True)
        return self.values.tensor(value, "a constant")


def _path(module: TracedModule, name: str) -> str:
    return f"{module.name}.{name}".lstrip(".")


def _calls(root: TracedModule) -> dict[int, list[Arguments]]:
    """Returns the distinct arguments of all calls of each graph of a TracedModule, by the graph's id."""
    found: dict[int, dict[str, Arguments]] = {}
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        module = waiting.pop()
        if id(module) in seen:
            continue
        seen.add(id(module))
        for graph in module.graphs.values():
            for expr in graph:
                for node in expr.outputs:
                    if isinstance(node, ModuleNode) and node.owner is not None:
                        waiting.append(node.owner)
                _add_call(expr, found)
    return {graph: list(calls.values()) for graph, calls in found.items()}


def _add_call(expr: object, found: dict[int, dict[str, Arguments]]) -> None:
    if not isinstance(expr, CallMethod) or not isinstance(expr.args[0], ModuleNode):
        return
    owner = expr.args[0].owner
    graph = owner.graph_for(expr.args, expr.kwargs) if owner is not None else None
    if graph is not None:
        calls = found.setdefault(id(graph), {})
        calls.setdefault(call_structure(expr.args, expr.kwargs), (expr.args, expr.kwargs))


def _argument_names(arguments: Arguments) -> Record:
    """The names and defaults of the model's arguments: those of the inputs, and the recorded constants.

    MegEngine fills calls up by them, so what was a constant in the trace need not be given.
    """
    args, kwargs = arguments
    names = ["self", *(_name(arg, place) for place, arg in enumerate(args[1:], 1))]
    first = next((place for place, arg in enumerate(args) if _is_constant(arg)), len(args))
    defaults = tuple(arg if _is_constant(arg) else None for arg in args[first:]) or None
    keywords = {name: value for name, value in kwargs.items() if _is_constant(value)}
    fields: tuple[Any, ...] = (names, None, None, defaults, list(kwargs), keywords or None, {})
    return Record(_ARGUMENT_NAMES, fields)


def _is_constant(value: object) -> bool:
    return value is None or isinstance(value, (bool, int, float, str))


def _name(value: object, place: int) -> str:
    named = value.expr.name if isinstance(value, Node) and isinstance(value.expr, Input) else ""
    return named or f"argument_{place}"
