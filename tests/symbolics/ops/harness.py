"""One call of an op, written to a file and run in a real runtime.

Use::

    from tests.symbolics.ops.harness import Const, assert_op_matches, normal, refusal

    def test_add_of_a_constant() -> None:
        x, bias = normal(0, 2, 3, 5, 7), normal(1, 1, 3, 1, 1)
        assert_op_matches("aten::add", [x, Const(bias)], {})

``assert_op_matches(op, args, attributes)`` checks the type rule and the decomposition against the
reference kernel, then writes and runs the call for every target that has a rule for the op:

- ONNX at each opset where the op's rule changes, at 7 and at the newest (``opsets=[...]`` to choose);
- TFLite in each memory order that the op's layout rule allows, with XNNPACK and without;
- Caffe in OpenCV, where that has all the layers, and by the definition of the layers.

``targets=("onnx", "tflite")`` leaves one out, ``expected=[...]`` replaces the kernel as the truth,
``tolerance=`` that of the dtype's table. ``refusal(target, op, args, attributes)`` is the reason why
a target refuses the call.

``args`` are the tensor arguments in the order of the signature: an array is an input of the net,
``Const(array)`` a constant in the file, a list stands for a ``Tensors`` argument, None for an
argument left out. At least one must be an input. ``attributes`` are by name. Arrays are in the
source's order (NCHW) whatever the layout; so is what ``run_op`` gives back.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.opsets import newest_runnable
from tests.symbolics.ops.worst import worst_elements
from tmconvert.conversion.support import op_support
from tmconvert.errors import VerificationError
from tmconvert.ir import CallFunction, InternalGraph, TensorNode, TensorType
from tmconvert.ir.emitter import EagerEmitter, GraphEmitter
from tmconvert.ir.subgraphs import nested
from tmconvert.ir.symbolic.data_dependent import agree
from tmconvert.ir.symbolic.journal import SizeJournal
from tmconvert.ir.tree import leaves, map_leaves
from tmconvert.lowering.lower import Lowering
from tmconvert.passes.decompose import Decompose
from tmconvert.symbolics.layouts import NCHW_TO_NHWC, NHWC_TO_NCHW
from tmconvert.symbolics.op import Attribute
from tmconvert.symbolics.registry import catalogue
from tmconvert.symbolics.target_names import TARGETS
from tmconvert.targets.caffe.opencv import OpenCvRuntime
from tmconvert.targets.caffe.runtimes import NumpyCaffeRuntime
from tmconvert.targets.caffe.writer import write_caffe
from tmconvert.targets.onnx.runtime import OnnxRuntime
from tmconvert.targets.onnx.writer import check_onnx, write_onnx
from tmconvert.targets.options import OLDEST_OPSET, TFLITE_RUNTIME
from tmconvert.targets.registry import lower, runtime_for
from tmconvert.targets.tflite.passes.align_ranks import AlignRanks
from tmconvert.targets.tflite.passes.assign_layout import AssignLayout
from tmconvert.targets.tflite.runtime import LiteRtRuntime
from tmconvert.targets.tflite.writer import write_tflite
from tmconvert.verification.compare import check

NEWEST_OPSET = newest_runnable()


@dataclass(frozen=True)
class Const:
    """An argument that is a constant in the written file."""

    array: np.ndarray


def normal(seed: int, *shape: int, dtype: Any = np.float32) -> np.ndarray:
    """Standard normal numbers."""
    return np.asarray(np.random.default_rng(seed).standard_normal(shape), dtype)


def run_op(
    target: str,
    version: int,
    op_name: str,
    args: Sequence[Any],
    attributes: dict[str, Any],
    *,
    layout: str | None = None,
    delegates: bool = True,
) -> list[np.ndarray]:
    """The results of one call, computed by the target's runtime from a written file.

    ``version`` is the opset; ``TFLITE_RUNTIME`` for TFLite; 0 for Caffe. ``layout="nhwc"`` stores
    channels-last the rank-4 tensors that the op's layout rule names.
    """
    graph, lowering = lowered_op(target, version, op_name, args, attributes, layout)
    results = run_lowered(lowering, stored_inputs(graph, op_name, args), delegates=delegates)
    return in_source_order(graph, results)


def lowered_op(
    target: str,
    version: int,
    op_name: str,
    args: Sequence[Any],
    attributes: dict[str, Any],
    layout: str | None,
) -> tuple[InternalGraph, Lowering]:
    """The graph of one call in a layout, as of ``run_op``, and what it is lowered to."""
    graph = prepared(target, version, op_name, args, attributes)
    store_as(graph, layout)
    lowering = lower(graph, catalogue(), target, version)
    assert not lowering.unsupported, "; ".join(item.reason for item in lowering.unsupported)
    return graph, lowering


def stored_inputs(graph: InternalGraph, op_name: str, args: Sequence[Any]) -> dict[str, np.ndarray]:
    """The inputs of a graph of one call, in the layouts that it stores them in."""
    feeds = dict(zip(_input_names(op_name, args), _inputs(args), strict=True))
    return {node.name: _stored(feeds[node.name], node) for node in graph.inputs}


def in_source_order(graph: InternalGraph, results: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The outputs of a graph as its source has them, channels first."""
    return [
        result.transpose(NHWC_TO_NCHW) if node.layout == "nhwc" else result
        for node, result in zip(graph.outputs, results, strict=True)
    ]


def op_graph(
    op_name: str,
    args: Sequence[Any],
    attributes: dict[str, Any],
    shapes: Sequence[tuple[Any, ...]] | None = None,
) -> InternalGraph:
    """A graph of one call; its inputs have the names of the op's arguments, and the ``shapes`` if given."""
    graph = InternalGraph("net")
    arrays = _inputs(args)
    shapes = [array.shape for array in arrays] if shapes is None else shapes
    inputs = {
        name: graph.add_input(TensorNode(graph.free_name(name), shape, array.dtype))
        for name, array, shape in zip(_input_names(op_name, args), arrays, shapes, strict=True)
    }
    emitter = GraphEmitter(graph, catalogue(), name="y", made_by="the sample")
    waiting = iter(inputs.values())

    def node(leaf: Any) -> Any:
        if leaf is None:
            return None
        return emitter.parameter(leaf.array, "c") if isinstance(leaf, Const) else next(waiting)

    tensors = _by_name(op_name, [map_leaves(node, arg) for arg in args])
    # passes change the graphs inside of a call
    own = {
        name: value.copy() if isinstance(value, InternalGraph) else value
        for name, value in attributes.items()
    }
    results = emitter.call(op_name, **tensors, **own)
    graph.set_result(tuple(results) if isinstance(results, list) else (results,))
    return graph


def prepared(
    target: str, version: int, op_name: str, args: Sequence[Any], attributes: dict[str, Any]
) -> InternalGraph:
    """The graph of one call after the passes that the lowering needs."""
    with SizeJournal():
        graph = op_graph(op_name, args, attributes)
        Decompose(catalogue(), target, version).run(graph)
    if target == "tflite":
        for each in list(nested(graph)):
            AlignRanks(catalogue()).run(each)
        for call in graph:
            if isinstance(call, CallFunction) and call.function == "tm::relayout":
                (call.output if call.kwargs["to"] == "nhwc" else call.inputs[0]).layout = "nhwc"
    return graph


def run_lowered(
    lowering: Lowering, inputs: dict[str, np.ndarray], *, delegates: bool = True
) -> list[np.ndarray]:
    """Writes a lowered graph, checks the file and runs it."""
    graph = lowering.graph
    names, shapes = graph.output_names, [value.shape for value in graph.outputs]
    with tempfile.TemporaryDirectory() as folder:
        if graph.target == "onnx":
            path = Path(folder, "net.onnx")
            with path.open("wb") as file:
                write_onnx(graph, file)
            check_onnx(path)
            return OnnxRuntime().run([path], inputs, names)
        if graph.target == "tflite":
            path = Path(folder, "net.tflite")
            with path.open("wb") as file:
                write_tflite(graph, file)
            return LiteRtRuntime(delegates=delegates).run([path], inputs, names)
        prototxt, caffemodel = Path(folder, "net.prototxt"), Path(folder, "net.caffemodel")
        with prototxt.open("wb") as text, caffemodel.open("wb") as weights:
            write_caffe(graph, text, weights)
        return run_caffe([prototxt, caffemodel], inputs, names, shapes)


def run_caffe(
    paths: list[Path], inputs: dict[str, np.ndarray], names: list[str], shapes: list[Any]
) -> list[np.ndarray]:
    """What OpenCV computes where it can, and the definitions of the layers with it; else what these do."""
    runtime = runtime_for("caffe", paths[0])
    if not isinstance(runtime, OpenCvRuntime):  # MNN takes a process for each net: tests/targets/caffe has it
        runtime = NumpyCaffeRuntime()
    made = runtime.run(paths, inputs, names, shapes=shapes)
    if not isinstance(runtime, NumpyCaffeRuntime):
        check(
            NumpyCaffeRuntime().run(paths, inputs, names), made, [f"{name} by definition" for name in names]
        )
    return made


def refusal(
    target: str,
    op_name: str,
    args: Sequence[Any],
    attributes: dict[str, Any] | None = None,
    *,
    version: int | None = None,
) -> str:
    """The reasons why ``target`` refuses the call; empty when it does not."""
    attributes = attributes or {}
    if version is None:
        version = {"onnx": NEWEST_OPSET, "tflite": TFLITE_RUNTIME, "caffe": 0}[target]
    graph = prepared(target, version, op_name, args, attributes)
    if target == "tflite":
        store_as(graph, layouts_of(graph)[-1])
    lowering = lower(graph, catalogue(), target, version)
    return "; ".join(item.reason for item in lowering.unsupported)


def reference(op_name: str, args: Sequence[Any], attributes: dict[str, Any]) -> list[np.ndarray]:
    """What the reference kernel (or, without one, the decomposition) computes."""
    op = catalogue()[op_name]
    tensors, bound = op.bind((), _by_name(op_name, map_leaves(_array, list(args))) | attributes)
    if op.kernel is None:
        return _listed(op.decomposition(EagerEmitter(catalogue()), **op.by_name(tensors, bound)))
    return _listed(op.evaluate(tensors, bound))


def assert_op_matches(
    op_name: str,
    args: Sequence[Any],
    attributes: dict[str, Any] | None = None,
    *,
    targets: Sequence[str] = TARGETS,
    opsets: Sequence[int] | None = None,
    expected: Sequence[np.ndarray] | None = None,
    tolerance: float | None = None,
) -> None:
    """Fails unless every target computes what the reference kernel does."""
    attributes = attributes or {}
    truth = list(expected) if expected is not None else reference(op_name, args, attributes)
    assert_types_match(op_name, args, attributes, truth)
    assert_decomposition_matches(op_name, args, attributes, truth, tolerance)
    for target in targets:
        for version in versions_of(target, op_name, opsets):
            assert_target_matches(target, version, op_name, args, attributes, truth, tolerance)


def assert_target_matches(
    target: str,
    version: int,
    op_name: str,
    args: Sequence[Any],
    attributes: dict[str, Any],
    expected: Sequence[np.ndarray],
    tolerance: float | None = None,
) -> None:
    """Fails unless one target at one version computes ``expected``, in all its layouts."""
    layouts: list[str | None] = [None]
    if target == "tflite":
        layouts = layouts_of(prepared(target, version, op_name, args, attributes))
    for layout in layouts:
        made: tuple[InternalGraph, Lowering] | None = None
        for delegates in (True, False) if target == "tflite" else (True,):
            results: list[np.ndarray] = []
            try:
                made = made or lowered_op(target, version, op_name, args, attributes, layout)
                feeds = stored_inputs(made[0], op_name, args)
                results = in_source_order(made[0], run_lowered(made[1], feeds, delegates=delegates))
                names = [f"y{i}" for i in range(len(results))]
                check(results, expected, names, tolerances=_each(tolerance, results))
            except Exception as error:
                way = f" layout={layout} delegates={delegates}" if target == "tflite" else ""
                shown = (
                    worst_elements(results, expected, operands(op_name, args), attributes) if results else ""
                )
                raise AssertionError(f"{op_name} on {target} {version}{way}: {error}{shown}") from error


def assert_types_match(
    op_name: str, args: Sequence[Any], attributes: dict[str, Any], expected: Sequence[np.ndarray]
) -> None:
    """Fails unless the op's type rule gives the types of ``expected``."""
    op = catalogue()[op_name]
    arrays, bound = op.bind((), _by_name(op_name, map_leaves(_array, list(args))) | attributes)
    types = map_leaves(_type, list(arrays))
    assert agree(op.infer(types, bound), [_type(array) for array in expected])


def assert_decomposition_matches(
    op_name: str,
    args: Sequence[Any],
    attributes: dict[str, Any],
    expected: Sequence[np.ndarray],
    tolerance: float | None = None,
) -> None:
    """Fails unless the op's decomposition, if it has one, computes ``expected``."""
    op = catalogue()[op_name]
    if op.decomposition is None:
        return
    arrays, bound = op.bind((), _by_name(op_name, map_leaves(_array, list(args))) | attributes)
    made = _listed(op.decomposition(EagerEmitter(catalogue()), **op.by_name(arrays, bound)))
    assert [_type(array) for array in made] == [_type(array) for array in expected]
    try:
        check(made, expected, [f"{op_name} decomposed"] * len(made), tolerances=_each(tolerance, made))
    except VerificationError as error:
        shown = worst_elements(made, expected, operands(op_name, args), attributes)
        raise AssertionError(f"{error}{shown}") from error


def versions_of(target: str, op_name: str, opsets: Sequence[int] | None = None) -> list[int]:
    """The versions worth a test: where the rule changes, the oldest and the newest; none without a rule."""
    op = catalogue()[op_name]
    if target in op.reasons:
        return []
    if target != "onnx":
        changes = set(op.symbolics.get(target, {})) - {0}
        if target == "caffe":  # dialects do not follow one another
            return sorted({0, *changes})
        return sorted({TFLITE_RUNTIME, *changes, *(since - 1 for since in changes)})
    if opsets is not None:
        return list(opsets)
    changes = {since for since in op.symbolics.get("onnx", {}) if since > OLDEST_OPSET}
    newest = NEWEST_OPSET if op.decomposition is not None else op.retired.get("onnx", NEWEST_OPSET + 1) - 1
    versions = {OLDEST_OPSET, newest, *changes, *(since - 1 for since in changes)}
    lowest = op_support(op, target, NEWEST_OPSET).since
    return sorted(version for version in {*versions, lowest or OLDEST_OPSET} if version >= (lowest or 0))


def layouts_of(graph: InternalGraph) -> list[str | None]:
    """The memory orders that every call of the graph accepts: None (the source's), "nhwc" or both.

    "planned" where calls disagree, so that tensors must be relaid between them.

    Channels-last is left out where an operand of lower rank is computed: it takes a reshape, which
    needs the order of the source.
    """
    calls = [expr for expr in graph if isinstance(expr, CallFunction)]
    kinds = [_rule(call).kind for call in calls]
    layouts: list[str | None] = [] if "nhwc" in kinds else [None]
    last_possible = {*kinds} <= {"nhwc", "any"} and all(
        kind == "nhwc" or all(_is_movable(node) for node in call.inputs + call.outputs)
        for call, kind in zip(calls, kinds, strict=True)
    )
    if last_possible and any(len(node.shape) == 4 for node in graph.outputs):
        layouts.append("nhwc")
    return layouts or ["planned"]


def store_as(graph: InternalGraph, layout: str | None) -> None:
    """Brings the graph into one of its ``layouts_of``."""
    if layout == "nhwc":
        store_channels_last(graph)
    elif layout == "planned":
        AssignLayout(catalogue(), "source").run(graph)


def store_channels_last(graph: InternalGraph) -> None:
    """Marks the rank-4 tensors that the layout rules name."""
    for call in graph:
        if not isinstance(call, CallFunction):
            continue
        rule = _rule(call)
        assert rule.kind in ("nhwc", "any"), f"{call.function} needs the order of the source"
        named = call.inputs[:1] if rule.kind == "nhwc" else call.inputs
        for node in [*named, *call.outputs]:
            if len(node.shape) == 4:
                node.layout = "nhwc"


def _is_movable(node: TensorNode) -> bool:
    return len(node.shape) == 4 or node.type.size == 1


def _rule(call: CallFunction) -> Any:
    types = map_leaves(lambda leaf: None if leaf is None else leaf.type, list(call.args))
    return catalogue()[call.function].layout_rule(types, call.kwargs)


def _by_name(op_name: str, args: Sequence[Any]) -> dict[str, Any]:
    """The tensor arguments by name; attributes may stand between them in the signature."""
    names = [each.name for each in catalogue()[op_name].args if not isinstance(each, Attribute)]
    return dict(zip(names, args, strict=False))


def _input_names(op_name: str, args: Sequence[Any]) -> list[str]:
    """The argument's name for each input; with a number for those of a list."""
    result = []
    for name, arg in _by_name(op_name, args).items():
        if isinstance(arg, list):
            result += [f"{name}_{i}" for i, leaf in enumerate(arg) if isinstance(leaf, np.ndarray)]
        elif isinstance(arg, np.ndarray):
            result.append(name)
    return result


def operands(op_name: str, args: Sequence[Any]) -> dict[str, np.ndarray]:
    """All tensors of a call by name, constants too."""
    found: dict[str, np.ndarray] = {}
    for name, arg in _by_name(op_name, args).items():
        for i, leaf in enumerate(leaves([arg])):
            if leaf is not None:
                found[f"{name}_{i}" if isinstance(arg, list) else name] = np.asarray(_array(leaf))
    return found


def _inputs(args: Sequence[Any]) -> list[np.ndarray]:
    return [leaf for leaf in leaves(list(args)) if isinstance(leaf, np.ndarray)]


def _stored(array: np.ndarray, node: TensorNode) -> np.ndarray:
    return np.ascontiguousarray(array.transpose(NCHW_TO_NHWC)) if node.layout == "nhwc" else array


def _array(leaf: Any) -> Any:
    return leaf.array if isinstance(leaf, Const) else leaf


def _type(leaf: Any) -> TensorType | None:
    return None if leaf is None else TensorType(leaf.dtype, leaf.shape)


def _listed(result: Any) -> list[np.ndarray]:
    return [np.asarray(array) for array in (result if isinstance(result, (list, tuple)) else [result])]


def _each(tolerance: float | None, results: Sequence[np.ndarray]) -> list[float] | None:
    """The tolerance of each result."""
    return None if tolerance is None else [tolerance] * len(results)
