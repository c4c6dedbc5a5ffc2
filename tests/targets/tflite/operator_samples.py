"""A call of each TFLite operator that no op is lowered to, and what NumPy gives for it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tmconvert.lowering.target_graph import Attribute, Operator, TargetGraph, Value


@dataclass(eq=False)
class OperatorSample:
    """``inputs`` are those of the model, ``result`` is what they give; ``attributes`` are the options."""

    type: str
    inputs: list[np.ndarray]
    result: np.ndarray
    attributes: dict[str, Attribute] = field(default_factory=dict)

    def graph(self) -> TargetGraph:
        """A model of this call alone."""
        values = [Value(f"x{number}", each.dtype, each.shape) for number, each in enumerate(self.inputs)]
        made = Value("y", self.result.dtype, self.result.shape)
        operator = Operator(self.type, [*values], [made], dict(self.attributes), "/sample")
        graph = TargetGraph("tflite", 23, "sample", values, [made], [operator])
        graph.input_names, graph.output_names = [value.name for value in values], ["y"]
        return graph


def ints(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int32)


def floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).uniform(-2, 3, shape).astype(np.float32)


LIMITS = [-1.5, 0.0, 0.25, 2.0]
TRUTHS = np.array([[True, False, True], [True, True, True]])

SAMPLES = [
    OperatorSample("ADD_N", [floats(2, 3)] * 3, floats(2, 3) * 3),
    OperatorSample("BROADCAST_ARGS", [ints(2, 1, 3), ints(4, 1)], ints(2, 4, 3)),
    OperatorSample(
        "BUCKETIZE",
        [floats(3, 5)],
        np.digitize(floats(3, 5), LIMITS).astype(np.int32),
        {"boundaries": LIMITS},
    ),
    OperatorSample("RANK", [floats(2, 3, 5)], np.array(3, np.int32)),
    OperatorSample("REDUCE_ALL", [TRUTHS, ints(1)], TRUTHS.all(1), {"keep_dims": False}),
    OperatorSample("REDUCE_ANY", [TRUTHS, ints(0)], TRUTHS.any(0, keepdims=True), {"keep_dims": True}),
    OperatorSample("SEGMENT_SUM", [floats(3, 2), ints(0, 0, 1)], np.add.reduceat(floats(3, 2), [0, 2])),
    OperatorSample(
        "SELECT", [TRUTHS, floats(2, 3), -floats(2, 3)], np.where(TRUTHS, floats(2, 3), -floats(2, 3))
    ),
    OperatorSample("SHAPE", [floats(2, 3, 5)], ints(2, 3, 5), {"out_type": "INT32"}),
    OperatorSample("SIGN", [floats(2, 3)], np.sign(floats(2, 3))),
    OperatorSample("SQUARE", [floats(2, 3)], floats(2, 3) ** 2),
    OperatorSample("ZEROS_LIKE", [floats(2, 3)], np.zeros((2, 3), np.float32)),
]
