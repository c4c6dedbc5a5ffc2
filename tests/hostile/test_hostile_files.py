"""Files of strangers end in a message, whatever command reads them: no defect, no code, nothing elsewhere."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

import tmconvert
from tests.frontends.onnx.models import network, of_nodes
from tests.hostile import doors, other_variants, variants
from tests.hostile.doors import OF_MODELS, enter
from tests.hostile.variants import CONFIGURATIONS, damaged, node
from tmconvert.errors import LoadError, TmconvertError

ALL = [*OF_MODELS]
READING = ["inspect", "verify", "verify source", "run", "compare", "view", "check", "onnx", "tflite"]
OTHER_READING = ["inspect", "verify", "run", "view", "check", "onnx", "tflite", "evaluate source", "convert"]
ARRAYS = {**variants.ARRAYS, **other_variants.SAMPLES}
NO_LIBRARY = f"{tempfile.gettempdir()}/missing.so"
HARMLESS = ("a member above the folder", "control characters", "infinite")  # arrays of the right shape
PARAMETER = '{"activation_encodings": {"x": [{"bitwidth": 8, "dtype": "int", "scale": 1}]}}'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns the working folder, which has good files for commands that take two; secrets are next to it."""
    work = tmp_path / "work"
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "weights").write_bytes(b"\0" * 8)
    work.mkdir()
    monkeypatch.chdir(work)
    np.savez("data.npz", x=np.zeros(2, np.float32))
    Path("near").write_bytes(b"\0" * 8)
    Path("parameters.json").write_text(PARAMETER)
    Path("evil.py").write_text("open('ran', 'w').close()\n")
    if sys.platform != "win32":
        os.mkfifo("pipe")
        Path("link").symlink_to("../secret/weights")
    onnx.save(of_nodes([node("Relu")], {"x": [2]}, ["y"]), "good.onnx")
    return work


def try_doors(path: str, good: str, commands: list[str]) -> None:
    for name in commands:
        shutil.rmtree("package", ignore_errors=True)
        enter(OF_MODELS[name].format(path, good=good))


@pytest.mark.one_in(12)
@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=[pytest.mark.slow] * ("loop" in each)) for each in variants.ONNX]
)
def test_onnx_files(folder: Path, name: str) -> None:
    Path("net.onnx").write_bytes(variants.ONNX[name]().SerializeToString())
    try_doors("net.onnx", "good.onnx", READING if name == "a long loop" else ALL)


OTHERS = {
    "tm": other_variants.PICKLES,
    "pt2": other_variants.ARCHIVES,
    "tflite": other_variants.TFLITE,
    "onnx": other_variants.MORE_ONNX,
}


@pytest.mark.one_in(20)
@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, table in OTHERS.items() for name in table])
def test_other_files(folder: Path, kind: str, name: str) -> None:
    path, made = Path(f"net.{kind}"), OTHERS[kind][name]
    if isinstance(made, bytes):
        path.write_bytes(made)
    elif kind == "tflite":
        made(path)
    else:  # a model of ONNX, or bytes that take long to compress
        made = made()
        path.write_bytes(made if isinstance(made, bytes) else made.SerializeToString())
    try_doors(path.name, "good.onnx", OTHER_READING)


@pytest.mark.one_in(5)
@pytest.mark.parametrize("name", other_variants.IMAGES)
def test_images(folder: Path, name: str) -> None:
    onnx.save(of_nodes([node("Relu")], {"x": [1, 3, 8, 8]}, ["y"]), "image.onnx")
    Path("bad.png").write_bytes(other_variants.IMAGES[name])
    for command in (
        "run image.onnx -i bad.png",
        "compare image.onnx image.onnx -i bad.png",
        "calibrate image.onnx -d . -o out.tm",
        "evaluate image.onnx image.onnx -d bad.png",
    ):
        assert enter(command).status


@pytest.mark.one_in(12)
@pytest.mark.parametrize("name", variants.CAFFE)
def test_caffe_nets(folder: Path, name: str) -> None:
    onnx.save(of_nodes([node("Relu")], {"x": [1, 1, 4, 4]}, ["y"]), "image.onnx")
    tmconvert.to_caffe("image.onnx", "good.prototxt", verify=False)
    shutil.copy("good.caffemodel", "net.caffemodel")
    Path("net.prototxt").write_text(variants.CAFFE[name], "latin1")
    try_doors("net.prototxt", "good.prototxt", ALL)
    enter("lint net.prototxt")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", ["onnx", "tflite", "caffemodel", "prototxt"])
def test_damaged_files(folder: Path, kind: str, seed: int) -> None:
    onnx.save(network(), "net.onnx")
    fixed = {"x": [1, 3, 8, 8]}
    tmconvert.to_tflite("net.onnx", "net.tflite", verify=False, input_shapes=fixed)
    tmconvert.to_caffe("net.onnx", "net.prototxt", verify=False, input_shapes=fixed)
    good = "net.prototxt" if kind == "caffemodel" else f"net.{kind}"
    for data in damaged(Path(f"net.{kind}").read_bytes(), 8, seed):
        for suffix in ("prototxt", "caffemodel"):
            shutil.copy(f"net.{suffix}", f"bad.{suffix}")
        Path(f"bad.{kind}").write_bytes(data)
        try_doors(good.replace("net", "bad"), good, READING)


@pytest.mark.one_in(5)
@pytest.mark.parametrize("name", ARRAYS)
def test_arrays(folder: Path, name: str) -> None:
    made = ARRAYS[name]
    Path("bad.npz").write_bytes(made() if callable(made) else made)
    for command in (
        "run good.onnx -i bad.npz",
        "verify good.onnx good.onnx --inputs bad.npz",
        "compare good.onnx good.onnx -i bad.npz",
        "calibrate good.onnx -d bad.npz -o out.tm",
        "evaluate good.onnx good.onnx -d bad.npz",
        "onnx good.onnx out.onnx --verify-with bad.npz",
    ):
        assert enter(command).status or name in HARMLESS, command


@pytest.mark.skipif(sys.platform == "win32", reason="pipes and devices of POSIX")
@pytest.mark.parametrize("path", ["pipe", "/dev/zero", ".", "missing", "x" * 5000])
def test_what_is_no_file(folder: Path, path: str) -> None:
    for command in (*OF_MODELS.values(), "lint {}", "params show {}", "convert {} --to onnx", "bench {}"):
        outcome = enter(command.format(path, good="good.onnx"))
        is_folder_of_models = path == "." and command.startswith("convert")
        assert outcome.status or is_folder_of_models, command
    for command in (
        "run good.onnx -i {}",
        "verify good.onnx good.onnx --inputs {}",
        "calibrate good.onnx -d {} -o out.tm",
        "calibrate good.onnx -d {}.npz -o out.tm",
        "view good.onnx -o page.html --report {}",
        "convert -c {}",
    ):
        outcome = enter(command.format(path))
        assert outcome.status or path == ".", command  # which is a folder of samples


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_configurations(folder: Path, name: str) -> None:
    Path("net.onnx").write_bytes(Path("good.onnx").read_bytes())
    Path("tmconvert.toml").write_text(CONFIGURATIONS[name])
    enter("convert")


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", variants.RECORDS)
def test_records(folder: Path, name: str) -> None:
    Path("tmconvert-finished.json").write_text(variants.RECORDS[name])
    assert "unchanged" not in enter("convert good.onnx --to onnx -o .").stdout.replace("unchanged.", "")
    assert enter("convert good.onnx --to tflite -o out").status == 0


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", variants.REPORTS)
def test_reports(folder: Path, name: str) -> None:
    Path("bad.json").write_text(variants.REPORTS[name])
    enter("view good.onnx -o page.html --report bad.json")


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", variants.PARAMETERS)
def test_parameters(folder: Path, name: str) -> None:
    Path("bad.json").write_text(variants.PARAMETERS[name], "latin1")
    for command in (
        "params show bad.json",
        "params check bad.json good.onnx",
        "params convert bad.json out.json --to onnx",
        "params convert bad.json out.json --to aimet --model good.onnx",
    ):
        enter(command)


@pytest.mark.one_in(5)
@pytest.mark.torch
@pytest.mark.parametrize("name", variants.FOLDERS)
def test_folders(folder: Path, name: str) -> None:
    transformers = pytest.importorskip("transformers")
    sizes = {key: value for key, value in variants.CONFIGURATION.items() if key != "model_type"}
    transformers.BertModel(transformers.BertConfig(**sizes)).save_pretrained("net")
    Path("net/config.json").write_text(json.dumps(variants.FOLDERS[name]))
    for command in ("inspect net", "onnx net out.onnx", "check net --target tflite"):
        enter(command, 120)


TEXTS = (
    "TM1001",
    "\x1b]0;x\x07",
    "../secret/weights",
    "../secret",
    "*" * 5000,
    "[" * 5000,
    "1" * 5000,
    "",
    "%s{}",
)


@pytest.mark.parametrize("command", ["explain", "ops", "ops --target", "explain -o", "init -o", "doctor"])
@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_texts(folder: Path, command: str, text: str) -> None:
    enter(f"{command} {text}")


@pytest.mark.parametrize("name", ["good", "configuration"])
def test_what_examines_the_installation_reads_nothing_of_the_folder(folder: Path, name: str) -> None:
    for module in ("torch", "onnxruntime", "tflite", "sitecustomize"):
        Path(f"{module}.py").write_text("open('ran', 'w').close()\n")
    if name == "configuration":
        Path("tmconvert.toml").write_text("[options]\nplugin = ['evil.py']\n")
    for command in ("doctor", "doctor --json", "ops", "explain TM1001", "ops --target onnx"):
        assert enter(command).status == 0


def test_the_hook_of_workers_hears_pickles_and_libraries() -> None:
    for step in (
        "import pickle; pickle.loads(pickle.dumps(str))",
        f"import ctypes; ctypes.CDLL({NO_LIBRARY!r})",
    ):
        code = f"{doors._OF_WORKERS}\n{step}"
        ended = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, check=False)
        assert doors._MARK in ended.stderr, step
    quiet = subprocess.run(
        [sys.executable, "-S", "-c", f"{doors._OF_WORKERS}\nimport json, ctypes"],
        capture_output=True,
        check=True,
    )
    assert not quiet.stderr


def test_workers_run_under_the_hook(folder: Path) -> None:
    assert enter("verify good.onnx good.onnx").status == 0
    assert doors._OF_WORKERS in doors.worker.command("tmconvert.verification.processes.worker_process")[-1]


def test_the_hook_hears_what_it_is_there_for(folder: Path) -> None:
    import ctypes
    import pickle

    doors._HEARD.clear()
    doors._FOLDER.append(folder)
    try:
        pickle.loads(pickle.dumps(Path))
        for name in (str(folder / "evil.so"), "evil.so"):
            with contextlib.suppress(OSError):
                ctypes.CDLL(name)
        Path("../secret/weights").read_bytes()
    finally:
        doors._FOLDER.pop()
    assert {event for event, _ in doors._HEARD} == {"pickle.find_class", "ctypes.dlopen", "open"}
    assert sum(event == "ctypes.dlopen" for event, _ in doors._HEARD) == 2


# ---- what files expand to: steps are counted, not seconds


def steps_of(run: Callable[[], object]) -> int:
    """Counts the calls of functions of Python."""
    count = 0

    def counted(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        run()
    finally:
        sys.setprofile(before)
    return count


def parts(count: int) -> onnx.ModelProto:
    """A model with the parts of one Split as its outputs."""
    names = [f"y{number}" for number in range(count)]
    split = onnx.helper.make_node("Split", ["x"], names, axis=1, num_outputs=count)
    return of_nodes([split], {"x": [1, count, 2, 2]}, names, opset=18)


def equal_names(count: int) -> onnx.ModelProto:
    """A model whose outputs are one tensor."""
    nodes = [onnx.helper.make_node("Identity", ["r"], [f"y{number}"]) for number in range(count)]
    return of_nodes([node("Relu", out="r"), *nodes], {"x": [2]}, [f"y{number}" for number in range(count)])


def chain(count: int) -> onnx.ModelProto:
    """A chain of operators on an image."""
    nodes = [onnx.helper.make_node("Relu", [f"x{n}"], [f"x{n + 1}"]) for n in range(count)]
    return of_nodes(nodes, {"x0": [1, 2, 3, 4]}, [f"x{count}"])


def conditions(depth: int) -> onnx.ModelProto:
    """Conditions in the first branch of conditions, and operators around each."""
    info = [onnx.helper.make_tensor_value_info("t", 1, [2])]

    def branch(*nodes: onnx.NodeProto) -> onnx.GraphProto:
        return onnx.helper.make_graph(nodes, "g", [], info)

    body, other = branch(node("Relu", out="t")), branch(node("Neg", out="t"))
    for number in range(depth):
        inner = onnx.helper.make_node("If", ["c"], [f"u{number}"], then_branch=body, else_branch=other)
        body = branch(inner, onnx.helper.make_node("Add", [f"u{number}", "x"], ["t"]))
    largest = onnx.helper.make_node("ReduceMax", ["x"], ["m"], keepdims=0)
    is_true = onnx.helper.make_node("Cast", ["m"], ["c"], to=9)
    outer = onnx.helper.make_node("If", ["c"], ["y"], then_branch=body, else_branch=other)
    return of_nodes([largest, is_true, outer], {"x": [2]}, ["y"])


def external(count: int) -> onnx.ModelProto:
    """A chain of sums with constants that are in one file."""
    names = ["x", *(f"x{number}" for number in range(count))]
    nodes = [
        onnx.helper.make_node("Add", [names[number], f"w{number}"], [names[number + 1]])
        for number in range(count)
    ]
    model = of_nodes(nodes, {"x": [300]}, [names[-1]])
    Path("weights.bin").write_bytes(b"\0" * 1200 * count)
    for number in range(count):
        weight = model.graph.initializer.add(name=f"w{number}", data_type=1, dims=[300], data_location=1)
        for key, value in {"location": "weights.bin", "offset": 1200 * number, "length": 1200}.items():
            weight.external_data.add(key=key, value=str(value))
    return model


@pytest.mark.parametrize(
    ("make", "counts"),
    [
        *((make, (40, 80, 160)) for make in (parts, equal_names, chain, external)),
        (conditions, (6, 12, 24)),
    ],
)
def test_cost_grows_with_the_file(
    folder: Path, make: Callable[[int], onnx.ModelProto], counts: tuple[int, ...]
) -> None:
    steps = []
    for count in (counts[0], *counts):  # what is imported at first does not count
        Path("net.onnx").write_bytes(make(count).SerializeToString())
        steps.append(steps_of(lambda: tmconvert.to_onnx("net.onnx", "out.onnx", verify=False)))
    first, second = steps[2] - steps[1], steps[3] - steps[2]  # twice as many, if it is linear
    assert second < 3 * first, steps


def test_functions_that_expand_without_end_are_named(folder: Path) -> None:
    Path("net.onnx").write_bytes(variants.calls(40).SerializeToString())
    with pytest.raises(TmconvertError) as caught:
        tmconvert.load("net.onnx")
    assert caught.value.code == "TM1006"


def test_a_loop_of_many_steps_is_named(folder: Path) -> None:
    Path("net.onnx").write_bytes(variants.looping(10**6).SerializeToString())
    with pytest.raises(TmconvertError) as caught:
        tmconvert.load("net.onnx")(np.ones(2, np.float32))
    assert caught.value.code == "TM2008"


@pytest.mark.torch
def test_a_program_that_expands_is_named(folder: Path) -> None:
    import zipfile

    torch = pytest.importorskip("torch")
    layer = torch.nn.Linear(2, 2)
    torch.export.save(torch.export.export(layer, (torch.ones(1, 2),)), "net.pt2")
    with zipfile.ZipFile("net.pt2") as old, zipfile.ZipFile("big.pt2", "w", zipfile.ZIP_DEFLATED) as new:
        for each in old.infolist():
            new.writestr(each.filename, old.read(each))
        new.writestr("net/padding", b"\0" * (66 << 20))
    with pytest.raises(LoadError) as caught:
        tmconvert.load("big.pt2")
    assert caught.value.code == "TM1006"
    assert tmconvert.load("net.pt2") is not None


def test_an_archive_is_opened_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tmconvert.calibration import streams

    opened: list[object] = []
    original = streams.open_regular
    monkeypatch.setattr(streams, "open_regular", lambda path: (opened.append(path), original(path))[1])
    np.savez("many.npz", **{f"a{number}": np.zeros((2, 3)) for number in range(50)})
    for member in streams.members(Path("many.npz")).values():
        member.whole()
    assert len(opened) == 1
