"""Each recorded MegEngine model, written in each format, read back, and converted to all targets.

    python benchmarks/round_trips.py
    python benchmarks/round_trips.py --kind tflite --only op_norms vit_tiny
    python benchmarks/round_trips.py --dialect opencv

A file that is read back is the same if its graph, written to the same format once more, computes in the
runtime of the format what the file computes: integers equal, floats to 1e-6 of the largest output; and if the
graph in NumPy gives that to 1e-4. NumPy sums in another order than the kernels, which is more than 1e-6 after
many layers; of integers it rounds ties otherwise, and one step of a layer may be several of the next, so the
note only says how many elements differ. A model that tmconvert refuses to write is refused, with its code.
Exit status 1 for other results, and for conversions of what was read back that are wrong.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import tmconvert
from benchmarks.corpus_targets import models
from tests.models import corpus
from tmconvert.errors import TmconvertError, VerificationError
from tmconvert.formats.tflite.metadata import tflite_layouts
from tmconvert.ir import Node, TensorNode, TracedModule
from tmconvert.symbolics.layouts import NCHW_TO_NHWC

KINDS = ("onnx", "tflite", "integers", "caffe")
TARGETS = ("onnx", "tflite", "caffe")
TOLERANCE, IN_NUMPY = 1e-6, 1e-4


class Trip(NamedTuple):
    """What became of one model in one format: ``state`` is same, refused or other."""

    state: str
    note: str
    further: dict[str, str]

    def __str__(self) -> str:
        further = ", ".join(f"{target} {result}" for target, result in self.further.items())
        return f"{self.state} {self.note}{'; ' if further else ''}{further}"

    def is_wrong(self) -> bool:
        return self.state == "other" or any(
            result.startswith(("wrong", "defect")) for result in self.further.values()
        )


def target_of(kind: str) -> str:
    return "tflite" if kind == "integers" else kind


def trip(name: str, kind: str, dialect: str) -> Trip:
    with tempfile.TemporaryDirectory() as folder:
        try:
            path = written(name, kind, dialect, Path(folder))
        except TmconvertError as error:
            return Trip("refused", error.code, {})
        try:
            loaded = tmconvert.load(path)
            in_numpy, is_near = compared(loaded, name, kind, path)
            note, is_same = written_again(loaded, name, kind, path, dialect)
            note, is_same = f"{note}, in NumPy {in_numpy}", is_same and is_near
        except TmconvertError as error:
            return Trip("other", f"{error.code} {error.message}", {})
        further = {target: converted(loaded, target, Path(folder)) for target in TARGETS}
        return Trip("same" if is_same else "other", note, further)


def written(name: str, kind: str, dialect: str, folder: Path) -> Path:
    """Writes the model. Raises TmconvertError where it is refused."""
    options: dict[str, object] = {"verify": False}
    if kind == "integers":
        options |= {"quantized": True}
        if not ("qat" in name or name.startswith("quantized")):  # those have scales
            inputs = corpus.golden(name)[0]
            options["calibration"] = [tuple(inputs)] if len(inputs) > 1 else [inputs[0]]
    if kind == "caffe":
        options["dialect"] = dialect
    return corpus.converted(name, target_of(kind), folder, **options)[1][0]


def fed(name: str, kind: str, path: Path) -> dict[str, np.ndarray]:
    """The recorded inputs, by name, in the layout of the file."""
    inputs, names = corpus.golden(name)[0], corpus.names(name)[0]
    layouts = tflite_layouts(path) if target_of(kind) == "tflite" else None
    is_last = layouts[0] if layouts else [False] * len(inputs)
    return {
        key: array.transpose(NCHW_TO_NHWC) if last else array
        for key, array, last in zip(names, inputs, is_last, strict=True)
    }


def compared(loaded: TracedModule, name: str, kind: str, path: Path) -> tuple[str, bool]:
    """Returns the difference of what is read back from what the runtime computes, and whether it is small."""
    expected, nodes = run(loaded, name, kind, path), tensors(loaded.graph.outputs)
    inputs = tensors(loaded.graph.inputs[1:])
    if expected is None:
        return "not run", False
    expected = [real(array, node) for array, node in zip(expected, nodes, strict=True)]
    made = loaded(*(real(*pair) for pair in zip(arguments(loaded, name, kind, path), inputs, strict=True)))
    found = list(made) if isinstance(made, list | tuple) else [made]
    if [array.shape for array in found] != [array.shape for array in expected]:
        return f"shapes {[array.shape for array in found]}", False
    if kind != "integers":
        error = max((relative(*pair) for pair in zip(found, expected, strict=True)), default=0.0)
        return f"{error:.0e}", error <= IN_NUMPY
    steps = [1.0 if node.qparams is None else node.qparams.scale[0] for node in nodes]
    distances = [
        np.abs(one - other).ravel() / step for one, other, step in zip(found, expected, steps, strict=True)
    ]
    return f"{float((np.concatenate(distances) > 0.5).mean()):.2%} differ", True


def written_again(loaded: TracedModule, name: str, kind: str, path: Path, dialect: str) -> tuple[str, bool]:
    """Writes what was read to the same format once more, runs both files, and returns how they differ."""
    target = target_of(kind)
    again = path.with_name(f"once_more{corpus.SUFFIXES[target]}")
    options: dict[str, dict[str, object]] = {
        "integers": {"quantized": True, "io_layout": "source"},
        "tflite": {"io_layout": "source"},
        "caffe": {"dialect": dialect},
    }
    getattr(tmconvert, f"to_{target}")(loaded, again, **options.get(kind, {}))
    first, second = (tmconvert.load(each) for each in (path, again))
    expected, found = (run(each, name, kind, path) for each in (first, second))
    if expected is None or found is None:
        return "not run", False
    names, others = ([node.name for node in tensors(each.graph.outputs)] for each in (first, second))
    if sorted(names) == sorted(others):  # Caffe's outputs have names, and the order of the layers
        found = [found[others.index(output)] for output in names]
    pairs = list(zip(expected, found, strict=True))
    if any((one.shape, one.dtype) != (other.shape, other.dtype) for one, other in pairs):
        return f"outputs are {[(each.shape, each.dtype.name) for each in found]}", False
    if kind == "integers":
        distinct = np.concatenate([(one != other).ravel() for one, other in pairs])
        return f"{float(distinct.mean()):.2%} differ", not distinct.any()
    error = max((relative(other, one) for one, other in pairs), default=0.0)
    return f"{error:.0e}", error <= TOLERANCE


def arguments(loaded: TracedModule, name: str, kind: str, path: Path) -> list[np.ndarray]:
    """Returns the recorded inputs as the file at ``path`` takes them."""
    assert loaded.original is not None
    given = fed(name, kind, path)
    arrays = [given[key] for key in loaded.original.inputs]
    if kind == "caffe":
        arrays = [array.astype(np.float32) for array in arrays]
    return [stored(*pair) for pair in zip(arrays, tensors(loaded.graph.inputs[1:]), strict=True)]


def run(loaded: TracedModule, name: str, kind: str, path: Path) -> list[np.ndarray] | None:
    """Runs the file that was loaded, in its runtime."""
    assert loaded.original is not None
    return loaded.original.run(arguments(loaded, name, kind, path))


def tensors(nodes: Sequence[Node]) -> list[TensorNode]:
    return [node for node in nodes if isinstance(node, TensorNode)]


def stored(array: np.ndarray, node: TensorNode) -> np.ndarray:
    """Returns an input as the file stores it."""
    qparams = node.qparams
    if qparams is None or not node.holds_integers:
        return array
    levels = np.rint(array / np.float32(qparams.scale[0])) + qparams.zero_point[0]
    return levels.clip(qparams.quant_min, qparams.quant_max).astype(node.dtype)


def real(array: np.ndarray, node: TensorNode) -> np.ndarray:
    """Returns the real numbers of an output."""
    if node.qparams is None or array.dtype.kind == "f":
        return array
    return (array.astype(np.float32) - node.qparams.zero_point[0]) * np.float32(node.qparams.scale[0])


def relative(found: np.ndarray, expected: np.ndarray) -> float:
    finite = np.isfinite(expected)
    if not np.array_equal(finite, np.isfinite(found)):
        return float("inf")
    one, other = found[finite].astype(np.float64), expected[finite].astype(np.float64)
    return float(np.abs(one - other).max(initial=0) / max(np.abs(other).max(initial=0), 1e-30))


def converted(loaded: TracedModule, target: str, folder: Path) -> str:
    """Converts what was read back: verified, refused with a code, wrong, or a defect."""
    path = folder / f"again{corpus.SUFFIXES[target]}"
    try:
        report = getattr(tmconvert, f"to_{target}")(loaded, path)
    except VerificationError as error:
        return f"wrong ({error.code} {error.message[:80]})"
    except TmconvertError as error:
        return f"defect {error.message}" if error.code.startswith("TM9") else error.code
    return "ok" if report.verified else "not verified"


def table(rows: Sequence[tuple[str, dict[str, Trip]]], kinds: Sequence[str]) -> Iterator[str]:
    yield "| model | " + " | ".join(kinds) + " |"
    yield "|---|" + "---|" * len(kinds)
    for name, trips in rows:
        yield f"| {name} | " + " | ".join(str(trips[kind]).replace("|", "/") for kind in kinds) + " |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--kind", choices=KINDS, action="append")
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--dialect", default="bvlc", help="of Caffe")
    options = parser.parse_args()
    kinds, rows, before = options.kind or KINDS, [], time.perf_counter()
    for name in options.only or models():
        rows.append((name, {kind: trip(name, kind, options.dialect) for kind in kinds}))
        for kind, each in rows[-1][1].items():
            print(f"{name} {kind}: {each}", file=sys.stderr, flush=True)
    print(*table(rows, kinds), sep="\n")
    for kind in kinds:
        states = Counter(trips[kind].state for _, trips in rows)
        again = Counter(
            f"{target} {result.split()[0]}"
            for _, trips in rows
            for target, result in trips[kind].further.items()
        )
        print(f"{kind}: {dict(states)}; converted again: {dict(sorted(again.items()))}")
    print(f"{time.perf_counter() - before:.0f} s")
    return int(any(each.is_wrong() for _, trips in rows for each in trips.values()))


if __name__ == "__main__":
    sys.exit(main())
