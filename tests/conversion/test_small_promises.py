"""Smaller promises: counts of parameters, names of the written file, errors of one frame, types."""

from __future__ import annotations

import importlib.resources
import traceback
from pathlib import Path

import numpy as np
import pytest

import tmconvert
from tests.cli.runner import run
from tmconvert.errors import UnsupportedError, UsageError, VerificationError, WriteError
from tmconvert.errors.explanations import EXPLANATIONS

torch = pytest.importorskip("torch")


class Heads(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4), torch.nn.ReLU())
        self.first, self.second = torch.nn.Linear(4, 3), torch.nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> dict[str, object]:
        y = self.body(x)
        return {"a": self.first(y), "b": [self.second(y), y]}


class OtherOutput(Heads):
    def forward(self, x: torch.Tensor) -> dict[str, object]:
        result = super().forward(x)
        result["other"] = result.pop("a")
        return result


class OtherInput(Heads):
    def forward(self, other: torch.Tensor) -> dict[str, object]:  # type: ignore[override]
        return super().forward(other)


@pytest.fixture
def heads() -> tmconvert.ir.TracedModule:
    torch.manual_seed(0)
    return tmconvert.trace(Heads().eval(), torch.rand(2, 4))


def test_parameters_are_counted_as_torch_does(heads: tmconvert.ir.TracedModule, tmp_path: Path) -> None:
    own = Heads()
    parameters = sum(each.numel() for each in own.parameters())
    buffers = sum(each.numel() for each in own.buffers())
    assert (heads.parameter_count(), heads.buffer_count()) == (parameters, buffers)
    heads.save(tmp_path / "m.tm")
    again = tmconvert.load(tmp_path / "m.tm")
    assert (again.parameter_count(), again.buffer_count()) == (parameters, buffers)
    assert run("inspect", tmp_path / "m.tm", "--json").json["buffers"] == buffers
    report = tmconvert.to_onnx(heads, tmp_path / "m.onnx")
    assert report.parameters == parameters - 8  # the norm is folded into the layer before it


@pytest.mark.parametrize("outputs", [["a"], ["b_1", "a"], ["linear_out_1"]])
def test_outputs_go_by_the_names_of_the_file(
    outputs: list[str], heads: tmconvert.ir.TracedModule, tmp_path: Path
) -> None:
    whole = tmconvert.to_onnx(heads, tmp_path / "whole.onnx")
    assert [each["name"] for each in whole.outputs] == ["a", "b_0", "b_1"]
    report = tmconvert.to_onnx(heads, tmp_path / "m.onnx", outputs=outputs)
    assert [each["name"] for each in report.outputs] == outputs
    tmconvert.verify(heads, tmp_path / "m.onnx", outputs=outputs)
    with pytest.raises(UsageError, match="'b_2'") as error:
        tmconvert.to_onnx(heads, tmp_path / "m.onnx", outputs=["b_2"])
    assert "b_0" in dict(error.value.notes)["help"]


@pytest.mark.parametrize("suffix", ["onnx", "tflite"])
def test_a_file_of_another_model(suffix: str, heads: tmconvert.ir.TracedModule, tmp_path: Path) -> None:
    write = tmconvert.to_onnx if suffix == "onnx" else tmconvert.to_tflite
    path = tmp_path / f"m.{suffix}"
    write(tmconvert.trace(OtherOutput().eval(), torch.rand(2, 4)), path)
    with pytest.raises(VerificationError, match="the outputs of the file are b_0, b_1, other, but"):
        tmconvert.verify(heads, path)
    write(tmconvert.trace(OtherInput().eval(), torch.rand(2, 4)), path)
    with pytest.raises(VerificationError, match="the inputs of the file are other, but"):
        tmconvert.verify(heads, path)


def test_a_file_of_another_shape(heads: tmconvert.ir.TracedModule, tmp_path: Path) -> None:
    wide = tmconvert.trace(Heads().eval(), torch.rand(3, 4))
    tmconvert.to_onnx(wide, tmp_path / "m.onnx")
    with pytest.raises(VerificationError, match=r"the input x of the file has shape \[3, 4\], .* \[2, 4\]"):
        tmconvert.verify(heads, tmp_path / "m.onnx")


@pytest.mark.parametrize("length", [1500, 8000])
def test_what_is_saved_can_be_loaded(length: int, tmp_path: Path) -> None:
    module = torch.nn.Sequential()
    module.add_module("n" * length, torch.nn.Linear(2, 2))
    made = tmconvert.trace(module, torch.rand(1, 2))
    made.save(tmp_path / "m.tm")
    assert np.array_equal(
        tmconvert.load(tmp_path / "m.tm")(np.ones((1, 2), np.float32)), made(np.ones((1, 2), np.float32))
    )


def test_a_name_that_no_file_holds(tmp_path: Path) -> None:
    module = torch.nn.Sequential()
    module.add_module("n" * 30_000, torch.nn.Linear(2, 2))
    with pytest.raises((WriteError, UnsupportedError, UsageError), match="30000 characters"):
        tmconvert.trace(module, torch.rand(1, 2)).save(tmp_path / "m.tm")
    assert not list(tmp_path.iterdir())


def test_errors_have_one_frame_of_ours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TMCONVERT_DEBUG", raising=False)

    class Branch(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * round(x.sum().item())

    for debug, most in (("", 2), ("1", 100)):
        monkeypatch.setenv("TMCONVERT_DEBUG", debug)
        with pytest.raises(UnsupportedError) as error:
            tmconvert.to_onnx(Branch(), tmp_path / "o.onnx", example_inputs=torch.ones(2))
        frames = len(traceback.extract_tb(error.value.__traceback__))
        assert frames <= most
        assert (frames > 2) == bool(debug)


def test_many_ops_with_one_remedy_share_a_line(tmp_path: Path) -> None:
    layers = [torch.nn.RReLU(), torch.nn.AlphaDropout(), torch.nn.FeatureAlphaDropout(), torch.nn.Dropout2d()]
    traced = tmconvert.trace(
        torch.nn.Sequential(torch.nn.Dropout(), *layers), torch.ones(1, 3, 8, 8), training=True
    )
    with pytest.raises(UnsupportedError) as error:
        tmconvert.to_tflite(traced, tmp_path / "o.tflite")
    also = [text for label, text in error.value.notes if label == "also"]
    assert len(also) == 1
    assert also[0].startswith("the same help applies to torch.nn.functional.rrelu (1), ")


def test_the_report_may_have_arrays_where_calibration_has_images(tmp_path: Path) -> None:
    images = np.random.default_rng(0).integers(0, 255, (4, 3, 8, 8), np.uint8)
    np.savez(tmp_path / "images.npz", x=images)
    module = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU())
    report = tmconvert.to_tflite(
        module,
        tmp_path / "o.tflite",
        quantized=True,
        example_inputs=torch.rand(1, 3, 8, 8),
        calibration={"input": images},
        calibration_settings={"std": [0.5, 0.5, 0.5]},
        report_data={"input": images.astype(np.float32) / 127.5},
    )
    assert report.verification is not None and report.verification.noise


def test_types_are_for_users_too() -> None:
    assert importlib.resources.files("tmconvert").joinpath("py.typed").is_file()


def test_a_difference_is_not_always_a_defect() -> None:
    assert "it is a defect" not in EXPLANATIONS["TM4001"].remedy
