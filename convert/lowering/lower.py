"""Lowering of ATen-style expressions to operators of one target."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from tmconvert.errors import InternalError, Refusal, TmconvertError
from tmconvert.ir import CallFunction, Constant, Expr, InternalGraph, QParams, TensorNode, TensorType
from tmconvert.ir.lazy_constants import viewed
from tmconvert.ir.symbolic.journal import SizeJournal, current_journal
from tmconvert.ir.tree import map_leaves
from tmconvert.lowering.builder import Builder
from tmconvert.lowering.origins import Origin, Role
from tmconvert.lowering.target_graph import Operands, TargetGraph, Value
from tmconvert.symbolics.layouts import NCHW_TO_NHWC, remap
from tmconvert.symbolics.op import Op, Ops
from tmconvert.symbolics.target_names import words_of

if TYPE_CHECKING:
    from tmconvert.passes.unsupported import Unsupported


@dataclass
class Lowering:
    """The lowered graph, and every unsupported expression (with any, the graph is unusable)."""

    graph: TargetGraph
    unsupported: list[Unsupported] = field(default_factory=list)


def lower(
    graph: InternalGraph, catalogue: Ops, target: str, version: int, builder: type[Builder]
) -> Lowering:
    """Lowers a normalized graph. Unsupported expressions are collected, not raised."""
    return _Lowerer(graph, catalogue, target, version, builder).run()


class _Lowerer:
    def __init__(
        self, graph: InternalGraph, catalogue: Ops, target: str, version: int, builder: type[Builder]
    ) -> None:
        self.source_graph = graph
        self.catalogue = catalogue
        self.version = version
        self.lowering = Lowering(TargetGraph(target, version, graph.name))
        self.builder = builder(self.lowering.graph)
        self.builder.lowered = self.body
        self.values: dict[TensorNode, Value] = {}

    def body(self, graph: InternalGraph, inputs: Operands, inlined: bool = False) -> TargetGraph:
        """Builds a subgraph of the current call, which sees the values around it.

        Each output is a computed value of its own, unless the operators are to be ``inlined``.
        """
        target = self.lowering.graph
        inner = _Lowerer(graph, self.catalogue, target.target, self.version, type(self.builder))
        made = inner.lowering.graph
        made.origins = target.origins
        inner.builder = self.builder.inside(made)
        inner.builder.lowered = inner.body
        inner.lowering.unsupported = self.lowering.unsupported
        _rename_all(graph, self.builder)
        for node, value in zip(graph.inputs, inputs, strict=True):
            assert isinstance(node, TensorNode)
            if value is None:
                value = Value(node.name, node.type.dtype, node.type.shape)
                made.inputs.append(value)
            inner.values[node] = value
            inner._stands_for(value, node)
            inner.builder.define(value)
        inner.run_body(inlined)
        return made

    def run_body(self, inlined: bool) -> None:
        """Lowers the calls and the results of a subgraph."""
        self._exprs()
        made, graph = self.lowering.graph, self.source_graph
        within = {id(value) for operator in made.operators for value in operator.outputs}
        for node in graph.outputs:
            assert isinstance(node, TensorNode)
            value = self.values[node]
            if not inlined and (id(value) not in within or value in made.outputs):
                self.builder.begin(f"{node.name}_output", None, [node.type])
                value = self.builder.identity(value)
            made.outputs.append(value)

    def run(self) -> Lowering:
        self._reserve_names()
        for node in self.source_graph.inputs:
            assert isinstance(node, TensorNode)
            type_ = stored_type(node)
            self.values[node] = Value(node.name, type_.dtype, type_.shape, qparams=stored_qparams(node))
            self._stands_for(self.values[node], node)
            self.builder.define(self.values[node])
            self.lowering.graph.inputs.append(self.values[node])
        self._exprs()
        self._outputs()
        self.builder.finish()
        self.lowering.graph.complete_origins()
        self.lowering.graph.input_names = [node.name for node in self.source_graph.inputs]
        self.lowering.graph.output_names = [value.name for value in self.lowering.graph.outputs]
        return self.lowering

    def _exprs(self) -> None:
        for expr in self.source_graph:
            if isinstance(expr, Constant):
                self._constant(expr)
            else:
                assert isinstance(expr, CallFunction)
                self._call(expr)
                current_journal().check()

    def _reserve_names(self) -> None:
        """Reserves the names of inputs and results; operators of symbolics get other names."""
        names = {node.name for node in self.source_graph.inputs}
        for name in (*names, *(name for name in self.source_graph.output_names if name not in names)):
            self.builder.names.free(name)
        for expr in self.source_graph:
            if not isinstance(expr, Constant):
                for node in expr.outputs:
                    if node.name not in self.source_graph.output_names:
                        self.builder.names.free(node.name)

    def _constant(self, expr: Constant) -> None:
        array = expr.stored
        if expr.output.layout == "nhwc":
            array = viewed(array, lambda each: each.transpose(NCHW_TO_NHWC))
        self.values[expr.output] = self.builder.const(
            array, name=expr.name or expr.output.name, qparams=stored_qparams(expr.output)
        )
        self._stands_for(self.values[expr.output], expr.output, Role.CONSTANT)

    def _refuse(self, expr: Expr, refusal: Refusal) -> None:
        from tmconvert.passes.unsupported import Unsupported

        self.lowering.unsupported.append(Unsupported(expr, refusal.reason, refusal.help))

    def _call(self, expr: CallFunction) -> None:
        types = [stored_type(node) for node in expr.outputs if isinstance(node, TensorNode)]
        self.builder.begin(expr.outputs[0].name, expr.source, types)
        current_journal().at(f"{expr.outputs[0].name} ({expr.function})", expr.source)
        first_new = len(self.lowering.graph.operators)
        try:
            results = self._symbolic_results(expr)
        except Refusal as refusal:
            from tmconvert.passes.symbolic_calls import give_up_sizes

            del self.lowering.graph.operators[first_new:]
            give_up_sizes(expr, refusal.reason)
            self._refuse(expr, refusal)
            results = [
                Value(node.name, type_.dtype, type_.shape)
                for node, type_ in zip(expr.outputs, types, strict=True)
            ]
        if len(results) != len(types):
            raise InternalError("TM9004", f"the symbolic of {expr.function} returned {len(results)} values")
        for node, value, type_ in zip(expr.outputs, results, types, strict=True):
            assert isinstance(node, TensorNode)
            self.values[node] = self._assign_type(node, value, type_, first_new)
            self.builder.define(self.values[node])
        self._parts_of(expr.outputs[0], first_new)
        try:
            self.builder.accept(self.lowering.graph.operators[first_new:])
        except Refusal as refusal:
            self._refuse(expr, refusal)

    def _symbolic_results(self, expr: CallFunction) -> list[Value]:
        op = self.catalogue.get(expr.function)
        target = self.lowering.graph.target
        if op is None:
            raise Refusal(f"{expr.function} is not in the catalogue")
        symbolic = op.lookup(target, self.version)
        if symbolic is None:
            raise Refusal(*_missing(op, target, self.version))
        tensors = map_leaves(lambda leaf: None if leaf is None else self.values[leaf], list(expr.args))
        arguments = op.by_name(tensors, self._attributes(op, expr))
        try:
            with current_journal().because(partial(self._static_size, op, arguments)):
                result = symbolic(self.builder, **arguments)
        except (Refusal, TmconvertError):
            raise
        except MemoryError as error:  # extents may come from a damaged file
            raise Refusal(f"{op.name} on tensors of this size needs more memory than is available") from error
        except Exception as error:
            from tmconvert.passes.symbolic_calls import refuse_symbolic

            refuse_symbolic(expr, error)
            raise InternalError(
                "TM9004", f"{symbolic.__name__} failed: {error}", source=expr.source, excerpt=repr(expr)
            ) from error
        return list(result) if isinstance(result, (list, tuple)) else [result]

    def _static_size(self, op: Op, arguments: dict[str, Any]) -> str:
        """Returns why a size is specialized, and the first later opset with a form that keeps the sizes."""
        target, version = self.lowering.graph.target, self.version
        later = sorted(since for since in op.symbolics.get(target, {}) if since > version)
        kept = (since for since in later if target == "onnx" and self._keeps_sizes(op, arguments, since))
        since = next(kept, None)
        hint = "" if since is None else f" at opset {version}; --opset {since} keeps it dynamic"
        return f"requires a static size{hint}"

    def _keeps_sizes(self, op: Op, arguments: dict[str, Any], version: int) -> bool:
        """Whether a trial of the symbolic of another version specializes no size."""
        graph = TargetGraph(self.lowering.graph.target, version, "trial")
        builder, symbolic = type(self.builder)(graph), op.lookup(graph.target, version)
        builder.begin("trial", None, self.builder.result_types)
        for value in self.values.values():
            builder.define(value)
        try:
            with SizeJournal() as journal:
                if symbolic is not None:
                    symbolic(builder, **arguments)
                builder.accept(graph.operators)
        except Exception:
            return False
        return symbolic is not None and not journal.specialized

    def _attributes(self, op: Op, expr: CallFunction) -> dict[str, Any]:
        """Returns the attributes for tensors in the layouts that the plan chose."""
        nhwc_x = any(getattr(node, "layout", None) == "nhwc" for node in expr.inputs)
        nhwc_result = any(getattr(node, "layout", None) == "nhwc" for node in expr.outputs)
        if not nhwc_x and not nhwc_result:
            return expr.kwargs
        types = map_leaves(lambda leaf: None if leaf is None else leaf.type, list(expr.args))
        rule = op.layout_rule(types, expr.kwargs)
        if rule.kind == "view":
            from tmconvert.symbolics.ops.shapes.view import stored

            return stored(expr.kwargs, types[0].shape, nhwc_x=nhwc_x, nhwc_result=nhwc_result)
        return remap(rule, expr.kwargs) if nhwc_x else expr.kwargs

    def _assign_type(self, node: TensorNode, value: Value, type_: TensorType, first_new: int) -> Value:
        """Assigns the declared type and the node's name to a result."""
        if not value.is_constant and any(
            value is output for made in self.lowering.graph.operators[first_new:] for output in made.outputs
        ):
            value.dtype, value.shape, value.is_typed = type_.dtype, type_.shape, True
            value.qparams = stored_qparams(node)
            self.builder.rename(value, node.name)
            self._stands_for(value, node)
        elif value.shape != type_.shape:
            raise InternalError("TM9004", f"{node.name}: lowered to {value.shape}, declared {type_}")
        return value

    def _stands_for(self, value: Value, node: TensorNode, role: Role = Role.TENSOR) -> None:
        """Records the node that ``value`` represents: the first one, where several nodes share it."""
        self.lowering.graph.origins.setdefault(value, Origin(node, role, value.qparams))

    def _parts_of(self, node: Any, first_new: int) -> None:
        """Records that the other results of new operators are intermediate results of ``node``."""
        origins = self.lowering.graph.origins
        for operator in self.lowering.graph.operators[first_new:]:
            for value in operator.outputs:
                origins.setdefault(value, Origin(node, Role.PART, value.qparams, is_inner=True))

    def _outputs(self) -> None:
        """Returns graph outputs: each a computed value of its own, with its own name."""
        taken: set[int] = set()
        graph = self.source_graph
        for node, wanted in zip(graph.outputs, graph.output_names or [""] * len(graph.outputs), strict=True):
            assert isinstance(node, TensorNode)
            value = self.values[node]
            if (
                value.is_constant
                or value in self.lowering.graph.inputs
                or id(value) in taken
                or (value.name != node.name and not self._is_renamed(node, value, wanted))
            ):
                value = self._copied(node, value, wanted)
            taken.add(id(value))
            self.lowering.graph.outputs.append(value)

    def _is_renamed(self, node: TensorNode, value: Value, wanted: str) -> bool:
        """Gives the name of an output to ``value``, computed for another node, such as one before a permute
        that the layouts make an identity. False where another output has it, or other QParams are needed.
        """
        nodes = [each for each in self.source_graph.outputs if isinstance(each, TensorNode)]
        if sum(self.values[each] is value for each in nodes) > 1 or value.qparams != stored_qparams(node):
            return False
        self.builder.rename(value, wanted or node.name)
        return True

    def _copied(self, node: TensorNode, value: Value, wanted: str) -> Value:
        """Returns a computed copy, named ``wanted`` where the graph does not use that name otherwise."""
        if value.is_constant and value.name in (node.name, wanted):
            self.builder.rename(value, self.builder.names.free(f"{node.name}_value"))
        self.builder.begin(f"{node.name}_output", None, [stored_type(node)])
        if wanted and (wanted != node.name or value.name != node.name):
            name = wanted
        else:
            name = self.builder.names.free(f"{node.name}_output") if value.name == node.name else node.name
        try:
            value = self.builder.identity(value)
        except Refusal as refusal:
            assert node.expr is not None
            self._refuse(node.expr, refusal)
        self.builder.rename(value, name)
        self._stands_for(value, node, Role.TENSOR if name == node.name else Role.COPY)
        return value


def _rename_all(graph: InternalGraph, builder: Builder) -> None:
    """Renames the nodes of a subgraph so that names are unique in the whole graph."""
    nodes = [*graph.inputs, *(node for expr in graph for node in expr.outputs)]
    for node in nodes:
        while (name := builder.names.free(node.name)) != node.name and graph.node_called(name) is not None:
            pass
        graph.rename(node, name)


def stored_type(node: TensorNode) -> TensorType:
    """Returns the type in the layout that the plan chose."""
    if node.layout != "nhwc":
        return node.type
    return TensorType(node.type.dtype, tuple(node.type.shape[axis] for axis in NCHW_TO_NHWC))


def stored_qparams(node: TensorNode) -> QParams | None:
    """Returns the QParams for the layout that the plan chose."""
    if node.layout != "nhwc" or node.qparams is None:
        return node.qparams
    return node.qparams.permuted(NCHW_TO_NHWC)


def _missing(op: Op, target: str, version: int) -> tuple[str, str]:
    """Returns (reason, help) for a missing symbolic."""
    words = words_of(target)
    if target in op.reasons:
        return f"{words.title} cannot express {op.name}: {op.reasons[target]}", ""
    retired = op.retired.get(target)
    if retired is not None and version >= retired:
        since, before = words.version.format(retired), words.option.format(retired - 1)
        return f"no runtime has a kernel for {op.name} from {since} on", f"use {before}"
    starts = (op.lowest_version(target), op.decomposed_since(target))
    lowest = min((since for since in starts if since is not None), default=None)
    if lowest is None:
        return f"no {words.title} symbolic for {op.name}", (
            f"`tmconvert ops --target {target}` lists the supported ops"
        )
    help = f"use {words.option.format(lowest)} or later"
    return f"no {words.title} symbolic for {op.name} at {words.version.format(version)}", help
