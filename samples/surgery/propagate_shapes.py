"""Propagates shapes: an Interpreter that notes shape and type of each value, as torch.fx's ShapeProp does.

    python samples/surgery/propagate_shapes.py samples/digits.tm

What the model recorded is for one shape of its inputs. This runs it at another batch size.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np

import tmconvert

BATCH = 5


class TensorMetadata(NamedTuple):
    """What is known of a value."""

    shape: tuple[int, ...]
    dtype: str


class ShapeProp(tmconvert.Interpreter):
    """Leaves ``node.meta["tensor_meta"]`` at each tensor of the model, those of submodules included."""

    def run_node(self, node: Any) -> Any:
        value = super().run_node(node)
        values = value if isinstance(value, (tuple, list)) else [value]
        for each, array in zip(node.expr.outputs, values, strict=True):
            if isinstance(array, np.ndarray):
                each.meta["tensor_meta"] = TensorMetadata(array.shape, array.dtype.name)
        return value


def main(path: str) -> None:
    model = tmconvert.load(path)
    shapes = [(BATCH, *node.shape[1:]) for node in model.graph.inputs[1:]]
    ShapeProp(model).run(*(np.zeros(shape, np.float32) for shape in shapes))
    for node in model.graph.nodes:
        if "tensor_meta" in getattr(node, "meta", {}):
            shape, dtype = node.meta["tensor_meta"]
            print(f"{node.op:<14} {node.name:<24} {dtype}{list(shape)}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "samples/digits.tm")
