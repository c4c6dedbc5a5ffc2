"""Our export compared with torch.onnx.export(dynamo=True) on the same models in one run.

    python benchmarks/beside_dynamo.py                   all of torch_models_*.py and torch_flows_*.py
    python benchmarks/beside_dynamo.py --only timm 'small/r*' --save rows.jsonl
    python benchmarks/beside_dynamo.py --show rows.jsonl            the summary of saved rows, without a run

Each export is in a process of its own, forked when everything is imported and each exporter has exported
a small module. Each of the two is first for about half of the models, since the first pays for memory that
the machine has not used. An export is right if ONNX Runtime gives PyTorch's outputs on two inputs. "CPU" is
the processor time of the export, "memory" the peak of the resident set over that just before the export,
"nodes" counts subgraphs, too, "latency" is the best of some runs in ONNX Runtime with one thread.

The last lines are what the comparison must show: models that only dynamo converts right, and the ratios
over the models that both convert right. Exit status 1 if dynamo alone is right on more than three models,
or if a ratio is above its limit. dynamo needs the package onnxscript.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import gc
import importlib
import io
import json
import math
import multiprocessing
import random
import statistics
import sys
import tempfile
import time
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_exporters import forget_peak, resident
from torch_flow import Flow
from torch_flow_runs import FlowRun, plain
from torch_flows import SLOW_IMPORTS, flows
from torch_models import Example, models, tensors
from torchvision_ops import declare

import tmconvert
from tmconvert.errors import TmconvertError
from tmconvert.verification.compare import compare, refuse_wrong

EXPORTERS = ("tmconvert", "dynamo")
Rows = dict[str, dict[str, dict[str, Any]]]
Json = dict[str, Any]
# of the geometric mean of our number by dynamo's
LIMITS = {"cpu": 0.1, "nodes": 1.0, "memory": 1.0, "bytes": 1.0, "latency": 1.0}
MOST_ONLY_DYNAMO = 3


def export_tmconvert(flow: Flow, example: Example, path: Path, opset: int) -> None:
    module, args, kwargs = example
    traced = tmconvert.trace(module, *args, **kwargs, freeze_control_flow=flow.freeze)
    tmconvert.to_onnx(traced, path, opset=opset, verify=False, allow_random=flow.random)


def export_dynamo(flow: Flow, example: Example, path: Path, opset: int) -> None:
    module, args, kwargs = example
    torch.onnx.export(
        *(module, args, str(path)), kwargs=kwargs, opset_version=opset, dynamo=True, verbose=False
    )


EXPORTS: dict[str, Callable[[Flow, Example, Path, int], None]] = {
    "tmconvert": export_tmconvert,
    "dynamo": export_dynamo,
}


def measured(flow: Flow, exporter: str, opset: int) -> Json:
    """One export and two runs in this process."""
    run = FlowRun(flow)
    example = run.example
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        forget_peak()
        before, start = resident("VmRSS"), time.process_time()
        EXPORTS[exporter](flow, example, path, opset)
        row: Json = {"cpu": time.process_time() - start, "memory": (resident("VmHWM") - before) / 1024}
        row["bytes"] = sum(each.stat().st_size for each in Path(folder).iterdir())
        row["operators"] = _operators(path)
        row["nodes"] = sum(row["operators"].values())
        _compare(row, run, path)
    return row


def _operators(path: Path) -> dict[str, int]:
    """Nodes by operator, also those of subgraphs and functions."""
    import onnx

    model, found = onnx.load(str(path), load_external_data=False), Counter[str]()

    def count(nodes: Any) -> None:
        for node in nodes:
            found[node.op_type] += 1
            for attribute in node.attribute:
                count(attribute.g.node)

    for graph in (model.graph, *model.functions):
        count(graph.node)
    return dict(found)


def _compare(row: Json, run: FlowRun, path: Path) -> None:
    """Runs the file on two inputs; sets ``state`` and ``latency``."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 3, 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    input_names, tolerance = [node.name for node in session.get_inputs()], run.flow.tolerance
    row["state"] = "right"
    for given in run.inputs():
        with torch.no_grad():
            wanted = tensors(run.example[0](*given[0], **given[1]))
        feeds = dict(zip(input_names, tensors(given), strict=True))
        found = session.run(None, feeds)
        names = [f"output {number}" for number in range(len(wanted))]
        errors = compare(found, [plain(each) for each in wanted], names)
        try:
            refuse_wrong([each._replace(tolerance=each.tolerance and tolerance) for each in errors])
        except TmconvertError as error:
            row["state"], row["note"] = "wrong", str(error)[:200]
    times = []
    for _ in range(7):
        start = time.perf_counter()
        session.run(None, feeds)
        times.append(time.perf_counter() - start)
    row["latency"] = min(times)


def in_turn(name: str) -> tuple[str, ...]:
    """Returns the exporters in an order by the name: each is first for half of the models."""
    return EXPORTERS[:: 1 if zlib.crc32(name.encode()) % 2 else -1]


def _in_child(send: Any, flow: Flow, exporter: str, opset: int) -> None:
    warnings.simplefilter("ignore")
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            row = measured(flow, exporter, opset)
    except BaseException as error:  # a benchmark of what may go wrong
        row = {"state": "error", "note": " ".join(f"{type(error).__name__}: {error}".split())[:300]}
    send.send(row)


def forked(flow: Flow, exporter: str, opset: int, seconds: float) -> Json:
    """Measures one export in a forked process."""
    context = multiprocessing.get_context("fork")
    receive, send = context.Pipe(duplex=False)
    child = context.Process(target=_in_child, args=(send, flow, exporter, opset))
    child.start()
    send.close()
    try:
        if receive.poll(seconds):
            return dict(receive.recv())
        return {"state": "error", "note": f"no result in {seconds:.0f} s"}
    except EOFError:
        return {"state": "error", "note": "the process ended without a result"}
    finally:
        child.kill()
        child.join()


def warm_up(opset: int) -> None:
    """Exports a small module with each exporter, so that what they import and build once is not measured."""
    module = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())
    example: Example = module.eval(), (torch.randn(2, 3),), {}
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        for name, export in EXPORTS.items():
            export(Flow(lambda: example), example, Path(folder) / f"{name}.onnx", opset)


def summary(rows: Rows) -> list[str]:
    """The lines that say whether the comparison holds; those that do not hold begin with FAILED."""
    states = {name: tuple(row[each]["state"] == "right" for each in EXPORTERS) for name, row in rows.items()}
    kinds = Counter(states.values())
    lines = [
        f"{len(rows)} models: both right {kinds[True, True]}, only tmconvert {kinds[True, False]}, "
        f"only dynamo {kinds[False, True]}, neither {kinds[False, False]}"
    ]
    alone = [name for name, state in states.items() if state == (False, True)]
    lines += [f"only dynamo: {name}: {rows[name]['tmconvert'].get('note', 'wrong')}" for name in alone]
    if len(alone) > MOST_ONLY_DYNAMO:
        lines.append(f"FAILED: only dynamo is right on {len(alone)}, limit {MOST_ONLY_DYNAMO}")
    both = [rows[name] for name, state in states.items() if all(state)]
    for field, limit in LIMITS.items():
        ratio = geometric_mean([(row["tmconvert"][field], row["dynamo"][field]) for row in both])
        lines.append(
            f"{'FAILED: ' if ratio > limit else ''}{field}: {ratio:.3f} of dynamo's, limit {limit:g} "
            "(geometric mean)"
        )
    for each in EXPORTERS if both else ():
        lines.append(
            f"{each}: median memory {statistics.median(row[each]['memory'] for row in both):.1f} MiB"
        )
    return lines


def geometric_mean(pairs: Sequence[tuple[float, float]]) -> float:
    """The geometric mean of the quotients; numbers below a small one count as that one."""
    logs = [math.log(max(ours, 1e-6) / max(theirs, 1e-6)) for ours, theirs in pairs]
    return math.exp(float(np.mean(logs))) if logs else math.nan


def differences(rows: Rows) -> list[str]:
    """Nodes that we write more than dynamo, and fewer, by operator, over the models that both have right."""
    more: Counter[str] = Counter()
    for row in rows.values():
        if all(row[each]["state"] == "right" for each in EXPORTERS):
            more.update(row["tmconvert"]["operators"])
            more.subtract(row["dynamo"]["operators"])
    return [f"{count:+6} {name}" for name, count in sorted(more.items(), key=lambda each: -each[1]) if count]


def line_of(name: str, row: Mapping[str, Json]) -> str:
    parts = [f"{name:44}"]
    for each in EXPORTERS:
        found = row[each]
        parts.append(
            f"{found['state']:6}{found.get('cpu', 0):8.2f} s{found.get('memory', 0):8.1f} MiB"
            f"{found.get('nodes', 0):6}"
        )
    return " | ".join(parts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--only", nargs="+", default=["*"], help="names or patterns; a part of a name will do"
    )
    parser.add_argument("--opset", type=int, default=18)
    parser.add_argument("--seconds", type=float, default=300, help="the most for one export")
    parser.add_argument("--save", type=Path, help="append rows to a file; models in it are not run again")
    parser.add_argument("--shuffle", type=int, metavar="SEED", help="a drawn order: a part is a fair sample")
    parser.add_argument("--show", type=Path, nargs="+", help="summarize saved rows only")
    parser.add_argument("--operators", action="store_true", help="print the differences by operator")
    options = parser.parse_args()
    saved = options.show or [path for path in [options.save] if path is not None and path.exists()]
    lines = [json.loads(line) for path in saved for line in path.read_text().splitlines()]
    rows: Rows = {line["name"]: line["row"] for line in lines}
    if not options.show:
        torch.set_num_threads(1)
        declare()
        for name in SLOW_IMPORTS:  # once, not in the process of each export
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
        known = {name: Flow(make) for name, make in models().items()}
        known |= {f"flows/{name}": flow for name, flow in flows().items()}
        chosen = {
            name: flow
            for name, flow in known.items()
            if name not in rows
            and any(fnmatch.fnmatch(name, pattern) or pattern in name for pattern in options.only)
        }
        warnings.simplefilter("ignore")
        warm_up(options.opset)
        gc.collect()
        gc.freeze()  # or a collection in a forked process copies the memory of all that is imported
        order = list(chosen.items())
        if options.shuffle is not None:
            random.Random(options.shuffle).shuffle(order)
        for name, flow in order:
            row = {each: forked(flow, each, options.opset, options.seconds) for each in in_turn(name)}
            rows[name] = row
            print(line_of(name, row), flush=True)
            if options.save:
                with options.save.open("a") as file:
                    file.write(json.dumps({"name": name, "row": row}) + "\n")
    found = summary(rows)
    print("\n".join([*(differences(rows) if options.operators else ()), *found]))
    return int(any(line.startswith("FAILED") for line in found))


if __name__ == "__main__":
    sys.exit(main())
