"""Linear algebra, reductions, sorting, embedding, recurrent layers and attention."""

import numpy as np

from tests.symbolics.ops.harness import Const, normal

from .common import Sample, X

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
    "aten::matmul": [
        Sample([CUBE, Const(normal(2, 5, 3))]),
        Sample([CUBE, normal(2, 2, 5, 3)], {}, RUNTIMES),
        Sample([MATRIX, normal(2, 2, 3, 5, 1)], {}, RUNTIMES),
        Sample([MATRIX, normal(2, 5)], {}, RUNTIMES),
        Sample([normal(2, 4), CUBE], {}, RUNTIMES),
        Sample([normal(2, 4), normal(3, 4)], {}, RUNTIMES),
        Sample([normal(2, 1, 2, 1, 2, 2, 4), normal(3, 2, 1, 4, 3)], {}, RUNTIMES),
    ],
    "aten::mm": [Sample([MATRIX, Const(normal(2, 5, 3))]), Sample([MATRIX, normal(2, 5, 3)], {}, RUNTIMES)],
    "tm::matmul_nt": [
        Sample([CUBE, normal(2, 2, 3, 5)]),
        Sample([MATRIX, normal(2, 2, 3, 3, 5)], {}, RUNTIMES),
        Sample([normal(2, 5), MATRIX], {}, RUNTIMES),
        Sample([normal(2, 2, 1, 2, 2, 4), normal(3, 2, 1, 1, 3, 4)], {}, RUNTIMES),
    ],
    "aten::bmm": [Sample([CUBE, normal(2, 2, 5, 3)], {}, RUNTIMES)],
    "aten::mv": [Sample([MATRIX, normal(2, 5)], {}, RUNTIMES)],
    "aten::dot": [Sample([normal(2, 5), normal(3, 5)], {}, RUNTIMES)],
    "aten::outer": [Sample([normal(2, 5), normal(3, 4)], {}, RUNTIMES)],
    "aten::addmm": [
        Sample([normal(1, 3), MATRIX, normal(2, 5, 3)], {}, RUNTIMES),
        Sample([Const(normal(1, 3)), MATRIX, Const(normal(2, 5, 3))], {"alpha": 2}),
        Sample([normal(1, 4, 1), MATRIX, normal(2, 5, 3)], {"beta": 2, "alpha": 3}, RUNTIMES),
        Sample([Const(np.full(3, np.nan, np.float32)), MATRIX, normal(2, 5, 3)], {"beta": 0}, RUNTIMES),
        Sample(
            [np.arange(3), np.arange(8).reshape(4, 2), np.arange(6).reshape(2, 3)], {"beta": 2}, RUNTIMES, 9
        ),
    ],
    "aten::baddbmm": [
        Sample([normal(1, 2, 1, 3), CUBE, normal(2, 2, 5, 3)], {"beta": 2, "alpha": 3}, RUNTIMES),
    ],
    "aten::einsum": [
        Sample([[CUBE, normal(2, 2, 5, 3)]], {"equation": "bij,bjk->bik"}, RUNTIMES),
        Sample([[MATRIX, normal(2, 3, 5)]], {"equation": "ij, kj -> ki"}, RUNTIMES),
        Sample([[MATRIX, normal(2, 5), normal(3, 4)]], {"equation": "ij,j,i"}, RUNTIMES),
        Sample([[normal(2, 4, 4)]], {"equation": "ii->i"}),
        Sample([[CUBE]], {"equation": "abc->ca"}),
        Sample([[MATRIX, normal(2, 3)]], {"equation": "ab,c->cab"}, RUNTIMES),
    ],
    "aten::linalg_cross": [
        Sample([SPACE, normal(4, 2, 3, 4)], {"dim": 1}),
        Sample([normal(4, 2, 3), normal(5, 3)], {}, RUNTIMES),
    ],
    **{f"aten::{name}": TRIANGLES for name in ("triu", "tril")},
    "aten::trace": [Sample([MATRIX], {}, RUNTIMES), Sample([normal(0, 5, 2)], {}, RUNTIMES)],
    "aten::embedding": [
        Sample([Const(normal(0, 6, 3)), np.array([[0, 5], [2, 2]], np.int32)], {}, RUNTIMES),
        Sample([normal(0, 6, 3), np.array(4, np.int64)], {}, RUNTIMES),
    ],
    "aten::lstm": [*recurrent(4, 2), *recurrent(4, 2, projected=2)],
    "aten::gru": recurrent(3, 1),
    **{f"aten::{name}": recurrent(1, 1) for name in ("rnn_tanh", "rnn_relu")},
    "aten::scaled_dot_product_attention": [
        Sample([QUERY, KEY, VALUE, None], {}, RUNTIMES),
        Sample([QUERY, KEY, VALUE, normal(3, 3, 5)], {"scale": 0.5}, RUNTIMES),
        Sample([QUERY, KEY, VALUE, Const(np.tri(3, 5) > 0)], {}, RUNTIMES),
        *(Sample([QUERY, KEY, VALUE, mask], {}, RUNTIMES) for mask in (BLIND, Const(BLIND), HIDDEN)),
        Sample([QUERY, KEY, VALUE, None], {"is_causal": True}, RUNTIMES),
        Sample([QUERY, KEY[:, :2], VALUE[:, :2], None], {"enable_gqa": True}, RUNTIMES),
    ],
    **{
        f"aten::{name}": [Sample([X], {"dim": 1}), Sample([X], {"dim": -1})]
        for name in ("log_softmax", "softmin")
    },
    "aten::prod": PRODUCTS,
    "aten::logsumexp": REDUCTION,
    **{f"aten::{name}": [*PRODUCTS, *TRUTHS] for name in ("any", "all")},
    "aten::count_nonzero": [Sample([FEW], {"dim": [-1]}, RUNTIMES), Sample([FEW], {}, RUNTIMES)],
    **{f"aten::{name}": SPREAD for name in ("var", "std", "var_mean", "std_mean")},
    "aten::linalg_vector_norm": [
        *(Sample([CUBE], {"ord": ord, "dim": [1, 2]}) for ord in (1, 2, 3.5, np.inf, -np.inf)),
        Sample([CUBE], {"ord": 0, "dim": [1, 2]}, RUNTIMES),
        Sample([CUBE], {}, RUNTIMES),
        Sample([CUBE], {"dim": [-1], "keepdim": True}, RUNTIMES),
    ],
    "aten::cdist": [
        Sample([CUBE, normal(2, 3, 5)], {}, RUNTIMES),
        Sample([CUBE, normal(2, 2, 3, 5)], {"p": 1}, RUNTIMES),
    ],
    "aten::sort": ORDERED,
    "aten::argsort": ORDERED,
    "aten::topk": [
        Sample([TIES], {"k": 3}, RUNTIMES),
        Sample([TIES], {"k": 3, "largest": False}, RUNTIMES),
        Sample([CUBE], {"k": 2, "dim": 1, "sorted": False}, RUNTIMES),
    ],
    "aten::kthvalue": [
        Sample([TIES], {"k": 2}, RUNTIMES),
        Sample([CUBE], {"k": 4, "dim": 1, "keepdim": True}, RUNTIMES),
    ],
    "aten::median": [Sample([each.args[0]], each.attributes, RUNTIMES) for each in ONE_OF],
    **{f"aten::{name}": ONE_OF for name in ("max", "min")},
    **{f"aten::{name}": ALONG for name in ("cumsum", "cumprod", "logcumsumexp", "cummax", "cummin")},
    "aten::bucketize": [
        Sample([TIES, Const(np.array([1, 2, 3], np.float32))], {}, RUNTIMES),
        Sample([TIES, np.array([1, 2, 3], np.float32)], {"right": True}, RUNTIMES),
    ],
}
