"""megengine.module.qat, megengine.module.quantized, fake quantization; scales that make no ties."""

import numpy as np

from .common import CUBE, MATRIX, SMALL, Call, Grid, Int8, Known, Part, call, numbers, rows

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
QAT = rows(__file__, "QAT", globals())
SCALED = {"act": (min_max(-40.0, 44.0), fake())}
WIDE = {"act": (min_max(-80.0, 88.0), fake())}
QUANTIZED = rows(__file__, "QUANTIZED", globals())


def known(*values):
    return Known(*values, dtype=np.float32)


OPDEF = rows(__file__, "OPDEF", globals())
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
FUNCTIONAL = rows(__file__, "FUNCTIONAL", globals())
APPLIED = "megengine.module.qat.module.QATModule._apply_fakequant_with_observer"

SAMPLES = {
    **{f"megengine.module.qat.{name}": calls for name, calls in QAT.items()},
    **{f"megengine.module.quantized.{name}": calls for name, calls in QUANTIZED.items()},
    **{f"megengine.functional.quantized.{name}": calls for name, calls in FUNCTIONAL.items()},
    **{f"opdef.{name}": calls for name, calls in OPDEF.items()},
    "opdef.BatchConvBias": [call(Q_IMAGES, Q_KERNELS, Q_BIAS, dtype=Int8(0.79), **CONVOLUTION)],
    APPLIED: [stub(act=act)(SMALL) for act in OBSERVERS[::5]],
}
