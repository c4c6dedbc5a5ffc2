"""Linear algebra, reductions, sorting, embedding, recurrent layers and attention."""

import numpy as np

from tests.symbolics.ops.harness import Const, normal

from .common import Sample, X, rows

ONNX = ("onnx",)
BOTH = ("onnx", "tflite")
RUNTIMES = ("onnx", "tflite")
MATRIX, CUBE = normal(0, 4, 5), normal(1, 2, 4, 5)
TIES = np.array([[3, 1, 3, 2, 1], [2, 2, 5, 0, 5]], np.float32)
FEW = np.array([[[0.5, -1, 2], [1.5, 0.25, -2]]], np.float32)
REDUCTION = [
    Sample([X], {"dim": [2, 3], "keepdim": True}),
    Sample([X[0]], {"dim": [1]}, targets=RUNTIMES),
    Sample([X], targets=RUNTIMES),
]
PRODUCTS = [
    Sample([FEW], {"dim": [-1]}, RUNTIMES),
    Sample([FEW], {"dim": [0, 2], "keepdim": True}, RUNTIMES),
    Sample([FEW], {}, RUNTIMES),
]
TRUTHS = [
    Sample([np.array([[1, 2], [0, 3], [0, 0]], np.float32)], {"dim": [1]}, RUNTIMES),
]
SPREAD = [
    Sample([CUBE], {"dim": [1, -1]}, RUNTIMES),
    Sample([CUBE], {"dim": [1], "correction": 0, "keepdim": True}),
    Sample([CUBE], {"correction": 2}, RUNTIMES),
]
ALONG = [
    Sample([CUBE], {"dim": 1}, RUNTIMES),
    Sample([CUBE], {"dim": -1}, RUNTIMES),
    Sample([TIES], {"dim": 1}, RUNTIMES),
    Sample([CUBE[:, :1]], {"dim": 1}, RUNTIMES),
]
ORDERED = [
    Sample([TIES], {}, RUNTIMES),
    Sample([TIES], {"dim": 0, "descending": True}, RUNTIMES),
    Sample([CUBE], {"dim": 1, "descending": True}, RUNTIMES),
    Sample([CUBE], {"dim": -2}, RUNTIMES),
]
BLIND = np.array([[1, 0, 1, 0, 0], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1]], bool)  # the second query sees no key
HIDDEN = np.where(BLIND, normal(4, 3, 5), np.float32(-np.inf))
ONE_OF = [Sample([TIES], {"dim": 1}, RUNTIMES), Sample([CUBE], {"dim": -2, "keepdim": True}, RUNTIMES)]
TRIANGLES = [
    Sample([CUBE], {}, RUNTIMES),
    Sample([MATRIX], {"diagonal": 2}, RUNTIMES),
    Sample([MATRIX], {"diagonal": -1}, RUNTIMES),
]


def recurrent(gates: int, states: int, projected: int | None = None) -> list[Sample]:
    """Layers and directions, biases and order of the axes; weights of the model and computed ones."""
    samples = []
    for layers, both, biased, batch_first, constant in [
        *((1, False, True, False, True), (2, False, True, True, True), (1, True, False, False, True)),
        *((2, True, True, False, True), (1, True, True, True, False)),
    ]:
        directions, hidden, width, params = 2 if both else 1, 3, 4, []
        out = projected or hidden
        for layer in range(layers):
            features = width if layer == 0 else directions * out
            for seed in range(directions):
                shapes = [(gates * hidden, features), (gates * hidden, out)]
                shapes += [(gates * hidden,)] * 2 if biased else []
                shapes += [(out, hidden)] if projected else []
                params += [normal(7 * layer + seed + i, *shape) / 2 for i, shape in enumerate(shapes)]
        x = normal(9, *((2, 5, width) if batch_first else (5, 2, width)))
        hx = [normal(20 + i, layers * directions, 2, hidden if i else out) for i in range(states)]
        attributes = {
            "has_biases": biased,
            "num_layers": layers,
            "dropout": 0.0,
            "train": False,
            "bidirectional": both,
            "batch_first": batch_first,
        }
        weights = [Const(array) for array in params] if constant else params
        targets = (*BOTH, "caffe") if constant else BOTH
        samples.append(Sample([x, hx if states == 2 else hx[0], weights], attributes, targets))
        if constant and not (projected and both):
            lengths = np.array([3, 5], np.int32 if both else np.int64)
            samples.append(Sample([x, hx if states == 2 else hx[0], weights, lengths], attributes, BOTH))
        if projected and constant:
            zeros = [Const(np.zeros_like(state)) for state in hx]
            samples.append(Sample([x, zeros, weights], attributes, BOTH))
    return samples


QUERY, KEY, VALUE = normal(0, 2, 4, 3, 8), normal(1, 2, 4, 5, 8), normal(2, 2, 4, 5, 6)
SPACE = normal(3, 2, 3, 4)

SAMPLES: dict[str, list[Sample]] = {
    **rows(__file__, "SAMPLES", globals()),
    **{f"aten::{name}": TRIANGLES for name in ("triu", "tril")},
    **{f"aten::{name}": recurrent(1, 1) for name in ("rnn_tanh", "rnn_relu")},
    **{
        f"aten::{name}": [Sample([X], {"dim": 1}), Sample([X], {"dim": -1})]
        for name in ("log_softmax", "softmin")
    },
    **{f"aten::{name}": [*PRODUCTS, *TRUTHS] for name in ("any", "all")},
    **{f"aten::{name}": SPREAD for name in ("var", "std", "var_mean", "std_mean")},
    **{f"aten::{name}": ONE_OF for name in ("max", "min")},
    **{f"aten::{name}": ALONG for name in ("cumsum", "cumprod", "logcumsumexp", "cummax", "cummin")},
}
