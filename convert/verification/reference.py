"""The truth that a written file is compared with: the normalized graph, run on NumPy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..ir import Expr, InternalGraph, TensorNode, TensorType
from ..ir.data_sizes import bound
from ..ir.dims import example, substituted
from ..ir.interpreter import Interpreter
from ..ir.tree import leaves
from ..symbolics.layouts import NCHW_TO_NHWC, NHWC_TO_NCHW
from ..symbolics.op import Op


class Reference:
    """Runs a normalized graph, and brings arrays into the memory order of a file and back.

    ``nhwc_inputs`` and ``nhwc_outputs`` say which inputs and outputs the file stores channels-last.
    """

    def __init__(
        self,
        graph: InternalGraph,
        catalogue: Mapping[str, Op],
        nhwc_inputs: Sequence[bool] = (),
        nhwc_outputs: Sequence[bool] = (),
    ) -> None:
        self.graph = graph
        self.catalogue = catalogue
        self.nhwc_inputs = nhwc_inputs or [False] * len(graph.inputs)
        self.nhwc_outputs = nhwc_outputs or [False] * len(graph.outputs)

    @property
    def input_types(self) -> list[TensorType]:
        return [node.type for node in self.graph.inputs if isinstance(node, TensorNode)]

    def bytes_needed(self) -> int:
        """An upper bound of the activations of one run, were none of them dropped."""
        nodes = [node for expr in self.graph.exprs() for node in expr.outputs]
        types = [node.type for node in (*self.graph.inputs, *nodes) if isinstance(node, TensorNode)]
        return sum(example(type_.size) * type_.dtype.itemsize for type_ in types)

    def run(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Outputs in order, from inputs in order, both as the source has them."""
        sizes: dict[str, int] = {}

        def evaluate(expr: Expr, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            op = self.catalogue[expr.function]  # type: ignore[attr-defined]
            result = op.evaluate(args, substituted(kwargs, sizes))
            sizes.update(bound(expr, list(leaves(result))))
            return result

        return [np.asarray(leaf) for leaf in leaves(Interpreter(self.graph, evaluate).run(inputs))]

    def stored_inputs(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The inputs in the file's memory order."""
        return _permuted(inputs, self.nhwc_inputs, NCHW_TO_NHWC)

    def source_outputs(self, outputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The file's outputs in the source's order."""
        return _permuted(outputs, self.nhwc_outputs, NHWC_TO_NCHW)


def _permuted(
    arrays: Sequence[np.ndarray], flags: Sequence[bool], order: tuple[int, ...]
) -> list[np.ndarray]:
    return [
        np.ascontiguousarray(array.transpose(order)) if flag and array.ndim == len(order) else array
        for array, flag in zip(arrays, flags, strict=True)
    ]
