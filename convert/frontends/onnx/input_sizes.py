"""Shapes of the inputs of an ONNX model: static sizes, and open ones with an example."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tmconvert.errors import LoadError
from tmconvert.errors.source import Source
from tmconvert.formats.onnx.faults import damaged
from tmconvert.frontends.shared.example_sizes import BATCH, Window, example_sizes
from tmconvert.ir.symbolic.open_sizes import NamedAxis, solved_sizes
from tmconvert.ir.symbolic.text import is_size_expression, is_size_name, names_in, size_of

MAX_RANK = 64
# a name that says something: "?", "None" and tf2onnx's "unk__7" do not even say that two sizes are equal
_NAMED = re.compile(r"(?!None$|unk__\d+$|unknown$).*\w.*", re.DOTALL)


def _windows(graph: Any) -> Iterator[Window]:
    """Yields the windows of convolutions and pooling, with those of subgraphs."""
    pending = [graph]
    weights: dict[str, Sequence[int]] = {}
    while pending:
        own = pending.pop()
        weights |= {each.name: each.dims for each in own.initializer}
        for node in own.node:
            if node.op_type == "Constant" and node.attribute and node.attribute[0].HasField("t"):
                weights[node.output[0]] = node.attribute[0].t.dims
            pending += [each.g for each in node.attribute if each.HasField("g")]
            yield Window(_window(node, weights), node.op_type == "AveragePool")


def _window(node: Any, weights: Mapping[str, Sequence[int]]) -> list[int]:
    """Returns the extents of the windows of a convolution or pooling; none for other nodes."""
    if node.op_type not in ("Conv", "AveragePool", "MaxPool"):
        return []
    given = {each.name: list(each.ints) for each in node.attribute}
    kernel = (
        given.get("kernel_shape") or list(weights.get(node.input[1], ()) if len(node.input) > 1 else ())[2:]
    )
    dilations = given.get("dilations") or [1] * len(kernel)
    return [(extent - 1) * step + 1 for extent, step in zip(kernel, dilations, strict=False)]


class InputSizes:
    """Collects the open sizes of inputs, by input and axis, while their shapes are read."""

    def __init__(self, path: str, graph: object) -> None:
        self.path = path
        self.image, self.other = example_sizes(_windows(graph))
        self.open_sizes: dict[str, dict[int, str]] = {}
        self.notes: list[str] = []
        self._examples: dict[str, int] = {}
        self._shapes: dict[str, tuple[int, ...]] = {}

    def shape(self, name: str, type_: Any) -> tuple[int, ...]:
        """Returns the shape of an input, with examples for open sizes. Raises LoadError."""
        if not type_.HasField("shape"):
            raise LoadError(
                "TM1033",
                f"the input {name} has no shape, so its rank is not known",
                source=Source(self.path, scope=f"input {name}"),
                notes=[("help", "give it a shape, of names where sizes are open, with onnx.helper")],
            )
        extents = []
        dims = type_.shape.dim
        if len(dims) > MAX_RANK:
            raise damaged(self.path, f"the input {name} has {len(dims)} axes")
        for axis, each in enumerate(dims):
            kind = each.WhichOneof("value")
            if kind == "dim_value" and each.dim_value != -1:  # which some exporters write for an open size
                if each.dim_value < -1:
                    raise damaged(self.path, f"the input {name} has an axis of size {each.dim_value}")
                extents.append(int(each.dim_value))
                continue
            is_image = len(dims) >= 4 and axis >= 2
            default = BATCH if axis == 0 else self.image if is_image else self.other
            size = self._name(each.dim_param if kind == "dim_param" else "", name, axis)
            if size in self.open_sizes.get(name, {}).values():  # such as "dim" for all that an exporter knows
                self._examples[self._plain("", name, axis)] = self._example(size, default)
                size = self._plain("", name, axis)
            extent = self._example(size, default)
            if extent < 1:
                size, extent = self._plain(size, name, axis), default
            self.open_sizes.setdefault(name, {})[axis] = size
            extents.append(extent)
        self._shapes[name] = tuple(extents)
        return self._shapes[name]

    def name_unknown(self) -> None:
        """Gives a name of its own to each size that is called by an expression of sizes which do not follow.

        In ONNX a name may have any characters, such as those of ``n*m``.
        """
        axes = [
            NamedAxis(name, axis, size, self._shapes[name][axis])
            for name, sizes in self.open_sizes.items()
            for axis, size in sizes.items()
        ]
        for each in solved_sizes(axes)[1]:
            self.open_sizes[each.input][each.axis] = self._plain(each.size, each.input, each.axis)

    def _name(self, given: str, name: str, axis: int) -> str:
        if not _NAMED.fullmatch(given):
            return self._plain("", name, axis)
        return given if is_size_name(given) or is_size_expression(given) else self._plain(given, name, axis)

    def _plain(self, given: str, name: str, axis: int) -> str:
        plain = re.sub(r"\W", "_", given or f"{name}_{axis}", flags=re.ASCII)
        made = plain if is_size_name(plain) else f"size_{plain}"
        if given:
            self.notes.append(f"the size {given!r:.60} of the input {name} is called {made}")
        return made

    def _example(self, size: str, default: int) -> int:
        for each in names_in(size):
            self._examples.setdefault(each, default)
        return int(size_of(size, self._examples))
