"""megengine.module.qat, megengine.module.quantized, fake quantization; scales that make no ties."""

import numpy as np

from .common import CUBE, MATRIX, SMALL, Call, Grid, Int8, Known, Part, call, numbers

OBSERVER = "quantization.observer."
FAKE = "quantization.fake_quant."


def min_max(low, high, dtype="qint8", mode="symmetric", kind="MinMaxObserver", **kwargs):
    values = {"min_val": low, "max_val": high}
    return Part(OBSERVER + kind, mode, values=values, dtype=dtype, **kwargs)


def fake(dtype="qint8", **values):
    return Part(FAKE + "FakeQuantize", values=values, dtype=dtype)


def held(dtype, mode, scale, zero=None):
    return Part("traced_module.fake_quant.FakeQuantize", mode, (scale, zero), dtype=dtype)


ACT = (min_max(-3.7, 9.1), fake())
WEIGHT = (min_max(-1.3, 1.9, "qint8_narrow"), fake("qint8_narrow"))


def parts(act=ACT, weight=WEIGHT):
    found = {"act_observer": act[0], "act_fake_quant": act[1]}
    if weight is not None:
        found.update(weight_observer=weight[0], weight_fake_quant=weight[1])
    return found


def trained(*args, act=ACT, weight=WEIGHT, **kwargs):
    """``trained(...)(x)`` is a call of a QAT module with these (observer, fake quant) on it."""
    return lambda *inputs: Call(inputs, {}, (args, kwargs), parts(act, weight))


def stub(*args, act=ACT, **kwargs):
    return trained(*args, act=act, weight=None, **kwargs)


LINE = numbers(2, 4)
Q_SMALL, Q_LINE, Q_MATRIX, Q_CUBE = (Grid(array, 0.0517) for array in (SMALL, LINE, MATRIX, CUBE))
BINS = [float(round(900 / (1 + abs(bin - 20)) ** 2)) for bin in range(64)]
STEPS = np.linspace(0.009, 0.021, 6, dtype=np.float32)

OBSERVERS = [
    (min_max(-2.3, 1.7), fake()),
    (min_max(0.5, 4.7, kind="SyncMinMaxObserver"), fake()),
    (min_max(-4.1, -0.2, kind="ExponentialMovingAverageObserver"), fake()),
    (min_max(-2.9, 3.3, kind="SyncExponentialMovingAverageObserver"), fake()),
    (min_max(-1.9, 5.3, "quint8", "asymmetric"), fake("quint8")),
    (min_max(0.4, 5.3, "quint8", "asymmetric"), fake("quint8")),
    (min_max(-5.3, -0.7, "quint8", "asymmetric"), fake("quint8")),
    (min_max(-1.9, 5.3, "qint8", "asymmetric"), fake("qint8")),
    (min_max(0.0, 0.0), fake()),
    (min_max(-2.3, 1.7, "qint8_narrow"), fake("qint8_narrow")),
    *((min_max(-2.3, 1.7, dtype), fake(dtype)) for dtype in ("qint4", "qint2", "qint1", "qint32")),
    *((min_max(-2.3, 1.7, dtype, "asymmetric"), fake(dtype)) for dtype in ("quint4", "quint2")),
    (Part(OBSERVER + "PassiveObserver", "symmetric", (0.043, None), dtype="qint8"), fake()),
    (Part(OBSERVER + "PassiveObserver", "asymmetric", (0.043, 77.0), dtype="quint8"), fake("quint8")),
    (
        Part(
            OBSERVER + "HistogramObserver",
            "symmetric",
            values={"min_val": -2.7, "max_val": 5.9, "histogram": BINS},
            bins=64,
        ),
        fake(),
    ),
    (
        Part(
            OBSERVER + "HistogramObserver",
            "asymmetric",
            values={"min_val": -2.7, "max_val": 5.9, "histogram": BINS[::-1]},
            bins=64,
            dtype="quint8",
        ),
        fake("quint8"),
    ),
    (None, Part(FAKE + "TQT", values={"scale": -4.37}, dtype="qint8")),
    (min_max(-1.0, 1.0), Part(FAKE + "TQT", values={"scale": -3.61}, dtype="qint8")),
    (None, Part(FAKE + "LSQ", "symmetric", (0.0371, None), {"step_size": -0.0413}, dtype="qint8")),
    (None, Part(FAKE + "LSQ", "asymmetric", (0.0371, 31.0), dtype="quint8")),
    (None, held("qint8", "symmetric", 0.0333)),
    (None, held("quint8", "asymmetric", 0.0333, 97.0)),
    (min_max(-2.3, 1.7), None),
    (min_max(-2.3, 1.7), fake(enabled=False)),
    (None, fake(enabled=False)),
    (None, None),
]
WEIGHTS = [
    (min_max(-1.3, 1.9), None),
    (None, None),
    (min_max(-1.3, 1.9, "qint4"), fake("qint4")),
    (min_max(-1.3, 1.9, "quint8", "asymmetric"), fake("quint8")),
    (None, Part(FAKE + "TQT", values={"scale": -6.3}, dtype="qint8_narrow")),
    (None, Part(FAKE + "LSQ", "symmetric", (0.0143, None), dtype="qint8_narrow")),
]
PER_CHANNEL = (None, held("qint8", "symmetric", STEPS.reshape(6, 1, 1, 1)))
GROUPED = (None, held("qint8", "symmetric", STEPS.reshape(2, 3, 1, 1, 1)))
DEPTHWISE = (None, held("qint8", "symmetric", STEPS[:4].reshape(4, 1, 1, 1, 1)))
CONVOLUTIONS = [
    (4, 3, 3),
    (4, 6, 3, 1, 1, 1, 2),
    (4, 4, (2, 3), (2, 1), (1, 0), 1, 4, False),
]


def convolutions(x):
    return [trained(*each)(x) for each in CONVOLUTIONS]


def transposed(x):
    """Kernel, stride, padding, output_padding, dilation, groups, bias."""
    return [trained(*each)(x) for each in TRANSPOSED]


TRANSPOSED = [
    (4, 3, 3),
    (4, 6, (3, 2), (2, 1), (1, 0), 0, 1, 2),
    (4, 3, 3, 2, 1, 1),
    (4, 4, 3, 2, 1, 0, (1, 2), 4, False),
]
QAT = {
    "conv.Conv2d": [
        *convolutions(Q_SMALL),
        *(trained(4, 3, 3, act=act)(Q_SMALL) for act in OBSERVERS if act[1] is None or act[0] is None),
        *(trained(4, 3, 3, weight=weight)(Q_SMALL) for weight in WEIGHTS),
        trained(4, 6, 3, weight=PER_CHANNEL, bias=False)(Q_SMALL),
        trained(4, 6, 3, weight=PER_CHANNEL)(SMALL),
        trained(4, 6, 3, groups=2, weight=GROUPED)(SMALL),
        trained(4, 4, 3, groups=4, weight=DEPTHWISE)(SMALL),
        trained(4, 3, 3, padding=(1, 2), padding_mode="reflect")(Q_SMALL),
        trained(4, 3, 3)(SMALL),
    ],
    "conv.ConvRelu2d": convolutions(Q_SMALL),
    "conv_bn.ConvBn2d": [
        *convolutions(Q_SMALL),
        trained(4, 3, 3, eps=0.5)(SMALL),
        trained(4, 3, 3, affine=False)(Q_SMALL),
    ],
    "conv_bn.ConvBnRelu2d": convolutions(Q_SMALL),
    "conv.ConvTranspose2d": [
        *transposed(Q_SMALL),
        trained(4, 6, 3, weight=(None, held("qint8", "symmetric", STEPS.reshape(1, 6, 1, 1))))(SMALL),
    ],
    "conv.ConvTransposeRelu2d": transposed(Q_SMALL),
    "conv_transpose_bn.ConvTransposeBn2d": [
        *transposed(Q_SMALL),
        trained(4, 3, 3, affine=False, eps=0.5)(SMALL),
    ],
    "conv_transpose_bn.ConvTransposeBnRelu2d": transposed(Q_SMALL),
    "batch_matmul_activation.BatchMatMulActivation": [
        trained(2, 3, 4)(Grid(CUBE, 0.0517)),
        trained(2, 3, 5, False, "relu")(CUBE),
    ],
    "linear.Linear": [
        trained(4, 3)(Q_LINE),
        trained(4, 3, bias=False)(LINE),
        trained(4, 3)(Grid(numbers(2, 3, 4), 0.0517)),
        trained(4, 3, act=(min_max(-2.9, 3.3), None))(Q_LINE),
        trained(4, 6, weight=(None, held("qint8", "symmetric", STEPS.reshape(6, 1))), bias=False)(Q_LINE),
    ],
    "linear.LinearRelu": [trained(4, 3)(Q_LINE)],
    "linear_bn.LinearBn1d": [trained(4, 3)(Q_LINE), trained(4, 3, affine=False)(LINE)],
    "linear_bn.LinearBnRelu1d": [trained(4, 3)(Q_LINE), trained(4, 3, bias=True, eps=0.5)(Q_LINE)],
    "quant_dequant.QuantStub": [
        *(stub(act=act)(SMALL) for act in OBSERVERS),
        stub(act=(None, held("qint8", "symmetric", np.linspace(0.01, 0.04, 4).reshape(1, 4, 1, 1))))(SMALL),
    ],
    "quant_dequant.DequantStub": [stub(act=(None, None))(Q_SMALL)],
    "elemwise.Elemwise": [
        stub("ADD")(Q_MATRIX, MATRIX),
        stub("RELU")(Q_MATRIX),
        stub("SIGMOID", act=(min_max(-0.1, 1.3), fake()))(MATRIX),
        stub("FUSE_ADD_RELU")(Q_MATRIX, Grid(MATRIX, 0.31)),
        stub("MUL", act=OBSERVERS[4])(MATRIX, MATRIX),
    ],
    "concat.Concat": [stub()([Q_CUBE, CUBE]), stub()([CUBE, Q_CUBE], -1), stub()([Q_CUBE])],
}
SCALED = {"act": (min_max(-40.0, 44.0), fake())}
WIDE = {"act": (min_max(-80.0, 88.0), fake())}
QUANTIZED = {
    "conv.ConvTranspose2d": [
        trained(4, 3, 3, bias=False, **WIDE)(Q_SMALL),
        trained(4, 6, (3, 2), (2, 1), (1, 0), bias=False, **WIDE)(Q_SMALL),
    ],
    "batch_matmul_activation.BatchMatMulActivation": [
        trained(2, 3, 4, **SCALED)(Grid(CUBE, 0.0517)),
        trained(2, 3, 5, False, **SCALED)(Grid(CUBE, 0.0517)),
    ],
    "conv.Conv2d": [
        trained(4, 3, 3, **SCALED)(Q_SMALL),
        trained(4, 6, 3, 1, 1, 1, 2, **SCALED)(Q_SMALL),
        trained(4, 4, (2, 3), (2, 1), (1, 0), 1, 4, False, **SCALED)(Q_SMALL),
        trained(4, 3, 3, padding=(1, 2), padding_mode="reflect", **SCALED)(Q_SMALL),
    ],
    "conv.ConvRelu2d": [trained(*each, **SCALED)(Q_SMALL) for each in CONVOLUTIONS],
    "conv_bn.ConvBn2d": [trained(*each, **SCALED)(Q_SMALL) for each in CONVOLUTIONS],
    "conv_bn.ConvBnRelu2d": [trained(*each, **SCALED)(Q_SMALL) for each in CONVOLUTIONS],
    "linear.Linear": [trained(4, 3, **SCALED)(Q_LINE), trained(4, 3, bias=False, **SCALED)(Q_LINE)],
    "linear.LinearRelu": [trained(4, 3, **SCALED)(Q_LINE)],
    "linear_bn.LinearBn1d": [trained(4, 3, **SCALED)(Q_LINE)],
    "linear_bn.LinearBnRelu1d": [trained(4, 3, **SCALED)(Q_LINE)],
    "quant_dequant.QuantStub": [
        stub()(SMALL),
        stub(act=(min_max(-7.1, 6.3, "quint8", "asymmetric"), fake("quint8")))(SMALL),
    ],
    "quant_dequant.DequantStub": [stub(act=(None, None))(Q_SMALL)],
    "elemwise.Elemwise": [
        stub("ADD", **SCALED)(Q_MATRIX, Grid(MATRIX, 0.31)),
        stub("MUL", **SCALED)(Q_MATRIX, Q_MATRIX),
        stub("RELU", **SCALED)(Q_MATRIX),
        stub("SIGMOID", **SCALED)(Q_MATRIX),
        stub("TANH", **SCALED)(Q_MATRIX),
        stub("FUSE_ADD_RELU", **SCALED)(Q_MATRIX, Grid(MATRIX, 0.31)),
        stub("FUSE_ADD_SIGMOID", **SCALED)(Q_MATRIX, Q_MATRIX),
        stub("FUSE_MUL_ADD3", **SCALED)(Q_MATRIX, Q_MATRIX, Grid(MATRIX, 0.31)),
    ],
    "concat.Concat": [stub(**SCALED)([Q_CUBE, Grid(CUBE, 0.31)]), stub(**SCALED)([Q_CUBE, Q_CUBE], -1)],
}


def known(*values):
    return Known(*values, dtype=np.float32)


OPDEF = {
    "FakeQuant": [
        call(SMALL, known(0.0371), known(0), qmin=-128, qmax=127),
        call(SMALL, known(0.0371), known(41), qmin=0, qmax=255),
        call(MATRIX, known(0.0000371), known(0), qmin=-(2**31), qmax=2**31 - 1),
    ],
    "TQT": [call(SMALL, known(-4.1), qmin=-127, qmax=127)],
    "LSQ": [
        call(SMALL, known(0.0371), known(0), known(1), qmin=-128, qmax=127),
        call(SMALL, known(0.0371), known(41), known(1), qmin=0, qmax=255),
    ],
}
Q_BIAS = Grid(numbers(1, 3, 1, 1), 0.0517 * 0.021, "qint32")
Q_WEIGHT = Grid(numbers(3, 4, 3, 3) / 4, 0.021)
Q_IMAGES = Grid(numbers(2, 4, 5, 6), 0.0517)
Q_KERNELS = Grid(numbers(2, 3, 4, 3, 3) / 4, 0.021)
CONVOLUTION = {
    **{f"{name}_{axis}": 1 for name in ("stride", "dilate") for axis in "hw"},
    "pad_h": 1,
    "pad_w": 0,
    "sparse": "DENSE",
    "mode": "CROSS_CORRELATION",
    "nonlineMode": "RELU",
}
FUNCTIONAL = {
    "conv_bias_activation": [
        call(Q_SMALL, Q_WEIGHT, Q_BIAS, Int8(0.79)),
        call(Q_SMALL, Q_WEIGHT, Q_BIAS, Int8(0.79), 2, (1, 0), nonlinear_mode="relu"),
    ],
    "batch_conv_bias_activation": [
        call(Q_IMAGES, Q_KERNELS, Q_BIAS, Int8(0.79)),
        call(Q_IMAGES, Q_KERNELS, Q_BIAS, Int8(0.79), 2, (1, 0), nonlinear_mode="relu"),
    ],
    "conv_transpose2d": [
        call(Q_SMALL, Grid(numbers(4, 3, 3, 3) / 4, 0.021), None, Int8(0.79)),
        call(Q_SMALL, Grid(numbers(4, 3, 3, 2) / 4, 0.021), None, Int8(0.79), (2, 1), (1, 0)),
    ],
}
APPLIED = "megengine.module.qat.module.QATModule._apply_fakequant_with_observer"

SAMPLES = {
    **{f"megengine.module.qat.{name}": calls for name, calls in QAT.items()},
    **{f"megengine.module.quantized.{name}": calls for name, calls in QUANTIZED.items()},
    **{f"megengine.functional.quantized.{name}": calls for name, calls in FUNCTIONAL.items()},
    **{f"opdef.{name}": calls for name, calls in OPDEF.items()},
    "opdef.BatchConvBias": [call(Q_IMAGES, Q_KERNELS, Q_BIAS, dtype=Int8(0.79), **CONVOLUTION)],
    APPLIED: [stub(act=act)(SMALL) for act in OBSERVERS[::5]],
}
