"""The builder of Caffe layers of a dialect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tmconvert.lowering.builder import Builder
from tmconvert.lowering.target_graph import Operator, Value
from tmconvert.targets.caffe.alternatives import alternative
from tmconvert.targets.caffe.inexact_integers import inexact_parameter, refusal

if TYPE_CHECKING:
    from tmconvert.formats.caffe.dialects.dialect import Dialect


class CaffeBuilder(Builder):
    def op(self, type: str, *inputs: Value | None, **options: Any) -> Any:
        if "::" in type:
            self.refuse(f"Caffe's format has its own layers only, not {type}")
        from tmconvert.formats.caffe.layers import BVLC

        dialect = self._dialect()
        other = alternative(self, dialect, type, inputs, options)
        if other is not None:
            return other
        if type in BVLC and type not in dialect.layers:
            self.refuse(f"{dialect.title} has no {type} layer", "convert to another dialect, such as bvlc")
        is_linear = type == "Power" and options.get("power", 1.0) == 1.0
        if is_linear and dialect.has("Split") and self._is_power(inputs[0]):
            # OpenCV 4.14 fuses 3 (x ^ 2) to (3 x) ^ 2; a Split in between keeps them apart
            inputs = (super().op("Split", inputs[0]), *inputs[1:])
        return super().op(type, *inputs, **options)

    def has(self, layer: str, parameter: str = "") -> bool:
        """Whether the dialect has this layer, with this parameter, for symbolics with an alternative."""
        return self._dialect().has(layer, parameter)

    def allows(self, layer: str, quantity: str, number: float) -> bool:
        """Whether the dialect allows this value in such a layer; ``quantity`` is the quantity of a rule."""
        return self._dialect().allows(layer, quantity, number)

    def _dialect(self) -> Dialect:
        from tmconvert.formats.caffe.dialects import DIALECTS  # which other targets do without

        assert isinstance(self.graph.version, int)
        return DIALECTS[tuple(DIALECTS)[self.graph.version]]

    def accept(self, operators: Sequence[Operator]) -> None:
        values = [value for operator in operators for value in (*operator.inputs, *operator.outputs)]
        if any(0 in value.shape for value in values if value is not None):
            self.refuse("a Caffe blob cannot be empty")
        self._check_integers(operators)

    def _check_integers(self, operators: Sequence[Operator]) -> None:
        found = inexact_parameter(operators)
        if found is not None:
            self.refuse(*refusal(found))

    def _is_power(self, value: Value | None) -> bool:
        """Whether a Power layer with an exponent computes ``value``."""
        for operator in reversed(self.graph.operators):
            if any(output is value for output in operator.outputs):
                return operator.type == "Power" and operator.attributes.get("power", 1.0) != 1.0
        return False

    def identity(self, value: Value) -> Value:
        if value.is_constant:
            return self.op("Parameter", value, shape=value.shape, **{"shape.dim": list(value.shape)})
        return self.op("Power", value, power=1.0, scale=1.0, shift=0.0)

    def finish(self) -> None:
        """Completes the net so that every runtime can return its outputs, and names the layers.

        Each layer has the name of its first top, since users and runtimes look up results by either. OpenCV
        finds only first tops by name and keeps only these from being overwritten, so an output that is a
        later top is copied; and it fails on an input that nothing reads. Where the dialect takes all blobs
        that no layer reads for the net's outputs, an output that a layer reads is copied, too.
        """
        outputs = self.graph.outputs
        copied = {id(value) for operator in self.graph.operators for value in operator.outputs[1:]}
        if self._dialect().outputs_are_unread:
            copied |= self._read()
        for i, value in enumerate(outputs):
            if id(value) in copied:
                outputs[i] = self._copied(value)
        silence = self._silence()
        for operator in self.graph.operators:
            operator.name = operator.outputs[0].name if operator.outputs else silence

    def _read(self) -> set[int]:
        return {id(value) for operator in self.graph.operators for value in operator.inputs}

    def _silence(self) -> str:
        """Adds one layer that reads all unused blobs; returns its name.

        It stands behind the last layer that makes such a blob, but not at the end of the net, where OpenCV
        would take it for the output.
        """
        graph = self.graph
        done = self._read() | {id(value) for value in graph.outputs}
        unread: list[Value | None] = [value for value in graph.inputs if id(value) not in done]
        place = 0
        if self._dialect().outputs_are_unread:
            for position, operator in enumerate(graph.operators, start=1):
                rest = [value for value in operator.outputs if id(value) not in done]
                unread += rest
                place = position if rest else place
        if not unread or not self.has("Silence"):
            return ""
        if place == len(graph.operators) > 0:
            graph.outputs[-1] = self._copied(graph.outputs[-1])
        name = self.names.free("silence")
        graph.operators.insert(place, Operator("Silence", unread, [], {}, name))
        return name

    def _copied(self, value: Value) -> Value:
        """A copy of ``value`` that takes its name."""
        name = value.name
        value.name = self.names.free(f"{name}_part")
        copy = self.op("Split", value)
        self.rename(copy, name)
        return copy
