"""Observers and fake quants with values that nothing can be quantized with: each is refused by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tmconvert.errors import Refusal
from tmconvert.frontends.megengine.vocabulary import VOCABULARY
from tmconvert.ir import CallMethod, ModuleNode, TracedModule
from tmconvert.ir.emitter import EagerEmitter
from tmconvert.symbolics.registry import catalogue

INT8 = {"name": "qint8", "np_dtype_str": "int8", "qmin": -128, "qmax": 127}
UINT8 = {"name": "quint8", "np_dtype_str": "uint8", "qmin": 0, "qmax": 255}
X = np.arange(24, dtype=np.float32).reshape(1, 4, 2, 3)


def module(class_name: str, name: str = "stub", **contents: Any) -> TracedModule:
    made = TracedModule(name, f"megengine.{class_name}")
    for key, value in contents.items():
        if isinstance(value, TracedModule):
            made.children[key] = value
        elif isinstance(value, np.ndarray):
            made.tensors[key] = value
        else:
            made.attributes[key] = value
    return made


ONE_AXIS = "it must have one element, or one per channel along a single axis"


def observer(kind: str = "MinMaxObserver", low: float = -1, high: float = 1, **others: Any) -> TracedModule:
    given = {"dtype": INT8, "mode": "symmetric", "enabled": False, "scale_limit": 1e-5, **others}
    extremes = {"min_val": np.float32(low), "max_val": np.float32(high)}
    tensors = {key: np.asarray(value) for key, value in extremes.items()}
    bounds = {"qmin": given["dtype"]["qmin"], "qmax": given["dtype"]["qmax"]}
    return module(f"quantization.observer.{kind}", "stub.act_observer", **tensors, **bounds, **given)


def fake(kind: str = "FakeQuantize", package: str = "quantization", **others: Any) -> TracedModule:
    contents = {"dtype": INT8, "enabled": True, **others}
    return module(f"{package}.fake_quant.{kind}", "stub.act_fake_quant", **contents)


def held(scale: Any, zero_point: Any = None, mode: str = "symmetric", dtype: Any = INT8) -> TracedModule:
    zero = None if zero_point is None else np.asarray(zero_point, np.float32)
    record = {"mode": mode, "dtype_meta": dtype, "scale": np.asarray(scale, np.float32), "zero_point": zero}
    return fake(package="traced_module", qparams=record, dtype=dtype)


def call(called: TracedModule, *args: np.ndarray) -> Any:
    expr = CallMethod("__call__", (ModuleNode("m", called.class_name),))
    return VOCABULARY.apply(EagerEmitter(catalogue()), expr, (called, *args), {})


def reason(called: TracedModule, *args: np.ndarray) -> str:
    with pytest.raises(Refusal) as caught:
        call(called, *(args or (X,)))
    return caught.value.reason


def stub(**parts: TracedModule) -> TracedModule:
    return module("module.qat.quant_dequant.QuantStub", **parts)


def stub_of(act_observer: TracedModule) -> TracedModule:
    return stub(act_observer=act_observer, act_fake_quant=fake(dtype=act_observer.attributes["dtype"]))


NOT_POSITIVE = "a scale of the tensor is not positive and finite"
CASES = {
    "nan": (stub_of(observer(high=float("nan"))), NOT_POSITIVE),
    "infinite": (stub_of(observer(high=float("inf"))), NOT_POSITIVE),
    "zero": (stub(act_fake_quant=held(0.0)), NOT_POSITIVE),
    "negative": (stub(act_fake_quant=held(-0.5)), NOT_POSITIVE),
    "overflow": (stub(act_fake_quant=fake("TQT", scale=np.asarray(np.float32(300)))), NOT_POSITIVE),
    "underflow": (stub(act_fake_quant=fake("TQT", scale=np.asarray(np.float32(-300)))), NOT_POSITIVE),
    "channels": (stub(act_fake_quant=held(np.ones((1, 3, 1, 1)))), "the tensor has 3 scales for 4 channels"),
    "two axes": (
        stub(act_fake_quant=held(np.ones((1, 4, 2, 1)))),
        f"the scale has shape [1, 4, 2, 1]; {ONE_AXIS}",
    ),
    "many axes": (
        stub(act_fake_quant=held(np.ones((4, 1, 1, 1, 1)))),
        f"the scale has shape [4, 1, 1, 1, 1]; {ONE_AXIS}",
    ),
    "fraction": (
        stub(act_fake_quant=held(0.5, 2.5, "asymmetric", UINT8)),
        "a zero point is not an integer",
    ),
    "far zero point": (
        stub(act_fake_quant=held(0.5, 300.0, "asymmetric", UINT8)),
        "a zero point of the tensor is outside of the integer range",
    ),
    "no parameters": (stub(act_fake_quant=fake()), "stub.act_fake_quant has no quantization parameters"),
    "passive and empty": (
        stub_of(observer("PassiveObserver", qparams=None)),
        "stub.act_fake_quant has no quantization parameters",
    ),
    "two dtypes": (
        stub(act_observer=observer(dtype=UINT8), act_fake_quant=fake()),
        "the fake quant has dtype int8, but its observer has uint8",
    ),
    "unknown": (
        stub_of(observer("EntropyObserver")),
        "megengine.quantization.observer.EntropyObserver is not an observer that tmconvert knows",
    ),
    "bins": (
        stub_of(observer("HistogramObserver", histogram=np.ones(8, np.float32), bins=9, dst_nbins=256)),
        "the histogram has 8 bins, but the observer has bins=9",
    ),
    "no statistics": (
        stub_of(module("quantization.observer.MinMaxObserver", "o", dtype=INT8, enabled=False)),
        "o has no min_val",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_strange_parameters(case: str) -> None:
    called, wanted = CASES[case]
    assert reason(called).removeprefix(f"{called.class_name}: ") == wanted


def test_float16_is_refused_as_by_megengine() -> None:
    called = stub(act_fake_quant=held(0.5))
    assert reason(called, X.astype(np.float16)) == "MegEngine quantizes only float32, not float16"


def test_a_quantized_module_needs_a_quantized_input() -> None:
    called = module("module.quantized.linear.Linear", "fc", weight=np.ones((2, 3), np.float32))
    called.tensors["bias"] = np.zeros(2, np.float32)
    assert reason(called) == "fc needs an input and a weight that are int8"


def test_an_output_dtype_that_is_none() -> None:
    called = module("module.quantized.quant_dequant.QuantStub", output_dtype=np.dtype("int8"))
    assert reason(called) == "int8 is not a quantized dtype"


def test_a_batch_norm_without_statistics() -> None:
    conv = module("module.conv.Conv2d", "c.conv", weight=np.ones((2, 4, 1, 1), np.float32))
    called = module("module.qat.conv_bn.ConvBn2d", "c", conv=conv, bn=module("module.batchnorm.BatchNorm2d"))
    assert reason(called) == "a batch norm without statistics cannot be folded"
