"""The PyTorch models that people export now, in the flows in which they export them, against PyTorch.

    python benchmarks/torch_flows.py                        all of torch_flows/*.models
    python benchmarks/torch_flows.py --only vision 'audio/*vocoder' --measure onnx tflite
    python benchmarks/torch_flows.py --json rows.json --markdown --jobs 2

Three measurements of each model: "onnx", right on two inputs in ONNX Runtime (opset 17); "open", each size
that PyTorch keeps open is open, at least within a range, and right at three other sets of sizes; "tflite",
right on two inputs in LiteRT. On request "open-tflite", "open" in LiteRT, and "dynamo", "open" of a file by
torch.onnx.export(dynamo=True), for models whose inputs are keywords. Right means
max|a-b| / max|b| < 1e-3, for each output.

Models have real widths, few layers and random weights. Each has a process of its own with a time limit. A
model whose package is not installed is "absent" and not counted. The packages: transformers, diffusers,
ultralytics, segmentation-models-pytorch, torchaudio, open-clip-torch, timm, torch-geometric, torchao, peft,
monai, kornia, spandrel, vocos, demucs, stable-baselines3, pytorch-tabnet, x-transformers. Exit status 1 if
any is not right.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import fnmatch
import importlib
import json
import sys
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from torch_flow import Flow, flows_of
from torch_flow_runs import MEASUREMENTS, Row, measured
from torchvision_ops import declare

# modules that take long to import: once, before the processes of the models are made
SLOW_IMPORTS = ("transformers.modeling_utils", "diffusers.models.modeling_utils", "onnxruntime", "onnx")
FAMILIES = ("transformers", "diffusers", "vision", "audio", "other")


def flows() -> dict[str, Flow]:
    """Returns the entries of all tables that exist, by family/name."""
    found: dict[str, Flow] = {}
    for family in FAMILIES:
        for path in sorted(Path(__file__).with_suffix("").glob(f"{family}*.models")):
            found |= {f"{family}/{name}": flow for name, flow in flows_of(path).items()}
    return found


def line(row: Row) -> str:
    cells = [f"{name} {row.states.get(name, '-'):8}" for name in row.states]
    notes = "; ".join(f"{name}: {note}" for name, note in row.notes.items())
    return f"{row.name:36} {' '.join(cells)} {row.seconds:6.1f} s {notes}"


def table(rows: Sequence[Row], measure: Sequence[str]) -> str:
    """Returns the rows as a table of Markdown."""
    lines = [f"| model | {' | '.join(measure)} | CPU s | |", "|" + "---|" * (len(measure) + 3)]
    for row in rows:
        states = " | ".join(row.states.get(name, "") for name in measure)
        notes = "; ".join(f"{name}: {note}" for name, note in row.notes.items()).replace("|", "/")
        lines.append(f"| {row.name} | {states} | {row.seconds:.1f} | {notes} |")
    return "\n".join(lines)


def summary(rows: Sequence[Row], measure: Sequence[str]) -> str:
    """Returns a table of the rows that are right, by family. Absent models are not counted."""
    lines = [f"| family | {' | '.join(measure)} | absent |", "|" + "---|" * (len(measure) + 2)]
    families = [*dict.fromkeys(row.name.partition("/")[0] for row in rows), ""]
    for family in families:
        group = [row for row in rows if row.name.startswith(family)]
        cells = []
        for name in measure:
            states = Counter(row.states[name] for row in group if name in row.states and not row.absent)
            cells.append(f"{states['right']} of {sum(states.values())}")
        lines.append(f"| {family or 'all'} | {' | '.join(cells)} | {sum(row.absent for row in group)} |")
    return "\n".join(lines)


def _fits(name: str, pattern: str, known: Collection[str]) -> bool:
    """Returns whether a pattern (a whole name, one of the shell, or a part of names) fits the name."""
    return name == pattern if pattern in known else fnmatch.fnmatch(name, pattern) or pattern in name


def run(known: Mapping[str, Flow], description: str) -> int:
    """Measures those of the flows that the command line chooses. Returns the exit status."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", nargs="+", default=["*"], help="names, patterns or parts of names")
    parser.add_argument("--measure", nargs="+", choices=MEASUREMENTS, default=["onnx", "open", "tflite"])
    parser.add_argument("--opset", type=int, default=17)
    parser.add_argument("--timeout", type=float, default=300, help="seconds for a model")
    parser.add_argument("--jobs", type=int, default=1, help="models at the same time")
    parser.add_argument("--json", type=Path, help="writes the rows to this file, and updates those in it")
    parser.add_argument("--markdown", action="store_true", help="prints a table at the end")
    parser.add_argument("--verbose", action="store_true", help="shows where errors come from")
    parser.add_argument("--verify", action="store_true", help="verifies files on conversion, too")
    options = parser.parse_args()
    chosen = {
        name: flow for name, flow in known.items() if any(_fits(name, each, known) for each in options.only)
    }
    with contextlib.suppress(ImportError):
        declare()
    for name in SLOW_IMPORTS:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    rows: list[Row] = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for row in pool.map(lambda item: measured(*item, options), chosen.items()):
            rows.append(row)
            print(line(row), flush=True)
            if options.json:
                before = json.loads(options.json.read_text()) if options.json.exists() else {}
                options.json.write_text(json.dumps({**before, row.name: dataclasses.asdict(row)}, indent=1))
    if options.markdown:
        print(table(rows, options.measure), end="\n\n")
    print(summary(rows, options.measure))
    return int(any(state != "right" for row in rows if not row.absent for state in row.states.values()))


if __name__ == "__main__":
    sys.exit(run(flows(), __doc__ or ""))
