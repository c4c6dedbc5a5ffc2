"""Small TFLite models, made of single operators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tmconvert.lowering.target_graph import Operator, TargetGraph, Value
from tmconvert.targets.registry import write


@dataclass(eq=False)
class Call:
    """A call of one operator. Inputs that are arrays are those of the model, ``Fixed`` ones are constants."""

    type: str
    inputs: list[Any]
    options: dict[str, Any] = field(default_factory=dict)
    results: tuple[str, ...] = ("float32",)
    shape: tuple[int, ...] = (1,)  # of the results; most operators set it in LiteRT

    @property
    def given(self) -> list[np.ndarray]:
        return [each for each in self.inputs if isinstance(each, np.ndarray)]

    def graph(self) -> TargetGraph:
        values = [_value(number, each) for number, each in enumerate(self.inputs)]
        taken = [value for value in values if value is not None and not value.is_constant]
        made = [Value(f"y{number}", np.dtype(kind), self.shape) for number, kind in enumerate(self.results)]
        operator = Operator(self.type, values, made, dict(self.options), "/call")
        graph = TargetGraph("tflite", 23, "call", taken, made, [operator])
        graph.input_names = [value.name for value in taken]
        graph.output_names = [value.name for value in made]
        return graph


@dataclass
class Fixed:
    """A constant."""

    array: np.ndarray


def _value(number: int, given: Any) -> Value | None:
    if given is None:
        return None
    array = given.array if isinstance(given, Fixed) else given
    stored = array if isinstance(given, Fixed) else None
    return Value(f"x{number}", array.dtype, array.shape, stored)


def saved(graph: TargetGraph, path: Path) -> Path:
    with path.open("wb") as file:
        write(graph, [file])
    return path


def in_litert(path: Path, *inputs: np.ndarray) -> list[np.ndarray]:
    """Returns what LiteRT computes, for inputs of any sizes."""
    from ai_edge_litert import interpreter

    mode = interpreter.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    runner = interpreter.Interpreter(str(path), num_threads=1, experimental_op_resolver_type=mode)
    details = runner.get_input_details()
    for detail, array in zip(details, inputs, strict=True):
        runner.resize_tensor_input(detail["index"], array.shape)
    runner.allocate_tensors()
    for detail, array in zip(details, inputs, strict=True):
        runner.set_tensor(detail["index"], array)
    runner.invoke()
    return [np.array(runner.get_tensor(each["index"])) for each in runner.get_output_details()]


def floats(*shape: int, low: float = -2, high: float = 3) -> np.ndarray:
    return np.random.default_rng(0).uniform(low, high, shape).astype(np.float32)


def ints(*numbers: int) -> Fixed:
    return Fixed(np.array(numbers, np.int32))


def number(value: int) -> Fixed:
    return Fixed(np.array(value, np.int32))


def listed(result: Any) -> list[np.ndarray]:
    return list(result) if isinstance(result, (tuple, list)) else [result]


def assert_same(found: Sequence[np.ndarray], expected: Sequence[np.ndarray], limit: float = 1e-5) -> None:
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=limit, atol=limit)


def network() -> TargetGraph:
    """Returns a convolution, a pooling, a flattening and a fully connected layer."""
    rng = np.random.default_rng(0)

    def weights(name: str, *shape: int) -> Value:
        return Value(name, np.dtype(np.float32), shape, rng.standard_normal(shape).astype(np.float32))

    def tensor(name: str, *shape: int) -> Value:
        return Value(name, np.dtype(np.float32), shape)

    x, convolved, pooled, y = (
        tensor("x", 1, 8, 8, 3),
        tensor("c", 1, 4, 4, 4),
        tensor("p", 1, 2, 2, 4),
        tensor("y", 1, 5),
    )
    flat, shape = tensor("f", 1, 16), Value("shape", np.dtype(np.int32), (2,), np.array([1, 16], np.int32))
    window = {"padding": "SAME", "stride_w": 2, "stride_h": 2}
    size = {"filter_width": 2, "filter_height": 2}
    active = {"fused_activation_function": "RELU"}
    operators = [
        Operator(
            "CONV_2D",
            [x, weights("conv/w", 4, 3, 3, 3), weights("conv/b", 4)],
            [convolved],
            {**window, **active},
            "conv",
        ),
        Operator("MAX_POOL_2D", [convolved], [pooled], {**window, **size}, "pool"),
        Operator("RESHAPE", [pooled, shape], [flat], {"new_shape": [1, 16]}, "flat"),
        Operator("FULLY_CONNECTED", [flat, weights("fc/w", 5, 16), weights("fc/b", 5)], [y], {}, "fc"),
    ]
    graph = TargetGraph("tflite", 23, "network", [x], [y], operators)
    graph.input_names, graph.output_names = ["x"], ["y"]
    return graph
