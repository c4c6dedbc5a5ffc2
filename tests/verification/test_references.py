"""What a file is compared with: inputs, and tolerances where an output has no scale or order of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx.numpy_helper import from_array, to_array
from torch import nn
from torch.nn import functional as F

import tmconvert
from tmconvert.errors import UnsupportedError, VerificationError
from tmconvert.ir import pristine
from tmconvert.passes.normalize import normalize
from tmconvert.symbolics.registry import catalogue
from tmconvert.verification.compare import Comparison, refuse_wrong
from tmconvert.verification.inputs import drawn_inputs
from tmconvert.verification.reference import Reference
from tmconvert.verification.tolerance import compare_within_limits

TARGETS = {"onnx": tmconvert.to_onnx, "tflite": tmconvert.to_tflite}


def judge(*arguments: Any, **options: Any) -> list[Comparison]:
    return refuse_wrong(compare_within_limits(*arguments, **options))


def without_example(function: Any, *inputs: torch.Tensor) -> Any:
    traced = tmconvert.trace(function, *inputs)
    traced.example = None
    return traced


def reference_of(function: Any, *inputs: torch.Tensor) -> Reference:
    traced = tmconvert.trace(function, *inputs)
    return Reference(normalize(traced.flatten(), catalogue()).graph, catalogue(), example=traced.example)


def edited(path: Path, edit: Any) -> Path:
    model = onnx.load(path)
    edit(model)
    onnx.save(model, path)
    return path


def constant(model: onnx.ModelProto, shape: tuple[int, ...]) -> tuple[onnx.TensorProto, np.ndarray]:
    found = next(each for each in model.graph.initializer if tuple(each.dims) == shape)
    return found, np.array(to_array(found))


# ---- inputs


TABLE = torch.randn(40, 3, generator=torch.Generator().manual_seed(0))


def test_indices_are_drawn_below_the_size_of_what_they_are_taken_of():
    def function(ids: torch.Tensor, kinds: torch.Tensor, rows: torch.Tensor, x: torch.Tensor) -> Any:
        taken = F.embedding(ids.reshape(-1) + 0, TABLE)
        return taken, F.one_hot(kinds, 7), x[:, rows], x.gather(1, rows[None].long())

    ids = torch.zeros(50, 4, dtype=torch.int64)
    given = (ids, torch.zeros(60, dtype=torch.int64), torch.zeros(70, dtype=torch.int64), torch.randn(2, 9))
    reference = reference_of(function, *given)
    for seed in (0, 1):
        arrays = drawn_inputs(reference.graph, catalogue(), seed)
        assert [array.max() for array in arrays[:3]] == [39, 6, 8]
        assert [array.min() for array in arrays[:3]] == [0, 0, 0]


def test_a_row_of_an_embedding_is_compared(tmp_path: Path):
    def change(model: onnx.ModelProto) -> None:
        tensor, data = constant(model, (40, 3))
        data[17] += 0.5
        tensor.CopyFrom(from_array(data, tensor.name))

    ids = torch.tensor([[0, 1]])  # 17 is in none of two draws
    traced = tmconvert.trace(lambda ids: F.embedding(ids, TABLE), ids)
    path = tmp_path / "m.onnx"
    tmconvert.to_onnx(traced, path)
    tmconvert.verify(traced, path)
    edited(path, change)
    with pytest.raises(VerificationError, match="TM4001"):
        tmconvert.verify(traced, path)


def test_a_max_pool_is_compared_on_negative_inputs(tmp_path: Path):
    """Zeros in the place of -inf around the input pass where each window has a positive element."""

    def change(model: onnx.ModelProto) -> None:
        (pool,) = model.graph.node
        del pool.attribute[:]
        helper = onnx.helper
        pads = helper.make_node("Pad", ["x", "pads"], ["padded"])
        pool.input[0] = "padded"
        pool.attribute.extend([helper.make_attribute("kernel_shape", [3, 3])])
        pool.attribute.extend([helper.make_attribute("strides", [2, 2])])
        model.graph.node.insert(0, pads)
        model.graph.initializer.append(from_array(np.array([0, 0, 1, 1, 0, 0, 1, 1]), "pads"))

    x = torch.rand(1, 2, 7, 7)
    traced = tmconvert.trace(lambda x: F.max_pool2d(x, 3, 2, 1), x)
    path = tmp_path / "m.onnx"
    tmconvert.to_onnx(traced, path)
    edited(path, change)
    with pytest.raises(VerificationError, match="TM4001"):
        tmconvert.verify(traced, path)


# ---- outputs without a scale


ZEROS = {
    "the mean of a layer norm": (lambda x: F.layer_norm(x, (32,)).mean(), (4, 32)),
    "a group norm of one element": (lambda x: F.group_norm(x, 6), (4, 6)),
    "what is left of equal elements": (
        lambda x: x[:, :1].expand(4, 7) - x[:, :1].expand(4, 7).mean(1, True),
        (4, 2),
    ),
    "a difference of sums": (lambda x: x.sum(1) - x.flip(1).sum(1), (4, 500)),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("what", ZEROS)
def test_outputs_that_are_zero_but_for_rounding(what: str, target: str, tmp_path: Path):
    function, shape = ZEROS[what]
    TARGETS[target](function, tmp_path / f"m.{target}", example_inputs=(torch.randn(shape) * 3,))


@pytest.mark.parametrize("what", ZEROS)
def test_more_than_rounding_is_refused(what: str):
    function, shape = ZEROS[what]
    reference = reference_of(function, torch.randn(shape))
    given, expected = reference.case(None)
    (noise,) = reference.noise(given, [0])
    assert 0 < noise < 1e-3
    judge(reference, given, [expected[0] + np.float32(noise)], expected, ["y"])
    with pytest.raises(VerificationError, match="TM4001"):
        judge(reference, given, [expected[0] + np.float32(1e-2)], expected, ["y"])


@pytest.mark.slow
def test_the_noise_of_a_single_element_is_not_missed_by_chance():
    """Few runs may all move it by nearly the same: of these inputs 3 runs take two for exact."""
    function, shape = ZEROS["the mean of a layer norm"]
    reference = reference_of(function, torch.randn(shape))
    for seed in range(60):
        random = torch.Generator().manual_seed(seed)
        given = [(torch.randn(shape, generator=random) * 3).numpy()]
        (noise,) = reference.noise(given, [0])
        assert 1e-9 < noise < 1e-6, seed


def test_the_tolerance_of_other_outputs_stays():
    reference = reference_of(lambda x: torch.softmax(x, 1), torch.randn(4, 9))
    given, expected = reference.case(None)
    with pytest.raises(VerificationError, match="TM4001"):
        judge(reference, given, [expected[0] * np.float32(1.0002)], expected, ["y"])


# ---- kernels that are as accurate as 1 is


def gated(shift: float) -> Any:
    """A sigmoid of about ``shift``, and twice it."""
    return lambda x: ((x + shift).sigmoid(), (x + shift).sigmoid() * 2)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("shift", [-8, -10, -11, -12])
def test_a_sigmoid_next_to_zero(shift: float, target: str, tmp_path: Path):
    report = TARGETS[target](gated(shift), tmp_path / f"m.{target}", example_inputs=(torch.randn(3, 4) / 4,))
    assert report.verification.tells


def test_more_than_the_accuracy_of_a_sigmoid_is_refused():
    reference = reference_of(gated(-10), torch.randn(3, 4))
    given, expected = reference.case(None)
    unit = np.float32(1.2e-7)
    once, twice = judge(reference, given, [each + unit for each in expected], expected, ["y", "z"])
    assert once.ok and twice.ok and not once.is_noise
    for factors in ((4, 1), (1, 8)):
        wrong = [each + factor * unit for each, factor in zip(expected, factors, strict=True)]
        with pytest.raises(VerificationError, match="TM4001"):
            judge(reference, given, wrong, expected, ["y", "z"])


def test_no_other_op_is_given_the_accuracy_of_a_sigmoid():
    reference = reference_of(lambda x: (x - 10).exp(), torch.randn(3, 4))
    given, expected = reference.case(None)
    assert reference.kernel_errors(given, [0]) == [0.0]
    with pytest.raises(VerificationError, match="TM4001"):
        judge(reference, given, [expected[0] + np.float32(1.2e-7)], expected, ["y"])


def test_an_output_that_is_all_noise_is_not_verified(tmp_path: Path):
    report = tmconvert.to_onnx(gated(-60), tmp_path / "m.onnx", example_inputs=(torch.randn(3, 4),))
    assert set(report.verification.vacuous.values()) == {"zero but for rounding"}
    assert len(report.verification.vacuous) == 2
    assert not report.verification.tells


# ---- inputs that are drawn


def cancelling(scale: float) -> Any:
    """Sums of numbers of this scale that leave numbers of the scale 1."""
    return lambda x: (x * scale).sum(1) - (x * scale).flip(1).sum(1) + x[:, 0]


def refused(reference: Reference, distance: float, **options: bool) -> bool:
    """Whether an output at this distance from the expected one is refused."""
    given, (expected,) = reference.case(None)
    try:
        judge(reference, given, [expected + np.float32(distance)], [expected], ["y"], **options)
    except VerificationError as error:
        assert error.code == "TM4001"
        return True
    return False


def test_for_inputs_of_our_own_making_a_difference_by_rounding_is_no_error():
    reference = reference_of(cancelling(100), torch.randn(4, 200))
    given, (expected,) = reference.case(None)
    (noise,) = reference.noise(given, [0])
    largest = float(np.abs(expected).max())
    assert 4e-4 * largest < noise < largest / 128  # not zero but for rounding
    (own,) = reference.own_errors(given)
    assert not refused(reference, 4 * own)  # a few times what float32 costs the source itself
    assert refused(reference, 10 * own) and refused(reference, 3 * noise)
    assert not refused(reference, 0.5 * noise, is_drawn=True)
    assert refused(reference, 3 * noise, is_drawn=True)
    assert not refused(reference, 3 * noise, is_drawn=True, is_second=True)
    assert refused(reference, 100 * noise, is_drawn=True, is_second=True)


@pytest.mark.parametrize(("dtype", "eps"), [("float16", 2.0**-10), ("bfloat16", 2.0**-7)])
def test_rounding_of_narrow_floats_explains_differences_in_further_cases_alone(dtype: str, eps: float):
    reference = reference_of(lambda x: (x * 40).exp(), torch.rand(4, 20))
    reference.computes_in = dtype
    _, (expected,) = reference.case(None)
    off = 40 * eps * float(np.abs(expected).max())  # rounding of the exponent, which is near 40
    assert refused(reference, off) and refused(reference, off, is_drawn=True)
    assert not refused(reference, off, is_drawn=True, is_second=True)
    assert refused(reference, 20 * off, is_drawn=True, is_second=True)


def test_weights_are_no_activations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tmconvert.verification.reference.MAX_BYTES", 1 << 12)
    model, x = torch.nn.Sequential(torch.nn.Linear(64, 8)), torch.randn(2, 64)
    assert tmconvert.to_onnx(model, tmp_path / "o.onnx", example_inputs=[x]).verified
    report = tmconvert.to_onnx(without_example(torch.exp, torch.randn(64, 64)), tmp_path / "e.onnx")
    assert any("the activations need more than 4 GiB" in note for note in report.notes)


def test_rounding_explains_no_difference_of_more_than_a_hundredth_of_an_output():
    reference = reference_of(cancelling(1e3), torch.randn(4, 200))
    given, (expected,) = reference.case(None)
    (noise,) = reference.noise(given, [0])
    largest = float(np.abs(expected).max())
    assert 0.011 * largest < noise < largest / 64
    assert not refused(reference, 0.009 * largest, is_drawn=True)
    assert refused(reference, 0.011 * largest, is_drawn=True)


# ---- integers that rounding decides


def undecided(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Signs of two sums of equal elements, and of one that is far from zero; and another output."""
    rest = x.sum(1) - x.flip(1).sum(1)
    return torch.cat([rest, x[:1, 0] * 0 + 1]) > 0, x * 2


def second_of(function: Any, *inputs: torch.Tensor) -> tuple[Reference, list[np.ndarray], list[np.ndarray]]:
    reference = reference_of(function, *inputs)
    second = reference.second_case()
    assert second is not None
    return (reference, *second)


def test_integers_that_rounding_decides_are_left_out_of_the_second_case():
    reference, given, (signs, doubled) = second_of(undecided, torch.randn(2, 500))
    assert list(reference.decided(given, 0)) == [False, False, True]
    other = signs ^ np.array([True, True, False])
    judge(reference, given, [other, doubled], [signs, doubled], ["signs", "y"], is_second=True)
    with pytest.raises(VerificationError, match="signs"):
        judge(reference, given, [other, doubled], [signs, doubled], ["signs", "y"])


@pytest.mark.parametrize("wrong", ["signs", "y"])
def test_beside_integers_that_rounding_decides_all_else_is_compared(wrong: str):
    reference, given, (signs, doubled) = second_of(undecided, torch.randn(2, 500))
    made = {"signs": signs ^ np.array([True, True, False]), "y": doubled}
    made[wrong] = signs ^ np.array([False, False, True]) if wrong == "signs" else doubled * np.float32(1.001)
    with pytest.raises(VerificationError, match=f"output {wrong} differs"):
        judge(reference, given, list(made.values()), [signs, doubled], ["signs", "y"], is_second=True)


def test_a_file_whose_integers_rounding_decides_is_compared_in_its_second_case(tmp_path: Path):
    def change(model: onnx.ModelProto) -> None:
        (product,) = (node for node in model.graph.node if node.output[0] == model.graph.output[1].name)
        name, product.output[0] = product.output[0], "product"
        model.graph.node.append(onnx.helper.make_node("Abs", ["product"], [name]))

    # positive, so that only the second case shows an absolute value, and integers, so that sums are exact
    x = torch.randint(1, 9, (2, 500)).float()
    traced = tmconvert.trace(undecided, x)
    path = tmp_path / "m.onnx"
    tmconvert.to_onnx(traced, path)
    edited(path, change)
    with pytest.raises(VerificationError, match="TM4001"):
        tmconvert.verify(traced, path)


# ---- the order of equal elements


def test_indices_of_equal_elements():
    x = torch.tensor([[3.0, 1, 3, 2, 3, 0]])
    reference = reference_of(lambda x: torch.topk(x, 4), x)
    given, expected = reference.case(None)
    assert expected[1].tolist() != [[4, 0, 2, 3]]
    names, right = ["values", "indices"], np.array([[4, 0, 2, 3]])
    assert all(each.ok for each in judge(reference, given, [expected[0], right], expected, names))
    for wrong in ([[4, 0, 2, 1]], [[4, 4, 2, 3]], [[4, 0, 2, 7]]):
        with pytest.raises(VerificationError, match="TM4001"):
            judge(reference, given, [expected[0], np.array(wrong)], expected, names)


def test_the_index_of_one_of_equal_elements():
    x = torch.tensor([[3.0, 1, 3], [1, 0, 1]])
    reference = reference_of(lambda x: (x.argmax(1), x.argmax(1, keepdim=True), x.argmax()), x)
    given, expected = reference.case(None)
    assert judge(
        reference, given, [np.array([2, 2]), np.array([[2], [0]]), np.array(2)], expected, list("abc")
    )
    for wrong in ([1, 0], [0, 1]):
        with pytest.raises(VerificationError, match="TM4001"):
            judge(reference, given, [np.array(wrong), *expected[1:]], expected, list("abc"))


def test_boxes_of_equal_scores():
    def function(boxes: torch.Tensor, scores: torch.Tensor) -> Any:
        scores, order = scores.sort(descending=True, stable=True)
        return boxes[order], scores, order * 2

    boxes, scores = torch.randn(5, 4), torch.tensor([0.5, 0.9, 0.5, 0.1, 0.5])
    reference = reference_of(function, boxes, scores)
    given, expected = reference.case(None)
    order, names = [0, 3, 1, 2, 4], ["boxes", "scores", "labels"]
    assert judge(reference, given, [array[order] for array in expected], expected, names)
    for other in ([1, 0, 2, 3, 4], [0, 1, 1, 3, 4]):
        with pytest.raises(VerificationError, match="TM4001"):
            judge(reference, given, [array[other] for array in expected], expected, names)
    with pytest.raises(VerificationError, match="TM4001"):  # boxes change places, labels do not
        judge(reference, given, [expected[0][order], *expected[1:]], expected, names)


# ---- what shows nothing


@pytest.mark.parametrize(
    ("function", "what"),
    [
        (lambda x: torch.log(-x.abs() - 1), "NaN"),
        (lambda x: F.linear(x, torch.zeros(2, 4)), r"constant \(0\)"),
        (lambda x: x[x > 100], "empty"),
        (lambda x: x > -1e9, "constant (True)"),
        (lambda x: (x > -1e9).all(), "constant (True)"),
        (lambda x: (x > 1e9).long() + 7, "constant (7)"),
    ],
)
def test_outputs_that_show_nothing(function: Any, what: str, tmp_path: Path):
    report = tmconvert.to_onnx(function, tmp_path / "m.onnx", example_inputs=(torch.randn(3, 4),))
    assert not report.verified
    (note,) = [note for note in report.notes if "comparison shows nothing" in note]
    assert what.replace("\\", "") in note


def beside_a_constant(x: torch.Tensor) -> dict[str, torch.Tensor]:
    return {"varies": x * 2, "fixed": F.linear(x, torch.zeros(2, 4))}


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.tensor([True, False]),
        lambda x: torch.arange(3),
        lambda x: torch.ones(3, dtype=torch.bool),
        lambda x: torch.tensor(5),
        lambda x: torch.tensor([1.5, 2.0]),
    ],
)
def test_a_constant_is_not_verified(function: Any, tmp_path: Path):
    traced = tmconvert.trace(function, torch.randn(3, 4))
    report = tmconvert.to_onnx(traced, tmp_path / "m.onnx")
    assert not report.verified
    (output,) = report.outputs
    assert f"the output {output['name']} depends on no input: it is a constant of the file" in report.notes
    assert not any("shows nothing" in note for note in report.notes)
    assert not tmconvert.verify(traced, tmp_path / "m.onnx").tells


def test_an_output_that_depends_on_a_dynamic_size_is_no_constant(tmp_path: Path):
    report = tmconvert.to_onnx(
        lambda x: torch.arange(x.shape[0]),
        tmp_path / "m.onnx",
        example_inputs=(torch.randn(3, 4),),
        dynamic_shapes={"x": {0: "n"}},
    )
    assert report.verified and report.verification is not None
    assert not report.verification.independent


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("result", [None, 3, "a", (), [1, 2]])
def test_a_model_without_tensor_outputs_is_refused(result: Any, target: str, tmp_path: Path):
    with pytest.raises(UnsupportedError) as caught:
        TARGETS[target](lambda x: result, tmp_path / "m", example_inputs=(torch.randn(3, 4),))
    assert caught.value.code == "TM2010"
    assert caught.value.message == "the model returns no tensor: the file would have no output"
    assert caught.value.notes == (("help", "return at least one tensor from the model"),)


@pytest.mark.parametrize("is_file", [False, True])
def test_each_output_that_shows_nothing_is_reported(is_file: bool, tmp_path: Path):
    traced = tmconvert.trace(beside_a_constant, torch.randn(3, 4))
    verification = tmconvert.to_onnx(traced, tmp_path / "m.onnx").verification
    if is_file:
        verification = tmconvert.verify(traced, tmp_path / "m.onnx")
    assert verification is not None
    assert verification.tells
    assert verification.vacuous == {"fixed": "constant (0)"}
    shown = {each["name"]: each.get("not_compared") for each in verification.to_json()["outputs"]}  # type: ignore[attr-defined]
    assert shown == {"varies": None, "fixed": "constant (0)"}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("bias", [-1000.0, 0.0])
def test_integer_files_report_outputs_that_show_nothing(bias: float, target: str, tmp_path: Path):
    layer = nn.Linear(4, 3)
    nn.init.uniform_(layer.weight, 0.1, 0.5)  # nothing is negative but by the bias
    nn.init.constant_(layer.bias, bias)

    def function(x: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"y": F.relu(layer(x)), "z": x + 1}

    data = [[torch.rand(2, 4).numpy()] for _ in range(3)]
    traced = tmconvert.trace(function, torch.rand(2, 4))
    quantized = tmconvert.calibrate(traced, data)
    report = TARGETS[target](quantized, tmp_path / f"m.{target}", quantized=True)
    assert report.verification is not None
    assert dict(report.verification.vacuous) == ({"y": "constant (0)"} if bias else {})
    assert report.verified


@pytest.mark.parametrize("target", TARGETS)
def test_an_integer_file_whose_outputs_show_nothing_is_not_verified(target: str, tmp_path: Path):
    layer = nn.Linear(4, 3)
    nn.init.constant_(layer.bias, -1000.0)
    data = [[torch.rand(2, 4).numpy()] for _ in range(3)]
    quantized = tmconvert.calibrate(lambda x: F.relu(layer(x)), data, example_inputs=torch.rand(2, 4))
    path = tmp_path / f"m.{target}"
    report = TARGETS[target](quantized, path, quantized=True)
    assert report.verification is not None
    (name,) = (each["name"] for each in report.outputs)
    assert dict(report.verification.vacuous) == {name: "constant (0)"}
    assert not report.verification.tells and not report.verified
    assert report.to_json()["verified"] is False
    note = f"the output {name} is constant (0) for all inputs tried, so that its comparison shows nothing"
    assert note in report.notes
    assert str(report).startswith(f"not verified in {report.verification.runtime}: no output was informative")
    again = tmconvert.verify(quantized, path)
    assert not again.tells and dict(again.vacuous) == {name: "constant (0)"}


@pytest.mark.parametrize(
    "function", [F.relu, lambda x: F.relu(x - 4), lambda x: F.relu(-4 - x), lambda x: torch.log(x) * (x < 1)]
)
@pytest.mark.parametrize("is_zero", [False, True])
def test_other_inputs_are_drawn_for_outputs_that_stay_constant(function: Any, is_zero: bool):
    reference = reference_of(function, torch.zeros(3, 40))
    if not is_zero:
        reference.example = None
    constant = np.zeros((3, 40), np.float32)
    cases = list(reference.cases_for([[constant]], ["y"]))
    assert len(cases) == 1
    _, (expected,) = cases[0]
    assert len(np.unique(expected)) > 2
    assert not list(reference.cases_for([[constant], [expected]], ["y"]))


def test_a_file_is_judged_on_the_inputs_drawn_for_its_constant_outputs(tmp_path: Path):
    traced = tmconvert.trace(lambda x: F.relu(x - 4) * 2, torch.zeros(3, 40))
    path = tmp_path / "m.onnx"
    assert tmconvert.to_onnx(traced, path).verified

    def change(model: onnx.ModelProto) -> None:
        name = model.graph.output[0].name
        model.graph.node[-1].output[0] = "doubled"
        model.graph.node.append(onnx.helper.make_node("Add", ["doubled", "doubled"], [name]))

    edited(path, change)
    with pytest.raises(VerificationError, match="TM4001"):
        tmconvert.verify(traced, path)


def test_a_second_input_may_tell(tmp_path: Path):
    report = tmconvert.to_onnx(lambda x: F.relu(-x), tmp_path / "m.onnx", example_inputs=(torch.rand(3, 4),))
    assert report.verified and not report.notes


def test_an_example_of_zeros_is_followed_by_other_inputs(tmp_path: Path):
    for convert, name in ((tmconvert.to_onnx, "m.onnx"), (tmconvert.to_tflite, "m.tflite")):
        report = convert(nn.ReLU(), tmp_path / name, example_inputs=(torch.zeros(1, 3, 4, 4),))
        assert report.verified and not report.notes


# ---- models that were edited, and quantized ones


@pytest.mark.parametrize("is_open", [False, True])
def test_an_edited_model_is_compared_with_its_graph(is_open: bool, tmp_path: Path):
    x = 3 * torch.randn(4, 3, generator=torch.Generator().manual_seed(1))
    traced = tmconvert.trace(
        lambda x: F.relu(x + TABLE[0]) * 2, x, dynamic_shapes={"x": {0: "n"}} if is_open else None
    )
    report = tmconvert.to_onnx(traced, tmp_path / "before.onnx")
    assert report.verified and not report.notes and traced.example.outputs is not None
    graph = traced.graph
    relu = next(expr for expr in graph if "relu" in repr(expr))
    (given,) = relu.inputs
    graph.replace_uses(relu.outputs[0], given)
    graph.remove(relu)
    report = tmconvert.to_onnx(traced, tmp_path / "after.onnx")
    assert report.verified and "edited" in report.notes[0]
    tmconvert.verify(traced, tmp_path / "after.onnx")
    with pytest.raises(VerificationError, match="TM4001"):
        tmconvert.verify(traced, tmp_path / "before.onnx")
    traced.save(tmp_path / "m.tm")
    loaded = tmconvert.load(tmp_path / "m.tm")
    assert not loaded.is_edited()
    np.testing.assert_array_equal(loaded.example.outputs[0], traced(*traced.example.inputs))
    tmconvert.verify(loaded, tmp_path / "after.onnx")


def test_an_edited_weight_is_seen(tmp_path: Path):
    traced = tmconvert.trace(torch.nn.Linear(3, 2), torch.randn(4, 3))
    assert not traced.is_edited()
    traced.tensors["weight"] = traced.tensors["weight"] * 2
    assert traced.is_edited()
    assert "edited" in tmconvert.to_onnx(traced, tmp_path / "m.onnx").notes[0]


@pytest.mark.filterwarnings("ignore")
def test_a_float_file_that_is_far_from_its_fake_quantized_source(tmp_path: Path):
    def function(x: torch.Tensor, limit: float, steps: int) -> torch.Tensor:
        return torch.fake_quantize_per_tensor_affine(x, limit / steps, 0, 0, steps) * 2

    x = torch.rand(4, 5)
    for limit, steps, is_far in ((1.0, 255, False), (0.05, 255, False), (1.0, 3, True)):
        report = tmconvert.to_onnx(
            lambda x, limit=limit, steps=steps: function(x, limit, steps),
            tmp_path / "m.onnx",
            example_inputs=(x,),
        )
        assert any("differs by" in note and "--quantized" in note for note in report.notes) is is_far


def test_a_conversion_looks_at_the_weights_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """When it flattens the model, and when it chooses what to compare the file with."""
    traced = tmconvert.trace(torch.nn.Linear(3, 2), torch.randn(4, 3))
    seen: list[int] = []
    original = pristine._checksum

    def counted(tensor: np.ndarray) -> int:
        seen.append(id(tensor))
        return original(tensor)

    monkeypatch.setattr(pristine, "_checksum", counted)
    tmconvert.to_tflite(traced, tmp_path / "m.tflite")
    assert sorted(seen) == sorted(2 * [id(tensor) for tensor in traced.tensors.values()])
