"""Runtimes as judges: what they run, what they refuse, and that they keep quiet."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.frontends.caffe import nets
from tmconvert.errors import VerificationError
from tmconvert.ir import InternalGraph, TensorNode
from tmconvert.ir.emitter import GraphEmitter
from tmconvert.symbolics.registry import catalogue
from tmconvert.targets.caffe.opencv import OpenCvRuntime
from tmconvert.targets.registry import lower, runtime_for, write
from tmconvert.targets.tflite.runtime import LiteRtRuntime, allocate

SUFFIXES = {"onnx": [".onnx"], "tflite": [".tflite"], "caffe": [".prototxt", ".caffemodel"]}
VERSIONS = {"onnx": 17, "tflite": 18, "caffe": 0}
A, B = (np.random.default_rng(seed).standard_normal((2, 3, 5)).astype(np.float32) for seed in (0, 1))


def written(folder: Path, target: str) -> list[Path]:
    """A net of two inputs, "a" and "b", and two outputs: a - b, and exp(b)."""
    graph = InternalGraph("net")
    a, b = (graph.add_input(TensorNode(graph.free_name(name), A.shape, A.dtype)) for name in "ab")
    emitter = GraphEmitter(graph, catalogue(), name="v")
    graph.set_result((emitter.call("aten::sub", a, b), emitter.call("aten::exp", b)))
    paths = [folder / f"net{suffix}" for suffix in SUFFIXES[target]]
    files = [path.open("wb") for path in paths]
    write(lower(graph, catalogue(), target, VERSIONS[target]).graph, files)
    for file in files:
        file.close()
    return paths


@pytest.mark.parametrize("target", SUFFIXES)
def test_inputs_and_outputs_go_by_name(target: str, tmp_path: Path) -> None:
    runtime = runtime_for(target)
    paths = written(tmp_path, target)
    exp, difference = runtime.run(paths, {"b": B, "a": A}, ["v_exp", "v_sub"])
    np.testing.assert_allclose(exp, np.exp(B), rtol=1e-5)
    np.testing.assert_allclose(difference, A - B, rtol=1e-5)


@pytest.mark.parametrize("target", SUFFIXES)
def test_the_same_output_twice(target: str, tmp_path: Path) -> None:
    first, second = runtime_for(target).run(written(tmp_path, target), {"a": A, "b": B}, ["v_sub"] * 2)
    assert np.array_equal(first, second)


@pytest.mark.parametrize("target", SUFFIXES)
def test_two_runs_are_equal_to_the_bit(target: str, tmp_path: Path) -> None:
    paths = written(tmp_path, target)
    runs = [runtime_for(target).run(paths, {"a": A, "b": B}, ["v_exp"])[0] for _ in range(2)]
    assert runs[0].tobytes() == runs[1].tobytes()


@pytest.mark.parametrize("target", SUFFIXES)
def test_results_outlive_the_runtime_and_can_be_written(target: str, tmp_path: Path) -> None:
    (result,) = runtime_for(target).run(written(tmp_path, target), {"a": A, "b": B}, ["v_exp"])
    result += 1
    np.testing.assert_allclose(result, np.exp(B) + 1, rtol=1e-5)


def test_tflite_without_delegates(tmp_path: Path) -> None:
    paths = written(tmp_path, "tflite")
    results = [
        LiteRtRuntime(delegates=delegates).run(paths, {"a": A, "b": B}, ["v_sub"])[0]
        for delegates in (True, False)
    ]
    np.testing.assert_allclose(*results, rtol=1e-6)


def test_litert_resizes_only_inputs_of_another_shape() -> None:
    """On 64-bit ARM a resize to () ends the process."""
    resized: list[tuple[int, tuple[int, ...]]] = []

    class Interpreter:
        def get_input_details(self) -> list[dict[str, Any]]:
            return [{"index": 3, "shape": np.zeros(0, np.int32)}, {"index": 5, "shape": np.array([1, 4])}]

        def resize_tensor_input(self, index: int, shape: tuple[int, ...]) -> None:
            resized.append((index, shape))

        def allocate_tensors(self) -> None:
            pass

    allocate(Interpreter(), {3: (), 5: (1, 4)})
    assert resized == []
    allocate(Interpreter(), {3: (), 5: (2, 4)})
    assert resized == [(5, (2, 4))]


@pytest.mark.parametrize(
    ("target", "names"),
    [("onnx", "ONNX Runtime"), ("tflite", "LiteRT"), ("caffe", "OpenCV|the NumPy definitions of .*")],
)
def test_a_broken_file_is_refused(target: str, names: str, tmp_path: Path) -> None:
    paths = [tmp_path / f"net{suffix}" for suffix in SUFFIXES[target]]
    for path in paths:
        path.write_bytes(b"layer { this is no model")
    with pytest.raises(VerificationError) as caught:
        runtime_for(target).run(paths, {"a": A}, ["y"])
    assert caught.value.code == "TM4002"
    assert re.fullmatch(f"({names}) rejected the file: .+", caught.value.message)
    assert caught.value.__cause__ is not None


@pytest.mark.parametrize("target", SUFFIXES)
def test_a_missing_output_is_refused(target: str, tmp_path: Path) -> None:
    with pytest.raises(VerificationError, match=r"(rejected the file: .*|those of the model are )nothing"):
        runtime_for(target).run(written(tmp_path, target), {"a": A, "b": B}, ["nothing"])


def test_opencv_gets_back_low_ranks(tmp_path: Path) -> None:
    graph = InternalGraph("net")
    x = graph.add_input(TensorNode(graph.free_name("x"), (5,), A.dtype))
    graph.set_result((GraphEmitter(graph, catalogue(), name="y").call("aten::exp", x),))
    paths = [tmp_path / "net.prototxt", tmp_path / "net.caffemodel"]
    with paths[0].open("wb") as prototxt, paths[1].open("wb") as caffemodel:
        write(lower(graph, catalogue(), "caffe", 0).graph, [prototxt, caffemodel])
    (result,) = runtime_for("caffe").run(paths, {"x": A[0, 0]}, ["y_exp"], shapes=[(5,)])
    np.testing.assert_allclose(result, np.exp(A[0, 0]), rtol=1e-5)


@pytest.mark.parametrize("target", SUFFIXES)
def test_runtimes_tell_their_version(target: str) -> None:
    assert re.match(r"\d+\.\d+", runtime_for(target).version)


@pytest.mark.parametrize("target", SUFFIXES)
def test_without_the_package_there_is_no_runtime(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    runtime = runtime_for(target)
    if target == "caffe":  # whose layers we define ourselves
        assert runtime.name == "the NumPy definitions of Caffe's layers in tmconvert"
    else:
        assert runtime is None


def run_python(code: str, *args: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-c", code, *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=dict(os.environ))


def test_importing_loads_no_runtime() -> None:
    code = (
        "import sys, tmconvert.targets.registry as r; r.runtime_for('onnx')\n"
        "print({'onnxruntime', 'ai_edge_litert', 'cv2', 'onnx'} & set(sys.modules))"
    )
    assert run_python(code).stdout == "set()\n"


@pytest.mark.slow
@pytest.mark.parametrize("target", SUFFIXES)
def test_runtimes_keep_quiet_and_give_stderr_back(target: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "inputs.npz", a=A, b=B)
    code = (
        "import sys, pathlib, numpy\n"
        "from tmconvert.targets.registry import runtime_for\n"
        "target, inputs, *paths = sys.argv[1:]\n"
        "feeds = dict(numpy.load(inputs))\n"
        "runtime_for(target).run([pathlib.Path(path) for path in paths], feeds, ['v_sub'])\n"
        "print('after', file=sys.stderr)"
    )
    done = run_python(code, target, tmp_path / "inputs.npz", *written(tmp_path, target))
    assert done.stdout == ""
    assert done.stderr == "after\n"


@pytest.mark.opencv
def test_opencv_finds_blobs_whose_names_have_escapes(tmp_path: Path) -> None:
    names = {r"\303\251": "é", r"a\"b": 'a"b', r"c\\d": r"c\d"}
    text = nets.declared({"x": (1, 3, 2, 2)})
    for number, name in enumerate(names):
        text += f'layer {{ name: "relu{number}" type: "ReLU" bottom: "x" top: "{name}" }}\n'
    x = np.random.default_rng(0).standard_normal((1, 3, 2, 2)).astype(np.float32)
    path = nets.written(tmp_path, text, {})
    for array in OpenCvRuntime().run([path, path.with_suffix(".caffemodel")], {"x": x}, [*names.values()]):
        np.testing.assert_array_equal(array, np.maximum(x, 0))
