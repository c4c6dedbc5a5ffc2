"""Reading and writing parts of tensors by index."""

import numpy as np

from .common import BYTES, CUBE, FLAGS, HALVES, MATRIX, SCALAR, SHORTS, VECTOR, WHOLE, Known, X, call, numbers

BITS = np.array([True, False, True, True, False])


def ints(*values):
    return np.array(values, np.int32)


# computed indices are inputs, Known and arrays in lists are constants
PICKED = [
    (X, [1, 0]),
    (X, (slice(None), [0, -1])),
    (X, (slice(None), [2, 1, 0])),
    (X, (Ellipsis, [0, 2, 4])),
    (X, (slice(None), [0, 1], [1, 2])),
    (X, (slice(None), [0, 1], slice(None), [1, 2])),
    (X, (0, slice(None), [1, 2])),
    (X, ([0, 1], slice(None), 0)),
    (X, (slice(None), 0, [1, 2])),
    (X, (0, slice(None), slice(None), [1, 2])),
    (X, Known([1, 0, 1])),
    (X, ints(1, 0, 1)),
    (X, (slice(None), ints(-1, 0))),
    (X, (slice(None), ints([0, 2], [-1, 1]))),
    (X, (ints([0], [1]), ints(0, 1, 2))),
    (X, (Ellipsis, ints(0, 1), ints(-1, 3))),
    (X, (ints(0, 1), slice(1, None), ints(-1, 3), slice(None, None, 2))),
    (X, (slice(None, None, -1), ints(2, 0), slice(4, 1, -2))),
    (X, (np.array(1, np.int32), slice(None), [0, 1])),
    (X, np.array(-1, np.int32)),
    (X, (slice(None), np.array(2, np.int32), 0)),
    (X, (slice(None), slice(None), Known(BITS.nonzero()[0]))),
    (MATRIX, ((0, 2), (1, 3))),
    (VECTOR, [3]),
    (VECTOR, ([[0, 1], [4, 3]],)),
    (WHOLE, [1, 1, 0]),
    (FLAGS, (slice(None), ints(2, 0))),
    (HALVES, ints(2, 0)),
    (BYTES, (slice(None), ints(2, 0))),
]
CUT = [
    (X, slice(None, None, -1)),
    (X, (Ellipsis, slice(4, None, -2))),
    (X, (Ellipsis, slice(-1, -4, -1), slice(None, 1, -3))),
    (X, (slice(None, None, -1), 1, slice(1, None, 2))),
    (X, (slice(None), slice(0, 3, 2), 1)),
    (X, (0, -1, 2, 3)),
    (X, (slice(0, 1), slice(None), slice(2, 3))),
    (MATRIX, (slice(None), slice(1, 3))),
    (VECTOR, slice(None)),
    (VECTOR, slice(3, 0, -1)),
    (WHOLE, (slice(None), slice(None, None, -2))),
    (FLAGS, slice(None, None, -1)),
]
INSERTED = [
    (MATRIX, (None, [0, 1])),
    (MATRIX, (Ellipsis, [0, 1], None)),
    (MATRIX, ([0, 1], None, [1, 2])),
    (MATRIX, (0, None, slice(1, 3))),
    (MATRIX, (None, slice(0, 1))),
]


def written(x, index):
    """Calls with a value of the part's shape, with values that broadcast, and with a number."""

    def plain(item):
        if isinstance(item, tuple):
            return tuple(map(plain, item))
        return item.array if isinstance(item, Known) else item

    part = x[plain(index)]
    value = -numbers(*part.shape, seed=5)
    calls = [call(x, index, value.astype(x.dtype)), call(x, index, 2.5)]
    if part.ndim > 1:
        calls.append(call(x, index, value[0, ..., :1].astype(x.dtype)))
    return calls


READ = [
    call(X, 1),
    call(X, -1),
    call(X, (0, -2)),
    call(X, slice(1, None)),
    call(X, (slice(None), slice(0, 2), slice(1, -1), slice(None, None, 3))),
    call(X, (Ellipsis, 2)),
    call(X, (1, Ellipsis, slice(2, 5, 2))),
    call(X, Ellipsis),
    call(X, (slice(-1, None),)),
    call(MATRIX, (None, 1)),
    call(MATRIX, (slice(None), None, slice(1, 3))),
    call(MATRIX, (Ellipsis, None)),
    call(MATRIX, (Known(1), Known(-1))),
    call(MATRIX, Known(2)),
    call(MATRIX, slice(Known(1), Known(3))),
    call(VECTOR, slice(None, None, 2)),
    call(VECTOR, 0),
    call(VECTOR, slice(1, 100)),
    call(MATRIX, (0, 1)),
    *(call(*each) for each in (*PICKED, *CUT, *INSERTED)),
    call(MATRIX, [[0, 1], [3, 2]]),
    call(MATRIX, [slice(0, 2), 2]),
    call(CUBE, (0, [True, False, True])),
    call(CUBE, ([[True, False, True], [False, False, True]],)),
    call(MATRIX, (slice(None), [Known(1), np.array(0, np.int32)])),
]
WRITE = [
    *(each for x, index in (*PICKED, *CUT, *INSERTED) for each in written(x, index)),
    call(MATRIX, [[0, 1], [2, 1]], numbers(2, 2, 4)),
    call(CUBE, ([[True, False, True], [False, False, True]],), numbers(3, 4)),
    call(MATRIX, Ellipsis, 3.0),
    call(MATRIX, Ellipsis, VECTOR),
    call(WHOLE, 0, 1.7),
    call(WHOLE, (0, 1), -1.7),
    call(WHOLE, 1, numbers(3)),
    call(WHOLE, [0, 1], numbers(3)),
    call(MATRIX, 0, np.array([1, 2, 3, 4], np.int32)),
    call(HALVES, 0, MATRIX[1]),
    call(BYTES, 0, 300),
    call(BYTES, 0, -1),
    call(BYTES, 0, 2.7),
    call(SHORTS, (slice(None), 1), 7),
    call(FLAGS, 0, True),
    call(FLAGS, (slice(None), 0), FLAGS[1, :2]),
    call(MATRIX, [0, 0], np.stack([MATRIX[1], MATRIX[2]])),
    call(MATRIX, ints(0, 0), np.stack([MATRIX[1], MATRIX[2]])),
    call(MATRIX, slice(2, 1), 1.0),
    call(MATRIX, (0, Known(1)), 1.0),
    call(MATRIX, slice(Known(1), None), 1.0),
    call(MATRIX, ([True, False, True], 1), 1.0),
    call(MATRIX, 0, [1.0, 2.0, 3.0, 4.0]),
]

COMPUTED = [
    call(MATRIX, MATRIX > 0, 1.5),
    call(MATRIX, MATRIX > 0, SCALAR),
    call(MATRIX, MATRIX[:, 0] > 0, 2.0),
    call(MATRIX, MATRIX[:, 0] > 0, numbers(4)),
    call(MATRIX, (slice(None), MATRIX[0] > 0), numbers(3, 1)),
    call(CUBE, (Ellipsis, CUBE[0] > 0), numbers(2, 1)),
    call(CUBE, (slice(None), CUBE[0, :, 0] > 0, slice(None)), numbers(1, 4)),
    call(WHOLE, WHOLE > 1, 7.9),
    call(FLAGS, WHOLE > 1, False),
    call(MATRIX, (Ellipsis, BITS[:4]), 3),
]

FOUND = [
    call(MATRIX, MATRIX > 0),
    call(MATRIX, MATRIX[:, 0] > 0),
    call(MATRIX, MATRIX > 100),
    call(MATRIX, (slice(None), MATRIX[0] > 0)),
    call(MATRIX, (MATRIX[:, 0] > 0, slice(1, 3))),
    call(MATRIX, (1, MATRIX[0] > 0)),
    call(CUBE, (Ellipsis, CUBE[0] > 0)),
    call(CUBE, (slice(None), CUBE[0, :, 0] > 0, slice(None))),
    call(CUBE, (slice(None, None, -1), CUBE[0] > 0)),
    call(CUBE, CUBE[:, :, 0] > 0),
    call(WHOLE, WHOLE > 1),
    call(FLAGS, WHOLE > 1),
    call(BYTES, BYTES > 1),
    call(HALVES, HALVES > 1),
]
PUT = [
    call(MATRIX, MATRIX > 0, numbers(int((MATRIX > 0).sum()), seed=2)),
    call(MATRIX, MATRIX[:, 0] > 0, numbers(int((MATRIX[:, 0] > 0).sum()), 4, seed=2)),
    call(MATRIX, (slice(None), MATRIX[0] > 0), numbers(3, int((MATRIX[0] > 0).sum()), seed=2)),
]

SAMPLES = {"Tensor.__getitem__": [*READ, *FOUND], "Tensor.__setitem__": [*WRITE, *COMPUTED, *PUT]}
