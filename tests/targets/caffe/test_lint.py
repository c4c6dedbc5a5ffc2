"""A bad net for each rule, in text as other tools write it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.models import corpus
from tmconvert import api
from tmconvert.errors import LoadError
from tmconvert.formats.caffe.dialects import DIALECTS
from tmconvert.symbolics.dialects import DIALECTS as NAMES
from tmconvert.targets.caffe import lint as caffe_lint
from tmconvert.targets.caffe import structure
from tmconvert.targets.caffe.lint import lint_text

INPUT = 'layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 1 dim: 6 dim: 20 dim: 30 } } }\n'
WEIGHTLESS = 'layer { name: "y" type: "%s" bottom: "x" top: "y" %s }\n'


def one(kind: str, parameters: str = "") -> str:
    return INPUT + WEIGHTLESS % (kind, parameters)


RELU = WEIGHTLESS % ("ReLU", "")
TWO = 'layer { name: "%s" type: "%s" bottom: "%s" top: "%s" }\n'

# rule: (dialect, text, the line, words of the message)
BAD = {
    "syntax": ("bvlc", INPUT + "layer { name: }", 2, "name has no value"),
    "unknown-field": ("bvlc", one("ReLU", "relu_param { slope: 1 }"), 2, "ReLUParameter has no field slope"),
    "wrong-value": ("bvlc", one("Pooling", "pooling_param {\n kernel_size: -2 }"), 3, "kernel_size is -2"),
    "foreign-parameter": ("bvlc", one("ReLU", "power_param { power: 2 }"), 2, "does not read power_param"),
    "old-layers": ("bvlc", INPUT + 'layers { name: "y" type: RELU }', 2, "of the format V1"),
    "duplicate-layer": (
        "bvlc",
        INPUT + RELU + TWO % ("y", "ReLU", "y", "z"),
        3,
        "another layer has this name",
    ),
    "unnamed-layer": ("bvlc", INPUT + 'layer { type: "ReLU" bottom: "x" top: "y" }', 2, "has no name"),
    "unknown-layer": ("bvlc", one("Permute"), 2, "BVLC Caffe has no layer 'Permute'"),
    "training-layer": ("nnie", one("EuclideanLoss"), 2, "EuclideanLoss is for training only"),
    "missing-blob": ("bvlc", INPUT + TWO % ("y", "ReLU", "z", "y"), 2, "no layer computes its bottom z"),
    "wrong-order": (
        "bvlc",
        TWO % ("y", "ReLU", "x", "y") + INPUT,
        1,
        "its bottom x is computed by a later layer",
    ),
    "duplicate-blob": ("bvlc", INPUT + RELU + TWO % ("z", "ReLU", "x", "y"), 3, "has made the blob y"),
    "in-place": ("bvlc", INPUT + TWO % ("y", "LRN", "x", "x"), 2, "LRN cannot write over its bottom x"),
    "in-place-shared": (
        "bvlc",
        INPUT + RELU + TWO % ("z", "ReLU", "x", "x"),
        3,
        "writes over x, which y reads",
    ),
    "bottoms-and-tops": ("bvlc", one("ReLU", 'bottom: "x"'), 2, "ReLU has 1 bottoms, not 2"),
    "shape": ("bvlc", one("Reshape", "reshape_param { shape { dim: 7 dim: -1 } }"), 2, "does not fit into"),
    "opencv-transposed-weights": (
        "opencv",
        one("InnerProduct", "inner_product_param { num_output: 3 transpose: true }"),
        2,
        "transpose is 1",
    ),
    "opencv-log-of-x": ("opencv", one("Log", "log_param { shift: 1 }"), 2, "affine is 1"),
    "opencv-log-base": ("opencv", one("Log", "log_param { base: 10 }"), 2, "base is 10"),
    "opencv-batch-statistics": (
        "opencv",
        one("BatchNorm", "batch_norm_param { use_global_stats: false }"),
        2,
        "batch statistics is 1",
    ),
    "opencv-lrn-k": ("opencv", one("LRN", "lrn_param { k: 2 }"), 2, "k across channels is 2"),
    "opencv-mvn-eps": ("opencv", one("MVN", "mvn_param { eps: 0.1 }"), 2, "eps is 0.1"),
    "opencv-old-axis": (
        "opencv",
        one("Slice", 'slice_param { slice_dim: 1 slice_point: 1 } top: "z"'),
        2,
        "old fields of the axis is 1",
    ),
    "opencv-swish-beta": ("opencv", one("Swish", "swish_param { beta: 2 }"), 2, "beta is 2"),
    "opencv-bias-of-product": (
        "opencv",
        one("Scale", 'bottom: "x" scale_param { axis: 0 bias_term: true }'),
        2,
        "biases of a computed factor is 1",
    ),
    "opencv-slice-points": ("opencv", one("Slice", 'top: "z"'), 2, "slices without a point is 1"),
    "opencv-images": (
        "opencv",
        one("Deconvolution", "convolution_param { num_output: 3 kernel_size: 1 }").replace("dim: 30", ""),
        2,
        "ranks is 3",
    ),
    "opencv-volumes": (
        "opencv",
        one("Convolution", "convolution_param { num_output: 3 kernel_size: 1 }").replace("30", "30 dim: 5"),
        2,
        "numbers of a window with three axes is 1",
    ),
    "opencv-deconvolution-dilation": (
        "opencv",
        one("Deconvolution", "convolution_param { num_output: 3 kernel_size: 3 dilation: 2 }"),
        2,
        "dilation is 2",
    ),
    "opencv-ranks": ("opencv", one("Reshape").replace("dim: 6 dim: 20 dim: 30", ""), 2, "ranks is 0"),
    "nnie-kernel": (
        "nnie",
        one("Convolution", "convolution_param { num_output: 3 kernel_size: 256 pad: 120 }"),
        2,
        "kernel is 256, but HiSilicon NNIE supports 1 to 255",
    ),
    "nnie-stride": (
        "nnie",
        one("Pooling", "pooling_param { kernel_size: 2 stride: 256 }"),
        2,
        "stride is 256",
    ),
    "nnie-pad": (
        "nnie",
        one("Convolution", "convolution_param { num_output: 3 kernel_size: 3 pad: 256 }"),
        2,
        "pad is 256",
    ),
    "nnie-group": (
        "nnie",
        INPUT.replace("dim: 6", "dim: 4096")
        + WEIGHTLESS % ("Convolution", "convolution_param { num_output: 4096 kernel_size: 1 group: 4096 }"),
        2,
        "group is 4096",
    ),
    "nnie-deconvolution-dilation": (
        "nnie",
        one("Deconvolution", "convolution_param { num_output: 3 kernel_size: 3 dilation: 2 }"),
        2,
        "dilation is 2",
    ),
    "nnie-exponent": ("nnie", one("Power", "power_param { power: 4 }"), 2, "exponent is 4"),
    "nnie-permute": (
        "nnie",
        one("Permute", "permute_param { order: 0 order: 3 order: 1 order: 2 }"),
        2,
        "order is 312, but HiSilicon NNIE supports 231",
    ),
    "nnie-extent": ("nnie", one("Tile", "tile_param { axis: 3 tiles: 200 }"), 2, "extents is 6000"),
    "nnie-batch": (
        "nnie",
        one("Reshape", "reshape_param { shape { dim: 6 dim: -1 } }"),
        2,
        "batch axis is 5",
    ),
    "nnie-rank": (
        "nnie",
        'layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 1 dim: 4 dim: 2 } } }',
        1,
        "rank of inputs is 3",
    ),
    "mnn-images": ("mnn", one("Scale").replace("dim: 30", ""), 2, "ranks is 3"),
    "mnn-ranks": ("mnn", one("Reshape").replace("dim: 6 dim: 20 dim: 30", ""), 2, "ranks is 0"),
    "mnn-scale-axis": ("mnn", one("Scale", "scale_param { axis: 2 }"), 2, "axis is 2"),
    "mnn-scale-bottoms": ("mnn", one("Scale", 'bottom: "x" scale_param { axis: 0 }'), 2, "bottoms is 2"),
    "mnn-dilation": (
        "mnn",
        one("Convolution", "convolution_param { num_output: 3 kernel_size: 3 dilation: 2 dilation: 1 }"),
        2,
        "difference of dilations is 1",
    ),
    "mnn-windows": (
        "mnn",
        one("Convolution", "convolution_param { num_output: 3 kernel_size: 3 kernel_size: 2 }"),
        2,
        "difference of numbers of a window is 1",
    ),
    "mnn-batch-statistics": (
        "mnn",
        one("BatchNorm", "batch_norm_param { use_global_stats: false }"),
        2,
        "batch statistics is 1",
    ),
    "mnn-omitted-windows": (
        "mnn",
        one("Pooling", "pooling_param { kernel_size: 2 stride: 2 pad: 1 }").replace("30", "31"),
        2,
        "omitted windows is 1",
    ),
    "mnn-pooling-mask": (
        "mnn",
        one("Pooling", 'top: "z" pooling_param { kernel_size: 3 stride: 2 pad: 1 }'),
        2,
        "mask of padded windows is 1",
    ),
    "mnn-unread-fields": (
        "mnn",
        one("Flatten", "flatten_param { end_axis: 2 }"),
        2,
        "fields that MNN does not read is 1",
    ),
    "mnn-log-base": ("mnn", one("Log"), 2, "base is -1"),
    "mnn-log-of-x": ("mnn", one("Log", "log_param { base: 2 shift: 1 }"), 2, "affine is 1"),
    "mnn-lrn-k": ("mnn", one("LRN", "lrn_param { k: 2 }"), 2, "k across channels is 2"),
    "mnn-embed-bias": ("mnn", one("Embed", "embed_param { num_output: 2 input_dim: 5 }"), 2, "bias is 1"),
    "mnn-product-rank": (
        "mnn",
        one("InnerProduct", "inner_product_param { num_output: 2 axis: 4 }").replace("30", "30 dim: 5"),
        2,
        "ranks is 5",
    ),
    "mnn-round-mode": (
        "mnn",
        one("Pooling", "pooling_param { kernel_size: 2 round_mode: FLOOR }"),
        2,
        "rounding down is 1",
    ),
    "ascend-kernel": (
        "ascend",
        one("Convolution", "convolution_param { num_output: 3 kernel_size: 256 pad: 120 }"),
        2,
        "kernel is 256",
    ),
    "ascend-stride": (
        "ascend",
        one("Pooling", "pooling_param { kernel_size: 40 pad: 20 stride: 64 }"),
        2,
        "stride is 64",
    ),
    "ascend-dilation": (
        "ascend",
        one("Convolution", "convolution_param { num_output: 3 kernel_size: 1 dilation: 256 }"),
        2,
        "dilation is 256",
    ),
    "ascend-deconvolution-dilation": (
        "ascend",
        one("Deconvolution", "convolution_param { num_output: 3 kernel_size: 3 dilation: 2 }"),
        2,
        "dilation is 2",
    ),
    "ascend-pooling-method": (
        "ascend",
        one("Pooling", "pooling_param { pool: STOCHASTIC kernel_size: 2 }"),
        2,
        "pooling method is 2",
    ),
    "ascend-pooling-stride": (
        "ascend",
        one("Pooling", "pooling_param { kernel_size: 2 stride: 5 }"),
        2,
        "stride beyond two kernels is 1",
    ),
    "ascend-global-stats": (
        "ascend",
        one("BatchNorm", "batch_norm_param { use_global_stats: false }"),
        2,
        "batch statistics is 1",
    ),
    "ascend-extent": (
        "ascend",
        one("Tile", "tile_param { axis: 3 tiles: 200 }"),
        2,
        "height and width is 6000",
    ),
    "ascend-concat": (
        "ascend",
        INPUT + 'layer { name: "y" type: "Concat" top: "y" ' + 'bottom: "x"' * 1001 + "}",
        2,
        "bottoms is 1001",
    ),
    "ascend-axis": (
        "ascend",
        'layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 1 dim: 4 } } }\n'
        + WEIGHTLESS % ("Softmax", "softmax_param { axis: -1 }"),
        2,
        "negative axis below rank 4 is 1",
    ),
}


def every_rule() -> set[str]:
    limits = {rule.name for dialect in DIALECTS.values() for rule in dialect.rules}
    return limits | set(structure.RULES) | set(caffe_lint.RULES)


def test_there_is_a_bad_net_for_each_rule() -> None:
    assert set(BAD) == every_rule()


@pytest.mark.parametrize("rule", BAD)
def test_a_bad_net(rule: str) -> None:
    dialect, text, line, words = BAD[rule]
    found = [violation for violation in lint_text(text, dialect) if violation.rule == rule]
    assert found, lint_text(text, dialect)
    assert found[0].line == line
    assert words in found[0].message
    assert found[0].help


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_good_net_of_another_tool(dialect: str) -> None:
    text = """
    # trained elsewhere
    name: 'net' input: "data" input_shape { dim: 1 dim: 3 dim: 16 dim: 16 }
    layer { name: "c" type: "Convolution" bottom: "data" top: "c"; param { lr_mult: 1, decay_mult: 0.5f }
      convolution_param: < num_output: 8 kernel_size: [3, 3] pad: 1 weight_filler { std: 1e-2 } > }
    layer { name: "b" type: "BatchNorm" bottom: "c" top: "c" batch_norm_param { use_global_stats: true } }
    layer { name: "s" type: "Scale" bottom: "c" top: "c" scale_param { bias_term: true } }
    layer { name: "r" type: "ReLU" bottom: "c" top: "c" relu_param { engine: CAFFE } }
    layer { name: "p" type: "Pooling" bottom: "c" top: "p" pooling_param { pool: AVE kernel_size: 2 } }
    layer { name: "loss" type: "SoftmaxWithLoss" bottom: "p" bottom: "label" include { phase: TRAIN } }
    layer { name: "i" type: "InnerProduct" bottom: "p" top: "i" inner_product_param { num_output: 10 } }
    layer { name: "y" type: "Softmax" bottom: "i" top: "y" }
    """
    assert lint_text(text, dialect) == []


def test_several_faults_come_in_the_order_of_lines() -> None:
    text = INPUT + WEIGHTLESS % ("Nothing", "no_param { }") + TWO % ("y", "ReLU", "no", "z")
    found = [(violation.line, violation.rule) for violation in lint_text(text, "bvlc")]
    assert found == [
        (2, "unknown-field"),
        (2, "unknown-layer"),
        (3, "duplicate-layer"),
        (3, "missing-blob"),
    ]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('layer {\n name: "x"', 2, "the end of the file"),
        ("layer {\n}\n}", 3, "expected a field"),
        ("layer { name \n 3 }", 1, "after name"),
        ("name: \n $", 2, "unexpected '$'"),
        ("a { " * 100, 1, "more than 64 deep"),
        ('name: "a" name: "b"', 1, "multiple"),
    ],
)
def test_damaged_texts(text: str, line: int, words: str) -> None:
    (violation,) = lint_text(text, "bvlc")[:1]
    assert (violation.rule, violation.line) in (("syntax", line), ("unknown-field", line))
    assert violation.rule == "unknown-field" or words in violation.message


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="cannot read the file"):
        api.lint(tmp_path / "net.prototxt")


def test_the_dialects_have_one_list_of_names() -> None:
    assert tuple(DIALECTS) == NAMES


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v2", "op_s_conv_bn_relu", "op_conv_variants"])
@pytest.mark.parametrize("dialect", NAMES)
def test_what_we_write_keeps_to_its_dialect(name: str, dialect: str, tmp_path: Path) -> None:
    report, (prototxt, _) = corpus.converted(name, "caffe", tmp_path, dialect=dialect)
    assert report.verified
    assert api.lint(prototxt, dialect) == []
