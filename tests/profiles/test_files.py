"""User profiles, the forecast, and conversions that heed a profile."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import tmconvert
from tests.cli.runner import run
from tmconvert import api
from tmconvert.errors import TmconvertError
from tmconvert.inspection.firmware import write_firmware
from tmconvert.profiles.files import operations_of_file
from tmconvert.profiles.registry import profile_named

OWN = """
extends = "ethos-u55"
[sources.guide]
document = "a guide"
[[rules]]
name = "own-stride"
operators = "CONV_2D"
quantity = "attribute.stride_w"
high = 1
help = "use no strides"
source = "guide"
"""


class Net(torch.nn.Module):
    """A mean of a batch, a copy along an axis, and a stride of 4: forms that the Ethos-U55 does not run."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3, stride=2)
        self.pool = torch.nn.AvgPool2d(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.pool(self.conv(x))
        return y.mean((2, 3), keepdim=True).expand(2, 4, 3, 3) + y


def written(path: Path, **options: object) -> tmconvert.Report:
    torch.manual_seed(0)
    x = torch.randn(2, 3, 27, 27)
    samples = [(np.asarray(x),)]
    return tmconvert.to_tflite(
        tmconvert.trace(Net().eval(), x), path, quantized=True, calibration=samples, **options
    )


def test_a_conversion_writes_what_the_profile_runs(tmp_path: Path) -> None:
    plain, made = tmp_path / "plain.tflite", tmp_path / "made.tflite"
    written(plain)
    report = written(made, profile="ethos-u55")
    assert report.verified
    assert {"ethos-u-stride", "ethos-u-mean-batch"} <= {
        each.rule for each in tmconvert.lint(plain, profile="ethos-u55")
    }
    assert tmconvert.lint(made, profile="ethos-u55") == []
    forecast = api.forecast(made, "ethos-u55")
    assert (forecast.parts, forecast.crossing, forecast.elsewhere.total()) == (1, 0, 0)
    before = api.forecast(plain, "ethos-u55")
    assert before.parts > 1
    assert before.crossing > 0
    one, other = (tmconvert.run(path, np.zeros((2, 27, 27, 3), np.int8)) for path in (plain, made))
    for name, array in one.items():
        assert np.abs(array.astype(int) - other[name]).max() <= 1


@pytest.mark.parametrize("is_quantized", [False, True])
def test_a_function_without_an_operator_is_computed_by_others(is_quantized: bool, tmp_path: Path) -> None:
    x = torch.linspace(-3, 3, 24).reshape(4, 6)
    traced = tmconvert.trace(torch.nn.functional.gelu, x)
    options = {"quantized": True, "calibration": [(np.asarray(x),)]} if is_quantized else {}
    report = tmconvert.to_tflite(traced, tmp_path / "m.tflite", profile="tflm", **options)
    assert report.verified
    assert tmconvert.lint(tmp_path / "m.tflite", profile="tflm") == []
    assert "GELU" not in {each.type for each in operations_of_file(tmp_path / "m.tflite").main}


def test_what_a_runtime_does_not_load_is_an_error(tmp_path: Path) -> None:
    def distances(x: torch.Tensor) -> torch.Tensor:
        return x**0.3

    with pytest.raises(TmconvertError, match="tflm-operator") as raised:
        tmconvert.to_tflite(
            tmconvert.trace(distances, torch.rand(2, 3)), tmp_path / "m.tflite", profile="tflm"
        )
    assert raised.value.code == "TM2024"
    assert not list(tmp_path.iterdir())


def test_what_a_widespread_gpu_computes_wrongly_is_a_note_by_default(tmp_path: Path) -> None:
    grouped = torch.nn.Conv2d(24, 24, 3, groups=4)  # which costs too much without groups
    report = tmconvert.to_tflite(grouped, tmp_path / "m.tflite", example_inputs=[torch.ones(1, 24, 5, 5)])
    assert [note.partition(":")[0] for note in report.notes if "rightly" in note] == [
        "LiteRT's GPU accelerator"
    ]
    torch.manual_seed(0)
    plain = tmconvert.to_tflite(
        torch.nn.Conv2d(3, 4, 3), tmp_path / "n.tflite", example_inputs=[torch.ones(1, 3, 5, 5)]
    )
    assert not [note for note in plain.notes if "rightly" in note]


def test_a_profile_of_the_user_extends_another(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text(OWN, encoding="utf-8")
    written(tmp_path / "m.tflite", profile="ethos-u55")
    outcome = run("lint", tmp_path / "m.tflite", "--profile", own)
    assert outcome.status == 1
    assert "own-stride  (not run there, no tool confirms it)" in outcome.stdout
    assert profile_named(str(own)).known == profile_named("ethos-u55").known


@pytest.mark.parametrize(
    ("old", "new", "cause"),
    [
        ("quantity", "quantities", "unknown field 'quantities'"),
        ("attribute.stride_w", "stride of w", "unknown quantity 'stride of w'"),
        ("high = 1", "", "sets no limit"),
        ('"guide"\n', '"book"\n', "no source 'book'"),
        ("extends =", "extends", "not TOML"),
    ],
)
def test_a_field_that_is_wrong_is_named(old: str, new: str, cause: str, tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text(OWN.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(TmconvertError, match=cause) as raised:
        profile_named(str(own))
    assert raised.value.code == "TM6070"


def test_sources_for_firmware(tmp_path: Path) -> None:
    model = tmp_path / "m.tflite"
    written(model, profile="tflm")
    notes = write_firmware(model, tmp_path / "firmware")
    write_firmware(model, tmp_path / "firmware")  # once more over the first ones
    texts = {path.name: path.read_text("utf-8") for path in (tmp_path / "firmware").iterdir()}
    assert set(texts) == {"model_data.h", "op_resolver.h", "arena.h", "test_vector.h"}
    types = {each.type for each in operations_of_file(model).main}
    assert f"MicroMutableOpResolver<{len(types)}> MakeOpResolver()" in texts["op_resolver.h"]
    assert "resolver.AddConv2D();" in texts["op_resolver.h"]
    numbers = texts["model_data.h"].partition("{")[2].partition("}")[0]
    assert bytes(map(int, numbers.split(","))) == model.read_bytes()
    assert "const int8_t test_output_0[]" in texts["test_vector.h"]
    assert ("kArenaSize" in texts["arena.h"]) == (not any("not measured" in note for note in notes))
