"""Runtimes that may abort run in a process of their own."""

from __future__ import annotations

import ast
import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tests.cli.runner import command_line, environment, model
from tmconvert import api
from tmconvert.errors import InternalError, UsageError, VerificationError
from tmconvert.targets.onnx.runtime import OnnxRuntime
from tmconvert.targets.onnx.verify import sessions
from tmconvert.targets.onnx.verify.sessions import Session
from tmconvert.targets.tflite.runtime import LiteRtRuntime
from tmconvert.verification.processes import worker
from tmconvert.verification.processes.messages import read_message, send_message

ABORTS = """
import os

class OpResolverType:
    AUTO = BUILTIN_WITHOUT_DEFAULT_DELEGATES = 0

class Interpreter:
    def __init__(self, **options):
        os.write(2, b"first\\nF0000 check failed: axis < rank\\n")
        {end}
"""
ONNX_RUNTIME = """
import os
from types import SimpleNamespace

GraphOptimizationLevel = SimpleNamespace(ORT_DISABLE_ALL=0)

class SessionOptions:
    def add_session_config_entry(self, name, value):
        pass

class InferenceSession:
    def __init__(self, path, options, providers):
        os.write(2, b"first\\nlast\\n")
        os.abort()
"""
MODEL = model("op_s_conv_bn_relu")
QUANTIZED = Path(__file__).parents[2] / "samples" / "digits_qat.tm"
CONVERTS = """
import sys
from tmconvert import api
from tmconvert.targets.onnx.verify import sessions
model, quantized, out = sys.argv[1:]
verified = [api.to_onnx(model, out).verified, api.to_onnx(quantized, out, quantized=True).verified]
print(*verified, "onnxruntime" not in sys.modules, sessions._sessions)
"""


@pytest.fixture
def own_worker() -> Iterator[None]:
    """The worker of other tests is not the one of this test."""
    worker.worker().end()
    yield
    worker.worker().end()


def fake_runtime(folder: Path, end: str) -> None:
    (folder / "ai_edge_litert").mkdir()
    (folder / "ai_edge_litert" / "__init__.py").write_text("")
    (folder / "ai_edge_litert" / "interpreter.py").write_text(ABORTS.format(end=end))


@pytest.mark.parametrize(
    ("end", "how"),
    [
        ("os.abort()", "SIGABRT"),
        ("os.kill(os.getpid(), 11)", "SIGSEGV"),
        ("os._exit(3)", "exit status 3"),
    ],
)
@pytest.mark.parametrize("observes", [False, True])
def test_an_abort_is_an_error_of_the_file(
    end: str, how: str, observes: bool, own_worker: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_runtime(tmp_path, end)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(VerificationError) as caught:
        if observes:
            worker.observe(LiteRtRuntime(), tmp_path / "m.tflite", {})
        else:
            LiteRtRuntime().run([tmp_path / "m.tflite"], {"x": np.zeros(3)}, ["y"])
    assert caught.value.code == "TM4002"
    assert caught.value.message == f"the process of LiteRT ended while it ran the file ({how})"
    assert caught.value.notes[0] == ("it wrote", "first\nF0000 check failed: axis < rank")


@pytest.mark.parametrize("runtime", [OnnxRuntime(), Session(), Session(fuses=False)])
def test_a_crash_of_onnx_runtime_is_an_error_of_the_file(
    runtime: OnnxRuntime, own_worker: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "onnxruntime.py").write_text(ONNX_RUNTIME)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(VerificationError) as caught:
        runtime.run([tmp_path / "m.onnx"], {"x": np.zeros(3)}, ["y"])
    assert caught.value.code == "TM4002"
    assert caught.value.message == "the process of ONNX Runtime ended while it ran the file (SIGABRT)"
    assert caught.value.notes[0] == ("it wrote", "first\nlast")


def test_a_runtime_that_ends_in_calibration_is_an_error_of_the_sample(
    own_worker: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("onnxruntime")
    traced = api.trace(torch.nn.Sequential(torch.nn.Linear(4, 2), torch.nn.ReLU()).eval(), torch.zeros(1, 4))
    (tmp_path / "onnxruntime.py").write_text(ONNX_RUNTIME)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UsageError) as caught:
        api.calibrate(traced, [np.zeros((1, 4), np.float32)])
    assert caught.value.code == "TM6033"
    ended = "the process of ONNX Runtime ended while it ran the file (SIGABRT)"
    assert caught.value.message == f"the model cannot be run on sample 1: {ended}"


def test_what_a_runtime_wrote_for_earlier_files_is_not_quoted(
    own_worker: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raises_first = (
        "if 'm.onnx' in path: raise RuntimeError\n        os.write(2, b'second')\n        os.abort()"
    )
    (tmp_path / "onnxruntime.py").write_text(ONNX_RUNTIME.replace("os.abort()", raises_first))
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("m.onnx", "n.onnx"):
        with pytest.raises(VerificationError) as caught:
            OnnxRuntime().run([tmp_path / name], {"x": np.zeros(3)}, ["y"])
    assert caught.value.notes[0] == ("it wrote", "first\nlast\nsecond")


@pytest.mark.slow
def test_conversions_to_onnx_load_the_runtime_in_the_worker_alone(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    done = subprocess.run(
        [sys.executable, "-c", CONVERTS, str(MODEL), str(QUANTIZED), str(tmp_path / "m.onnx")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "True True True {}\n"


@pytest.mark.parametrize("end", ["import time; time.sleep(60)", "os.kill(os.getpid(), 19)"])
def test_a_runtime_that_hangs_is_ended(
    end: str, own_worker: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_runtime(tmp_path, end)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("TMCONVERT_RUNTIME_SECONDS", "3")
    before = time.monotonic()
    with pytest.raises(VerificationError) as caught:
        LiteRtRuntime().run([tmp_path / "m.tflite"], {"x": np.zeros(3)}, ["y"])
    assert time.monotonic() - before < 20
    assert caught.value.code == "TM4002"
    assert caught.value.message == "LiteRT did not finish within 3 s, and was terminated"
    assert caught.value.notes[0] == ("it wrote", "first\nF0000 check failed: axis < rank")
    assert not worker.worker()._process.poll()


def test_the_limit_of_time_scales_and_is_settable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TMCONVERT_RUNTIME_SECONDS", raising=False)
    assert worker.seconds_for(0) == 600
    assert worker.seconds_for(1 << 30) == 600 + 4096
    monkeypatch.setenv("TMCONVERT_RUNTIME_SECONDS", "20")
    assert worker.seconds_for(1 << 30) == 20
    for wrong in ("0", "-1", "nan", "inf", "soon"):
        monkeypatch.setenv("TMCONVERT_RUNTIME_SECONDS", wrong)
        with pytest.raises(UsageError, match="TM6010"):
            worker.seconds_for(0)


def test_an_exception_of_ours_in_the_worker_is_a_defect(own_worker: None, tmp_path: Path) -> None:
    with pytest.raises(InternalError) as caught:
        worker.worker().ask({"do": "run", "runtime": "LiteRT", "delegates": True})
    assert (caught.value.code, caught.value.exit_status) == ("TM9000", 3)
    assert caught.value.message == "KeyError: 'inputs'"
    label, place = caught.value.notes[0]
    assert label == "place"
    assert "worker_process.py" in place and "in _run" in place
    assert "Traceback" in str(caught.value.__cause__)
    with pytest.raises(VerificationError, match="TM4002"):  # and the worker goes on
        LiteRtRuntime().run([tmp_path / "none.tflite"], {}, [])


def test_a_start_finds_folders_of_every_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, "\U0001f600", "\udc80", "\xe9'\""])
    code = worker.command("tmconvert.verification.processes.worker_process")[-1]
    (line,) = (each for each in code.splitlines() if each.startswith("sys.path[:] = "))
    assert line.isascii() and ast.literal_eval(line.partition(" = ")[2]) == sys.path


def test_an_array_that_cannot_be_sent_writes_nothing() -> None:
    stream = io.BytesIO()
    with pytest.raises(TypeError):
        send_message(stream, {}, [np.array([b"text"], object)])
    assert stream.getvalue() == b""


def test_a_conversion_after_an_abort(
    own_worker: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ai_edge_litert")
    fake_runtime(tmp_path, "os.abort()")
    with monkeypatch.context() as patched:
        patched.syspath_prepend(tmp_path)
        with pytest.raises(VerificationError, match="SIGABRT"):
            api.to_tflite(MODEL, tmp_path / "m.tflite")
    assert not (tmp_path / "m.tflite").exists()
    assert api.to_tflite(MODEL, tmp_path / "m.tflite").verified


def test_without_a_worker_files_run_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ai_edge_litert")

    def none() -> None:
        raise worker.Unavailable

    monkeypatch.setattr(worker, "worker", none)
    assert api.to_tflite(MODEL, tmp_path / "m.tflite").verified
    assert api.to_tflite(QUANTIZED, tmp_path / "q.tflite", quantized=True).verified
    pytest.importorskip("onnxruntime")
    assert api.to_onnx(QUANTIZED, tmp_path / "q.onnx", quantized=True).verified
    assert not sessions._sessions


STARTS = """
import time
from tmconvert.targets.tflite.runtime import LiteRtRuntime
from tmconvert.verification.processes import worker
from tmconvert.targets.tflite.runtime import LiteRtRuntime
worker.version(LiteRtRuntime())
print(worker.worker()._process.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="it has no SIGKILL")
def test_a_worker_ends_with_its_process() -> None:
    pytest.importorskip("ai_edge_litert")
    with subprocess.Popen([sys.executable, "-c", STARTS], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        number = int(process.stdout.readline())
        os.kill(number, 0)
        process.send_signal(signal.SIGKILL)
    for _ in range(200):
        try:
            os.kill(number, 0)
        except ProcessLookupError:
            return
        if Path(f"/proc/{number}/stat").exists() and ") Z " in Path(f"/proc/{number}/stat").read_text():
            return
        time.sleep(0.05)
    pytest.fail("the worker lives on")


@pytest.mark.slow
@pytest.mark.parametrize("target", ["tflite", "caffe"])
def test_modules_of_the_working_folder_are_not_imported(target: str, tmp_path: Path) -> None:
    for name in ("numpy", "cv2", "queue", "ai_edge_litert", "tmconvert"):
        (tmp_path / f"{name}.py").write_text("open('imported', 'w')")
    script = "import sys; sys.path.pop(0); from tmconvert.__main__ import main; main()"
    out = "o.tflite" if target == "tflite" else "o.prototxt"
    command = [sys.executable, "-c", script, *command_line(target, MODEL, out)[3:]]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr.split()[0]) == (0, "verified")
    assert not (tmp_path / "imported").exists()


def test_messages_carry_every_type_and_shape() -> None:
    arrays = [
        np.zeros((), np.float64),
        np.arange(6, dtype=np.int16).reshape(2, 3).T,
        np.zeros((0, 4), np.bool_),
        np.arange(3).astype(ml_dtypes.bfloat16),
    ]
    stream = io.BytesIO()
    send_message(stream, {"do": "run", "name": "b\udcff\n", "low": -np.inf}, arrays)
    stream.seek(0)
    message = read_message(stream)
    assert message is not None
    assert message.header == {"do": "run", "name": "b\udcff\n", "low": -np.inf}
    for sent, found in zip(arrays, message.arrays, strict=True):
        assert (found.dtype, found.shape) == (sent.dtype, sent.shape)
        np.testing.assert_array_equal(found, sent)
    assert read_message(stream) is None
    stream.truncate(len(stream.getvalue()) - 1)
    stream.seek(0)
    assert read_message(stream) is None
