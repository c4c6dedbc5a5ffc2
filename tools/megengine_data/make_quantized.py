"""Writes the small quantization-aware and fixed-point models of the folder ``quantized``.

Runs with MegEngine 1.13 (Python 3.8), not with tmconvert:

    python make_quantized.py FOLDER [NAME...]

Each NAME.tm has a NAME.npz beside it: in0 and out0, and float0, what a quantization-aware model
computes with its fake quantization off.
"""

import sys
from functools import partial
from pathlib import Path

import megengine as mge
import megengine.functional as F
import megengine.module as M
import numpy as np
from megengine.core.tensor.dtype import QuantDtypeMeta
from megengine.module.qat import QATModule
from megengine.quantization import QConfig, quantize, quantize_qat
from megengine.quantization.fake_quant import LSQ, FakeQuantize
from megengine.quantization.observer import (
    ExponentialMovingAverageObserver,
    HistogramObserver,
    MinMaxObserver,
    Observer,
    SyncMinMaxObserver,
)
from megengine.quantization.utils import QuantMode, create_qparams
from megengine.traced_module import trace_module

ASYMMETRIC = QuantMode.ASYMMERTIC


class ByChannel(Observer):
    """An observer of the user's own: a scale for each output channel of a weight."""

    def __init__(self, dtype):
        super().__init__(dtype)
        self.scale = None

    def forward(self, x):
        axes = list(range(1, x.ndim))
        largest = np.abs(x.numpy()).max(axis=tuple(axes), keepdims=True)
        self.scale = mge.Tensor(largest.astype("float32") / 127)
        return x

    def get_qparams(self):
        return create_qparams(dtype_meta=self.dtype, scale=self.scale)


def config(weight, act, weight_dtype="qint8_narrow", act_dtype="qint8", fake=FakeQuantize):
    return QConfig(weight, act, partial(fake, dtype=weight_dtype), partial(fake, dtype=act_dtype))


WEIGHT = partial(MinMaxObserver, dtype="qint8_narrow")


class Means(M.Module):
    """Means of integers lie in the middle between two of them again and again."""

    def __init__(self):
        super().__init__()
        self.quant, self.dequant = M.QuantStub(), M.DequantStub()
        self.conv, self.after = M.ConvBnRelu2d(3, 4, 3, padding=1), M.Conv2d(4, 4, 1)

    def forward(self, x):
        x = F.avg_pool2d(self.conv(self.quant(x)), 2)
        return self.dequant(F.avg_pool2d(self.after(x), 2))


class Shared(M.Module):
    """One convolution for two inputs, an input that is taken quantized in two ways and as it is."""

    def __init__(self):
        super().__init__()
        self.quant, self.other, self.dequant = M.QuantStub(), M.QuantStub(), M.DequantStub()
        self.conv, self.add = M.ConvBn2d(3, 3, 3, padding=1), M.Elemwise("FUSE_ADD_RELU")

    def forward(self, x):
        y = self.conv(self.quant(x))
        y = self.add(y, self.conv(self.other(x)))
        return self.dequant(y) + x


class Chain(M.Module):
    def __init__(self):
        super().__init__()
        self.quant, self.dequant = M.QuantStub(), M.DequantStub()
        self.conv = M.ConvBnRelu2d(3, 4, 3, padding=1)
        self.wide = M.ConvRelu2d(4, 4, 3, groups=2)
        self.fc = M.Linear(4, 5)

    def forward(self, x):
        x = self.wide(self.conv(self.quant(x)))
        return self.dequant(self.fc(F.flatten(F.max_pool2d(x, 6), 1)))


class Turned(M.Module):
    """Transposed convolutions with dilation and groups; elements chosen by their sign."""

    def __init__(self):
        super().__init__()
        self.quant, self.dequant = M.QuantStub(), M.DequantStub()
        self.dilated = M.ConvTranspose2d(3, 4, 3, dilation=2)
        self.grouped = M.ConvTransposeRelu2d(4, 6, 2, stride=2, groups=2)
        self.side, self.chosen = M.Conv2d(4, 4, 1), M.Elemwise("SWITCH_GT0")

    def forward(self, x):
        x = self.dilated(self.quant(x))
        return self.dequant(self.grouped(self.chosen(self.side(x), x)))


class Again(M.Module):
    """One layer on integers and on a sum that no observer sees; channels by a list, a window of all rows."""

    def __init__(self):
        super().__init__()
        self.quant, self.dequant = M.QuantStub(), M.DequantStub()
        self.conv, self.mixed = M.ConvBnRelu2d(3, 4, 3, padding=1), M.Conv2d(4, 4, 1)

    def forward(self, x):
        x = self.conv(self.quant(x))[:, [2, 0, 1, 3]]
        x = self.mixed(x + self.mixed(x))
        return self.dequant(self.mixed(F.avg_pool2d(x, x.shape[2])))


class Between(M.Module):
    """Between two layers what no observer sees: averages, resizes, functions, sums, a gate."""

    def __init__(self):
        super().__init__()
        self.quant, self.dequant = M.QuantStub(), M.DequantStub()
        self.conv, self.side = M.ConvBnRelu2d(3, 4, 3, padding=1), M.Conv2d(4, 4, 1)
        self.gate, self.last = M.Conv2d(4, 4, 1), M.ConvRelu2d(16, 5, 1)

    def forward(self, x):
        x = self.conv(self.quant(x))
        pooled = F.avg_pool2d(x, 3, 1, 1)
        resized = F.vision.interpolate(F.adaptive_avg_pool2d(x, 2), scale_factor=4, mode="bilinear")
        gated = F.clip(x, 0.1, 2.0) * F.sigmoid(self.gate(F.mean(x, axis=[2, 3], keepdims=True)))
        added = F.hswish(self.side(x)) + 0.5 * x
        return self.dequant(self.last(F.concat([pooled, resized, gated, added], axis=1)))


class Sums(M.Module):
    """Operators of three steps, of which the last alone is observed."""

    def __init__(self):
        super().__init__()
        self.quant, self.dequant = M.QuantStub(), M.DequantStub()
        self.one, self.other = M.Conv2d(3, 4, 3), M.ConvRelu2d(3, 4, 3)
        self.curve, self.bend = M.Elemwise("FUSE_ADD_SIGMOID"), M.Elemwise("FUSE_ADD_H_SWISH")
        self.turn, self.both = M.Elemwise("FUSE_ADD_TANH"), M.Elemwise("FUSE_MUL_ADD3")

    def forward(self, x):
        x = self.quant(x)
        a, b = self.one(x), self.other(x)
        return self.dequant(self.both(self.curve(a, b), self.bend(a, b), self.turn(a, b)))


class Attention(M.Module):
    """Queries, keys and values of six places."""

    def __init__(self):
        super().__init__()
        self.quant, self.dequant = M.QuantStub(), M.DequantStub()
        self.conv = M.ConvBn2d(3, 8, 3, stride=3)
        self.query, self.key, self.value, self.out = (M.Linear(8, 8) for _ in range(4))

    def forward(self, x):
        x = F.transpose(F.flatten(self.conv(self.quant(x)), 2), (0, 2, 1))
        chances = F.softmax(F.matmul(self.query(x), self.key(x), transpose_b=True) / 2.8, axis=-1)
        return self.dequant(self.out(F.matmul(chances, self.value(x))))


class Angles(M.Module):
    def __init__(self):
        super().__init__()
        self.quant, self.dequant = M.QuantStub(), M.DequantStub()
        self.over, self.under = M.ConvRelu2d(3, 2, 1), M.ConvBn2d(3, 2, 1)
        self.angle = M.Elemwise("ATAN2")

    def forward(self, x):
        x = self.quant(x)
        return self.dequant(self.angle(self.over(x), self.under(x)))


class Own(QATModule):
    """A quantization-aware module of the user's own."""

    def __init__(self):
        super().__init__()
        self.weight = mge.Parameter(np.zeros((4, 3, 1, 1), "float32"))
        self.bias = mge.Parameter(np.zeros((1, 4, 1, 1), "float32"))

    def forward(self, x):
        weight = self.apply_quant_weight(self.weight)
        bias = self.apply_quant_bias(self.bias, x, weight)
        return self.apply_quant_activation(F.sigmoid(F.conv2d(x, weight, bias)))

    @classmethod
    def from_float_module(cls, module):
        raise NotImplementedError


class WithOwn(M.Module):
    def __init__(self):
        super().__init__()
        self.quant, self.own, self.conv = M.QuantStub(), Own(), M.Conv2d(4, 2, 1)

    def forward(self, x):
        return self.conv(self.own(self.quant(x)))


class Deep(M.Module):
    def __init__(self):
        super().__init__()
        self.quant, self.dequant = M.QuantStub(), M.DequantStub()
        self.conv = M.ConvBnRelu2d(3, 8, 3, padding=1, stride=2)
        self.each, self.add = M.ConvRelu2d(8, 8, 3, groups=8, padding=1), M.Elemwise("ADD")
        self.cat, self.mixed, self.fc = M.Concat(), M.Conv2d(16, 6, 1), M.Linear(6, 5)

    def forward(self, x):
        x = self.conv(self.quant(x))
        y = self.each(x)
        x = self.mixed(self.cat([self.add(x, y), F.max_pool2d(y, 3, 1, 1)], 1))
        return self.dequant(self.fc(F.flatten(F.avg_pool2d(x, 4), 1)))


def of_bits(weight, act, act_mode=QuantMode.SYMMERTIC, weight_mode=QuantMode.SYMMERTIC):
    observers = (
        partial(MinMaxObserver, dtype=dtype, mode=mode)
        for dtype, mode in ((weight, weight_mode), (act, act_mode))
    )
    return config(*observers, weight, act)


SIXTEEN = QuantDtypeMeta("qint16", None, "int16", -(2**15), 2**15 - 1, False)
UNSIGNED_SIXTEEN = QuantDtypeMeta("quint16", None, "uint16", 0, 2**16 - 1, True)
HISTOGRAM = partial(HistogramObserver, mode=ASYMMETRIC, dtype="quint8", bins=128)
AVERAGE = partial(ExponentialMovingAverageObserver, dtype="qint8")
EXTREMES = partial(MinMaxObserver, mode=ASYMMETRIC, dtype="quint8")
# name: (model, configuration, what is done to it)
MODELS = {
    "fixed_means": (Means, config(WEIGHT, AVERAGE), "quantize"),
    "qat_shared": (Shared, config(WEIGHT, AVERAGE), ""),
    "qat_observing": (Chain, config(partial(SyncMinMaxObserver, dtype="qint4"), AVERAGE, "qint4"), "observe"),
    "qat_histogram": (Chain, config(WEIGHT, HISTOGRAM, act_dtype="quint8"), ""),
    "qat_lsq": (Chain, config(WEIGHT, EXTREMES, act_dtype="quint8"), "lsq"),
    "qat_by_channel": (Chain, config(partial(ByChannel, "qint8"), EXTREMES, "qint8", "quint8"), ""),
    "qat_turned": (Turned, config(WEIGHT, EXTREMES, act_dtype="quint8"), ""),
    "qat_again": (Again, config(WEIGHT, EXTREMES, act_dtype="quint8"), ""),
    "qat_attention": (Attention, config(WEIGHT, AVERAGE), ""),
    "qat_between": (Between, config(WEIGHT, EXTREMES, act_dtype="quint8"), ""),
    "qat_sums": (Sums, config(WEIGHT, AVERAGE), ""),
    "qat_angles": (Angles, config(WEIGHT, EXTREMES, act_dtype="quint8"), ""),
    "qat_own": (WithOwn, config(WEIGHT, AVERAGE), ""),
    # other bits: types of the user's own, and those that MegEngine has no kernels for
    "bits/act_16": (Chain, of_bits("qint8_narrow", SIXTEEN), ""),
    "bits/act_u16": (Chain, of_bits("qint8_narrow", UNSIGNED_SIXTEEN, ASYMMETRIC), ""),
    "bits/weight_16": (Chain, of_bits(SIXTEEN, SIXTEEN), ""),
    "bits/weight_4": (Chain, of_bits("qint4", "qint8"), ""),
    "bits/weight_u4": (Chain, of_bits("quint4", "quint8", ASYMMETRIC, ASYMMETRIC), ""),
    "bits/all_4": (Chain, of_bits("qint4", "quint4", ASYMMETRIC), ""),
    "bits/weight_1": (Deep, of_bits("qint1", "qint8"), ""),
}


def parts(module):
    """Every module below, those that builtin ones hold included."""
    found, waiting = {}, [module]
    while waiting:
        part = waiting.pop()
        if id(part) not in found:
            found[id(part)] = part
            waiting += [value for value in vars(part).values() if isinstance(value, M.Module)]
    return list(found.values())


def switch(module, kind, enabled):
    for part in parts(module):
        if isinstance(part, kind):
            part.enabled = enabled


def prepared(name, rng, examples):
    build, qconfig, step = MODELS[name]
    module = build()
    quantize_qat(module, qconfig)
    for part in parts(module):
        if isinstance(part, QATModule):
            part.set_qconfig(qconfig)
    for path, tensor in [*module.named_parameters(), *module.named_buffers()]:
        if "observer" not in path and "fake_quant" not in path:
            value = rng.standard_normal(tensor.shape).astype("float32")
            tensor[...] = mge.Tensor(np.abs(value) + 0.5 if path.endswith("var") else value * 0.4)
    module.eval()
    switch(module, Observer, True)
    switch(module, FakeQuantize, False)
    for example in examples:
        module(mge.Tensor(example))
    switch(module, FakeQuantize, True)
    switch(module, Observer, False)
    if step == "observe":  # tracing compares two runs, which must not differ: weights only
        switch(module, SyncMinMaxObserver, True)
    if step == "lsq":
        for part in parts(module):
            for kind in ("act", "weight"):
                observer = getattr(part, f"{kind}_observer", None)
                if observer is not None:
                    fake = LSQ(dtype=observer.dtype)
                    fake.set_qparams(observer.get_qparams())
                    setattr(part, f"{kind}_fake_quant", fake)
                    setattr(part, f"{kind}_observer", None)
    if step == "quantize":
        quantize(module)
        module.eval()
    return module


def make(folder, name):
    rng = np.random.RandomState(sum(map(ord, name)))
    examples = [rng.standard_normal((2, 3, 8, 8)).astype("float32") for _ in range(3)]
    module = prepared(name, rng, examples[:2])
    path = str(folder / (name + ".tm"))
    mge.save(trace_module(module, mge.Tensor(examples[0])), path)
    x = mge.Tensor(examples[2])
    arrays = {"in0": examples[2], "out0": mge.load(path)(x).numpy()}
    if name.startswith("qat"):
        plain = mge.load(path)
        for part in parts(plain):
            if hasattr(part, "enabled"):
                part.enabled = False
        arrays["float0"] = plain(x).numpy()
    np.savez_compressed(str(folder / (name + ".npz")), **arrays)


if __name__ == "__main__":
    mge.config.async_level = 0
    for model in sys.argv[2:] or MODELS:
        make(Path(sys.argv[1]), model)
