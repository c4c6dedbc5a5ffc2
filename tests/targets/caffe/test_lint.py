"""A bad net for each rule, in text as other tools write it."""

from __future__ import annotations

import sys
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

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

INPUT = 'layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 1 dim: 6 dim: 20 dim: 30 } } }\n'
WEIGHTLESS = 'layer { name: "y" type: "%s" bottom: "x" top: "y" %s }\n'


TWO = 'layer { name: "%s" type: "%s" bottom: "%s" top: "%s" }\n'
BAD = tomllib.loads(Path(__file__).with_name("bad_nets.toml").read_text(encoding="utf-8"))


def every_rule() -> set[str]:
    limits = {rule.name for dialect in DIALECTS.values() for rule in dialect.rules}
    return limits | set(structure.RULES) | set(caffe_lint.RULES)


def test_there_is_a_bad_net_for_each_rule() -> None:
    assert set(BAD) == every_rule()


@pytest.mark.parametrize("rule", BAD)
def test_a_bad_net(rule: str) -> None:
    bad = BAD[rule]
    violations = lint_text(bad["net"].replace("INPUT\n", INPUT), bad["dialect"])
    found = [violation for violation in violations if violation.rule == rule]
    assert found, violations
    assert found[0].line == bad["line"]
    assert bad["words"] in found[0].message
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
