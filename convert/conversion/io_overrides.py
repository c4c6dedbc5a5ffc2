"""I/O overrides: shapes, dynamic dimensions, subgraph, names."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from tmconvert.conversion.io_names import name_edges, written_outputs
from tmconvert.errors import UnsupportedError, UsageError
from tmconvert.errors.values import shown_value, type_and_value
from tmconvert.ir import CallFunction, Input, InternalGraph, TensorNode, TensorType, TracedModule
from tmconvert.ir.emitter import Definitions, GraphEmitter
from tmconvert.ir.extract import by_matching_name, cut_graph, matching_name, unknown
from tmconvert.ir.flatten import flatten_module
from tmconvert.ir.symbolic.dims import LEAST, Dim, Size, Symbol, is_symbolic, of, substituted, symbols_of
from tmconvert.ir.symbolic.journal import Guard, SizeJournal
from tmconvert.ir.symbolic.open_sizes import (
    NamedAxis,
    check_sizes,
    example_sizes,
    fixed_axes,
    not_open,
    open_axes,
    sizes_by_name,
)
from tmconvert.passes.normalize import Normalized, normalize

MAX_EXTENT = 1 << 31
_NONE: Mapping[str, Any] = MappingProxyType({})


class IoOverrides(NamedTuple):
    """Requested changes of a model's inputs and outputs; inputs are identified by argument names.

    ``input_shapes`` are other shapes than those of the file, ``dynamic_shapes`` names of sizes by input and
    axis. ``inputs`` and ``outputs`` are the nodes between which the model is cut, ``rename`` is from a
    written input's or output's name to another. ``input_qparams`` are type, scale and zero point of quantized
    inputs for which the model has none; ``*`` applies to all others. ``accept_range`` keeps sizes dynamic for
    which the graph is right only in a range. ``fix`` has numbers of dynamic sizes by name. The errors of a
    model that ``is_part`` of another need not tell at which sizes it runs.
    """

    input_shapes: Mapping[str, Sequence[int]] = _NONE
    dynamic_shapes: Mapping[str, Mapping[int, str]] = _NONE
    inputs: Sequence[str] | None = None
    outputs: Sequence[str] | None = None
    rename: Mapping[str, str] = _NONE
    input_qparams: Mapping[str, tuple[str, float, int]] = _NONE
    accept_range: bool = False
    fix: Mapping[str, int] = _NONE
    is_part: bool = False

    @property
    def is_cut(self) -> bool:
        """Whether only a subgraph is converted."""
        return self.inputs is not None or self.outputs is not None

    def resolved(self, inputs: Sequence[str]) -> IoOverrides:
        """Returns the overrides by the names of ``inputs``: ``past.0`` may stand for ``past_0``."""
        return self._replace(
            input_shapes=by_matching_name(self.input_shapes, inputs),
            dynamic_shapes=by_matching_name(self.dynamic_shapes, inputs),
            input_qparams=by_matching_name(self.input_qparams, inputs),
            inputs=None if self.inputs is None else [matching_name(name, inputs) for name in self.inputs],
        )

    def to_json(self) -> dict[str, object]:
        """Returns the overrides that differ from the defaults."""
        chosen = {
            "input_shapes": {name: list(shape) for name, shape in self.input_shapes.items()},
            "dynamic_shapes": {
                name: {str(axis): size for axis, size in axes.items()}
                for name, axes in self.dynamic_shapes.items()
            },
            "inputs": list(self.inputs or ()),
            "outputs": list(self.outputs or ()),
            "rename": dict(self.rename),
            "input_grids": {name: list(qparams) for name, qparams in self.input_qparams.items()},
            "accept_range": self.accept_range,
            "fix": dict(self.fix),
        }
        return {name: value for name, value in chosen.items() if value}

    @staticmethod
    def from_json(chosen: Mapping[str, Any]) -> IoOverrides:
        """Reads the result of ``to_json``, without unknown names. Raises UsageError TM6002."""
        try:
            dynamic = {
                name: {int(axis): str(size) for axis, size in axes.items()}
                for name, axes in chosen.get("dynamic_shapes", {}).items()
            }
            return IoOverrides(
                {name: tuple(shape) for name, shape in chosen.get("input_shapes", {}).items()},
                dynamic,
                list(map(str, chosen.get("inputs") or ())) or None,
                list(map(str, chosen.get("outputs") or ())) or None,
                {old: str(new) for old, new in chosen.get("rename", {}).items()},
                {name: tuple(qparams) for name, qparams in chosen.get("input_grids", {}).items()},
                bool(chosen.get("accept_range")),
                {str(name): int(size) for name, size in chosen.get("fix", {}).items()},
            )
        except (AttributeError, TypeError, ValueError) as error:
            message = "the options that the file stores cannot be read: it is damaged"
            raise UsageError("TM6002", message) from error


NO_OVERRIDES = IoOverrides()


def names_of_file(options: Mapping[str, Any], given: IoOverrides = NO_OVERRIDES) -> IoOverrides:
    """Returns overrides with the names of a written file for the inputs and outputs of the whole model."""
    if given != NO_OVERRIDES:
        return given
    chosen = IoOverrides.from_json(options)
    if chosen.inputs or chosen.outputs:
        return NO_OVERRIDES
    return IoOverrides(rename=chosen.rename, fix=chosen.fix)


class BoundModel(NamedTuple):
    """A flat model with its overrides applied, ready to be normalized at any sizes.

    ``shapes`` are those of the inputs, with Dims; ``remarks`` notes on requested dynamic sizes.
    ``bakes_weights`` rounds quantized weights to their QParams, ``keeps_ranges`` clamps what the source
    saturates. ``restrictions`` are guards of the sizes in ``unrestricted``, the shapes before an earlier
    lowering restricted them.
    """

    flat: TracedModule
    shapes: Mapping[str, tuple[Size, ...]]
    rename: Mapping[str, str]
    remarks: Mapping[str, str] = _NONE
    context: str = ""
    bakes_weights: bool = False
    keeps_ranges: bool = False
    unrestricted: Mapping[str, tuple[Size, ...]] | None = None
    restrictions: tuple[Guard, ...] = ()

    @property
    def symbols(self) -> dict[str, Symbol]:
        """Returns the symbols that are still dynamic."""
        return symbols_of(list(self.shapes.values()))

    def normalized(
        self,
        catalogue: Definitions,
        sizes: Mapping[str, int] | None = None,
        *,
        emitter: type[GraphEmitter] = GraphEmitter,
        stops: bool = False,
    ) -> Normalized:
        """Normalizes the model to ATen-style ops; with ``sizes``, these numbers replace the symbols.

        ``emitter`` and ``stops`` are as for ``normalize``.
        """
        shapes = {name: substituted(shape, sizes or {}) for name, shape in self.shapes.items()}
        result = normalize(self.flat, catalogue, shapes, emitter=emitter, stops=stops)
        if not result.unsupported:
            assert self.flat.graph is not None
            name_edges(result.graph, self.flat.graph, self.rename)
            if self.bakes_weights:
                from tmconvert.passes.bake_weights import bake_weights

                bake_weights(result.graph)
            if self.keeps_ranges and saturates(self.flat) and _has_qparams(result.graph):
                from tmconvert.passes.keep_saturation import keep_saturation

                keep_saturation(result.graph, catalogue)
        return result

    def specialized(self, journal: SizeJournal) -> BoundModel:
        """Returns the model with the sizes that an earlier lowering has specialized."""
        shapes = {name: substituted(shape, journal.specialized) for name, shape in self.shapes.items()}
        return self._replace(
            shapes=shapes,
            remarks={**self.remarks, **journal.reasons},
            unrestricted=self.unrestricted or self.shapes,
            restrictions=(*self.restrictions, *journal.restrictions),
        )

    def example(self) -> dict[str, int]:
        """Returns the sizes of the example, by symbol."""
        return {name: symbol.example * symbol.unit for name, symbol in self.symbols.items()}

    def other(self) -> dict[str, int]:
        """Returns sizes that differ from those of the example and from each other."""
        return {
            name: (max(symbol.example, 1) + number) * symbol.unit
            for number, (name, symbol) in enumerate(self.symbols.items(), start=1)
        }

    def bounds(self) -> list[Guard]:
        """Returns the ranges to which symbols are restricted."""
        found = []
        for symbol in self.symbols.values():
            found += [Guard(of(symbol) - symbol.lowest, frozenset({0, 1}))] * (symbol.lowest > LEAST)
            found += [] if symbol.most is None else [Guard(of(symbol) - symbol.most, frozenset({-1, 0}))]
        return found

    def ones(self, guard: Guard) -> dict[str, int]:
        """Returns sizes of 1, at which a guard of minimum sizes does not hold."""
        return {name: self.symbols[name].unit for name in guard.difference.symbols}

    def sums(self) -> list[Dim]:
        """Returns the sizes of inputs that are sums of symbols."""
        extents = dict.fromkeys(extent for shape in self.shapes.values() for extent in shape)
        return [each for each in extents if isinstance(each, Dim) and len(each.symbols) > 1]

    def parts(self) -> list[Symbol]:
        """Returns the symbols that are parts of sums, which may be 0: the past of a first step is empty."""
        return list(symbols_of(self.sums()).values())


def _has_qparams(graph: InternalGraph) -> bool:
    nodes = (node for expr in graph for node in expr.outputs)
    return any(isinstance(node, TensorNode) and node.qparams is not None for node in nodes)


def saturates(module: TracedModule) -> bool:
    """Whether saturation of what has QParams is part of the model's function in float.

    It is not where calibration measured the ranges, nor in MegEngine, whose quantization-aware modules have a
    float form that neither rounds nor saturates.
    """
    return module.vocabulary is not None and not module.vocabulary.identifier.startswith(
        ("aten", "megengine")
    )


def bind_model(module: TracedModule, overrides: IoOverrides, catalogue: Definitions) -> BoundModel:
    """Flattens and cuts ``module``.

    Raises UsageError TM6014 for overrides that do not match the model, UnsupportedError TM2010 for a model
    without outputs.
    """
    flat = flatten_module(module)
    graph = flat.graph
    assert graph is not None
    overrides = overrides.resolved(_argument_names(graph))
    if overrides.is_cut:
        types: Mapping[Any, TensorType] = {}
        if overrides.inputs is not None:
            own = [node.expr.name for node in graph.inputs[1:] if isinstance(node.expr, Input)]
            given = {name: tuple(shape) for name, shape in overrides.input_shapes.items() if name in own}
            types = normalize(flat, catalogue, given).types
        cut_graph(graph, overrides.inputs, overrides.outputs, types, written_outputs(graph))
        overrides = overrides.resolved(_argument_names(graph))
    if not graph.outputs:
        raise UnsupportedError(
            "TM2010",
            "the model returns no tensor: the file would have no output",
            notes=[("help", "return at least one tensor from the model")],
        )
    nodes = {
        node.expr.name: node
        for node in graph.inputs[1:]
        if isinstance(node.expr, Input) and isinstance(node, TensorNode)
    }
    for name in overrides.input_qparams:
        if name != "*":
            _check_input(name, nodes)
    if overrides.input_qparams:
        from tmconvert.passes.input_qparams import give_qparams

        give_qparams(nodes, overrides.input_qparams)
    shapes: dict[str, tuple[Size, ...]] = {
        name: node.shape for name, node in nodes.items() if node.shape is not None
    }
    for name, shape in overrides.input_shapes.items():
        _check_input(name, nodes)
        shapes[name] = _checked_shape(name, shape)
    dynamic = _dynamic(flat, overrides, nodes)
    opens: Collection[str] = getattr(flat.vocabulary, "may_open", ())
    if opens and (overrides.input_shapes or overrides.dynamic_shapes):
        fixed = {
            name: open_axes(flat.dynamic_shapes or {}, name, len(node.shape or ()))
            for name, node in nodes.items()
        }
        if any(
            axis not in fixed[name] and (axis in dynamic.get(name, {}) or shapes[name][axis] != size)
            for name, node in nodes.items()
            for axis, size in enumerate(node.shape or ())
        ):
            _mark_opened(flat, opens, catalogue)
    shapes = _with_named_sizes(flat, overrides, shapes)
    dynamic, shapes = _fixed(shapes, dynamic, nodes, overrides.fix)
    _make_dynamic(shapes, dynamic, nodes)
    return BoundModel(flat, shapes, overrides.rename, context=_context(overrides, nodes))


def _fixed(
    shapes: dict[str, tuple[Size, ...]],
    dynamic: Mapping[str, Mapping[int, str]],
    nodes: Mapping[str, TensorNode],
    fix: Mapping[str, int],
) -> tuple[Mapping[str, Mapping[int, str]], dict[str, tuple[Size, ...]]]:
    """Returns the dynamic dimensions and the shapes where some sizes have numbers."""
    if not fix:
        return dynamic, shapes
    list(_named_axes(shapes, dynamic, nodes))  # checks names
    positive = {
        name: {axis % len(shapes[name]): size for axis, size in axes.items()}
        for name, axes in dynamic.items()
    }
    dynamic, numbers = fixed_axes(positive, {name: shapes[name] for name in positive}, fix)
    return dynamic, {**shapes, **numbers}


def _argument_names(graph: InternalGraph) -> list[str]:
    """Returns the names of the arguments: of a file's input ``x:0`` the node is ``x_0``."""
    return [node.expr.name if isinstance(node.expr, Input) else node.name for node in graph.inputs[1:]]


def _check_input(name: str, nodes: Mapping[str, TensorNode]) -> None:
    if name not in nodes:
        unknown(name, list(nodes), f"the model has no input {name!r}")


def _checked_shape(name: str, shape: Sequence[int]) -> tuple[int, ...]:
    if isinstance(shape, str) or not isinstance(shape, Sequence):
        raise UsageError(
            "TM6014", f"the shape for the input {name!r} must be a list of sizes, got {type_and_value(shape)}"
        )
    sizes = tuple(shape)
    if not all(type(size) is int and 0 <= size < MAX_EXTENT for size in sizes):
        what = shown_value(list(sizes))
        raise UsageError(
            "TM6014", (f"the shape {what} for the input {name!r} must consist of non-negative integers")
        )
    return sizes


def _dynamic(
    module: TracedModule, overrides: IoOverrides, nodes: Mapping[str, TensorNode]
) -> Mapping[str, Mapping[int, str]]:
    """Returns the dynamic dimensions: those requested, by default those of the trace.

    A PyTorch model has other sizes only where it was traced with them: Python may have looked at the others.
    """
    traced = module.dynamic_shapes
    if traced is None:
        return overrides.dynamic_shapes
    may_open: Collection[str] = getattr(module.vocabulary, "may_open", ())
    for name, axes in overrides.dynamic_shapes.items():
        recorded = (nodes[name].shape or ()) if name in nodes else ()
        free, rank = open_axes(traced, name, len(recorded)), len(recorded)
        for axis in axes:
            is_fixed = type(axis) is int and -rank <= axis < rank and axis % rank not in free
            if is_fixed and not may_open:
                raise not_open(name, axis % rank, recorded)
    for name, shape in overrides.input_shapes.items():
        if not may_open or len(shape) != len(nodes[name].shape or ()):
            check_sizes(traced, name, nodes[name].shape or (), tuple(shape))
    numbers = sizes_by_name(traced, {name: tuple(shape) for name, shape in overrides.input_shapes.items()})
    if overrides.dynamic_shapes or not traced:
        return overrides.dynamic_shapes
    from tmconvert.ir.symbolic.text import size_of

    sizes = {
        name: {axis: size_of(size, numbers) for axis, size in axes.items()}
        for name, axes in traced.items()
        if name in nodes and name not in overrides.input_shapes  # a cut removes inputs
    }
    return {
        name: {axis: str(size) for axis, size in axes.items() if is_symbolic(size)}
        for name, axes in sizes.items()
    }


def _mark_opened(module: TracedModule, functions: Collection[str], catalogue: Definitions) -> None:
    """Gives the calls whose stored shapes may hold the size of an input the shape of their operand so far."""
    assert module.graph is not None
    types = normalize(module, catalogue).types
    computed = set(module.graph.inputs[1:])
    for expr in module.graph:
        is_stored = computed.isdisjoint(node for node in expr.inputs if node is not expr.inputs[0])
        if not computed.isdisjoint(expr.inputs):
            computed.update(expr.outputs)
        if not isinstance(expr, CallFunction) or expr.function not in functions:
            continue
        is_joined = expr.function.endswith(("Concat", "CONCATENATION"))
        if expr.args[0] in types and (is_stored or is_joined):
            expr.kwargs["opened"] = list(types[expr.args[0]].shape)


def _with_named_sizes(
    module: TracedModule, overrides: IoOverrides, shapes: dict[str, tuple[Size, ...]]
) -> dict[str, tuple[Size, ...]]:
    """Returns the shapes, with sizes that ``input_shapes`` assigns to symbols applied to other inputs."""
    traced = module.dynamic_shapes or {}
    if not traced:
        return shapes
    given = {name: shape for name, shape in overrides.input_shapes.items() if name in traced}
    recorded = {name: [int(size) for size in shape] for name, shape in shapes.items() if name not in given}
    numbers = sizes_by_name(traced, recorded) | sizes_by_name(traced, given)
    made = dict(shapes)
    from tmconvert.ir.symbolic.text import size_of

    for name, shape in shapes.items():
        if name not in overrides.input_shapes:
            free = open_axes(traced, name, len(shape))
            known = {axis: size_of(size, numbers) for axis, size in free.items()}
            made[name] = tuple(known.get(axis, size) for axis, size in enumerate(shape))
    return made


def _make_dynamic(
    shapes: dict[str, tuple[Size, ...]],
    dynamic: Mapping[str, Mapping[int, str]],
    nodes: Mapping[str, TensorNode],
) -> None:
    """Replaces dynamic dimensions in ``shapes`` by symbols."""
    named = list(_named_axes(shapes, dynamic, nodes))
    if not named:
        return
    sizes = example_sizes(named, "use different names, or equal sizes with --input-shape")
    symbols = {name: Symbol(name, size) for name, size in sizes.items()}
    from tmconvert.ir.symbolic.text import parse_size

    for axis in named:
        shape = list(shapes[axis.input])
        shape[axis.axis] = parse_size(axis.size, symbols)
        shapes[axis.input] = tuple(shape)


def _named_axes(
    shapes: Mapping[str, tuple[Size, ...]],
    dynamic: Mapping[str, Mapping[int, str]],
    nodes: Mapping[str, TensorNode],
) -> Iterator[NamedAxis]:
    """Yields the dynamic axes. Raises UsageError TM6014."""
    for name, axes in dynamic.items():
        from tmconvert.ir.symbolic.text import RESERVED, is_size_expression

        _check_input(name, nodes)
        if name not in shapes:
            raise UsageError("TM6014", f"the shape of the input {name!r} is unknown")
        shape, seen = shapes[name], set[int]()
        for axis, size in axes.items():
            if type(axis) is not int or not -len(shape) <= axis < len(shape):
                raise UsageError("TM6014", f"the input {name!r} {list(shape)} has no axis {axis}")
            if not isinstance(size, str) or not is_size_expression(size):
                other = f"such as {size}_size" if size in RESERVED else "of letters, digits and _"
                raise UsageError(
                    "TM6014", f"{size!r} is not a valid name for a dimension: use another, {other}"
                )
            number = axis % len(shape)
            if number in seen:
                raise UsageError("TM6014", f"axis {axis} of the input {name!r} has two names")
            seen.add(number)
            yield NamedAxis(name, number, size, int(shape[number]))


def _context(overrides: IoOverrides, nodes: Mapping[str, TensorNode]) -> str:
    """Returns a note ``x is [1,3,9,9] here, but was [1,3,8,8] in the trace``."""
    parts = [
        f"{name} is {list(shape)} here, but was {list(nodes[name].shape or ())} in the trace"
        for name, shape in overrides.input_shapes.items()
    ]
    return "; ".join(parts)
