"""Time and peak memory of whole conversions, each in a process of its own.

    python benchmarks/conversions.py tests/data/resnet18.tm samples/digits.tm --runs 5

Prints for each model and target the median wall time of `tmconvert` from start to exit, with and
without verification, and the peak resident memory beside that of importing what the conversion needs.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SUFFIXES = {"onnx": ".onnx", "tflite": ".tflite", "caffe": ".prototxt"}


def measured(command: list[str]) -> tuple[float, float]:
    """(seconds, peak MiB) of one process. Raises CalledProcessError when it fails."""
    started = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return time.perf_counter() - started, usage.ru_maxrss / 1024


def median(command: list[str], runs: int) -> tuple[float, float]:
    results = [measured(command) for _ in range(runs)]
    return statistics.median(time for time, _ in results), statistics.median(peak for _, peak in results)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    base = "import tmconvert.api, onnx, flatbuffers"
    floor_time, floor_peak = median([sys.executable, "-c", base], options.runs)
    print(f"imports alone: {floor_time:.2f} s, {floor_peak:.0f} MiB")
    print(f"{'model':32} {'target':8} {'verified':>9} {'plain':>9} {'peak':>10} {'file':>10}")
    for model in options.models:
        for target, suffix in SUFFIXES.items():
            with tempfile.TemporaryDirectory() as folder:
                report(model, target, Path(folder) / f"out{suffix}", options.runs)


def report(model: Path, target: str, out: Path, runs: int) -> None:
    command = [sys.executable, "-m", "tmconvert", target, str(model), str(out)]
    verified, _ = median(command, runs)
    plain, peak = median([*command, "--no-verify"], runs)
    size = sum(path.stat().st_size for path in out.parent.iterdir())
    print(
        f"{model.name:32} {target:8} {verified:7.2f} s {plain:7.2f} s {peak:6.0f} MiB {size / 2**20:6.1f} MiB"
    )


if __name__ == "__main__":
    main()
