"""If, Loop, Scan and sequences."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import tmconvert
from tests.frontends.onnx.models import in_onnx_runtime, saved
from tmconvert.errors import UnsupportedError

X = np.array([[1, -2, 3], [4, 5, -6]], np.float32)
HEAD = '<ir_version: 10, opset_import: ["": 17]>\n'
LOOP = """net (float[2, 3] x) => (float[2, 3] y{more})
    <int64 count = {{{count}}}, bool yes = {{1}}, float limit = {{50}}, float half = {{0.5}}> {{
        y{more} = Loop <body = step (int64 number, bool goes_on, float[2, 3] a)
            => (bool again, float[2, 3] b{inner}) {{
                c = Add (a, x)
                b = Mul (c, half)
                {again}
                {row}
            }}> (count, {first}, x)
    }}"""


def check(path, *inputs):
    """Compares the reference and both targets with ONNX Runtime."""
    model = tmconvert.load(path)
    made = model(*inputs)
    for one, other in zip(
        made if isinstance(made, (list, tuple)) else [made], in_onnx_runtime(path, *inputs), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    assert tmconvert.to_onnx(path, path.with_name("out.onnx")).verified
    return tmconvert.to_tflite(path, path.with_name("out.tflite"))


IF = """net (float[2, 3] x, bool flag) => (float[2, 3] y) {
    y = If <
        then_branch = one () => (float[2, 3] a) { a = Neg (x) },
        else_branch = other () => (float[2, 3] b) { b = Mul (x, x) }> (flag)
    }"""


@pytest.mark.parametrize("flag", [True, False])
def test_if(tmp_path, flag):
    assert check(saved(tmp_path / "net.onnx", HEAD + IF), X, np.array(flag)).verified


def test_an_if_that_is_decided_by_shapes_is_no_operator(tmp_path):
    path = saved(
        tmp_path / "net.onnx",
        HEAD
        + """net (float[2, 3] x) => (float[2, 3] y) <int64 three = {3}, int64 one = {1}> {
            shape = Shape (x)
            width = Gather (shape, one)
            flag = Equal (width, three)
            y = If <
                then_branch = one () => (float[2, 3] a) { a = Neg (x) },
                else_branch = other () => (float[2, 3] b) { b = Mul (x, x) }> (flag)
        }""",
    )
    check(path, X)
    assert tmconvert.to_onnx(path, tmp_path / "out.onnx").operators == 1


def test_a_loop_over_a_number_of_steps_with_stacked_results(tmp_path):
    text = LOOP.format(
        count=4,
        first="yes",
        more=", rows",
        inner=", float[2, 3] row",
        again="again = Identity (goes_on)",
        row="row = Neg (b)",
    )
    text = text.replace("float[2, 3] y, rows)", "float[2, 3] y, float[4, 2, 3] rows)")
    assert check(saved(tmp_path / "net.onnx", HEAD + text), X).verified


def test_a_loop_that_ends_by_a_condition(tmp_path):
    text = LOOP.format(
        count=100,
        first="yes",
        more="",
        inner="",
        row="",
        again="s = ReduceSum <keepdims = 0> (b) again = Less (s, limit)",
    )
    check(saved(tmp_path / "net.onnx", HEAD + text.replace("0.5", "1.5")), np.abs(X))


def test_scan(tmp_path):
    path = saved(
        tmp_path / "net.onnx",
        HEAD
        + """net (float[3] start, float[4, 3] x) => (float[3] last, float[4, 3] sums) {
            last, sums = Scan <num_scan_inputs = 1, scan_input_directions = [1],
                body = step (float[3] a, float[3] b) => (float[3] c, float[3] d)
                { c = Add (a, b) d = Identity (c) }> (start, x)
        }""",
    )
    rng = np.random.default_rng(0)
    check(path, rng.standard_normal(3).astype(np.float32), rng.standard_normal((4, 3)).astype(np.float32))


def test_sequences_of_known_length(tmp_path):
    path = saved(
        tmp_path / "net.onnx",
        HEAD
        + """net (float[4, 3] x) => (float[2, 3] y) <int64 two = {2}, int64 first = {0}> {
            parts = SplitToSequence <axis = 0> (x, two)
            one = SequenceAt (parts, first)
            more = SequenceInsert (parts, one)
            all = ConcatFromSequence <axis = 0, new_axis = 1> (more)
            axes = Constant <value_ints = [0]> ()
            y = ReduceSum <keepdims = 0> (all, axes)
        }""",
    )
    check(path, np.arange(12, dtype=np.float32).reshape(4, 3))


RATES = """net (float[2, 3] x, int64 rate) => (float y)
    <int64 fast = {2}, float[4, 1] w = {1, 2, 3, 4}> {
        flag = Equal (rate, fast)
        y = If <
            then_branch = one () => (float a) { p = Mul (x, x) a = ReduceSum <keepdims = 0> (p) },
            else_branch = other () => (float b) { q = MatMul (x, w) b = ReduceSum <keepdims = 0> (q) }> (flag)
    }"""


def test_a_branch_for_other_sizes_is_left_out_where_an_initializer_chooses(tmp_path):
    path = tmp_path / "net.onnx"
    model = onnx.parser.parse_model(HEAD + RATES)
    onnx.save(model, path)
    with pytest.raises(UnsupportedError) as caught:
        tmconvert.to_onnx(path, tmp_path / "out.onnx")
    assert "another value of the input 'rate' than yours" in str(caught.value)
    model.graph.input.pop()
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array(2), "rate"))
    onnx.save(model, path)
    report = tmconvert.to_tflite(path, tmp_path / "out.tflite")
    assert report.max_error is not None and report.max_error < 1e-5
    assert not report.verified and "does not run the source" in str(report)  # it checks all branches
