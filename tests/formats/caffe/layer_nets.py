"""Nets of one Caffe layer each, which between them have every attribute of every layer with a definition.

``tools/record_caffe_outputs.py`` records what OpenCV and MNN compute of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from tests.frontends.caffe.nets import Shape, written
from tests.targets.caffe.nets import layer, text_of
from tmconvert.formats.caffe.layers import LAYERS
from tmconvert.verification.runtime import Runtime

IMAGE: Shape = (2, 4, 7, 6)
LINE, VOLUME = (2, 4, 9), (1, 4, 3, 4, 5)
SEQUENCE, MARKS = (4, 2, 3), np.array([[0, 1], [1, 1], [1, 0], [1, 1]], np.float32)
TIES = np.array([[[1, 3, 3, 2]], [[5, 5, 0, 5]]], np.float32)
ROIS = np.array([[0, 0, 0, 5, 6], [1, 1, 2, 4, 4]], np.float32)
MEAN, VARIANCE = np.float32([0.5, -1, 0.25, 0]), np.float32([1, 0.25, 3, 0.5])
VARIANCES = "variance: 0.1 variance: 0.1 variance: 0.2 variance: 0.2"


@dataclass(frozen=True)
class LayerNet:
    """A net of one layer; blobs and inputs that are shapes have random elements.

    ``outputs`` are those of its tops ``y0``, ``y1``, ... that are computed. The layer is called ``y0``, since
    runtimes look up results by either name.
    """

    kind: str
    attributes: str = ""
    blobs: Sequence[Shape | np.ndarray] = ()
    inputs: Sequence[Shape | np.ndarray] = (IMAGE,)
    tops: str = "y0"
    outputs: str = ""

    @property
    def name(self) -> str:
        """Returns ``Concat axis: 2 of 2x4x7x6 2x4x7x6``, which is unique."""
        shapes = " ".join("x".join(map(str, array.shape)) for array in self.feeds.values())
        tops = f"to {self.tops}" if self.tops != "y0" else ""
        return " ".join(filter(None, [self.kind, self.attributes, "of", shapes, tops]))

    @property
    def feeds(self) -> dict[str, np.ndarray]:
        return {f"x{number}": array for number, array in enumerate(_arrays(self.inputs, 3))}

    @property
    def weights(self) -> list[np.ndarray]:
        return _arrays(self.blobs, 0)

    @property
    def text(self) -> str:
        field = LAYERS[self.kind].parameters
        parameters = f"{field} {{ {self.attributes} }}" if self.attributes else ""
        return text_of(self.feeds, layer(self.kind, parameters, " ".join(self.feeds), self.tops))

    def written(self, folder: Path) -> list[Path]:
        """Writes the net to a folder and returns its two files."""
        path = written(folder, self.text, {"y0": self.weights} if self.blobs else {})
        return [path, path.with_suffix(".caffemodel")]

    def run(self, runtime: Runtime, shapes: Sequence[Shape] | None = None) -> list[np.ndarray]:
        """Returns the outputs that a runtime computes of the net, which it reads from files."""
        with TemporaryDirectory() as folder:
            names = (self.outputs or self.tops).split()
            return runtime.run(self.written(Path(folder)), self.feeds, names, shapes=shapes)


def _arrays(given: Sequence[Shape | np.ndarray], seed: int) -> list[np.ndarray]:
    """Returns random multiples of 1/64 from -1 to 2, which are equal in all releases of NumPy."""
    random = np.random.RandomState(seed)
    return [
        each if isinstance(each, np.ndarray) else (random.randint(-64, 129, each) / 64).astype(np.float32)
        for each in given
    ]


def each(kind: str, *attributes: str, **facts: Sequence[Shape | np.ndarray]) -> list[LayerNet]:
    """Returns a net for each of these attributes."""
    return [LayerNet(kind, text, **facts) for text in attributes]


def conv(attributes: str, *blobs: Shape, kind: str = "Convolution", **facts: object) -> LayerNet:
    return LayerNet(kind, attributes, blobs, **facts)


def transposed(attributes: str, *blobs: Shape, **facts: object) -> LayerNet:
    return conv(attributes, *blobs, kind="Deconvolution", **facts)


def recurrent(kind: str, size: int, states: int, *blobs: Shape) -> list[LayerNet]:
    """Returns nets without and with a constant input, and with the hidden states as bottoms and tops."""
    first, rest = blobs[:2], blobs[2:]
    attributes, hidden = f"num_output: {size}", [(1, 2, size)] * states
    return [
        LayerNet(kind, attributes, blobs, [SEQUENCE, MARKS]),
        LayerNet(kind, attributes, [*first, (first[0][0], 6), *rest], [SEQUENCE, MARKS, (2, 6)]),
        LayerNet(
            kind,
            f"{attributes} expose_hidden: true",
            blobs,
            [SEQUENCE, MARKS, *hidden],
            "y0 y1 y2"[: 2 + 3 * states],
        ),
    ]


_NETS = [
    # ---- convolutions
    conv("num_output: 6 kernel_size: 3", (6, 4, 3, 3), (6,)),
    conv("num_output: 6 kernel_size: 3 pad: 1 stride: 2 dilation: 2 bias_term: false", (6, 4, 3, 3)),
    conv("num_output: 6 kernel_size: 3 kernel_size: 2 dilation: 2 dilation: 3", (6, 4, 3, 2), (6,)),
    conv(
        "num_output: 6 kernel_h: 3 kernel_w: 2 pad_h: 1 pad_w: 0 stride_h: 1 stride_w: 2 group: 2",
        (6, 2, 3, 2),
        (6,),
    ),
    conv("num_output: 6 kernel_size: 3 kernel_size: 2", (6, 4, 3, 2), (1, 1, 1, 6)),
    conv("num_output: 4 kernel_size: 3 group: 4", (4, 1, 3, 3), (4,)),
    conv("num_output: 6 kernel_size: 3 group: 2 stride: 2 pad: 1", (6, 2, 3), (6,), inputs=[LINE]),
    conv(
        "num_output: 6 kernel_size: 2 kernel_size: 2 kernel_size: 2 stride: 1 stride: 1 stride: 1 pad: 0 "
        "pad: 0 pad: 0 dilation: 1 dilation: 1 dilation: 1",
        (6, 4, 2, 2, 2),
        (6,),
        inputs=[VOLUME],
    ),
    conv(
        f"num_output: 6 group: 2 {' '.join(['kernel_size: 3 stride: 2 pad: 1 dilation: 1'] * 3)}",
        (6, 2, 3, 3, 3),
        (6,),
        inputs=[VOLUME],
    ),
    conv("num_output: 6 kernel_size: 3 axis: 2", (6, 4, 3, 3), (6,), inputs=[(2, 3, 4, 7, 6)]),
    conv(
        "num_output: 6 kernel_size: 3", (6, 4, 3, 3), (6,), inputs=[IMAGE, IMAGE], tops="y0 y1", outputs="y0"
    ),
    conv("num_output: 4 kernel_size: 3 group: 4", (4, 1, 3, 3), (4,), kind="DepthwiseConv"),
    conv("kernel_size: 3 stride: 2 pad: 1", kind="Im2col"),
    transposed("num_output: 6 kernel_size: 4 stride: 2 pad: 1", (4, 6, 4, 4), (6,)),
    transposed("num_output: 6 kernel_size: 3 group: 2 bias_term: false", (4, 3, 3, 3)),
    transposed("num_output: 4 kernel_size: 4 stride: 2 group: 4 bias_term: false", (4, 1, 4, 4)),
    transposed(
        "num_output: 6 kernel_h: 3 kernel_w: 2 pad_h: 1 pad_w: 0 stride_h: 1 stride_w: 2", (4, 6, 3, 2), (6,)
    ),
    transposed("num_output: 6 kernel_size: 3 dilation: 2", (4, 6, 3, 3), (6,)),
    transposed("num_output: 6 kernel_size: 3 axis: 2", (4, 6, 3, 3), (6,), inputs=[(2, 3, 4, 7, 6)]),
    transposed(
        "num_output: 6 kernel_size: 3", (4, 6, 3, 3), (6,), inputs=[IMAGE, IMAGE], tops="y0 y1", outputs="y0"
    ),
    # ---- pooling, and normalization over windows
    *each(
        "Pooling",
        *(
            f"pool: {method} kernel_size: {kernel} stride: {stride} pad: {pad}"
            for method in ("MAX", "AVE")
            for kernel, stride, pad in ((3, 2, 0), (3, 2, 1), (2, 2, 1), (2, 1, 0), (3, 3, 2), (4, 3, 0))
        ),
        *(
            f"pool: {method} {attributes}"
            for method in ("MAX", "AVE")
            for attributes in (
                "global_pooling: true",
                "kernel_size: 2 stride: 2 round_mode: FLOOR",
                "kernel_size: 2 stride: 2 ceil_mode: false",
                "kernel_h: 3 kernel_w: 2 stride_h: 2 stride_w: 3 pad_h: 1 pad_w: 1",
                "kernel_h: 3 kernel_w: 2 stride_h: 1 stride_w: 2 pad_h: 1 pad_w: 0",
            )
        ),
    ),
    LayerNet("Pooling", "pool: MAX kernel_size: 2 stride: 2", tops="y0 y1"),
    LayerNet("Pooling", "pool: MAX kernel_size: 3 stride: 2 pad: 1", tops="y0 y1"),
    *each("SPP", "pyramid_height: 3 pool: MAX", "pyramid_height: 2 pool: AVE"),
    *each(
        "LRN",
        "local_size: 3 alpha: 0.5 beta: 0.7",
        "local_size: 3 alpha: 0.5 k: 2",
        "local_size: 3 alpha: 0.5 norm_region: WITHIN_CHANNEL",
    ),
    # ---- elementwise
    *each("ReLU", "", "negative_slope: 0.1"),
    *each("ELU", "", "alpha: 0.5"),
    *each("Swish", "", "beta: 1.5"),
    *(LayerNet(kind) for kind in ("Sigmoid", "TanH", "AbsVal", "BNLL", "ReLU6", "Mish", "Gelu")),
    *(LayerNet(kind) for kind in ("GeluApproximation", "HardSwish")),
    LayerNet("ReLU6", inputs=[np.linspace(-2, 9, 168, dtype=np.float32).reshape(1, 4, 7, 6)]),
    LayerNet("HardSwish", inputs=[np.linspace(-5, 5, 168, dtype=np.float32).reshape(1, 4, 7, 6)]),
    *each("Dropout", "dropout_ratio: 0.3"),
    *each("Clip", "min: -0.5 max: 1"),
    *each("Threshold", "", "threshold: 0.5"),
    LayerNet("PReLU", "", [(4,)]),
    LayerNet("PReLU", "channel_shared: true", [(1,)]),
    *each(
        "Power",
        "power: 2 scale: 0.5 shift: 0.1",
        "power: 1 scale: -2 shift: 3",
        "power: 0 scale: 2 shift: 3",
        "power: 3",
        *(f"power: {power} shift: 3" for power in (0.5, -1, -0.5, 1.5)),
    ),
    *each("Exp", "", "scale: 0.5 shift: 0.1", "base: 2 scale: 0.5 shift: 0.1"),
    *each("Log", "shift: 3", "base: 2 scale: 0.5 shift: 4"),
    *each("Log", "", "base: 10", inputs=[np.linspace(0.1, 9, 168, dtype=np.float32).reshape(1, 4, 7, 6)]),
    *each("Eltwise", "operation: SUM", "coeff: 1 coeff: -1", "operation: MAX", inputs=[IMAGE, IMAGE]),
    *each("Eltwise", "operation: PROD", "coeff: 0.5 coeff: 2 coeff: -1", inputs=[IMAGE, IMAGE, IMAGE]),
    # ---- statistics and channels
    LayerNet("BatchNorm", "", [MEAN, VARIANCE, np.float32([2])]),
    LayerNet("BatchNorm", "eps: 0.1 use_global_stats: true", [MEAN, VARIANCE, np.float32([1])]),
    LayerNet("BatchNorm", "eps: 0.1", [MEAN, VARIANCE, np.float32([0])]),
    LayerNet("BatchNorm", "use_global_stats: false", [MEAN, VARIANCE, np.float32([1])]),
    LayerNet("Scale", "bias_term: true", [(4,), (4,)]),
    LayerNet("Scale", "axis: 2 num_axes: 2", [(7, 6)]),
    LayerNet("Scale", "axis: 0 num_axes: -1", [IMAGE]),
    LayerNet("Scale", "axis: 0", inputs=[IMAGE, (2, 4)]),
    LayerNet("Scale", "axis: 0 bias_term: true", [(2, 4)], [IMAGE, (2, 4)]),
    LayerNet("Bias", "", [(4,)]),
    LayerNet("Bias", "axis: 1 num_axes: 2", [(4, 7)]),
    LayerNet("Bias", "axis: 0", inputs=[IMAGE, (2,)]),
    *each("MVN", "", "across_channels: true", "normalize_variance: false", "eps: 0.1"),
    *each("Softmax", "", "axis: 2", "axis: -1"),
    LayerNet("Normalize", "across_spatial: false channel_shared: false eps: 0.01", [(4,)]),
    LayerNet("Normalize", "across_spatial: true channel_shared: true", [(1,)]),
    # ---- products
    LayerNet("InnerProduct", "num_output: 5", [(5, 168), (5,)]),
    LayerNet("InnerProduct", "num_output: 5 bias_term: true", [(1, 1, 5, 168), (1, 1, 1, 5)]),
    LayerNet("InnerProduct", "num_output: 5 axis: 3 bias_term: false", [(5, 6)]),
    LayerNet("InnerProduct", "num_output: 5 axis: -2", [(5, 42), (5,)]),
    LayerNet("InnerProduct", "num_output: 5 transpose: true", [(168, 5), (5,)]),
    LayerNet("InnerProduct", "num_output: 5 axis: 0", [(5, 336), (5,)]),
    LayerNet("Embed", "num_output: 5 input_dim: 9", [(9, 5), (5,)], [np.float32([[0, 8, 3], [1, 1, 7]])]),
    LayerNet(
        "Embed", "num_output: 5 input_dim: 9 bias_term: false", [(9, 5)], [np.float32([[0, 8, 3], [1, 1, 7]])]
    ),
    # ---- data movement
    LayerNet("Concat"),
    *each("Concat", "", "axis: 2", "axis: -1", "concat_dim: 3", inputs=[IMAGE, IMAGE]),
    LayerNet("Slice", "slice_point: 1", tops="y0 y1"),
    LayerNet("Slice", "axis: 2 slice_point: 1 slice_point: 4", tops="y0 y1 y2"),
    LayerNet("Slice", "axis: 3", tops="y0 y1"),
    LayerNet("Slice", "slice_dim: 3 slice_point: 2", tops="y0 y1"),
    LayerNet("Slice"),
    LayerNet("Split", tops="y0 y1 y2", outputs="y0"),
    LayerNet("Split"),
    *each(
        "Crop", "", "axis: 2 offset: 1", "axis: 1 offset: 1 offset: 2 offset: 0", inputs=[IMAGE, (2, 3, 4, 5)]
    ),
    *each("Tile", "tiles: 3", "axis: -1 tiles: 2"),
    *each("Flatten", "", "axis: 2", "axis: 1 end_axis: 2"),
    *each(
        "Reshape",
        "shape { dim: 0 dim: -1 }",
        "shape { dim: 2 dim: 7 dim: -1 } axis: 1 num_axes: 2",
        "shape { dim: -1 dim: 6 } axis: 0",
        "shape { dim: 3 dim: 2 } axis: 3",
    ),
    *each("Permute", "order: 0 order: 2 order: 3 order: 1", "order: 1"),
    *each("ShuffleChannel", "group: 2"),
    *each("Reverse", "axis: 1 axis: 3"),
    LayerNet("BatchReindex", inputs=[IMAGE, np.float32([1, 0, 1])]),
    LayerNet("Parameter", "shape { dim: 2 dim: 3 }", [(2, 3)], []),
    *each("Interp", "height: 11 width: 5", "zoom_factor: 2", "shrink_factor: 2"),
    LayerNet("Interp", inputs=[IMAGE, (2, 3, 4, 9)]),
    # ---- reductions
    *each(
        "Reduction",
        "",
        "axis: 1 coeff: 0.5",
        *(
            f"operation: {operation} {attributes}"
            for operation in ("SUM", "ASUM", "SUMSQ", "MEAN")
            for attributes in ("axis: 1", "axis: -2")
        ),
    ),
    *(
        net
        for shape in (IMAGE, TIES)
        for net in each(
            "ArgMax",
            "",
            "axis: 2",
            "axis: 2 top_k: 3",
            "out_max_val: true",
            "out_max_val: true axis: -1 top_k: 2",
            "top_k: 2 out_max_val: true",
            inputs=[shape],
        )
    ),
    # ---- recurrent
    *recurrent("LSTM", 5, 2, (20, 3), (20,), (20, 5)),
    *recurrent("RNN", 5, 1, (5, 3), (5,), (5, 5), (5, 5), (5,)),
    # ---- without a definition: what runtimes compute is the reference of the frontend
    LayerNet("ROIPooling", "pooled_h: 3 pooled_w: 2 spatial_scale: 1", inputs=[IMAGE, ROIS]),
    *each(
        "PriorBox",
        "min_size: 10 max_size: 20 aspect_ratio: 2 aspect_ratio: 3 flip: true clip: false " + VARIANCES,
        "min_size: 10 flip: false clip: true variance: 0.1",
        "min_size: 10 min_size: 30 aspect_ratio: 2 clip: false step: 20 offset: 0.25 variance: 0.1",
        inputs=[(1, 4, 3, 4), (1, 3, 60, 80)],
    ),
]
NETS: Mapping[str, LayerNet] = {net.name: net for net in _NETS}
assert len(NETS) == len(_NETS), "two nets have the same name"
