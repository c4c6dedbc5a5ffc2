"""``tmconvert run`` and ``tmconvert.run``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import tmconvert
from tests.cli.runner import DATA, Outcome, model, run
from tmconvert.errors import UsageError

RESNET = model("resnet18")


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez("x.npz", x=recorded("in0"))


def recorded(name: str) -> np.ndarray:
    with np.load(DATA / "resnet18.npz") as arrays:
        return np.asarray(arrays[name])


def outputs() -> dict[str, np.ndarray]:
    with np.load("y.npz") as arrays:
        return dict(arrays)


def started(*more: str, given: str = "x.npz") -> Outcome:
    return run("run", RESNET, "-i", given, "-o", "y.npz", *more)


def test_writes_outputs_by_their_names() -> None:
    outcome = started()
    assert (outcome.status, outcome.stdout, outcome.stderr) == (0, "fc_out  float32[1,10]\n", "")
    np.testing.assert_allclose(outputs()["fc_out"], recorded("out0"), atol=1e-5)


@pytest.mark.parametrize("name", ["in0", "arr_0", "whatever"])
def test_one_array_for_each_input_is_taken_in_order(name: str) -> None:
    np.savez("other.npz", **{name: recorded("in0")})
    assert started(given="other.npz").status == 0


def test_watches_tensors_by_name_and_pattern() -> None:
    outcome = started("--watch", "relu_out", "--watch", "layer1.*.relu_out", "--json")
    names = [array["name"] for array in outcome.json["arrays"]]
    assert names == ["relu_out", "layer1.0.relu_out", "layer1.1.relu_out", "fc_out"]
    assert outcome.json["arrays"][0]["dtype"] == "float32"
    assert set(outputs()) == set(names)
    assert outputs()["layer1.0.relu_out"].min() == 0


def test_equal_runs_write_equal_files() -> None:
    started()
    first = Path("y.npz").read_bytes()
    started()
    assert Path("y.npz").read_bytes() == first


@pytest.mark.parametrize(
    ("arrays", "text"),
    [
        ({"x": np.zeros((1, 3, 32, 32))}, "the input 'x' must be f32"),
        ({"x": np.zeros((1, 4, 32, 32), np.float32)}, "TM6003"),
        ({"y": np.zeros(1), "z": np.zeros(1)}, "no array for the input x (in0); it has y, z"),
    ],
)
def test_wrong_inputs_are_named_and_nothing_is_written(arrays: dict[str, np.ndarray], text: str) -> None:
    np.savez("wrong.npz", **arrays)
    outcome = started(given="wrong.npz")
    assert outcome.status == 2 and text in outcome.stderr
    assert not Path("y.npz").exists()


def test_an_unknown_watch_name_is_named_and_nothing_is_written() -> None:
    outcome = started("--watch", "layer1.0.rellu_out")
    assert outcome.status == 2
    assert "TM6050" in outcome.stderr and "did you mean 'layer1.0.relu_out'?" in outcome.stderr
    assert not Path("y.npz").exists()


def test_the_files_that_are_read_stay() -> None:
    before = Path("x.npz").read_bytes()
    outcome = run("run", RESNET, "-i", "x.npz", "-o", "x.npz")
    assert outcome.status == 2 and "TM6013" in outcome.stderr
    assert Path("x.npz").read_bytes() == before
    assert "TM5001" in run("run", RESNET, "-i", "x.npz", "-o", "no/folder/y.npz").stderr
    assert "TM6002" in run("run", RESNET, "-i", "x.npz", "-o", "y.onnx").stderr


def test_the_function_takes_arrays_by_name_and_in_order() -> None:
    x = recorded("in0")
    by_name = tmconvert.run(RESNET, {"x": x}, watch=["layer4_out"])
    assert list(by_name) == ["layer4_out", "fc_out"]
    np.testing.assert_array_equal(tmconvert.run(RESNET, [x])["fc_out"], by_name["fc_out"])
    with pytest.raises(UsageError, match=r"TM6050.*no input 'X': did you mean 'x'"):
        tmconvert.run(RESNET, {"X": x})
    with pytest.raises(UsageError, match=r"TM6003.*no array for the input x"):
        tmconvert.run(RESNET, {})
    with pytest.raises(UsageError, match=r"TM6003.*takes 1 inputs, 0 were given"):
        tmconvert.run(RESNET, [])


def test_values_are_printed_without_an_output() -> None:
    run("onnx", RESNET, "net.onnx", "--no-verify")
    outcome = run("run", "net.onnx", "-i", "x.npz")
    lines = outcome.stdout.splitlines()
    assert (outcome.status, lines[0]) == (0, "fc_out  float32[1,10]")
    values = recorded("out0")
    assert lines[-1] == f"  largest: {values.max():.4g} at index {values.argmax()}"
    assert len(" ".join(lines[1:-1]).split()) == 10 + lines[1].count("[ ")
    document = run("run", "net.onnx", "-i", "x.npz", "--json").json
    assert document["path"] is None
    np.testing.assert_allclose(document["arrays"][0]["values"], values, atol=1e-5)
    assert not Path("y.npz").exists()


def test_arguments_in_place_of_options(tmp_path: Path) -> None:
    outcome = run("run", RESNET, "x.npz", "y.npz")
    assert outcome.status == 0, outcome.stderr
    first = Path("y.npz").read_bytes()
    assert started().status == 0 and Path("y.npz").read_bytes() == first
    assert run("run", RESNET, "x.npz", "y.npz", "z.npz").stderr.startswith(
        "error[TM6010]: got unexpected extra argument (z.npz)"
    )


def test_the_suffix_of_the_outputs() -> None:
    assert started().status == 0
    with np.load("y.npz") as arrays:
        ((name, expected),) = arrays.items()
    for path in ("y.json", "y.npy"):
        assert run("run", RESNET, "-i", "x.npz", "-o", path).status == 0
    assert np.array_equal(np.load("y.npy"), expected)
    ((array),) = json.loads(Path("y.json").read_text())["arrays"]
    assert (array["name"], array["dtype"], array["shape"]) == (name, "float32", list(expected.shape))
    assert np.array_equal(np.array(array["values"], np.float32), expected)
    outcome = run("run", RESNET, "-i", "x.npz", "-o", "y.png")
    assert outcome.status == 2 and "TM6002" in outcome.stderr
    assert "name it y.npz for arrays, or y.json for text" in outcome.stderr and not Path("y.png").exists()
    outcome = started("--watch", "*")
    assert outcome.status == 0
    outcome = run("run", RESNET, "-i", "x.npz", "-o", "z.npy", "--watch", "*")
    assert "an .npy file holds one array" in outcome.stderr and not Path("z.npy").exists()
