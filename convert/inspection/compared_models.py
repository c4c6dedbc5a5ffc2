"""The two sides of a comparison: source models and written files, which yield their tensors one at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tmconvert.calibration.settings import Settings
from tmconvert.conversion.io_overrides import saturates
from tmconvert.conversion.load import is_traced, load_model
from tmconvert.conversion.prepared_model import loaded
from tmconvert.errors import TmconvertError, UsageError
from tmconvert.frontends.torch.entry import trace_object
from tmconvert.frontends.torch.request import Tracing
from tmconvert.inspection.given_inputs import Inputs, given_inputs
from tmconvert.inspection.run_file import FileRunner, computed_names, quantized, real
from tmconvert.ir import CallFunction, Constant, InternalGraph, TensorNode, TracedModule
from tmconvert.ir.arrays import as_array
from tmconvert.ir.extract import by_matching_name
from tmconvert.ir.symbolic.data_dependent import bound
from tmconvert.ir.symbolic.dims import substituted
from tmconvert.ir.tree import leaves, map_leaves
from tmconvert.passes.image_edges import images_of
from tmconvert.symbolics.op import Op
from tmconvert.targets.recognize import written_target
from tmconvert.targets.written_model import TensorInfo
from tmconvert.transform.normal_form import eliminate_dead_code, normal_form
from tmconvert.transform.run_model import run_model
from tmconvert.verification.input_files import read_inputs

Catalogue = Mapping[str, Op]
CHUNK = 8 << 20  # bytes of tensors that a file is asked for at once, or as many as its largest one has


_INTEGER_OPERATORS = frozenset({
    "QuantizeLinear", "DynamicQuantizeLinear", "QLinearConv", "QLinearMatMul", "ConvInteger", "MatMulInteger",
})  # fmt: skip


def key_of(name: str) -> str:
    """Returns the form of a name that all kinds of files can hold."""
    return re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_")


class Tensor(NamedTuple):
    """A computed tensor: ``key`` is its name in all kinds of files, ``operator`` computes it."""

    key: str
    name: str
    operator: str


class SourceSide:
    """A source model, run by the reference kernels on its graph of ATen-style ops."""

    def __init__(self, title: str, module: TracedModule, catalogue: Catalogue) -> None:
        self.title, self.module, self.catalogue = title, module, catalogue
        self.graph: InternalGraph = _saturating(module, catalogue)
        self.inputs = infos_of(self.graph)
        self.output_names = [node.name for node in self.graph.outputs]
        self.output_keys = list(map(key_of, self.output_names))

    def tensors(self) -> list[Tensor]:
        return [
            Tensor(key_of(node.name), node.name, expr.function)
            for expr in self.graph
            if isinstance(expr, CallFunction)
            for node in expr.outputs
        ]

    @property
    def kind(self) -> str:
        types = {
            node.dtype.name for node in self.graph.outputs if isinstance(node, TensorNode) and node.dtype
        }
        return "float16" if types & {"float16", "bfloat16"} else "float32"

    @property
    def is_equalized(self) -> bool:
        """Whether calibration scaled the channels between layers; a source has its own scales."""
        return False

    @property
    def channel_axis(self) -> int:
        """Returns the axis of channels in tensors of the graph."""
        return -1 if getattr(self.module.vocabulary, "is_channels_last", False) else 1

    def arrays(self, inputs: Inputs, settings: Settings | None = None) -> list[np.ndarray]:
        """Returns the arrays in the order of the inputs, from any form of inputs."""
        names = [info.name for info in self.inputs]
        inputs = given_inputs(inputs, self.inputs, settings)
        if isinstance(inputs, (str, PathLike)):
            return list(read_inputs(inputs, names, in_order=True))
        if isinstance(inputs, Mapping):
            given = by_matching_name(inputs, names)
            missing = [name for name in names if name not in given]
            if missing:
                raise UsageError("TM6003", f"no array for the input {', '.join(missing)}")
            return [as_array(given[name], f"input {name!r}") for name in names]
        found = [as_array(each, f"input {number}") for number, each in enumerate(inputs)]
        if len(found) != len(names):
            raise UsageError("TM6003", f"the model takes {len(names)} inputs, {len(found)} were given")
        return found

    def outputs(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        return list(run_model(self.module, list(arrays)).values())

    def rounded(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Returns the inputs, which a source model takes as they are."""
        return list(arrays)

    def range_of(self, name: str) -> tuple[float, float] | None:
        """Returns the real values that a tensor can have; None for floats."""
        return None

    def operators_between(self, names: set[str]) -> dict[str, tuple[str, ...]]:
        """Returns the functions that compute each tensor."""
        return {each.name: (each.operator,) for each in self.tensors()}

    def values(self, arrays: Sequence[np.ndarray], names: Sequence[str]) -> dict[str, np.ndarray]:
        """Returns tensors from one run of the graph."""
        return dict(self.stream(arrays, names))

    def chunks(self, names: Sequence[str]) -> Iterator[list[str]]:
        """Divides names, in order, for one run each."""
        sizes = {
            node.name: 4 * int(np.prod([int(size) for size in node.shape or ()], dtype=np.int64))
            for expr in self.graph
            for node in expr.outputs
            if isinstance(node, TensorNode)
        }
        yield from _chunks(names, sizes)

    def stream(self, arrays: Sequence[np.ndarray], names: Sequence[str]) -> Iterator[tuple[str, np.ndarray]]:
        yield from graph_values(self.graph, self.catalogue, arrays, set(names))


class FileSide:
    """A written file, run in its runtime; ``graph`` is that of its frontend, None for unsupported files."""

    def __init__(self, path: Path, catalogue: Catalogue, signature: str = "") -> None:
        self.title, self.path, self.catalogue = str(path), path, catalogue
        self.runner = FileRunner(path, signature=signature)
        self.inputs = self.runner.inputs
        self.output_names = [each.name for each in self.runner.outputs]
        self.output_keys = list(map(key_of, self.output_names))

    @cached_property
    def graph(self) -> InternalGraph | None:
        try:
            tracing = Tracing(signature=self.runner.signature)
            return _saturating(load_model(str(self.path), tracing), self.catalogue)
        except TmconvertError:
            return None

    def tensors(self) -> list[Tensor]:
        makers = {name: layer.type for layer in self.runner.model.layers for name in layer.outputs}
        names = computed_names(self.runner.model)
        return [Tensor(key_of(name), name, makers[name]) for name in names]

    @cached_property
    def kind(self) -> str:
        """Returns the type that limits the precision: float32, float16 or integers."""
        model = self.runner.model
        operators = {layer.type for layer in model.layers}
        is_quantized = any(info.dtype in ("int8", "uint8", "int16") for info in model.quantized.values())
        if is_quantized or operators & _INTEGER_OPERATORS:
            return "integers"
        return "float16" if {"float16", "bfloat16"} & set(model.types.values()) else "float32"

    @property
    def channel_axis(self) -> int:
        """Returns the axis of channels in tensors of the file, and of the graph of its frontend."""
        return -1 if self.runner.target.default_io_layout == "nhwc" else 1

    @cached_property
    def is_equalized(self) -> bool:
        """Whether the file records that calibration scaled the channels between layers."""
        calibration = self.runner.target.stored_options(self.path).get("calibration")
        settings = calibration.get("settings") if isinstance(calibration, Mapping) else None
        return isinstance(settings, Mapping) and bool(settings.get("equalization", True))

    def arrays(self, inputs: Inputs, settings: Settings | None = None) -> list[np.ndarray]:
        """Returns the arrays in the order of the inputs, from any form of inputs."""
        return self.runner.arrays(inputs, settings)

    def range_of(self, name: str) -> tuple[float, float] | None:
        """Returns the real values that a quantized tensor can have; None for others."""
        info = self.runner.model.quantized.get(name)
        if info is None or len(info.scale) != 1:
            return None
        ends = np.iinfo(info.dtype)
        low, high = ((int(end) - info.zero_point[0]) * info.scale[0] for end in (ends.min, ends.max))
        return low, high

    def operators_between(self, names: set[str]) -> dict[str, tuple[str, ...]]:
        """Returns for each of ``names`` the operators that compute it from others of them."""
        makers = {name: layer for layer in self.runner.model.layers for name in layer.outputs}
        found = {}
        for name in names:
            operators, waiting = dict[str, None](), [name]
            while waiting:
                layer = makers.get(waiting.pop())
                if layer is None or f"{layer.type} {layer.name}" in operators:
                    continue
                operators[f"{layer.type} {layer.name}"] = None
                waiting += [each for each in layer.inputs if each not in names]
            found[name] = tuple(operators)
        return found

    def outputs(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        made = self.runner.run(list(arrays))
        return [made[each.name] for each in self.runner.outputs]

    def rounded(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Returns the inputs as the file sees them: rounded to its integers, or to float16."""
        found = []
        for array, info in zip(arrays, self.inputs, strict=True):
            if len(info.scale) == 1 and array.dtype.kind == "f":
                array = real(quantized(array, info), info)
            elif info.dtype == "float16" and array.dtype.kind == "f":
                array = array.astype(np.float16).astype(array.dtype)
            found.append(array)
        return found

    def stream(self, arrays: Sequence[np.ndarray], names: Sequence[str]) -> Iterator[tuple[str, np.ndarray]]:
        for chunk in self.chunks(names):
            yield from self.values(arrays, chunk).items()

    def values(self, arrays: Sequence[np.ndarray], names: Sequence[str]) -> dict[str, np.ndarray]:
        """Returns tensors as real values, from one run of the file."""
        return self.runner.values(self.runner.fed(arrays), names) if names else {}

    def chunks(self, names: Sequence[str]) -> Iterator[list[str]]:
        """Divides names, in order, such that one run yields no more than the largest tensor, or ``CHUNK``."""
        yield from _chunks(names, {name: self.size(name) for name in names})

    def size(self, name: str) -> int:
        """Returns the bytes of a tensor in float32; 0 where the file does not state its shape."""
        return 4 * int(np.prod(self.runner.model.tensors.get(name) or (0,), dtype=np.int64))


def _saturating(module: TracedModule, catalogue: Catalogue) -> InternalGraph:
    """Returns the graph of ATen-style ops of a model, with the saturation of quantized tensors as clamps."""
    graph = normal_form(module, catalogue)
    if saturates(module):
        from tmconvert.passes.keep_saturation import keep_saturation

        if keep_saturation(graph, catalogue):
            eliminate_dead_code(graph)  # integers that nothing reads
    return graph


def _chunks(names: Sequence[str], sizes: Mapping[str, int]) -> Iterator[list[str]]:
    limit = max([CHUNK, *(sizes.get(name, 0) for name in names)])
    chunk, total = list[str](), 0
    for name in names:
        if chunk and total + sizes.get(name, 0) > limit:
            yield chunk
            chunk, total = [], 0
        chunk.append(name)
        total += sizes.get(name, 0)
    if chunk:
        yield chunk


def sides_of(
    models: Sequence[object], catalogue: Catalogue, tracing: Tracing | None = None
) -> list[SourceSide | FileSide]:
    """Returns the sides for models or written files; models of PyTorch are traced.

    A signature applies to the files that have several. Raises LoadError, UnsupportedError; UsageError TM6016
    for a signature where no file has several.
    """
    sides = [_side_of(each, catalogue, tracing) for each in models]
    files = [each for each in sides if isinstance(each, FileSide)]
    if tracing and tracing.signature and not any(each.runner.signature for each in files):
        raise UsageError("TM6016", "no file has several signatures: omit signature")
    return sides


def _side_of(model: object, catalogue: Catalogue, tracing: Tracing | None) -> SourceSide | FileSide:
    if isinstance(model, (str, PathLike)):
        target, path = written_target(model), Path(model)
        if target is not None:
            has_several = tracing is not None and bool(target.signature_names(path))
            return FileSide(path, catalogue, tracing.signature if tracing and has_several else "")
        is_graph = is_traced(model)
        return SourceSide(fspath(model), load_model(model, None if is_graph else tracing), catalogue)
    if callable(model) and not isinstance(model, TracedModule):
        return SourceSide("the model", trace_object(model, tracing or Tracing()), catalogue)
    return SourceSide("the model", loaded(model), catalogue)


def infos_of(graph: InternalGraph) -> list[TensorInfo]:
    """Describes the inputs of a normalized graph."""
    images = images_of(graph)
    return [
        TensorInfo(
            getattr(node.expr, "name", "") or node.name,
            node.type.dtype.name,
            tuple(int(size) for size in node.type.shape),
            images.get(node.name, ""),
        )
        for node in graph.inputs
        if isinstance(node, TensorNode)
    ]


def graph_values(
    graph: InternalGraph, catalogue: Catalogue, arrays: Sequence[np.ndarray], names: set[str]
) -> Iterator[tuple[str, np.ndarray]]:
    """Runs a normalized graph and yields the tensors ``names``; values are freed after their last use."""
    nodes = [node for node in graph.inputs if isinstance(node, TensorNode)]
    if len(nodes) != len(arrays):
        raise UsageError("TM6003", f"the model takes {len(nodes)} inputs, {len(arrays)} were given")
    values: dict[Any, Any] = dict(zip(nodes, arrays, strict=True))
    last = {node: expr for expr in graph for node in expr.inputs}
    sizes: dict[str, int] = {}
    for expr in graph:
        for node, value in zip(expr.outputs, computed(expr, values, catalogue, sizes), strict=True):
            values[node] = value
            if node.name in names:
                yield node.name, np.asarray(value)
        for node in (*expr.inputs, *expr.outputs):
            if last.get(node, expr) is expr:
                values.pop(node, None)


def computed(expr: Any, values: Mapping[Any, Any], catalogue: Catalogue, sizes: dict[str, int]) -> list[Any]:
    """Returns the results of an expression for the values of its operands."""
    if isinstance(expr, Constant):
        return [np.asarray(expr.value)]
    assert isinstance(expr, CallFunction)
    args = map_leaves(lambda leaf: None if leaf is None else values[leaf], list(expr.args))
    with np.errstate(all="ignore"):
        result = catalogue[expr.function].evaluate(args, substituted(expr.kwargs, sizes))
    found = list(leaves(result))
    sizes.update(bound(expr, found))
    return found
