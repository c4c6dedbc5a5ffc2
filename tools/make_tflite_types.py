"""Makes ``convert/targets/tflite/data/element_types.txt``: the first release that runs an operator's types.

    python tools/make_tflite_types.py            (--print: to stdout)
    python tools/make_tflite_types.py --cases CASES
    PYTHON tools/run_tflite_cases.py CASES 2.14_tflite-runtime-2.14.0.txt
    python tools/make_tflite_types.py --measured CASES 2.14_tflite-runtime-2.14.0.txt ...

``--cases`` writes the operators that the samples of all ops become, in float and in integers, for several
releases, one a file, beside inputs and results: those of LiteRT, as installed. Other releases run them
(``run_tflite_cases.py``) in scratch environments, since none of them installs beside another; ``--measured``
makes of what they said the lines in ``tflite_runtimes/``, a file for each: which types ran in how many cases.
"""

from __future__ import annotations

import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.symbolics.ops import harness
from tests.symbolics.ops.samples import SAMPLES
from tests.targets.tflite.integer_samples import SAMPLES as KERNEL_SAMPLES
from tests.targets.tflite.test_integer_kernels import given, grid
from tmconvert.errors import TmconvertError
from tmconvert.ir import CallFunction
from tmconvert.lowering.target_graph import Operator, Quantization, TargetGraph, Value
from tmconvert.symbolics.registry import catalogue
from tmconvert.targets.options import TFLITE_RUNTIME
from tmconvert.targets.registry import lower, write
from tmconvert.targets.tflite.integer.stages import to_integers
from tmconvert.targets.tflite.operators import spec
from tmconvert.targets.tflite.passes.fuse_activations import fuse_activations
from tmconvert.targets.tflite.runtimes import types_of
from tmconvert.targets.tflite.verify.observed import in_steps

OUTPUT = Path(__file__).resolve().parents[1] / "convert/targets/tflite/data/element_types.txt"
RUNTIMES = Path(__file__).parent / "tflite_runtimes"
RELEASES = (14, 15, 18, 20, 21, TFLITE_RUNTIME)  # whose forms of ops are cases
_MOST = 6  # cases of one operator and its types
_CONTROL = ("IF", "WHILE")  # which run graphs of any types
# Types that releases run but for some shapes or scales, for which
# convert/targets/tflite/integer/legalize.py, or the symbolic, has another form.
_OTHER_FORMS = {
    ("BATCH_MATMUL", "int8q>int8q"),
    ("FULLY_CONNECTED", "int16q,int8q,int64q>int16q"),
    *(("MUL", f"{kind}q>{kind}q") for kind in ("int8", "int16")),
    ("PRELU", "float32>float32"),
}
_CONVERTED = ("bool", "int8", "uint8", "int16", "int32", "int64", "float16", "float32")
_GRIDS = {
    "int8": (0.05, 3),
    "uint8": (0.05, 131),
    "int16": (0.0002, 0),
}

Lines = dict[
    tuple[str, str], tuple[int, int, str]
]  # by operator and types: cases that ran, cases, what failed


# ---- the cases


class Cases:
    """Operators in files of their own, each with the inputs that it had in a graph that ran."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.known: dict[tuple[str, str], set[Any]] = defaultdict(set)
        self.count = 0

    def add_graph(self, graph: TargetGraph, inputs: dict[str, np.ndarray]) -> None:
        """Every operator of ``graph`` that is new; ``inputs`` are by the names of the tensors."""
        operators = [each for each in graph.operators if not each.domain and self._is_new(each)]
        if not operators:
            return
        tensors = _run(graph, inputs)
        for operator in operators:
            if self._is_new(operator):
                self._add(operator, graph, tensors)

    def _is_new(self, operator: Operator) -> bool:
        found = self.known[operator.type, types_of(operator)]
        return len(found) < _MOST and _kind(operator) not in found

    def _add(self, operator: Operator, graph: TargetGraph, tensors: dict[str, np.ndarray]) -> None:
        inputs = list({id(each): each for each in operator.inputs if each and not each.is_constant}.values())
        made = [value.name for value in (*inputs, *operator.outputs)]
        if not inputs or any(name not in tensors for name in made):
            return
        self.known[operator.type, types_of(operator)].add(_kind(operator))
        alone = replace(graph, inputs=inputs, outputs=list(operator.outputs), operators=[operator])
        alone.input_names, alone.output_names = made[: len(inputs)], made[len(inputs) :]
        self.count += 1
        path = self.folder / f"{self.count:05}.tflite"
        with path.open("wb") as file:
            write(alone, [file])
        arrays = {f"in{i}": tensors[value.name] for i, value in enumerate(inputs)}
        arrays |= {f"out{i}": tensors[value.name] for i, value in enumerate(operator.outputs)}
        np.savez(path.with_suffix(".npz"), **arrays)
        path.with_suffix(".txt").write_text(f"{operator.type} {types_of(operator)}\n", encoding="utf-8")


def _kind(operator: Operator) -> Any:
    """What tells one use of an operator from another, but for its sizes."""
    ranks = tuple((len(value.shape), value.is_constant) for value in operator.inputs if value is not None)
    words = {name: value for name, value in operator.attributes.items() if isinstance(value, str | bool)}
    return ranks, tuple(sorted(words.items()))


def _run(graph: TargetGraph, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """All tensors of a run in LiteRT's own kernels."""
    from ai_edge_litert import interpreter as litert

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "m.tflite")
        with path.open("wb") as file:
            write(graph, [file])
        interpreter = litert.Interpreter(
            str(path),
            num_threads=1,
            experimental_op_resolver_type=litert.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
            experimental_preserve_all_tensors=True,
        )
        interpreter.allocate_tensors()
        for described, value in zip(interpreter.get_input_details(), graph.inputs, strict=True):
            interpreter.set_tensor(described["index"], in_steps(inputs[value.name], described))
        interpreter.invoke()
        found = {}
        for described in interpreter.get_tensor_details():
            try:
                found[described["name"]] = np.array(interpreter.get_tensor(described["index"]))
            except ValueError:  # of an operator that needs none
                continue
        return found


def write_cases(folder: Path) -> None:
    folder.mkdir(parents=True)
    cases = Cases(folder)
    for graph, inputs in (*_conversions(), *_kernels(), *_of_ops()):
        try:
            cases.add_graph(graph, inputs)
        except (RuntimeError, ValueError, TmconvertError) as error:
            print("left out:", type(error).__name__, str(error)[:200], file=sys.stderr)
    print(cases.count, "cases of", len(cases.known), "operators with types")


Sampled = tuple[TargetGraph, dict[str, np.ndarray]]


def _conversions() -> Iterator[Sampled]:
    """CAST, QUANTIZE and DEQUANTIZE between all types."""
    for one in _CONVERTED:
        numbers = np.arange(12).reshape(3, 4) % (2 if one == "bool" else 100)
        for other in _CONVERTED:
            if one != other:
                yield (
                    _conversion("CAST", Value("x", np.dtype(one), (3, 4)), other, None),
                    {"x": numbers.astype(one)},
                )
        quantized = Value("x", np.dtype(one), (3, 4), None, _quantization(one))
        if one in _GRIDS:
            yield _conversion("DEQUANTIZE", quantized, "float32", None), {"x": numbers.astype(one)}
        for other in _GRIDS if one in (*_GRIDS, "float32") else ():
            yield _conversion("QUANTIZE", quantized, other, _quantization(other)), {"x": numbers.astype(one)}


def _quantization(kind: str) -> Quantization | None:
    if kind not in _GRIDS:
        return None
    scale, zero_point = _GRIDS[kind]
    return Quantization(np.array([scale], np.float32), 0, np.array([zero_point], np.int64))


def _conversion(type: str, x: Value, kind: str, quantization: Quantization | None) -> TargetGraph:
    made = Value("y", np.dtype(kind), x.shape, None, quantization)
    options: dict[str, Any] = {}
    if type == "CAST":
        options = {"in_data_type": x.dtype.name.upper(), "out_data_type": made.dtype.name.upper()}
    graph = TargetGraph("tflite", TFLITE_RUNTIME, "conversion", [x], [made])
    graph.operators = [Operator(type, [x], [made], options, type)]
    graph.input_names, graph.output_names = ["x"], ["y"]
    return graph


def _kernels() -> Iterator[Sampled]:
    """The samples of integer kernels."""
    for kind in ("int8", "int16"):
        for sample in KERNEL_SAMPLES:
            kernel = spec(sample.type).integer
            if kernel is None or kind not in kernel.types:
                continue
            graph = sample.graph()
            _, numbers = given(sample, graph, kind)
            expected = _run(graph, numbers)
            for value in graph.outputs:
                if value.dtype == np.float32:
                    array = expected[value.name]
                    value.qparams = grid(float(array.min()), float(array.max()))
            for io_type in (kind, "float32", "uint8"):
                made = to_integers(graph, catalogue(), activations=kind, io_type=io_type)
                yield made.graph, numbers


def _of_ops() -> Iterator[Sampled]:
    """The samples of ops as each of some releases has them, in float and in integers."""
    for name, samples in SAMPLES.items():
        for sample in samples:
            if "tflite" not in sample.targets:
                continue
            for version in RELEASES:
                try:
                    yield from _of_op(name, sample.args, sample.attributes, version)
                except (TmconvertError, AssertionError, ValueError, KeyError) as error:
                    print("left out:", name, version, type(error).__name__, str(error)[:120], file=sys.stderr)


def _of_op(name: str, args: Any, attributes: dict[str, Any], version: int) -> Iterator[Sampled]:
    arrays = dict(zip(harness._input_names(name, args), harness._inputs(args), strict=True))
    for layout in harness.layouts_of(harness.prepared("tflite", version, name, args, attributes)):
        for kind in ("float32", "int8", "int16"):
            graph = harness.prepared("tflite", version, name, args, attributes)
            harness.store_as(graph, layout)
            stored = {node.name: harness._stored(arrays[node.name], node) for node in graph.inputs}
            if kind != "float32":
                _quantize(graph, arrays)
            lowering = lower(graph, catalogue(), "tflite", version)
            if lowering.unsupported:
                continue
            inputs = {value.name: stored[value.name] for value in lowering.graph.inputs}
            if kind == "float32":
                yield lowering.graph, inputs
                continue
            fuse_activations(lowering.graph, keeps_qparams=True)
            made = to_integers(lowering.graph, catalogue(), activations=kind, io_type=kind)
            yield made.graph, inputs


def _quantize(graph: Any, arrays: dict[str, np.ndarray]) -> None:
    """Grids for the floats of a graph: the inputs', and wide ones for what is computed."""
    for node in graph.inputs:
        if node.dtype == np.float32 and arrays[node.name].size:
            node.qparams = grid(float(arrays[node.name].min()), float(arrays[node.name].max()))
    for expr in graph:
        for node in expr.outputs if isinstance(expr, CallFunction) else ():
            if getattr(node, "dtype", None) == np.float32:
                node.qparams = grid(-4.0, 4.0)


# ---- what releases said


def measured(folder: Path, outcome: Path) -> None:
    """What a release said of the cases in ``folder`` as lines of ``RUNTIMES``."""
    found: Lines = {}
    said: dict[str, str] = defaultdict(str)
    for line in outcome.read_text(encoding="utf-8").splitlines():
        name, mode, text = line.split(" ", 2)
        said[name] = said[name] or ("" if text == "ok" else f"{text} ({mode})")
    for name, text in sorted(said.items()):
        type, types = (folder / f"{name}.txt").read_text(encoding="utf-8").split()
        ran, count, first = found.get((type, types), (0, 0, ""))
        found[type, types] = ran + (not text), count + 1, first or text
    lines = [
        f"{type} {types} {ran}/{count} {first}".strip() + "\n"
        for (type, types), (ran, count, first) in sorted(found.items())
    ]
    (RUNTIMES / outcome.name).write_text("".join(lines), encoding="utf-8")


def saved(path: Path) -> Lines:
    found: Lines = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        type, types, counts, *text = line.split(" ", 3)
        ran, _, count = counts.partition("/")
        found[type, types] = int(ran), int(count), "".join(text)
    return found


def first_releases() -> dict[tuple[str, str], int]:
    """The N of the first release 2.N that runs all cases of an operator and its types, as later ones do.

    Cases that fail in the newest release, too, tell nothing. 99 is for what no release runs.
    """
    known = {path.stem: saved(path) for path in sorted(RUNTIMES.glob("*.txt"))}
    newest = list(known)[-1]
    found = {}
    for key, (ran, _, _) in known[newest].items():
        least = 1 if key in _OTHER_FORMS else ran
        failing = [name for name, lines in known.items() if key in lines and lines[key][0] < least]
        later = [
            _release(name) for name in known if not failing or _release(name) > max(map(_release, failing))
        ]
        found[key] = (min(later) if later else 99) if ran else 99
    return found


def _release(name: str) -> int:
    """The N of "2.N_PACKAGE_VERSION"."""
    return int(name.split("_")[0].removeprefix("2."))


def text() -> str:
    """The text of the file: the releases, and a line for each operator and its types."""
    rows = sorted((key, release) for key, release in first_releases().items() if key[0] not in _CONTROL)
    names = sorted(path.stem.replace("_", " ") for path in RUNTIMES.glob("*.txt"))
    lines = (f"{type} {types} {release}" for (type, types), release in rows)
    return "\n".join([*names, "", *lines, ""])


if __name__ == "__main__":
    if sys.argv[1:] == ["--print"]:
        sys.stdout.write(text())
    elif sys.argv[1:2] == ["--cases"]:
        write_cases(Path(sys.argv[2]))
    elif sys.argv[1:2] == ["--measured"]:
        for each in sys.argv[3:]:
            measured(Path(sys.argv[2]), Path(each))
    else:
        OUTPUT.write_text(text(), encoding="utf-8")
