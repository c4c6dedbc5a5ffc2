"""Sizes that are sums and multiples of others, and open sizes of nested inputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from torch.export import Dim

import tmconvert
from tmconvert.cli.option_values import dynamic_shapes
from tmconvert.errors import UnsupportedError, UsageError

from .harness import run_onnx

DECODER_SIZES = {
    "x": {0: "batch", 1: "sequence"},
    "mask": {0: "batch", 1: "past+sequence"},
    "past.0.key": {0: "batch", 1: "past"},
    "past.0.value": {0: "batch", 1: "past"},
}


class Decoder(torch.nn.Module):
    """Attention of one head with a cache, and a causal mask of the kind that transformers makes."""

    def forward(self, x: Any, mask: Any, past: Any) -> Any:
        key, value = (torch.cat([past[0][name], x], 1) for name in ("key", "value"))
        rows = torch.arange(x.shape[1]) + past[0]["key"].shape[1]
        sees = (torch.arange(mask.shape[1]) <= rows[:, None]) & mask[:, None].bool()
        scores = (x @ key.mT).masked_fill(~sees, -1e4)
        return {"y": scores.softmax(-1) @ value, "present": [{"key": key, "value": value}]}


def decoder_inputs(batch: int, past: int, sequence: int) -> tuple[Any, ...]:
    key, value = torch.randn(2, batch, past, 4)
    mask = (torch.arange(past + sequence) > 0).long().expand(batch, -1).clone()
    return torch.randn(batch, sequence, 4), mask, [{"key": key, "value": value}]


def flat(inputs: tuple[Any, ...]) -> list[np.ndarray]:
    return [tensor.numpy() for tensor in torch.utils._pytree.tree_leaves(inputs)]


def sizes_in(path: Path) -> dict[str, list[str | int]]:
    graph = onnx.load(path).graph
    return {
        each.name: [extent.dim_param or extent.dim_value for extent in each.type.tensor_type.shape.dim]
        for each in (*graph.input, *graph.output)
    }


@pytest.mark.slow
def test_a_mask_over_the_past_and_the_sequence_leaves_all_sizes_open(tmp_path: Path) -> None:
    model, path = Decoder(), tmp_path / "decoder.onnx"
    report = tmconvert.to_onnx(
        model, path, example_inputs=decoder_inputs(2, 7, 5), dynamic_shapes=DECODER_SIZES
    )
    assert report.notes == []
    sizes = sizes_in(path)
    assert sizes["mask"] == ["batch", "past+sequence"]
    assert sizes["past_0_key"] == ["batch", "past", 4]
    assert sizes["present_0_value"] == ["batch", "past+sequence", 4]
    for batch, past, sequence in ((1, 0, 4), (3, 1, 1), (2, 9, 1), (1, 4, 6)):
        inputs = decoder_inputs(batch, past, sequence)
        wanted = torch.utils._pytree.tree_leaves(model(*inputs))
        for made, tensor in zip(run_onnx(path, flat(inputs)), wanted, strict=True):
            np.testing.assert_allclose(made, tensor.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_the_names_of_nested_inputs_are_those_of_the_trace_everywhere(tmp_path: Path) -> None:
    traced = tmconvert.trace(Decoder(), *decoder_inputs(2, 7, 5), dynamic_shapes=DECODER_SIZES)
    assert traced.dynamic_shapes == DECODER_SIZES
    traced.save(tmp_path / "decoder.tm")
    loaded = tmconvert.load(tmp_path / "decoder.tm")
    assert loaded.dynamic_shapes == DECODER_SIZES
    tmconvert.to_onnx(loaded, tmp_path / "a.onnx", dynamic_shapes=DECODER_SIZES)
    assert sizes_in(tmp_path / "a.onnx")["past_0_key"] == ["batch", "past", 4]
    underscores = {name.replace(".", "_"): axes for name, axes in DECODER_SIZES.items()}
    tmconvert.to_onnx(loaded, tmp_path / "b.onnx", dynamic_shapes=underscores, rename={"past.0.key": "k"})
    assert sizes_in(tmp_path / "b.onnx")["k"] == ["batch", "past", 4]
    tmconvert.to_onnx(loaded, tmp_path / "c.onnx", input_shapes={"past.0.key": (2, 6, 4)})
    assert sizes_in(tmp_path / "c.onnx")["mask"] == [2, "sequence+6"]


@pytest.mark.slow
def test_a_size_that_is_fixed_leaves_the_rest_of_a_sum(tmp_path: Path) -> None:
    class Fixed(Decoder):
        def forward(self, x: Any, mask: Any, past: Any) -> Any:
            return super().forward(x * int(past[0]["key"].shape[1] ** 0.3), mask, past)

    options = {"dynamic_shapes": DECODER_SIZES}
    with pytest.raises(UnsupportedError, match="the size past cannot stay dynamic"):
        tmconvert.trace(Fixed(), *decoder_inputs(2, 7, 5), **options)
    traced = tmconvert.trace(Fixed(), *decoder_inputs(2, 7, 5), fix={"past": 7}, **options)
    assert traced.dynamic_shapes["mask"] == {0: "batch", 1: "sequence+7"}
    tmconvert.to_onnx(traced, tmp_path / "model.onnx")
    assert sizes_in(tmp_path / "model.onnx")["present_0_key"] == ["batch", "sequence+7", 4]


@pytest.mark.parametrize("size", ["2*n", 2 * Dim("n"), "n + n"])
def test_multiples_of_a_size_that_no_axis_has(size: Any, tmp_path: Path) -> None:
    def halves(x: Any) -> Any:
        return x.reshape(2, -1).flip(0)

    report = tmconvert.to_onnx(
        halves, tmp_path / "x.onnx", example_inputs=torch.randn(10), dynamic_shapes={"x": {0: size}}
    )
    assert report.notes == []
    assert list(sizes_in(tmp_path / "x.onnx").values()) == [["2*n"], [2, "n"]]


def test_the_command_line_takes_sums() -> None:
    assert dynamic_shapes(["mask:1=past+sequence"]) == {"mask": {1: "past+sequence"}}


class Sum(torch.nn.Module):
    def forward(self, x: Any, past: Any, bias: Any) -> Any:
        return torch.cat([past, x], 1) + bias


@pytest.mark.parametrize("is_file", [False, True])
def test_exported_programs_keep_their_sums(is_file: bool, tmp_path: Path) -> None:
    inputs = torch.randn(2, 5), torch.randn(2, 7), torch.randn(2, 12)
    shapes = {name: {1: Dim.AUTO} for name in ("x", "past", "bias")}
    program: Any = torch.export.export(Sum(), inputs, dynamic_shapes=shapes)
    if is_file:
        torch.export.save(program, tmp_path / "sum.pt2")
        program = tmp_path / "sum.pt2"
    assert tmconvert.to_onnx(program, tmp_path / "sum.onnx").notes == []
    sizes = sizes_in(tmp_path / "sum.onnx")
    (_, x), (_, past) = sizes["x"], sizes["past"]
    assert sizes["bias"] == [2, "+".join(sorted((str(x), str(past))))]


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"x": {1: "s"}, "past": {1: "p"}, "bias": {1: "p+s+s"}}, "but p\\+2\\*s is 12 as axis 1 of bias"),
        ({"x": {1: "s"}, "bias": {1: "p+s+r"}}, "from which the sizes p, r, s do not follow"),
        ({"x": {1: "2*s"}}, "from which the sizes s do not follow"),
        ({"x": {1: "s+"}}, "is not a valid name"),
        ({"x": {1: "7"}}, "is not a valid name"),
        ({"past.1": {1: "p"}}, "has no input 'past.1'"),
    ],
)
def test_sizes_that_do_not_fit(shapes: Any, message: str) -> None:
    inputs = torch.randn(2, 5), torch.randn(2, 7), torch.randn(2, 12)
    with pytest.raises(UsageError, match=message) as found:
        tmconvert.trace(Sum(), *inputs, dynamic_shapes=shapes)
    assert found.value.code == "TM6014"


def test_a_run_checks_sums() -> None:
    inputs = torch.randn(2, 5), torch.randn(2, 7), torch.randn(2, 12)
    shapes = {"x": {1: "s"}, "past": {1: "p"}, "bias": {1: "p+s"}}
    traced = tmconvert.trace(Sum(), *inputs, dynamic_shapes=shapes)
    assert traced(np.ones((2, 3), "f4"), np.ones((2, 4), "f4"), np.ones((2, 7), "f4")).shape == (2, 7)
    with pytest.raises(UsageError, match="but p\\+s is 9 as axis 1 of bias"):
        traced(np.ones((2, 3), "f4"), np.ones((2, 4), "f4"), np.ones((2, 9), "f4"))


def test_a_layout_that_depends_on_a_size_fixes_nothing(tmp_path: Path) -> None:
    def heads(x: Any) -> Any:
        y = x.unflatten(2, (2, -1)).transpose(1, 2)
        return (y * 2).transpose(1, 2).contiguous().flatten(2) if x.shape[1] > 0 else x

    traced = tmconvert.trace(heads, torch.randn(2, 5, 6), dynamic_shapes={"x": {0: "batch", 1: "tokens"}})
    assert tmconvert.to_onnx(traced, tmp_path / "heads.onnx").ranges == []
    x = torch.randn(3, 1, 6)
    np.testing.assert_allclose(run_onnx(tmp_path / "heads.onnx", [x.numpy()])[0], heads(x).numpy())


def test_repeating_by_a_number_is_no_look_into_data() -> None:
    def repeated(x: Any) -> Any:
        y = torch.repeat_interleave(x, 2, dim=1)
        return y + 1 if y.shape[0] == 1 else y * 2 * torch.ones(y.shape[1])

    traced = tmconvert.trace(repeated, torch.randn(3, 4), dynamic_shapes={"x": {1: "n"}})
    assert traced.dynamic_shapes == {"x": {1: "n"}}
    assert traced.notes == []


class Pairs(torch.nn.Module):
    def forward(self, x: Any, past: Any) -> Any:
        return x + 1, [tuple(part * 2 for part in layer) for layer in past]


@pytest.mark.parametrize(
    ("parts", "names"),
    [
        (2, ["0.key", "0.value"]),
        (4, ["0.decoder.key", "0.decoder.value", "0.encoder.key", "0.encoder.value"]),
        (3, None),
    ],
)
def test_caches_have_the_names_of_optimum_on_request(
    parts: int, names: list[str] | None, tmp_path: Path
) -> None:
    past = [tuple(torch.randn(parts, 2, 3))]
    traced = tmconvert.trace(Pairs(), torch.randn(2), past)
    report = tmconvert.to_onnx(traced, tmp_path / "a.onnx", names="optimum", rename={"x": "tokens"})
    inputs, outputs = ([each["name"] for each in side] for side in (report.inputs, report.outputs))
    if names is None:
        assert inputs == ["tokens", "past_0_0", "past_0_1", "past_0_2"]
        return
    assert inputs == ["tokens", *(f"past_key_values.{name}" for name in names)]
    assert outputs[1:] == [f"present.{name}" for name in names]
    assert tmconvert.verify(traced, tmp_path / "a.onnx").max_error < 1e-6


class ConvolutionState(torch.nn.Module):
    def forward(self, x: Any, cache: Any) -> Any:
        state = cache[0]["conv_states"][0]
        return {"y": x + state.sum(), "cache": [{"conv_states": [state + x]}]}


def test_states_of_convolutions_have_the_names_of_optimum(tmp_path: Path) -> None:
    traced = tmconvert.trace(ConvolutionState(), torch.randn(2), [{"conv_states": [torch.randn(3, 2)]}])
    report = tmconvert.to_onnx(traced, tmp_path / "a.onnx", names="optimum")
    inputs, outputs = ([each["name"] for each in side] for side in (report.inputs, report.outputs))
    assert inputs == ["x", "past_conv.0"] and outputs == ["y", "present_conv.0"]


def test_names_of_optimum_are_for_whole_models(tmp_path: Path) -> None:
    traced = tmconvert.trace(Pairs(), torch.randn(2), [tuple(torch.randn(2, 2, 3))])
    with pytest.raises(UsageError, match="whole models"):
        tmconvert.to_onnx(traced, tmp_path / "a.onnx", names="optimum", inputs=["x"])
    with pytest.raises(UsageError, match="optimum"):
        tmconvert.to_onnx(traced, tmp_path / "a.onnx", names="other")


class Branching(torch.nn.Module):
    def forward(self, x: Any, past: Any, bias: Any) -> Any:
        y = torch.cat([past, x], 1) + bias
        return y * 2 if past.shape[1] > 0 else y


@pytest.mark.slow
def test_another_branch_without_a_past_needs_consent(tmp_path: Path) -> None:
    inputs = torch.randn(2, 5), torch.randn(2, 7), torch.randn(2, 12)
    shapes = {"x": {1: "s"}, "past": {1: "p"}, "bias": {1: "p+s"}}
    traced = tmconvert.trace(Branching(), *inputs, dynamic_shapes=shapes)
    with pytest.raises(UnsupportedError, match=r"valid for p >= 1 only.* something else at p = 0") as found:
        tmconvert.to_onnx(traced, tmp_path / "a.onnx")
    assert found.value.code == "TM2030"
    report = tmconvert.to_onnx(traced, tmp_path / "a.onnx", accept_range=True)
    assert report.ranges == ["p >= 1"]


class Careful(torch.nn.Module):
    def forward(self, x: Any, past: Any, bias: Any) -> Any:
        start = 0 if past.numel() == 0 else past.shape[1]
        return torch.cat([past, x + torch.arange(start, start + x.shape[1])], 1) + bias


@pytest.mark.slow
def test_another_branch_that_computes_the_same_without_a_past_needs_none(tmp_path: Path) -> None:
    inputs = torch.randn(2, 5), torch.randn(2, 7), torch.randn(2, 12)
    shapes = {"x": {1: "s"}, "past": {1: "p"}, "bias": {1: "p+s"}}
    traced = tmconvert.trace(Careful(), *inputs, dynamic_shapes=shapes)
    assert tmconvert.to_onnx(traced, tmp_path / "a.onnx").ranges == []
    empty = torch.randn(2, 3), torch.randn(2, 0), torch.randn(2, 3)
    made = run_onnx(tmp_path / "a.onnx", [each.numpy() for each in empty])[0]
    np.testing.assert_allclose(made, Careful()(*empty).numpy(), rtol=1e-5)


@pytest.mark.slow
def test_rows_of_a_table_below_its_end_stay_open(tmp_path: Path) -> None:
    """A causal mask from a table of 32 positions: slices of it have past + sequence elements up to there."""
    table = torch.tril(torch.ones(32, 32, dtype=torch.bool))

    def model(x: torch.Tensor, past: torch.Tensor) -> torch.Tensor:
        keys = torch.cat([past, x], 1)
        length, before = keys.shape[1], keys.shape[1] - x.shape[1]
        scores = x @ keys.mT
        return torch.where(table[before:length, :length], scores, -1e4).softmax(-1) @ keys

    sizes = {"x": {1: "sequence"}, "past": {1: "past"}}
    example = (torch.randn(2, 3, 4), torch.randn(2, 5, 4))
    report = tmconvert.to_onnx(model, tmp_path / "m.onnx", example_inputs=example, dynamic_shapes=sizes)
    assert report.ranges == ["past+sequence <= 32"]
    for past, sequence in ((0, 7), (9, 1), (12, 20)):
        x, before = torch.randn(2, sequence, 4), torch.randn(2, past, 4)
        (found,) = run_onnx(tmp_path / "m.onnx", [x.numpy(), before.numpy()])
        np.testing.assert_allclose(found, model(x, before), atol=1e-5)
