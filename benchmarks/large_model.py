"""Peak memory of converting a model that is larger than what the conversion may use.

    python benchmarks/large_model.py --gigabytes 3

Makes a chain of linear layers as a container, its weights generated while they are written, and converts
it to ONNX with external data and to TFLite, each in a process of its own. The ONNX file is converted to
another opset and to TFLite in turn. Prints time and peak memory: what the process holds for itself, and the
whole of what is resident, in which the mapped pages of the model count.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import tmconvert
from tmconvert.frontends.megengine.vocabulary import VOCABULARY
from tmconvert.ir import CallFunction, GetAttr, InternalGraph, ModuleNode, TensorNode, TracedModule
from tmconvert.ir.ownership import assign_owners

WIDTH = 8192
LAYER_BYTES = WIDTH * WIDTH * 4
LINEAR = "megengine.functional.nn.linear"


def make(path: Path, layers: int) -> None:
    """A container of ``layers`` matrices, each of which is one row of numbers seen WIDTH times."""
    model = TracedModule("Chain", "user.Chain", vocabulary=VOCABULARY)
    model.producer = "benchmarks/large_model.py"
    graph = InternalGraph("Chain")
    self_node = graph.add_input(ModuleNode("self", "user.Chain"))
    value = graph.add_input(TensorNode("x", (1, WIDTH), np.dtype("float32")))
    generator = np.random.default_rng(0)
    for i in range(layers):
        row = (generator.random(WIDTH, np.float32) + 0.5) / WIDTH  # positive: nothing cancels
        model.tensors[f"w{i}"] = np.broadcast_to(row, (WIDTH, WIDTH))
        weight = TensorNode(f"w{i}", (WIDTH, WIDTH), np.dtype("float32"))
        graph.insert(GetAttr(self_node, f"w{i}", result=weight, id=2 * i + 2))
        result = TensorNode(f"y{i}", (1, WIDTH), np.dtype("float32"))
        arguments = (value, weight, None, "default")
        graph.insert(CallFunction(LINEAR, arguments, label="nn.linear", result=result, id=2 * i + 3))
        value = result
    graph.set_result(value)
    model.graphs["((M,T,),{})"] = graph
    assign_owners(graph, model)
    model.save(path)


def measured(command: list[str]) -> tuple[float, float, float]:
    """(seconds, peak MiB of its own memory, peak MiB resident) of one process."""
    started, own = time.perf_counter(), 0.0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        while True:
            own = max(own, _own_memory(process.pid))
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            time.sleep(0.01)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"failed with status {process.returncode}: {' '.join(command)}")
    return time.perf_counter() - started, own, usage.ru_maxrss / 1024


def _own_memory(pid: int) -> float:
    """MiB of memory that is no page of a file."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    line = next((line for line in status.splitlines() if line.startswith("RssAnon")), "RssAnon: 0 kB")
    return int(line.split()[1]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=3.0)
    parser.add_argument("--folder", type=Path, help="where there is room for twice as much")
    parser.add_argument("--make", type=Path, help="only make the container there")
    options = parser.parse_args()
    layers = math.ceil(options.gigabytes * 1e9 / LAYER_BYTES)
    if options.make:
        make(options.make, layers)
        return
    print(f"imports alone: {measured([sys.executable, '-c', 'import tmconvert.api, onnx'])[2]:.0f} MiB")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        model = Path(folder) / "large.tm"
        own = ["--make", str(model), "--gigabytes", str(options.gigabytes)]
        report("make the container", [sys.executable, __file__, *own])
        print(f"{'':26} {model.stat().st_size / 2**20:.0f} MiB of {layers} layers")
        tool = [sys.executable, "-m", "tmconvert"]
        report("inspect it", [*tool, "inspect", str(model)])
        again = Path(folder) / "again.tm"
        report("save it again", [*tool, "save", str(model), str(again)])
        again.unlink()
        made, other, out = (str(Path(folder) / name) for name in ("large.onnx", "other.onnx", "large.tflite"))
        external = ["--external-data", "--no-verify"]
        report("convert it to ONNX", [*tool, "onnx", str(model), made, *external])
        report("convert it to TFLite", [*tool, "tflite", str(model), out, "--no-verify"])
        model.unlink()
        report("inspect the ONNX file", [*tool, "inspect", made])
        report("ONNX to ONNX, opset 13", [*tool, "onnx", made, other, "--opset", "13", *external])
        report("ONNX to TFLite", [*tool, "tflite", made, out, "--no-verify"])


def report(what: str, command: list[str]) -> None:
    seconds, own, resident = measured(command)
    print(f"{what:26} {seconds:6.1f} s {own:7.0f} MiB of its own {resident:7.0f} MiB resident")


if __name__ == "__main__":
    assert tmconvert.__version__
    main()
