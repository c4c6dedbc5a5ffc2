"""Accelerators that a script runs files on, in an interpreter that has their package."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from tmconvert.verification.accelerators.accelerator import Accelerator, Outcome, is_installed
from tmconvert.verification.processes.worker import seconds_for

_SCRIPT = Path(__file__).with_name("script.py")
# what LiteRT writes of an operator that its GPU does not take: "WHILE: Operation is not supported."
_REFUSED = re.compile(r"^([A-Z][A-Z0-9_]+): (.*?)\.?$", re.MULTILINE)
_LOG_LEVELS = {"INFO", "WARNING", "ERROR", "FATAL", "VERBOSE"}


class ScriptedAccelerator(Accelerator):
    """Runs files by the function of ``script.py`` with its name.

    ``package`` has to be installed here, or in the interpreter that the environment names in ``variable``.
    """

    def __init__(
        self, name: str, about: str, package: str, targets: tuple[str, ...], device: str = ""
    ) -> None:
        self.name, self.about, self.targets = name, about, targets
        self.package = package
        self.variable = f"TMCONVERT_{name.upper().replace('-', '_')}_PYTHON"
        self.how_to_get = (
            f"pip install {package}, or name another interpreter that has it: {self.variable}=/path/to/python"
            + (f"; {device}" if device else "")
        )

    @property
    def python(self) -> str:
        return os.environ.get(self.variable) or sys.executable

    def is_available(self) -> bool:
        return bool(os.environ.get(self.variable)) or is_installed(self.package)

    def run(self, path: Path, inputs: Mapping[str, np.ndarray], outputs: Sequence[str]) -> Outcome:
        size = path.stat().st_size + sum(array.nbytes for array in inputs.values())
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            np.savez(folder / "inputs.npz", *inputs.values())
            request = {"path": os.fspath(path.absolute()), "inputs": list(inputs), "outputs": list(outputs)}
            (folder / "request.json").write_text(json.dumps(request), "utf-8")
            ended = self._ended(folder, seconds_for(size))
            report: dict[str, Any] = {}
            with suppress(OSError, ValueError):
                report = json.loads((folder / "report.json").read_text("utf-8"))
            said = (folder / "stderr").read_text("utf-8", "replace")
            if report.get("no_device"):
                raise self.unavailable()
            if not report:
                return Outcome(ended=ended)
            elsewhere = tuple(report.get("elsewhere", ())) or _refused_operators(said)
            if "refused" in report:
                return Outcome(refused=report["refused"], elsewhere=elsewhere, is_whole=False)
            with np.load(folder / "outputs.npz") as stored:
                arrays = [stored[f"arr_{number}"] for number in range(len(outputs))]
        return Outcome(arrays, elsewhere=elsewhere, is_whole=report["is_whole"])

    def _ended(self, folder: Path, seconds: float) -> str:
        """Runs the script, and returns how its process ended."""
        command = [self.python, os.fspath(_SCRIPT), self.name, os.fspath(folder)]
        with (folder / "stderr").open("wb") as said:
            try:
                process = subprocess.run(
                    command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, timeout=seconds, check=False
                )
            except subprocess.TimeoutExpired:
                return (
                    f"it did not finish within {seconds:g} s (TMCONVERT_RUNTIME_SECONDS=N allows N seconds)"
                )
            except OSError as error:
                raise self.unavailable() from error
        status, how = process.returncode, ""
        with suppress(ValueError):
            how = signal.Signals(-status).name if status < 0 else ""
        last = ((folder / "stderr").read_text("utf-8", "replace").strip().splitlines() or [""])[-1].strip()
        return f"its process ended with {how or f'exit status {status}'}" + (
            f": {last[:160]}" if last else ""
        )


def _refused_operators(said: str) -> tuple[str, ...]:
    """Returns the operators that LiteRT reports as not supported, each with the reason."""
    found = [(name, why) for name, why in _REFUSED.findall(said) if name not in _LOG_LEVELS]
    return tuple(dict.fromkeys(f"{name} ({why})" for name, why in found))


SCRIPTED: tuple[Accelerator, ...] = (
    ScriptedAccelerator(
        "litert-gpu",
        "the GPU accelerator of LiteRT",
        "ai-edge-litert",
        ("tflite",),
        "without a GPU, tools/software_gpu unpacks a Vulkan driver in software",
    ),
    ScriptedAccelerator("openvino", "OpenVINO on the processor", "openvino", ("onnx", "tflite")),
    ScriptedAccelerator(
        "tflm",
        "TFLite Micro, the interpreter of microcontrollers,",
        "tflite-micro",
        ("tflite",),
        "pip takes --pre",
    ),
    ScriptedAccelerator(
        "webgpu",
        "the WebGPU provider of ONNX Runtime",
        "onnxruntime-webgpu",
        ("onnx",),
        "it replaces onnxruntime where it is installed, so prefer another environment; without a GPU, "
        "tools/software_gpu unpacks a Vulkan driver in software",
    ),
)
