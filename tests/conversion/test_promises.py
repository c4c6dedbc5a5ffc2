"""What users rely on whatever the model: same bytes every time, whole files or none, no wrong files."""

from __future__ import annotations

import gc
import hashlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tmconvert
from tmconvert.conversion.pipeline import convert
from tmconvert.conversion.request import ConversionRequest
from tmconvert.errors import UsageError, VerificationError
from tmconvert.symbolics.op import FLOATS, Op, Tensor
from tmconvert.symbolics.registry import Catalogue, catalogue
from tmconvert.symbolics.results import same_as
from tmconvert.targets.options import TargetOptions

DATA = Path(__file__).parents[1] / "data"
SUFFIXES = {"onnx": ".onnx", "tflite": ".tflite", "caffe": ".prototxt"}
SEEDS = ("0", "1", "2", "77", "4242")

CONVERT_ALL = """
import sys, tmconvert
model, folder = sys.argv[1:]
tmconvert.to_onnx(model, folder + "/m.onnx", verify=False)
tmconvert.to_tflite(model, folder + "/m.tflite", verify=False)
tmconvert.to_caffe(model, folder + "/m.prototxt", verify=False)
"""

STOP_IN_MID_WRITE = """
import sys, time, tmconvert
from tmconvert.targets.registry import target_named
target = type(target_named(sys.argv[1].removeprefix("to_")))
whole = target.write
def half(self, graph, files, names, **options):
    whole(self, graph, files, names, **options)
    for file in files:
        file.flush()
        file.truncate(file.tell() // 2)
    print("writing", flush=True)
    time.sleep(60)
target.write = half
getattr(tmconvert, sys.argv[1])(sys.argv[2], sys.argv[3])
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["shufflenet_v2", "op_nested_reuse"])
def test_same_bytes_under_any_hash_seed(name: str, tmp_path: Path) -> None:
    digests = set()
    for seed in SEEDS:
        folder = tmp_path / seed
        folder.mkdir()
        subprocess.run(
            [sys.executable, "-c", CONVERT_ALL, str(DATA / f"{name}.tm"), str(folder)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
        )
        files = sorted(folder.iterdir())
        assert [file.name for file in files] == ["m.caffemodel", "m.onnx", "m.prototxt", "m.tflite"]
        digests.add(tuple(hashlib.sha256(file.read_bytes()).hexdigest() for file in files))
    assert len(digests) == 1


@pytest.mark.slow
@pytest.mark.parametrize("target", SUFFIXES)
def test_kill_in_mid_write_leaves_no_file(target: str, tmp_path: Path) -> None:
    out = tmp_path / f"out{SUFFIXES[target]}"
    command = [sys.executable, "-c", STOP_IN_MID_WRITE, f"to_{target}", str(DATA / "resnet18.tm"), str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"writing\n"
        assert any(tmp_path.iterdir()), "nothing was being written"
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert not out.exists()
    assert not out.with_suffix(".caffemodel").exists()


def _wrong_relu() -> Catalogue:
    """The catalogue with a relu that every target gets wrong."""
    relu = Op("aten::relu", args=[Tensor("x", FLOATS)], result=same_as("x"))
    relu.reference(lambda x: np.maximum(x, 0))
    relu.onnx(since=1)(lambda g, x: g.op("Abs", x))
    relu.tflite()(lambda g, x: g.op("ABS", x))
    relu.caffe()(lambda g, x: g.op("AbsVal", x))
    return Catalogue([relu], catalogue())


@pytest.mark.parametrize("target", SUFFIXES)
def test_a_mismatch_fails_and_leaves_nothing(target: str, tmp_path: Path) -> None:
    paths = [tmp_path / f"out{SUFFIXES[target]}"]
    if target == "caffe":
        paths.append(tmp_path / "out.caffemodel")
    paths[0].write_text("an older file")
    module = tmconvert.load(DATA / "op_s_conv_bn_relu.tm")
    options = TargetOptions(target, {"onnx": 17, "tflite": 18, "caffe": 0}[target])
    with pytest.raises(VerificationError) as caught:
        convert(ConversionRequest(module, tuple(paths), options), _wrong_relu())
    assert caught.value.code == "TM4001"
    assert "output r_out differs by" in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == [paths[0].name]
    assert paths[0].read_text() == "an older file"


def test_exports_do_not_change_the_module(tmp_path: Path) -> None:
    module = tmconvert.load(DATA / "op_nested_reuse.tm")
    before = str(module.graph)
    weights = {path: dict(child.tensors) for path, child in module.modules()}
    tmconvert.to_tflite(module, tmp_path / "a.tflite")
    tmconvert.to_onnx(module, tmp_path / "a.onnx")
    assert str(module.graph) == before
    for path, child in module.modules():
        assert all(child.tensors[name] is array for name, array in weights[path].items())


def test_nothing_is_written_for_an_unsupported_model(tmp_path: Path) -> None:
    for target, suffix in SUFFIXES.items():
        with pytest.raises(tmconvert.errors.UnsupportedError):
            getattr(tmconvert, f"to_{target}")(DATA / "custom_user_function.tm", tmp_path / f"out{suffix}")
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("linked", [False, True], ids=["same path", "link"])
@pytest.mark.parametrize("target", list(SUFFIXES))
def test_the_model_is_never_replaced(target: str, linked: bool, tmp_path: Path) -> None:
    model, out = tmp_path / "net.tm", tmp_path / "out"
    model.write_bytes((DATA / "op_s_elemwise.tm").read_bytes())
    if linked:
        out.symlink_to(model)
    with pytest.raises(UsageError, match="is the model itself") as caught:
        getattr(tmconvert, f"to_{target}")(model, out if linked else model)
    assert caught.value.code == "TM6013"
    assert model.read_bytes() == (DATA / "op_s_elemwise.tm").read_bytes()


def test_no_caffemodel_replaces_the_model(tmp_path: Path) -> None:
    model = tmp_path / "net.caffemodel"
    model.write_bytes((DATA / "op_s_elemwise.tm").read_bytes())
    with pytest.raises(UsageError, match="is the model itself"):
        tmconvert.to_caffe(model, tmp_path / "net.prototxt")


def test_garbage_of_conversions_is_collected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python would put it off until a quarter of all objects is new; a service would grow."""
    from tmconvert import garbage_collection as collector

    collected = []
    monkeypatch.setattr(collector.gc, "collect", lambda generation=2: collected.append(generation))
    monkeypatch.setattr(collector, "_spent", 0.0)
    monkeypatch.setattr(collector, "_cost", 0.0)
    tmconvert.to_onnx(DATA / "op_s_conv_bn_relu.tm", tmp_path / "m.onnx", verify=False)
    assert collected == [1, 2]
    monkeypatch.setattr(collector, "_cost", 1e9)
    tmconvert.to_onnx(DATA / "op_s_conv_bn_relu.tm", tmp_path / "m.onnx", verify=False)
    assert collected == [1, 2, 1]  # a full one must be worth it


@pytest.mark.slow
def test_a_conversion_leaves_no_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Graphs refer to themselves, and hold the weights."""
    from tmconvert import garbage_collection as collector
    from tmconvert.ir import InternalGraph

    def graphs() -> int:
        return sum(issubclass(type(each), InternalGraph) for each in gc.get_objects())

    monkeypatch.setattr(collector, "MANY", 200)  # small models make so few objects that all of them are young
    monkeypatch.setattr(collector, "_spent", 0.0)
    tmconvert.to_onnx(DATA / "shufflenet_v2.tm", tmp_path / "m.onnx", verify=False)
    gc.collect()
    before = graphs()
    for _ in range(3):
        tmconvert.to_onnx(DATA / "shufflenet_v2.tm", tmp_path / "m.onnx", verify=False)
    assert graphs() == before


def test_public_names_cost_nothing_after_the_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading counts the objects that the program has frozen, which takes long where these are many."""
    from tmconvert import garbage_collection as collector

    assert callable(tmconvert.load)
    monkeypatch.setattr(collector, "no_collections", None)
    assert callable(tmconvert.load) and callable(tmconvert.trace)


def test_a_second_conversion_does_not_count_frozen_objects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def count() -> int:
        raise AssertionError("a walk over all frozen objects")

    tmconvert.to_onnx(DATA / "shufflenet_v2.tm", tmp_path / "m.onnx", verify=False)
    monkeypatch.setattr(gc, "get_freeze_count", count)
    tmconvert.to_onnx(DATA / "shufflenet_v2.tm", tmp_path / "m.onnx", verify=False)
