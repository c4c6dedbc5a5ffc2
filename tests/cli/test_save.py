"""``tmconvert save``."""

from __future__ import annotations

import json
import re
import shutil
import zipfile
from pathlib import Path

import pytest

from tests.cli.runner import model, run

CONV = model("op_s_conv_bn_relu")
QAT = model("qat_small_tqt")


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_saves() -> None:
    outcome = run("save", CONV, "o.tm")
    assert (outcome.status, outcome.stderr) == (0, "")
    assert re.fullmatch(r"o\.tm  \(\d+ modules, \d+ parameters, [\d.]+ kB\)\n", outcome.stdout)
    assert zipfile.ZipFile("o.tm").namelist() == ["tm.json", "weights.safetensors"]


def test_json() -> None:
    document = run("save", QAT, "o.tm", "--json").json
    assert document["path"] == "o.tm"
    assert document["bytes"] == Path("o.tm").stat().st_size
    assert document["producer"].startswith("MegEngine 1.")
    assert document["modules"] > 5
    assert document["parameters"] > 100


@pytest.mark.parametrize("name", ["op_s_conv_bn_relu", "qat_small_tqt", "custom_user_function", "v1_6_0_ops"])
def test_every_command_takes_what_it_saved(name: str) -> None:
    shutil.copy(model(name), "m.tm")
    assert run("save", "m.tm", "o.tm").status == 0
    commands = (["inspect", "--graph"], ["inspect", "--tabular"], ["check", "--target", "onnx", "--json"])
    for command in commands:
        before, after = run(command[0], "m.tm", *command[1:]), run(command[0], "o.tm", *command[1:])
        assert before.status == after.status
        assert before.stdout.replace("m.tm", "o.tm") == after.stdout


def test_inspect_and_verify_what_it_saved() -> None:
    run("save", CONV, "o.tm")
    before, after = (run("inspect", path, "--json").json for path in (CONV, "o.tm"))
    assert {**before, "model": ""} == {**after, "model": ""}
    assert run("onnx", "o.tm", "o.onnx").status == 0
    assert run("verify", CONV, "o.onnx").status == 0
    assert run("verify", "o.tm", "o.onnx").status == 0
    assert run("save", "o.tm", "again.tm").status == 0
    assert Path("o.tm").read_bytes() == Path("again.tm").read_bytes()


def test_keeps_the_model_that_it_reads() -> None:
    shutil.copy(CONV, "m.tm")
    before = Path("m.tm").read_bytes()
    outcome = run("save", "m.tm", "./m.tm")
    assert outcome.status == 2
    assert "error[TM6013]" in outcome.stderr
    assert Path("m.tm").read_bytes() == before


def test_says_why_it_cannot() -> None:
    assert "error[TM1001]" in run("save", "nothing.tm", "o.tm").stderr
    assert "error[TM5001]" in run("save", CONV, "no/folder/o.tm").stderr
    Path("photo.zip").write_bytes(b"PK\x03\x04" + bytes(100))
    outcome = run("save", "photo.zip", "o.tm", "--json")
    assert outcome.status == 1
    assert json.loads(outcome.stdout)["error"]["code"] == "TM1002"
    assert sorted(path.name for path in Path().iterdir()) == ["photo.zip"]


@pytest.mark.parametrize("name", ["o.onnx", "o.tflite", "o.prototxt", "o.pt", "-"])
@pytest.mark.parametrize("command", [("save", CONV), ("calibrate", CONV, "-d", "nothing.npz", "-o")])
def test_a_name_of_another_kind_of_file_is_refused(command: tuple[str, ...], name: str) -> None:
    outcome = run(*command, name)
    assert (outcome.status, "error[TM6002]" in outcome.stderr) == (2, True)
    assert not Path(name).exists()


def test_saves_for_megengine() -> None:
    outcome = run("save", CONV, "o.tm", "--format", "megengine")
    assert outcome.status == 0
    assert Path("o.tm").read_bytes()[:2] == b"\x80\x04"  # a pickle of protocol 4
    assert run("save", "o.tm", "again.tm", "--format", "megengine").status == 0
    assert Path("o.tm").read_bytes() == Path("again.tm").read_bytes()
