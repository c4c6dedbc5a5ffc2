"""aten::embedding, rows of a table by their indices."""

from __future__ import annotations

import numpy as np

from tmconvert.ir.types import TensorType
from tmconvert.symbolics.op import ANY_DTYPE, INDICES, Op, Tensor, boolean, integer
from tmconvert.symbolics.traits import IndexedRows

Array = np.ndarray


def _rows(
    weight: TensorType, indices: TensorType, padding_idx: int, scale_grad_by_freq: bool, sparse: bool
) -> TensorType:
    if weight.rank != 2:
        raise ValueError(f"the table {weight} is not a matrix")
    return TensorType(weight.dtype, (*indices.shape, weight.shape[1]))


embedding = Op(
    "aten::embedding",
    args=[
        Tensor("weight", ANY_DTYPE), Tensor("indices", INDICES), integer("padding_idx", -1),
        boolean("scale_grad_by_freq", False), boolean("sparse", False),
    ],
    result=_rows,
    traits=[IndexedRows()],
)  # fmt: skip


@embedding.reference
def embedding_ref(
    weight: Array, indices: Array, padding_idx: int, scale_grad_by_freq: bool, sparse: bool
) -> Array:
    """The last three arguments are used in training only. Source: torch.nn.functional.embedding."""
    return rows_of(weight, indices)


def rows_of(table: Array, indices: Array) -> Array:
    """Returns rows of a table. Raises IndexError for negative indices, which NumPy counts from the end."""
    if indices.size and indices.min() < 0:
        raise IndexError(f"index {indices.min()} is negative; a table has rows from 0 to {len(table) - 1}")
    return table[indices]


@embedding.onnx(since=1)
def embedding_onnx1(g, weight, indices, padding_idx, scale_grad_by_freq, sparse):
    return g.op("Gather", weight, indices, axis=0)


@embedding.tflite()
def embedding_tflite(g, weight, indices, padding_idx, scale_grad_by_freq, sparse):
    return g.op("GATHER", weight, indices, axis=0)


@embedding.caffe()  # its indices are floats, as all numbers are
def embedding_caffe(g, weight, indices, padding_idx, scale_grad_by_freq, sparse):
    if not weight.is_constant:
        g.refuse("a Caffe Embed stores its table in the model: it cannot be computed")
    rows, columns = weight.shape
    return g.op("Embed", indices, weight, num_output=columns, input_dim=rows, bias_term=False)
