"""``tmconvert convert`` and ``tmconvert init``: configuration files, resumed work, and several processes."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.helper
import onnx.numpy_helper
import pytest

from tmconvert.cli.batch import executors, finished
from tmconvert.cli.batch.configuration import tomllib
from tmconvert.cli.batch.work import Conversion, ModelWork
from tmconvert.cli.batch.work import Outcome as BatchOutcome

from .runner import Outcome, run

SAMPLES = Path(__file__).parents[2] / "samples"
MODELS = ("digits.tm", "digits_qat.tm")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in MODELS:
        shutil.copy(SAMPLES / name, tmp_path)
    return tmp_path


def configured(folder: Path, text: str, *args: str) -> Outcome:
    (folder / "tmconvert.toml").write_text(text)
    return run("convert", *args)


def results(outcome: Outcome) -> list[tuple[Any, ...]]:
    entries = outcome.json["conversions"]
    return [
        (Path(each["model"]).name, each["target"], each["status"], each["is_unchanged"]) for each in entries
    ]


CONFIGURATION = """
folder = "out"
targets = ["onnx", "caffe"]
[options]
verify = false
[onnx]
opset = 13
[[models]]
model = "digits.tm"
[[models]]
model = "digits_qat.tm"
targets = ["onnx"]
output = "other/qat.onnx"
[models.onnx]
opset = 15
"""


def test_files_are_those_of_the_commands(folder: Path) -> None:
    assert configured(folder, CONFIGURATION).status == 0
    run("onnx", "digits.tm", "a.onnx", "--opset", "13", "--no-verify")
    run("caffe", "digits.tm", "digits.prototxt", "--no-verify")
    run("onnx", "digits_qat.tm", "qat.onnx", "--opset", "15", "--no-verify")
    for made, wanted in (
        ("out/digits.onnx", "a.onnx"),
        ("out/digits.prototxt", "digits.prototxt"),
        ("out/digits.caffemodel", "digits.caffemodel"),
        ("other/qat.onnx", "qat.onnx"),
    ):
        assert (folder / made).read_bytes() == (folder / wanted).read_bytes()


def test_finished_work_is_recognized_until_something_changes(folder: Path) -> None:
    names = [("digits.tm", "onnx"), ("digits.tm", "caffe"), ("digits_qat.tm", "onnx")]

    def changed(text: str = CONFIGURATION, *args: str) -> list[int]:
        found = results(configured(folder, text, "--json", *args))
        assert [each[:3] for each in found] == [(*name, 0) for name in names]
        return [number for number, each in enumerate(found) if not each[3]]

    assert changed() == [0, 1, 2]
    assert changed() == []
    assert changed(CONFIGURATION.replace("opset = 15", "opset = 16")) == [2]
    assert changed(CONFIGURATION.replace("opset = 15", "opset = 16"), "--again") == [0, 1, 2]
    shutil.copy("digits_qat.tm", "digits.tm")
    (folder / "other/qat.onnx").write_bytes(b"cut")
    assert changed(CONFIGURATION.replace("opset = 15", "opset = 16")) == [0, 1, 2]
    (folder / "out/tmconvert-finished.json").write_text(
        '{"version": 1, "conversions": {"onnx digits.onnx": 3}}'
    )
    assert changed(CONFIGURATION.replace("opset = 15", "opset = 16")) == [0, 1]


def test_a_failure_stops_no_other_conversion_and_the_worst_status_is_returned(folder: Path) -> None:
    (folder / "broken.tm").write_bytes(b"nothing")
    outcome = run("convert", "broken.tm", "digits.tm", "missing.tm", "--to", "onnx", "-o", "out", "--json")
    assert outcome.status == 1
    assert [(name, status) for name, _, status, _ in results(outcome)] == [
        ("broken.tm", 1),
        ("digits.tm", 0),
        ("missing.tm", 1),
    ]
    assert outcome.json["conversions"][0]["error"]["code"].startswith("TM1")
    assert (folder / "out/digits.onnx").exists() and not (folder / "out/broken.onnx").exists()
    text = run("convert", "broken.tm", "digits.tm", "--to", "onnx", "-o", "out")
    assert text.status == 1 and "2 conversions, 1 failed" in text.stdout


@pytest.mark.slow
def test_processes_write_the_same_bytes(folder: Path) -> None:
    one = run("convert", *MODELS, "--to", "onnx", "--to", "tflite", "-o", "one")
    two = run("convert", "*.tm", "--to", "onnx", "--to", "tflite", "-o", "two", "--jobs", "2")
    assert one.status == two.status == 0
    for path in (folder / "one").glob("digits*"):
        assert path.read_bytes() == (folder / "two" / path.name).read_bytes()


def test_a_factory_is_traced_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    (folder / "nets_of_batch.py").write_text(
        "import torch\ncalls = []\n"
        "class Net(torch.nn.Module):\n"
        "    def forward(self, x):\n        calls.append(1)\n        return x.relu() + 1\n"
        "def make():\n    return Net().eval()\n"
    )
    monkeypatch.syspath_prepend(str(folder))
    text = """
folder = "out"
targets = ["onnx", "tflite", "caffe"]
[options]
verify = false
[[models]]
model = "nets_of_batch:make"
input = ["x=float32[1,3,4,5]"]
"""
    refused = configured(folder, text)
    assert refused.status == 2 and "names code to run: the factory nets_of_batch:make" in refused.stderr
    assert configured(folder, text, "--allow-code").status == 0
    import nets_of_batch

    count = len(nets_of_batch.calls)
    assert sorted(each.name for each in (folder / "out").iterdir() if each.stem == "make") == [
        "make.caffemodel",
        "make.onnx",
        "make.prototxt",
        "make.tflite",
    ]
    run("onnx", "nets_of_batch:make", "a.onnx", "--input", "x=float32[1,3,4,5]", "--no-verify")
    assert len(nets_of_batch.calls) == 2 * count
    assert (folder / "a.onnx").read_bytes() == (folder / "out/make.onnx").read_bytes()


DIGITS = "[[models]]\nmodel = 'digits.tm'\n"
INVALID = {
    "models = 3": "models must be an array of tables: [[models]]",
    "[onx]": "unknown table or key 'onx', did you mean 'onnx'?",
    f"[onnx]\nopsett = 3\n{DIGITS}": "unknown option 'opsett' of onnx, did you mean 'opset'?",
    f"[options]\nopset = 3\n{DIGITS}targets = 'tflite'": "no target of tflite has the option 'opset'",
    f"[onnx]\nverify = 1\n{DIGITS}": "verify must be true or false, not 1",
    f"[onnx]\nopset = [[1]]\n{DIGITS}": "opset must be a text, a number, or a list",
    "[[models]]\ntargets = ['onnx']": "model 1 lacks `model`",
    f"{DIGITS}targets = ['onnnx']": "unknown target 'onnnx', did you mean 'onnx'?",
    "[[models]]\nmodel = 'x*.tm'": "no file fits the pattern 'x*.tm'",
    "folder = 'out": "is not a valid configuration",
    "a = " + "[" * 3000: "is not a valid configuration",
    f"{DIGITS}[[models]]\nmodel = 'sub/digits.tm'": "would both be written to digits.onnx",
}


@pytest.mark.parametrize(("text", "message"), INVALID.items(), ids=range(len(INVALID)))
def test_what_is_not_valid_is_named(folder: Path, text: str, message: str) -> None:
    outcome = configured(folder, text)
    assert (outcome.status, outcome.stdout) == (2, "")
    assert outcome.stderr.startswith("error[TM6091]: ") and message in " ".join(outcome.stderr.split())
    assert not (folder / "out").exists()


def test_an_unknown_target_of_the_command_line_is_named(folder: Path) -> None:
    outcome = run("convert", "digits.tm", "--to", "onnnx")
    assert outcome.status == 2
    assert outcome.stderr.startswith("error[TM6001]: unknown target 'onnnx', did you mean 'onnx'?\n")


def test_wrong_values_of_options_are_those_of_the_command_line(folder: Path) -> None:
    outcome = configured(folder, "[onnx]\nopset = 'new'\n[[models]]\nmodel = 'digits.tm'")
    assert outcome.status == 2 and "invalid value for '--opset': 'new'" in outcome.stderr


def test_options_of_a_target_are_for_the_configuration(folder: Path) -> None:
    outcome = run("convert", "digits.tm", "--quantized")
    assert outcome.status == 2 and "`tmconvert init MODEL` writes" in outcome.stderr


def test_init_replaces_no_file(folder: Path) -> None:
    (folder / "tmconvert.toml").write_text("mine")
    outcome = run("init", "digits.tm")
    assert outcome.status == 2 and (folder / "tmconvert.toml").read_text() == "mine"
    assert outcome.stderr.startswith("error[TM6091]: tmconvert.toml exists already")


def test_init_writes_a_commented_file_that_converts(folder: Path) -> None:
    assert run("init", "digits.tm", "--to", "onnx").status == 0
    text = (folder / "tmconvert.toml").read_text()
    assert tomllib.loads(text)["models"] == [{"model": "digits.tm"}]
    assert "# opset = " in text and "# calibration = " in text
    assert run("convert").status == 0 and (folder / "out/digits.onnx").exists()
    again = run("init", "digits.tm")
    assert again.status == 2 and "replaces no file" in again.stderr


def test_a_cluster_needs_its_package_or_a_scheduler(folder: Path) -> None:
    outcome = run("convert", "digits.tm", "--cluster", "tcp://127.0.0.1:1", "--json")
    assert outcome.status == 2 and outcome.json["error"]["code"] == "TM6093"


def test_json_is_one_document_without_models_that_exist(folder: Path) -> None:
    outcome = run("convert", "--json")
    assert outcome.status == 2 and json.loads(outcome.stdout)["error"]["code"] == "TM6091"


def test_the_record_is_written_in_a_small_part_of_the_time_and_complete_at_the_end(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finished, "SHARE", 1e-9)
    written: list[int] = []
    original = finished._Record.write

    def counted(record: finished._Record) -> None:
        written.append(len(record.entries))
        original(record)

    monkeypatch.setattr(finished._Record, "write", counted)
    names = ["a b.onnx", 'quoted ".onnx', "c.onnx", "d.onnx"]
    works = [ModelWork("digits.tm", (Conversion("onnx", (name,)),), str(folder)) for name in names]
    with pytest.raises(KeyboardInterrupt), finished.Finished() as record:
        for name, work in zip(names, works, strict=True):
            record.add(
                work, BatchOutcome("digits.tm", "onnx", (name,), 0, 0.0, {"paths": [], "notes": ["\n"]})
            )
        raise KeyboardInterrupt
    assert written == [1, 4]
    text = (folder / finished.RECORD).read_text()
    document = json.loads(text)
    assert [*document["conversions"]] == sorted(f"onnx {name}" for name in names)
    assert document["version"] == 1
    lines = text.splitlines()[1:-1]  # an entry each
    assert [json.loads(f"{{{line.removesuffix(',')}}}") for line in lines] == [
        {name: entry} for name, entry in sorted(document["conversions"].items())
    ]


def test_processes_begin_with_factories_and_large_models(folder: Path) -> None:
    names = ["missing.tm", "digits_qat.tm", "nets:make", "digits.tm"]
    ordered = executors._longest_first([ModelWork(name, (), str(folder)) for name in names])
    assert [each.model for each in ordered] == [
        "nets:make",
        *sorted(MODELS, key=size, reverse=True),
        names[0],
    ]


def size(name: str) -> int:
    return Path(name).stat().st_size


def test_finished_work_is_known_by_any_path_of_its_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unchanged(*args: str) -> list[bool]:
        return [each["is_unchanged"] for each in run("convert", *args, "--json").json["conversions"]]

    (folder / "tmconvert.toml").write_text('folder = "out"\n[[models]]\nmodel = "digits.tm"\n')
    assert unchanged() == [False]
    assert unchanged("-o", "out") == [True]
    assert unchanged(str(folder / "digits.tm"), "-o", str(folder / "out")) == [True]
    assert unchanged("digits_qat.tm", "-o", "out") == [False] and unchanged() == [True]
    monkeypatch.chdir(folder / "out")
    assert unchanged("../digits.tm") == [True]


def test_the_files_in_a_folder_that_is_a_model_decide(folder: Path) -> None:
    from tmconvert.cli.batch.finished import Finished
    from tmconvert.cli.batch.work import Conversion, ModelWork

    (folder / "net").mkdir()
    (folder / "net/config.json").write_text("{}")
    work = ModelWork("net", (Conversion("onnx", ("net.onnx",)),), str(folder))
    first = Finished()._key(work, work.conversions[0])
    (folder / "net/config.json").write_text("{ }")
    assert Finished()._key(work, work.conversions[0]) != first


def test_targets_with_commas(folder: Path) -> None:
    found = results(run("convert", "digits.tm", "--to", "onnx, tflite", "--json"))
    assert [each[1] for each in found] == ["onnx", "tflite"]
    assert run("init", "digits.tm", "--to", "onnx,tflite", "-o", "a.toml").status == 0
    assert tomllib.loads((folder / "a.toml").read_text())["targets"] == ["onnx", "tflite"]
    assert "unknown target 'pb'" in run("init", "digits.tm", "--to", "pb", "-o", "b.toml").stderr


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("count", [1, 5, 15], ids="after {}".format)
def test_an_interrupt_of_all_processes_prints_one_line(folder: Path, count: int) -> None:
    for number in range(12):
        shutil.copy(folder / "digits.tm", folder / f"digits{number}.tm")
    command = [sys.executable, "-m", "tmconvert", "convert", ".", "--to", "onnx,tflite,caffe", "--jobs", "2"]
    messages = folder / "messages.txt"
    with messages.open("w") as file:
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=file, text=True, start_new_session=True
        )
    deadline = time.monotonic() + 60
    while messages.read_text().count("verified") < count and time.monotonic() < deadline:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    process.wait(timeout=60)
    said = messages.read_text()
    assert process.returncode == 130 and said.count("interrupted") == 1 and "Traceback" not in said, said
    assert not [each for each in folder.iterdir() if each.name.startswith(".")]


def unchanged(*args: str) -> list[bool]:
    outcome = run("convert", *args, "--json")
    assert outcome.status == 0, outcome.stdout + outcome.stderr
    return [each["is_unchanged"] for each in outcome.json["conversions"]]


def external_model(folder: Path, weights: str) -> Path:
    """Writes add.onnx, whose constant is in the file ``weights``."""
    values = np.arange(300, dtype=np.float32)
    weight = onnx.numpy_helper.from_array(values, "w")
    weight.ClearField("raw_data")
    weight.data_location = onnx.TensorProto.EXTERNAL
    weight.external_data.add(key="location", value=weights)
    x, y = (onnx.helper.make_tensor_value_info(name, 1, [300]) for name in "xy")
    node = onnx.helper.make_node("Add", ["x", "w"], ["y"])
    graph = onnx.helper.make_graph([node], "g", [x], [y], [weight])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    (folder / weights).write_bytes(values.tobytes())
    (folder / "add.onnx").write_bytes(model.SerializeToString())
    return folder / weights


def test_every_file_that_a_conversion_opens_decides(folder: Path) -> None:
    weights = external_model(folder, "other_name.bin")
    shutil.copy(SAMPLES / "digits.tm", "net.tm")
    np.savez("values.npz", np.ones(3))
    (folder / "ops.py").write_text("open('values.npz', 'rb').close()\n")
    args = ("add.onnx", "--to", "tflite", "-o", "out")
    assert [unchanged(*args), unchanged(*args)] == [[False], [True]]
    weights.write_bytes((np.arange(300, dtype=np.float32) + 1).tobytes())
    assert [unchanged(*args), unchanged(*args)] == [[False], [True]]
    (folder / "tmconvert.toml").write_text(
        "[options]\nplugin=['ops.py']\nverify=false\n[[models]]\nmodel='net.tm'\n"
    )
    assert [unchanged("--allow-code"), unchanged("--allow-code")] == [[False], [True]]
    np.savez("values.npz", np.zeros(3))
    assert unchanged("--allow-code") == [False]


def test_a_record_that_this_user_did_not_write_is_not_believed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    args = ("digits.tm", "--to", "onnx", "-o", "out")
    assert [unchanged(*args), unchanged(*args)] == [[False], [True]]
    record = folder / "out" / finished.RECORD
    document = json.loads(record.read_text())
    entry = document["conversions"]["onnx digits.onnx"]
    (folder / "out/digits.onnx").write_bytes(b"another")
    entry["files"]["digits.onnx"] = hashlib.sha256(b"another").hexdigest()
    entry["sources"]["/dev/zero"] = "0"
    record.write_text(json.dumps(document))
    opened: list[Path] = []
    digest = finished.file_digest
    monkeypatch.setattr(finished, "file_digest", lambda path: (opened.append(path), digest(path))[1])
    assert unchanged(*args) == [False]
    assert Path("/dev/zero") not in opened and (folder / "out/digits.onnx").read_bytes() != b"another"
    assert unchanged(*args) == [True]
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "of another user"))
    assert unchanged(*args) == [False]


@pytest.mark.skipif(sys.platform == "win32", reason="devices of POSIX")
def test_devices_and_pipes_are_never_read(folder: Path) -> None:
    os.mkfifo("pipe")
    assert finished.file_digest(Path("/dev/zero")) is finished.file_digest(Path("pipe")) is None
    (folder / "out").mkdir()
    (folder / "out" / finished.RECORD).symlink_to("/dev/zero")
    assert finished._read(folder / "out" / finished.RECORD) == {}
    outcome = run("convert", "-c", "pipe")
    assert outcome.status == 2 and "not a regular file" in outcome.stderr


HOSTILE = {
    "[options]\nplugin = ['evil.py']\n": "names code to run: the plugin evil.py",
    "[onnx]\nplugin = ['evil.py']\n": "names code to run: the plugin evil.py",
    "[onnx]\nallow_code = true\n": "names code to run: the code of a TorchScript file",
    "folder = '../x'\n": "'../x' is not below its folder",
    "folder = '/tmp/x'\n": "'/tmp/x' is not below its folder",
    "[onnx]\nreport = '../x.json'\n": "'../x.json' is not below its folder",
    "[onnx]\nqparams = '/tmp/x.json'\n": "'/tmp/x.json' is not below its folder",
    "[onnx]\ndump_after = 'all'\ndump_folder = '../x'\n": "'../x' is not below its folder",
    "[onnx]\noutput = 'link/x.onnx'\n": "'link/x.onnx' is not below its folder",
    f"[onnx]\nopset = {'1' * 5000}\n": "is not a valid configuration",
    "[[models]]\nmodel = '****/x'\n": "is not a valid configuration",
    f"[[models]]\nmodel = '{'x' * 4000}*'\n": "is not a valid configuration",
    "[[models]]\nmodel = 'evil:make'\n": "names code to run: the factory evil:make",
    f"[[models]]\nmodel = '{chr(92)}u0000'\n".replace("'", '"'): "is not a valid configuration",
}


@pytest.mark.parametrize(("text", "message"), HOSTILE.items(), ids=range(len(HOSTILE)))
def test_a_configuration_runs_no_code_and_writes_below_its_folder(
    folder: Path, text: str, message: str
) -> None:
    work = folder / "work"
    work.mkdir()
    (work / "link").symlink_to(folder)
    shutil.copy("digits.tm", work)
    (work / "evil.py").write_text(f"open({str(folder / 'ran')!r}, 'w')")
    before = {*folder.iterdir()}
    models = "" if "models" in text else "[[models]]\nmodel = 'digits.tm'\n"
    (work / "tmconvert.toml").write_text(text + models)
    outcome = run("convert", "-c", "work/tmconvert.toml")
    assert outcome.status == 2 and message in " ".join(outcome.stderr.split()), outcome.stderr
    assert {*folder.iterdir()} == before


def test_a_long_option_is_no_path(folder: Path) -> None:
    text = f"[onnx]\nrename = ['a={'b' * 4000}']\n[[models]]\nmodel = 'digits.tm'\n"
    assert configured(folder, text).status in (0, 1, 2)


def test_written_options_of_files_are_declared(folder: Path) -> None:
    from tmconvert.conversion.options.commands import all_conversion_options

    for option in all_conversion_options():
        is_path = option.kind == "path" or option.value_name in ("FILE", "DIR")
        is_written = option.help.startswith(("Write ", "Also write ", "Folder for "))
        assert option.is_written == (is_path and is_written), option.name


def test_a_table_of_one_target_keeps_the_other_targets(folder: Path) -> None:
    text = """
folder = "out"
targets = ["onnx", "caffe"]
[options]
verify = false
[[models]]
model = "digits.tm"
[models.tflite]
io_layout = "source"
"""
    assert [each[1] for each in results(configured(folder, text, "--json"))] == ["onnx", "caffe", "tflite"]
    assert [each[1] for each in results(run("convert", "--to", "onnx", "--json"))] == ["onnx"]


def test_models_of_the_command_line_have_the_options_of_the_file(folder: Path) -> None:
    configured(folder, CONFIGURATION)
    outcome = run("convert", "digits_qat.tm", "--again", "--json")
    assert [Path(each["paths"][0]).name for each in outcome.json["conversions"]] == ["qat.onnx"]
    assert onnx.load(folder / "other/qat.onnx").opset_import[0].version == 15
