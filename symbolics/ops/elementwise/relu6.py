"""aten::relu6, min(max(x, 0), 6)."""

from __future__ import annotations

import numpy as np

from tmconvert.symbolics.layouts import ANY
from tmconvert.symbolics.op import FLOATS, Op, Tensor
from tmconvert.symbolics.results import same_as
from tmconvert.symbolics.traits import Clamp

relu6 = Op("aten::relu6", args=[Tensor("x", FLOATS)], result=same_as("x"), layout=ANY, traits=[Clamp(0, 6)])


relu6.reference(lambda x: np.clip(x, 0, 6))
relu6.onnx(since=11)(lambda g, x: g.op("Clip", x, g.const(0), g.const(6)))  # Clip takes its bounds as inputs
relu6.onnx(since=6)(lambda g, x: g.op("Clip", x, min=0.0, max=6.0))  # Clip takes its bounds as attributes
relu6.tflite()(lambda g, x: g.op("RELU6", x))
relu6.caffe("opencv", "ascend", "mnn", "ncnn")(lambda g, x: g.op("ReLU6", x))


@relu6.caffe()  # 6 - relu(6 - relu(x)): Clip is BVLC's, ReLU6 a fork's, and no runtime has both
def relu6_caffe(g, x):
    above = g.op("ReLU", g.op("Power", g.op("ReLU", x), scale=-1.0, shift=6.0))
    return g.op("Power", above, scale=-1.0, shift=6.0)
