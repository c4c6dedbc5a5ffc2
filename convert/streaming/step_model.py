"""Makes the step model of an offline model: chunks and states in, chunks and states out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np

from tmconvert.calibration.module import as_module
from tmconvert.conversion.io_names import written_outputs
from tmconvert.errors import UnsupportedError, UsageError
from tmconvert.ir import CallFunction, Constant, Input, InternalGraph, Node, TensorNode, TracedModule
from tmconvert.ir.symbolic.dims import Size, dim, example, substituted, symbols_of
from tmconvert.ir.traced_module import Example
from tmconvert.ir.tree import map_leaves
from tmconvert.streaming import attention, ends, recurrent, rules, scans, windows
from tmconvert.streaming.builder import END, ChunkMisfit, StepBuilder
from tmconvert.streaming.forms import form_for_steps
from tmconvert.streaming.probing import frame_by_frame
from tmconvert.streaming.timed import FirstFrame, Length, Timed
from tmconvert.symbolics.op import Op
from tmconvert.transform.normal_form import normal_form

RULES: Mapping[str, rules.Rule] = {
    **rules.RULES,
    **ends.RULES,
    **windows.RULES,
    **recurrent.RULES,
    **attention.RULES,
    **scans.RULES,
}
LONGEST = 1 << 16  # frames of a chunk that strides may ask for
OPEN_EXAMPLE = 3  # times the fewest frames, in the example of an open chunk


class StreamOutput(NamedTuple):
    """An output: frame i of step t, along ``axis``, is frame t * frames + i - delay of the offline output."""

    axis: int
    frames: Size
    delay: int
    length: Length


class StepModel(NamedTuple):
    """A step model.

    ``chunk`` is the number of frames of the first input over time, symbolic where it is open; ``frames``
    those of each input over time, which are along ``axes``. ``states`` are inputs, ``NAME_next`` the outputs
    with their next values; ``has_end`` states that the input ``end`` takes the number of frames of the whole
    stream. ``limited`` has the contexts of attentions that the user limits, by the names of their results.
    """

    module: TracedModule
    chunk: Size
    axes: Mapping[str, int]
    frames: Mapping[str, Size]
    outputs: Mapping[str, StreamOutput]
    states: Mapping[str, TensorNode]
    has_end: bool
    limited: Mapping[str, int]

    @property
    def is_open(self) -> bool:
        return not isinstance(self.chunk, int)

    @property
    def least(self) -> int:
        """Returns the number of frames of which each chunk is a multiple; that of a chunk if it is fixed."""
        return int(substituted(self.chunk, dict.fromkeys(symbols_of(self.chunk), 1)))

    def at(self, size: Size, chunk: int) -> int:
        """Returns a number of frames in a step that takes ``chunk`` frames."""
        return int(example(size) * chunk // example(self.chunk))


def step_model(
    module: TracedModule,
    axes: Mapping[str, int] | None,
    chunk: int | Literal["open"] | None,
    catalogue: Mapping[str, Op],
    context: int | None = None,
) -> StepModel:
    """Returns the step model for chunks of ``chunk`` frames, by default the fewest that strides allow; for
    any multiple of these where it is "open". ``context`` limits attention to that many frames before each.

    Raises UnsupportedError TM2025 at a call that no step can compute, UsageError TM6002 for a chunk that the
    strides do not divide, TM6014 for axes that the inputs do not have.
    """
    graph = form_for_steps(normal_form(module, catalogue), catalogue)
    axes = _axes(module, graph, axes)
    least = 1
    while True:
        tried = _Steps(module, graph, axes, least, least, catalogue, context)
        try:
            made = tried.build()
        except ChunkMisfit as misfit:
            least *= misfit.factor
            if least > LONGEST:
                raise tried.b.refuse(f"requires chunks of more than {LONGEST} frames") from None
            continue
        break
    if chunk is None or chunk == least:
        return made
    if chunk == "open":
        size = least * dim("chunk" if least == 1 else "chunks", OPEN_EXAMPLE, lowest=1)
        return _Steps(module, graph, axes, size, least, catalogue, context).build()
    if chunk > LONGEST:
        raise UsageError("TM6002", f"a chunk of {chunk} frames is longer than {LONGEST}")
    if chunk % least:
        lower = max(chunk // least, 1) * least
        raise UsageError(
            "TM6002",
            f"the strides of the model do not divide a chunk of {chunk} frames",
            notes=[("help", f"use a multiple of {least}, such as {lower}")],
        )
    return _Steps(module, graph, axes, chunk, least, catalogue, context).build()


def _axes(module: TracedModule, graph: InternalGraph, given: Mapping[str, int] | None) -> dict[str, int]:
    """Returns the axes of time by input: the given ones; the only dynamic ones; the last ones of up to 3."""
    nodes = {_name(node): node for node in graph.inputs if isinstance(node, TensorNode)}
    chosen = dict(given or {})
    if not chosen:
        opened = {name: list(found) for name, found in (module.dynamic_shapes or {}).items() if found}
        if opened and all(len(found) == 1 for found in opened.values()):
            chosen = {name: found[0] for name, found in opened.items()}
        else:
            chosen = {name: -1 for name, node in nodes.items() if node.type.rank in (2, 3)}
    shown = ", ".join(f"{name} {node.type}" for name, node in nodes.items())
    if not chosen:
        help = "name it, as in --time x:3 (time={'x': 3})"
        message = f"the axis of time is not known: the inputs are {shown}"
        raise UsageError("TM6014", message, notes=[("help", help)])
    for name, axis in chosen.items():
        if name not in nodes or not -nodes[name].type.rank <= axis < nodes[name].type.rank:
            raise UsageError("TM6014", f"no input {name!r} has the axis {axis}: the inputs are {shown}")
    return {name: axis % nodes[name].type.rank for name, axis in chosen.items()}


def _name(node: Node) -> str:
    return node.expr.name if isinstance(node.expr, Input) else node.name


class _Steps:
    """One attempt to build a step model, for chunks of ``chunk`` frames."""

    def __init__(
        self,
        module: TracedModule,
        graph: InternalGraph,
        axes: Mapping[str, int],
        chunk: Size,
        least: int,
        catalogue: Mapping[str, Op],
        context: int | None,
    ) -> None:
        self.module, self.graph, self.axes, self.chunk = module, graph, axes, chunk
        self.catalogue = catalogue
        self.b = StepBuilder(graph.name, catalogue, chunk, least, context)
        self.values: dict[Any, Any] = {None: None}
        self.taken: set[TensorNode] = set()
        nodes = {_name(node): node for node in graph.inputs if isinstance(node, TensorNode)}
        self.total = nodes[next(iter(axes))].type.shape[next(iter(axes.values()))]

    def build(self) -> StepModel:
        frames = self._inputs()
        for expr in self.graph:
            if isinstance(expr, Constant):
                value = np.asarray(expr.value)
                self.b.emitter.begin(expr.output.name, expr.source)
                made: Any = (
                    self.b.emitter.parameter(value, expr.name)
                    if expr.name
                    else self.b.emitter.constant(value)
                )
                self.values[expr.output] = made
            elif isinstance(expr, CallFunction):
                self._call(expr)
        return self._finished(frames)

    def _inputs(self) -> dict[str, Size]:
        """Adds the inputs, and returns the frames of those over time in a chunk."""
        counts = {}
        for node in self.graph.inputs:
            assert isinstance(node, TensorNode)
            name, shape = _name(node), list(node.type.shape)
            axis = self.axes.get(name)
            if axis is None:
                self.values[node] = self.b.input(name, shape, node.type.dtype)
                continue
            of_chunk = self.chunk * shape[axis]
            if of_chunk % self.total:
                raise ChunkMisfit(self.total // int(np.gcd(example(of_chunk), self.total)))
            length = Length() if shape[axis] == self.total else Length(((0, shape[axis], self.total, 0),))
            shape[axis] = counts[name] = of_chunk // self.total
            made = self.b.input(name, shape, node.type.dtype)
            self.values[node] = Timed(made, axis, shape[axis], 0, length, True)
        return counts

    def _call(self, call: CallFunction) -> None:
        op = self.catalogue[call.function]
        self.b.call = call
        self.b.emitter.begin(call.outputs[0].name, call.source)
        arguments = op.by_name([map_leaves(self.values.__getitem__, each) for each in call.args], call.kwargs)
        operands = self._operands(arguments)
        if any(each is _LOST for each in operands):
            raise self.b.refuse("uses the hidden values of a recurrent layer after the whole stream")
        if call.function != "tm::scan" and any(isinstance(each, FirstFrame) for each in operands):
            raise self.b.refuse("uses the first frame of the stream for others")
        if call.function in _QUANTIZED or any(
            getattr(node, "qparams", None) is not None for node in call.outputs
        ):
            help = "make the step file of the float model, and quantize that"
            raise self.b.refuse("is of a quantized model", help)
        if op.is_random:
            raise self.b.refuse("draws random numbers")
        if not rules.timed_of(arguments):
            made = self.b.emit(call.function, **arguments)
        else:
            layout = op.layout
            is_pointwise = not callable(layout) and layout.kind == "any" and not layout.axes
            made = RULES.get(call.function, rules.pointwise if is_pointwise else frame_by_frame)(
                self.b, call, arguments
            )
        results = made if isinstance(made, list) else [made]
        for node, result in zip(call.outputs, results, strict=True):
            self.values[node] = _LOST if result is None else self._checked(node, result)

    def _operands(self, arguments: Mapping[str, Any]) -> list[Any]:
        return [
            leaf for value in arguments.values() for leaf in (value if isinstance(value, list) else [value])
        ]

    def _checked(self, node: Any, made: Any) -> Any:
        """Returns a result. Raises where its shape is not that of a chunk of the offline result."""
        if isinstance(made, Timed):
            offline = list(node.type.shape)
            offline[made.axis] = made.frames
            if made.length.of(self.total) != node.type.shape[made.axis] or offline != list(
                made.node.type.shape
            ):
                raise self.b.refuse(
                    "has another number of frames than windows and strides give, as with ceil_mode"
                )
        return made

    def _finished(self, frames: Mapping[str, Size]) -> StepModel:
        b, graph = self.b, self.b.graph
        named = written_outputs(self.graph)
        outputs, nodes = {}, []
        for name, node in named.items():
            value = self.values[node]
            if not isinstance(value, Timed):
                why = (
                    f"the output {name} is not a stream: it does not depend on time, or only on the end of it"
                )
                raise UnsupportedError("TM2025", why, notes=[("help", "return the frames themselves")])
            value = b.nonnegative(value)
            outputs[name] = StreamOutput(value.axis, value.frames, value.delay, value.length)
            nodes.append(self._output(value.node, name))
        b.finish()
        names = [_name(state) for state, _ in b.states]
        nodes += [
            self._output(after, f"{name}_next") for name, (_, after) in zip(names, b.states, strict=True)
        ]
        graph.set_result(tuple(nodes))
        made = as_module(graph, self.module, self.catalogue)
        made.example = Example(self._example(), None)
        states = {name: state for name, (state, _) in zip(names, b.states, strict=True)}
        limited = {name: b.context for name in b.limited if b.context is not None}
        return StepModel(made, self.chunk, self.axes, frames, outputs, states, b.end is not None, limited)

    def _output(self, node: TensorNode, name: str) -> TensorNode:
        """Returns a node of its own for an output, with its name."""
        if isinstance(node.expr, (Input, Constant)) or node in self.taken:
            node = self.b.emit("aten::reshape", node, list(node.type.shape))
        self.taken.add(node)
        if self.b.graph.node_called(name) is None:
            self.b.graph.rename(node, name)
        return node

    def _example(self) -> tuple[np.ndarray, ...]:
        """Returns the first chunk of the example of the model, and states of zeros."""
        given = self.module.example
        known = dict(zip(map(_name, self.graph.inputs), () if given is None else given.inputs, strict=False))
        arrays = []
        for node in self.b.graph.inputs:
            assert isinstance(node, TensorNode)
            name, shape, dtype = _name(node), node.type.shape, node.type.dtype
            whole = known.get(name)
            if name == END and name not in known:
                arrays.append(np.asarray([self.total], dtype))
            elif whole is None:
                arrays.append(np.zeros(list(map(example, shape)), dtype))
            else:
                axis = self.axes.get(name)
                arrays.append(
                    whole if axis is None else np.take(whole, range(example(shape[axis])), axis, mode="wrap")
                )
        return tuple(arrays)


_LOST = object()
_QUANTIZED = ("tm::quantize", "tm::dequantize")
