"""tm::random_uniform and tm::random_normal: numbers of a generator, in float32.

All other random functions are computed from these two. ``stream`` numbers the calls of a model, so that each
draws numbers of its own. The reference draws from ``numpy.random.default_rng([seed, stream])``, with 0 for a
seed that is not given; a runtime draws from a generator of its own, so that only the distribution is equal.
"""

from __future__ import annotations

import math

import numpy as np

from tmconvert.ir.types import TensorType
from tmconvert.symbolics.op import Op, integer, integers
from tmconvert.symbolics.traits import DrawsRandom

FLOAT32 = np.dtype(np.float32)
# ONNX's seed is a float32, in which integers below this one are exact
_SEEDS = 1 << 24


def _result(size: list[int], stream: int, seed: int | None) -> TensorType:
    return TensorType(FLOAT32, tuple(size))


def _uniform_cdf(x: np.ndarray) -> np.ndarray:
    return np.clip(x, 0, 1)


def _normal_cdf(x: np.ndarray) -> np.ndarray:
    return np.array([math.erfc(-each / math.sqrt(2)) / 2 for each in x.tolist()])


_ARGUMENTS = [integers("size"), integer("stream"), integer("seed", None)]
uniform = Op(
    "tm::random_uniform", args=_ARGUMENTS, result=_result, traits=[DrawsRandom(_uniform_cdf, (0.0, 1.0))]
)
normal = Op(
    "tm::random_normal",
    args=_ARGUMENTS,
    result=_result,
    traits=[DrawsRandom(_normal_cdf, (-math.inf, math.inf))],
)
OPS = [uniform, normal]


def _generator(stream: int, seed: int | None) -> np.random.Generator:
    return np.random.default_rng([abs(seed or 0), stream])


@uniform.reference
def random_uniform_ref(size: list[int], stream: int, seed: int | None) -> np.ndarray:
    """Returns numbers that are uniformly distributed in [0, 1)."""
    return _generator(stream, seed).random(size, np.float32)


@normal.reference
def random_normal_ref(size: list[int], stream: int, seed: int | None) -> np.ndarray:
    """Returns numbers of the standard normal distribution."""
    return _generator(stream, seed).standard_normal(size, np.float32)


def _onnx(g, name, size, stream, seed):
    number = None if seed is None else float((seed * 1_000_003 + stream) % _SEEDS)
    return g.op(name, g.op("ConstantOfShape", g.ints(size), shape=size, dtype=FLOAT32), seed=number)


@uniform.onnx(since=9)  # ConstantOfShape
def random_uniform_onnx9(g, size, stream, seed):
    return _onnx(g, "RandomUniformLike", size, stream, seed)


normal.onnx(since=9)(lambda g, size, stream, seed: _onnx(g, "RandomNormalLike", size, stream, seed))


def _tflite(g, name, size, stream, seed):
    """The kernel draws its seed, too, where both are 0."""
    seeds = {} if seed is None else {"seed": seed, "seed2": stream | 1}
    return g.op(name, g.ints(size), shape=size, dtype=FLOAT32, **seeds)


uniform.tflite()(lambda g, size, stream, seed: _tflite(g, "RANDOM_UNIFORM", size, stream, seed))
normal.tflite()(lambda g, size, stream, seed: _tflite(g, "RANDOM_STANDARD_NORMAL", size, stream, seed))


for _op in OPS:
    _op.retire("onnx", 22)  # of which ONNX Runtime has no kernel
    _op.unsupported("caffe", "a Caffe net draws no numbers when it is run for inference")
