"""Operators applied directly: shapes, numbers, indices."""

import numpy as np

from .common import BYTES, CUBE, FLAGS, HALVES, MATRIX, SCALAR, VECTOR, WHOLE, Known, X, call, numbers

SMALL_INTS = WHOLE.astype(np.int8)
ALL_AXES = 2**31 - 1
COLUMN = numbers(1, 3, 1)
SQUARE = numbers(2, 2)
ROWS = Known([[1, 0], [0, 2]])
GRID = numbers(2, 3, 4, 5)


def at(axis):
    """An item that names numbers of an axis."""
    return [axis, False, False, False, True]


def cut(axis, start=False, stop=False, step=False):
    return [axis, start, stop, step, False]


def reductions(mode, *inputs):
    return [call(x, axis=0, mode=mode) for x in inputs] + [
        call(CUBE, axis=1, mode=mode, keepdim=False),
        call(CUBE, axis=-1, mode=mode),
        call(CUBE, axis=ALL_AXES, mode=mode),
        call(CUBE, Known(1, 3, 4), mode=mode),
        call(CUBE, Known([1]), mode=mode),
    ]


NUMBERS = [VECTOR, WHOLE, HALVES, BYTES, SMALL_INTS]
SHAPES = {
    "GetVarShape": [call(X), call(X, axis=1), call(X, axis=-1), call(VECTOR)],
    "Reshape": [
        call(CUBE, Known(4, 6), shape=[]),
        call(CUBE, shape=[4, 6]),
        call(CUBE, Known(4, -1), shape=[], axis=1),
        call(CUBE, shape=[-1, 6], axis=0),
    ],
    "Broadcast": [call(numbers(3, 1), Known(2, 3, 4), shape=[]), call(numbers(3, 1), shape=[2, 3, 4])],
    "Dimshuffle": [
        call(CUBE, pattern=[2, 0, 1]),
        call(CUBE, pattern=[2, -1, 0, 1]),
        call(COLUMN[..., 0], pattern=[1]),
        call(COLUMN, pattern=[2, -1, 1]),
    ],
    "AddAxis": [call(CUBE, axis=each) for each in ([0], [1, 1], [0, 2], [2, 0])],
    "RemoveAxis": [call(COLUMN, axis=each) for each in ([0], [0, 1], [2], [2, 0])],
    "Concat": [
        call(CUBE, CUBE, axis=1),
        call(CUBE, numbers(2, 3, 2), numbers(2, 3, 1), axis=-1),
        call(MATRIX, axis=0),
    ],
    "Stack": [call(CUBE, CUBE, axis=1), call(CUBE, CUBE, axis=-1)],
    "Split": [
        call(CUBE, axis=2, nsections=2),
        call(CUBE, axis=-2, nsections=3),
        call(CUBE, Known(1), Known(2), axis=1),
    ],
    "Borrow": [call(X)],
    "FastpathCopy": [call(X)],
}
MATH = {
    "Reduce": [
        *reductions("SUM", *NUMBERS, FLAGS),
        *reductions("SUM_SQR", *NUMBERS, FLAGS),
        *reductions("PRODUCT", *NUMBERS, FLAGS),
        *reductions("MEAN", *NUMBERS, FLAGS),
        *reductions("MAX", *NUMBERS),
        *reductions("MIN", *NUMBERS),
        call(SCALAR, axis=0, mode="SUM"),
        call(CUBE, axis=1, mode="SUM", data_type="FLOAT_O32xC32"),
    ],
    "MatrixMul": [
        call(numbers(2, 3), MATRIX, transposeA=False, transposeB=False, dimA=2, dimB=2),
        call(numbers(3, 2), numbers(4, 3), transposeA=True, transposeB=True, dimA=2, dimB=2),
        call(numbers(2, 5, 3), MATRIX, transposeA=False, transposeB=False, dimA=3, dimB=2),
    ],
    "BatchedMatrixMul": [
        call(CUBE, numbers(2, 4, 2), transposeA=False, transposeB=False, dimA=3, dimB=3),
        call(CUBE, CUBE, transposeA=False, transposeB=True, dimA=3, dimB=3),
    ],
    "Dot": [call(VECTOR, numbers(5, seed=1))],
    "MatrixInverse": [call(SQUARE)],
    "Argmax": [call(CUBE, axis=1), call(CUBE, axis=2), call(WHOLE, axis=0)],
    "Argmin": [call(CUBE, axis=1), call(CUBE, axis=2), call(WHOLE, axis=0)],
    "Argsort": [call(MATRIX, order="ASCENDING"), call(MATRIX, order="DESCENDING")],
    "TopK": [
        call(MATRIX, Known(k), mode=mode)
        for k in (2, -2)
        for mode in ("KTH_ONLY", "VALUE_IDX_NOSORT", "VALUE_IDX_SORTED")
    ],
    "Cumsum": [
        call(each, axis=1, exclusive=exclusive, reverse=reverse)
        for each in (CUBE, WHOLE)
        for exclusive in (False, True)
        for reverse in (False, True)
    ],
    "Softmax": [call(CUBE, axis=1), call(CUBE, axis=-1)],
    "MaskedFill": [
        call(FLAGS.astype(np.float32), FLAGS, value=9.5),
        call(numbers(2, 3, 4), FLAGS, value=9.5),
        call(numbers(3, 2), FLAGS[:, 0].repeat(2)[:3], value=-1.0),
    ],
}
CREATION = {
    "Eye": [
        call(Known(3, 4), k=1, dtype="float32"),
        call(Known(3, 4), k=0, dtype="int32"),
        call(Known([3]), k=-1, dtype="int32"),
    ],
    "Linspace": [
        call(Known(0.0, dtype=np.float32), Known(3.0, dtype=np.float32), Known(4), endpoint=True),
        call(Known(0.0, dtype=np.float32), Known(3.0, dtype=np.float32), Known(4), endpoint=False),
        call(Known(1), Known(-3), Known(7), endpoint=True),
    ],
    "Fill": [call(Known(2, 3), value=2.5, dtype="float32"), call(Known(2, 3), value=2.5, dtype="int32")],
    "FillLike": [call(CUBE, value=2.5), call(WHOLE, value=2.7)],
    "Diag": [call(MATRIX, k=1), call(VECTOR, k=-1)],
    "MeshGrid": [call(numbers(2), VECTOR, indexing="ij"), call(numbers(2), VECTOR, indexing="xy")],
}
READ = {
    "Subtensor": [
        call(CUBE, Known(0), Known(1), items=[cut(0, True, True)]),
        call(CUBE, Known(1), items=[at(1)]),
        call(CUBE, Known(1), Known(0), Known(2), items=[at(2), cut(1, True, True)]),
        call(CUBE, Known(-1), items=[cut(1, step=True)]),
        call(CUBE, items=[cut(2, True, True, True)], slice_items=[[0, 4, 2, 0]]),
        call(CUBE, items=[cut(2, True)], slice_items=[[1, ALL_AXES, ALL_AXES, ALL_AXES]]),
        call(CUBE, items=[at(2)], slice_items=[[ALL_AXES, ALL_AXES, ALL_AXES, 3]]),
    ],
    "IndexingMultiAxisVec": [
        call(CUBE, Known(1, 0), items=[at(1)]),
        call(CUBE, Known(1, 0), Known(0, 1), items=[at(1), at(2)]),
        call(CUBE, Known(1, 0), Known(0, 1), items=[at(0), at(2)]),
        call(CUBE, ROWS, items=[at(1)]),
        call(CUBE, Known(1, 0), Known(1), Known(3), items=[at(0), cut(2, True, True)]),
        call(CUBE, Known(1), Known(0, 1), items=[at(0), at(2)]),
        call(GRID, Known(1, 0), Known(0, 1), items=[at(1), at(3)]),
        call(GRID, Known(1, 0), Known(0, 1), Known(2), items=[at(1), at(3), cut(2, True)]),
        call(GRID, Known(1, 0), Known(0, 1), items=[at(3), at(1)]),
        call(CUBE, np.array([2, 0], np.int32), items=[at(1)]),
    ],
    "MeshIndexing": [
        call(CUBE, Known(1, 0), Known(0, 1, 3), items=[at(0), at(2)]),
        call(CUBE, Known(1, 0), Known(0, 2), items=[at(1), at(2)]),
        call(GRID, Known(1, 0), Known(0, 2, 1), items=[at(1), at(3)]),
    ],
    "BatchedMeshIndexing": [
        call(CUBE, ROWS, items=[at(1)]),
        call(CUBE, ROWS, Known([[3], [2]]), items=[at(1), at(2)]),
        call(GRID, ROWS, Known([[3, 1, 0], [2, 2, 4]]), items=[at(1), at(3)]),
    ],
    "IndexingOneHot": [
        call(MATRIX, Known(1, 0, 3), axis=1, ndim=2),
        call(CUBE, Known([[0, 1, 2, 0], [2, 2, 1, 1]]), axis=1, ndim=3),
    ],
}
WRITTEN = {
    "SetSubtensor": [
        call(CUBE, numbers(2, 3), Known(3), items=[at(2)]),
        call(CUBE, numbers(2, 3, 2), Known(2), items=[cut(2, True)]),
    ],
    "IncrSubtensor": [
        call(CUBE, numbers(2, 3), Known(3), items=[at(2)]),
        call(CUBE, numbers(2, 3, 2), Known(2), items=[cut(2, True)]),
    ],
    "IndexingSetMultiAxisVec": [
        call(CUBE, numbers(2, 2, 4), Known(1, 0), items=[at(1)]),
        call(CUBE, numbers(2, 3), Known(1, 0), Known(0, 3), items=[at(0), at(2)]),
    ],
    "IndexingIncrMultiAxisVec": [
        call(CUBE, numbers(2, 3, 2), Known(1, 1), items=[at(2)]),
        call(CUBE, numbers(2, 3), Known(1, 1), Known(3, 3), items=[at(0), at(2)]),
    ],
    "SetMeshIndexing": [call(CUBE, numbers(2, 3, 2), Known(1, 0), Known(0, 2), items=[at(0), at(2)])],
    "IncrMeshIndexing": [call(CUBE, numbers(2, 3, 2), Known(1, 0), Known(0, 0), items=[at(0), at(2)])],
    "BatchedSetMeshIndexing": [call(CUBE, numbers(2, 2, 4), ROWS, items=[at(1)])],
    "BatchedIncrMeshIndexing": [call(CUBE, numbers(2, 2, 4), Known([[1, 1], [0, 2]]), items=[at(1)])],
    "IndexingSetOneHot": [call(MATRIX, Known(1, 0, 3), numbers(3, 1), axis=1, ndim=2)],
}

SAMPLES = {
    f"opdef.{name}": calls for part in (SHAPES, MATH, CREATION, READ, WRITTEN) for name, calls in part.items()
}
