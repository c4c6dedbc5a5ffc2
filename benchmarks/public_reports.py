"""Small models after public reports about converters: each is right on two inputs, or refused by a code.

    python benchmarks/public_reports.py [PART OF A NAME ...]

A model is written for each target and run in its runtime, on its example and on another input; where sizes
are open (letters in shapes), the other input has other sizes. A refusal counts where the row expects its
code. Exit status 1 if a result is wrong, an exception has no code, or a code is another one.
"""

from __future__ import annotations

import inspect
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from public_reports_models import REPORTS, Report

import tmconvert
from tmconvert.errors import InternalError, TmconvertError
from tmconvert.ir.tree import leaves
from tmconvert.targets.registry import runtime_for


@dataclass
class Written:
    """A file, with the sizes that it states for its inputs."""

    path: Path
    report: Any
    names: Sequence[str]


def onnx_source(each: Report, folder: Path) -> Path:
    heads = '<ir_version: 9, opset_import: ["" : {}]> agraph {}'
    model = onnx.parser.parse_model(heads.format(each.opset, each.model))
    onnx.save(model, folder / "source.onnx")
    return folder / "source.onnx"


def parameters(function: Any) -> list[str]:
    if isinstance(function, torch.jit.ScriptFunction):
        return [one.debugName().partition(".")[0] for one in function.graph.inputs()]
    return [*inspect.signature(function).parameters]


def convert(each: Report, target: str, folder: Path, example: Sequence[torch.Tensor]) -> Written:
    path, options = folder / f"made.{target}", dict(each.options)
    if target == "onnx":
        options["opset"] = each.opset
    else:
        options["io_layout"] = "source"
    model: Any = each.model
    if isinstance(model, str):
        made = getattr(tmconvert, f"to_{target}")(onnx_source(each, folder), path, **options)
    else:
        inner = getattr(model, "forward", model)
        opened = {name: arg.open for name, arg in zip(parameters(inner), each.args, strict=True) if arg.open}
        sizes = {"dynamic_shapes": opened} if opened else {}
        traced = tmconvert.trace(model, *(tensor.clone() for tensor in example), **sizes)
        made = getattr(tmconvert, f"to_{target}")(traced, path, **options)
    return Written(path, made, [one["name"] for one in made.inputs])


def expected(each: Report, tensors: Sequence[torch.Tensor], folder: Path) -> list[np.ndarray]:
    if isinstance(each.model, str):
        import onnxruntime

        session = onnxruntime.InferenceSession(folder / "source.onnx", providers=["CPUExecutionProvider"])
        names = [one.name for one in session.get_inputs()]
        return session.run(None, dict(zip(names, (tensor.numpy() for tensor in tensors), strict=True)))
    with torch.no_grad():
        result = each.model(*(tensor.clone() for tensor in tensors))
    return [leaf.numpy() for leaf in leaves(result) if isinstance(leaf, torch.Tensor)]


def differs(found: Sequence[np.ndarray], wanted: Sequence[np.ndarray], tolerance: float) -> bool:
    for one, other in zip(found, wanted, strict=True):
        largest = float(np.max(np.abs(other), initial=1, where=np.isfinite(other))) if other.size else 1.0
        if one.shape != other.shape or not np.allclose(one, other, 0, tolerance * largest, equal_nan=True):
            return True
    return False


def outcome(each: Report, target: str, folder: Path) -> str:
    """Returns right, refused, or what is wrong."""
    generator = torch.Generator().manual_seed(7)
    example, second = ([arg.draw(which, generator) for arg in each.args] for which in (0, 1))
    wanted_code = each.refused.get(target) or each.refused.get("all")
    try:
        written = convert(each, target, folder, example)
    except InternalError as error:
        return f"DEFECT {error!s:.200}"
    except TmconvertError as error:
        return "refused" if error.code == wanted_code else f"REFUSED {error!s:.300}"
    except Exception as error:
        return f"BARE {type(error).__name__}: {error!s:.200}"
    if wanted_code:
        return f"WRITTEN, where {wanted_code} is expected"
    runtime = runtime_for(target, written.path)
    assert runtime is not None
    outputs = [one["name"] for one in written.report.outputs]
    for tensors in (example, second):
        fed = dict(zip(written.names, (tensor.numpy() for tensor in tensors), strict=True))
        try:
            found = runtime.run([written.path], fed, outputs)
        except TmconvertError as error:
            return f"DOES NOT RUN {error!s:.300}"
        if differs(found, expected(each, tensors, folder), each.tolerance):
            return "WRONG"
    return "right"


def results(parts: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    for each in REPORTS:
        if parts and not any(part in each.name for part in parts):
            continue
        for target in ("onnx", "tflite"):
            with tempfile.TemporaryDirectory() as folder:
                yield each.name, target, outcome(each, target, Path(folder))


def main(*parts: str) -> int:
    warnings.simplefilter("ignore")
    counts: Counter[str] = Counter()
    for name, target, found in results(parts):
        counts[found if found in ("right", "refused") else "other"] += 1
        if found not in ("right", "refused"):
            print(f"{name} {target}: {found}", flush=True)
    print(f"{len(REPORTS)} reports: {dict(counts)}")
    return 1 if counts["other"] else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
