"""Conversions of a folder of models: two processes, interruption, and a cluster that loses a worker.

    python benchmarks/many_models.py jobs FOLDER       time of --jobs 2 by that of --jobs 1, to three targets
    python benchmarks/many_models.py again FOLDER      a run that is interrupted, and one that goes on
    python benchmarks/many_models.py cluster FOLDER    two workers of Dask; one is killed
    python benchmarks/many_models.py calibration       the same, calibrating on 500 images

FOLDER has models, such as tests/data. The last two need the package `distributed` and start two workers on
this machine; they compare the bytes of all files with those of a run without a cluster.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import hashlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parent.parent
TARGETS = ("onnx", "tflite", "caffe")
COUNT = 500  # images
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of prctl(2)


def command(models: Path, out: Path, *more: str) -> list[str]:
    targets = [word for target in TARGETS for word in ("--to", target)]
    program = [sys.executable, "-m", "tmconvert", "convert"]
    return [*program, str(models), *targets, "-o", str(out), "--json", *more]


def adopt_orphans() -> None:
    """Makes this process the parent of those that outlive the command, so that their time is counted."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


def converted(program: Sequence[str]) -> tuple[float, list[dict[str, Any]]]:
    """Runs a command; returns its seconds, and what it says of each conversion."""
    start = time.perf_counter()
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - start
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()
    assert done.stdout, done.stderr
    return seconds, json.loads(done.stdout)["conversions"]


def digests(folder: Path) -> dict[str, str]:
    """The digests of all files but the record of what is finished."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".json")
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def results(conversions: Sequence[dict[str, Any]]) -> str:
    counted = Counter(
        each["error"]["code"] if each["error"] else "unchanged" if each["is_unchanged"] else "converted"
        for each in conversions
    )
    return ", ".join(f"{count} {name}" for name, count in sorted(counted.items()))


def jobs(models: Path, folder: Path) -> None:
    """One process and two, by turns."""
    adopt_orphans()
    times: dict[int, list[float]] = {1: [], 2: []}
    made: dict[str, str] = {}
    for turn, count in enumerate((1, 2, 2, 1, 1, 2)):
        out = folder / f"out{turn}"
        load = os.getloadavg()[0]
        before = os.times()
        seconds, found = converted(command(models, out, "--jobs", str(count)))
        after = os.times()
        used = after.children_user + after.children_system - before.children_user - before.children_system
        times[count].append(seconds)
        print(
            f"--jobs {count}: {seconds:.1f} s, {used:.1f} s of processor time, {results(found)} "
            f"(load before: {load:.1f})",
            flush=True,
        )
        made = made or digests(out)
        assert digests(out) == made, "the files differ"
    ratio = statistics.median(times[2]) / statistics.median(times[1])
    print(f"two jobs take {ratio:.2f} of the time of one (medians); all files are equal")


def again(models: Path, folder: Path) -> None:
    """Ctrl-C after some conversions, and a second run."""
    out = folder / "out"
    program = command(models, out, "--jobs", "2")
    process = subprocess.Popen(
        program, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stderr is not None
    ended = 0
    for line in process.stderr:
        ended += line.startswith(("verified:", "not verified:"))
        if ended == 60:
            os.killpg(process.pid, signal.SIGINT)
            break
    process.stderr.read()
    status = process.wait()
    hidden = [path for path in out.iterdir() if path.name.startswith(".")]
    record = json.loads((out / "tmconvert-finished.json").read_text())["conversions"]
    print(f"interrupted: status {status}, {len(record)} conversions recorded, hidden files: {hidden}")
    _, found = converted(program)
    print(f"again: {results(found)}")
    unchanged = sum(each["is_unchanged"] for each in found)
    assert unchanged == len(record), "finished work was done again"
    _, found = converted(program)
    print(f"once more: {results(found)}")


def on_cluster(program: Sequence[str], seconds: float) -> list[dict[str, Any]]:
    """Runs a command on a cluster of two workers, and kills the process of one after some time."""
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        process = subprocess.Popen(
            [*program, "--cluster", cluster.scheduler_address],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(seconds)
        is_running = process.poll() is None
        os.kill(cluster.workers[0].pid, signal.SIGKILL)
        output, _ = process.communicate(timeout=1500)
        print(f"a worker was killed after {seconds:.1f} s, while it ran: {is_running}")
        found: list[dict[str, Any]] = json.loads(output)["conversions"]
        return found


def lost_worker(models: Path, folder: Path) -> None:
    seconds, found = converted(command(models, folder / "here"))
    print(f"without a cluster: {seconds:.1f} s, {results(found)}", flush=True)
    there = on_cluster(command(models, folder / "there"), seconds / 3)
    print(f"on the cluster: {results(there)}")
    assert results(there) == results(found)
    assert digests(folder / "here") == digests(folder / "there"), "the files differ"
    print("all files are equal")


def calibration(folder: Path) -> None:
    """500 images, written as PNG, to integers on two targets."""
    from PIL import Image

    rng = np.random.default_rng(0)
    images = np.load(ROOT / "samples" / "digits_test.npz")["images"]
    (folder / "images").mkdir()
    for number in range(COUNT):
        pixels = np.asarray(images[number % len(images)], np.float32).reshape(8, 8) * 255
        noisy = np.clip(pixels + rng.normal(0, 8, (8, 8)), 0, 255).astype(np.uint8)
        Image.fromarray(noisy).save(folder / "images" / f"{number:03}.png")
    (folder / "tmconvert.toml").write_text(
        'targets = ["onnx", "tflite"]\n[options]\nquantized = true\ncalibration = "images"\nstd = [1]\n'
        f"[[models]]\nmodel = '{ROOT / 'samples' / 'digits.tm'}'\n",
        encoding="utf-8",
    )
    program = [sys.executable, "-m", "tmconvert", "convert", "--json", "-c", str(folder / "tmconvert.toml")]
    seconds, found = converted([*program, "-o", str(folder / "here")])
    print(f"without a cluster: {seconds:.1f} s, {results(found)}", flush=True)
    for share in (0.4, 0.8):
        out = folder / f"there{share}"
        there = on_cluster([*program, "-o", str(out)], share * seconds)
        print(f"on the cluster: {results(there)}", flush=True)
        assert digests(folder / "here") == digests(out), "the files differ"
    print(f"the files calibrated on {COUNT} images are equal")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=("jobs", "again", "cluster", "calibration"))
    parser.add_argument("models", nargs="?", type=Path, default=ROOT / "tests" / "data")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if given.what == "calibration":
            calibration(folder)
        else:
            work = {"jobs": jobs, "again": again, "cluster": lost_worker}[given.what]
            work(given.models, folder)


if __name__ == "__main__":
    main()
