"""MNN as the judge of Caffe nets with layers that OpenCV lacks."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.corpus_targets import judged
from tests.models import corpus
from tests.targets.caffe.nets import defined, layer, normal, text_of, written
from tmconvert.errors import VerificationError
from tmconvert.formats.caffe.dialects import DIALECTS
from tmconvert.formats.caffe.schema import schema
from tmconvert.targets.caffe.for_mnn import mnn_reads
from tmconvert.targets.caffe.mnn import MnnRuntime
from tmconvert.targets.caffe.opencv import OpenCvRuntime
from tmconvert.targets.caffe.runtimes import NumpyCaffeRuntime
from tmconvert.targets.registry import runtime_for
from tmconvert.verification.processes.worker import environment
from tmconvert.verification.runtime import FirstToTakeIt

needs_mnn = pytest.mark.skipif(importlib.util.find_spec("MNN") is None, reason="MNN is not installed")
X = {"x": normal(0, 2, 6, 9, 11)}


@pytest.mark.slow
@needs_mnn
@pytest.mark.parametrize("name", ["op_activations", "op_typecvt", "op_reduce"])
def test_what_only_mnn_can_judge(name: str, tmp_path: Path) -> None:
    """Layers that OpenCV lacks, outputs in the middle and twins of others, blobs without axes."""
    report, paths = corpus.converted(name, "caffe", tmp_path)
    assert report.verification is not None
    assert report.verification.runtime.startswith("MNN 3.")
    assert judged(name, corpus.run("caffe", paths, name))[0]


# of one layer each, and what MNN makes of it if asked for y and z
NETS = {
    "an alike": (layer("Threshold") + layer("Threshold", tops="z"), "y z"),
    "a Log": (layer("AbsVal", tops="a") + layer("Log", bottoms="a"), "y"),
    "copies": (layer("Split", tops="y") + layer("Threshold", tops="z"), "y z"),
    "in place": (
        layer("Power", "power_param { scale: 2 }") + 'layer { name: "r" type: "ReLU" bottom: "y" top: "y" }',
        "y",
    ),
    "a sum": (layer("Reduction", "reduction_param { axis: 2 operation: SUMSQ }"), "y"),
}


def run_in_mnn(
    folder: Path, text: str, outputs: list[str], shapes: list[tuple[int, ...]]
) -> list[np.ndarray]:
    (folder / "net.caffemodel").write_bytes(schema().NetParameter(name="net").SerializeToString())
    paths = [written(folder, text), folder / "net.caffemodel"]
    return MnnRuntime().run(paths, X, outputs, shapes=shapes)


@needs_mnn
@pytest.mark.parametrize("name", NETS)
def test_nets_in_other_words(name: str, tmp_path: Path) -> None:
    layers, outputs = NETS[name]
    expected = defined(X, layers, outputs=outputs)
    made = run_in_mnn(tmp_path, text_of(X, layers), outputs.split(), [array.shape for array in expected])
    assert mnn_reads(tmp_path / "net.prototxt")
    for actual, wanted in zip(made, expected, strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=1e-5, atol=1e-6)


@needs_mnn
def test_a_net_that_ends_its_process(tmp_path: Path) -> None:
    text = text_of(X, layer("Scale", "scale_param { axis: 0 }", "x x"))
    with pytest.raises(VerificationError, match="MNN rejected the file"):
        run_in_mnn(tmp_path, text, ["y"], [(2, 6, 9, 11)])
    assert not mnn_reads(tmp_path / "net.prototxt")


def test_the_definitions_are_behind_mnn(tmp_path: Path) -> None:
    text = text_of(X, layer("Threshold"))
    (tmp_path / "net.caffemodel").write_bytes(b"")
    paths = [written(tmp_path, text), tmp_path / "net.caffemodel"]

    class Broken(OpenCvRuntime):
        def run(self, *args: object, **options: object) -> list[np.ndarray]:
            raise VerificationError("TM4002", "no")

    runtime = FirstToTakeIt(Broken(), NumpyCaffeRuntime())
    assert runtime.name == "OpenCV"
    (made,) = runtime.run(paths, X, ["y"])
    assert runtime.name == NumpyCaffeRuntime.name
    np.testing.assert_array_equal(made, X["x"] > 0)


@pytest.mark.opencv
def test_opencv_comes_first(tmp_path: Path) -> None:
    path = written(tmp_path, text_of(X, layer("ReLU")))
    assert isinstance(runtime_for("caffe", path), OpenCvRuntime)


def test_what_mnn_mistakes_is_not_judged_by_it(tmp_path: Path) -> None:
    for text in (layer("ArgMax"), layer("MVN"), layer("LRN", "lrn_param { k: 2 }"), layer("Nothing")):
        assert not mnn_reads(written(tmp_path, text_of(X, text)))
    assert {rule.name.partition("-")[0] for rule in DIALECTS["mnn"].rules} == {"mnn"}


@needs_mnn
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are counted in /proc")
def test_mnn_takes_one_thread_and_leaves_no_file(tmp_path: Path) -> None:
    """Its threads wait in loops, which cost other conversions of ``--jobs`` more time than they save."""
    folder, working_folder = tmp_path / "nets", tmp_path / "working"
    folder.mkdir()
    working_folder.mkdir()
    caffemodel = folder / "net.caffemodel"
    caffemodel.write_bytes(schema().NetParameter(name="net").SerializeToString())
    written(folder, text_of(X, layer("Threshold"))).rename(folder / "0.prototxt")
    np.savez(folder / "inputs.npz", **X)
    code = (
        "import os; from tmconvert.targets.caffe.mnn_process import main; main();"
        "print('threads:', len(os.listdir('/proc/self/task')))"
    )
    program = [sys.executable, "-c", code, str(folder), str(caffemodel), "y"]
    done = subprocess.run(
        program, capture_output=True, text=True, env=environment(), cwd=working_folder, check=True
    )
    assert done.stdout.splitlines()[-1] == "threads: 1"
    assert not [*working_folder.iterdir()]
