"""ONNX's own tests: through the reference, to ONNX and to TFLite.

    python benchmarks/onnx_backend.py                              all cases
    python benchmarks/onnx_backend.py --only 'test_conv*' --show   some of them, a line each
    python benchmarks/onnx_backend.py --json rows.json --seconds 300    a part; the next call does the rest
    python benchmarks/onnx_backend.py --json rows.json --seconds 0 --operators docs/onnx-operators.md

Each case of ``onnx.backend.test`` is a model with inputs and outputs: of one operator (``node``), or one
that PyTorch wrote (``pytorch-converted``, ``pytorch-operator``). "load" is right if the model loads and
computes these outputs in NumPy; "onnx", if the written model does in ONNX Runtime; "tflite", in LiteRT, for
cases whose inputs and outputs are float32, int32, int64 or bool. Where the written model does not, ONNX
Runtime gets the case itself: what it does not run either, or computes the same of, is counted apart.
With ``--verify`` conversions to ONNX are verified, too.

A case that needs more processor time than ``--limit`` is ended with its process. The
rows are saved as they come. Rows of another version of the source are measured again.

Cases outside of the goal are listed by reason and not counted (``OUTSIDE``). Inputs that stand for attributes
in all models that exporters write, such as the axes of ReduceSum, are made constants of the model
(``SETTINGS``); with ``--raw`` they stay inputs. A case that is not right is an error with a reason, "wrong",
or "crash" if the process ended.
"""

from __future__ import annotations

import argparse
import fnmatch
import hashlib
import json
import multiprocessing
import os
import re
import resource
import sys
import tempfile
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

MEASUREMENTS = ("load", "onnx", "tflite")
TFLITE_TYPES = {"float32", "int32", "int64", "bool"}
KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")
CHUNK = 40
OF_RUNTIME = "ONNX Runtime, of the case itself:"
WAITING = 20  # times the limit of processor time, for a case that hangs
MEMORY = 12 << 30  # bytes of address space of a process
# (relative, absolute); bfloat16 is computed in float32
TOLERANCES = {"FLOAT16": (2e-3, 1e-3), "BFLOAT16": (2**-6, 2**-7)}
# operators that are not counted, by the reason
OUTSIDE = {
    "training": "Adagrad Adam Gradient Momentum",
    "random numbers": "Bernoulli Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike",
    "strings": "RegexFullMatch StringConcat StringNormalizer StringSplit TfIdfVectorizer LabelEncoder",
    "sequences and optionals": "ConcatFromSequence Optional OptionalGetElement OptionalHasElement SequenceAt "
    "SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength SequenceMap SplitToSequence",
    "decodes a picture": "ImageDecoder",
    "classical models (ai.onnx.ml)": "ArrayFeatureExtractor Binarizer TreeEnsemble",
}
# operators with inputs that are attributes in all but their form, by the numbers of these inputs
SETTINGS = {
    (
        1,
    ): "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum "
    "ReduceSumSquare Squeeze Unsqueeze CumSum CumProd Trilu OneHot CenterCropPad Reshape Upsample AffineGrid",
    (0,): "BlackmanWindow HammingWindow HannWindow",
    (3, 4): "Slice",
    (1, 2): "DFT Col2Im",
    (2, 3, 4): "NonMaxSuppression",
    (1, 2, 3): "Resize Pad",
    (1, 3): "STFT",
    (0, 1, 2, 3, 4): "MelWeightMatrix",
}


def cases(kinds: Sequence[str] = KINDS) -> list[Any]:
    """Returns all cases, by name."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [case for kind in kinds for case in load_model_tests(kind=kind)]
    for case in found:
        if case.model is None:
            read(case)
    return sorted(found, key=lambda case: str(case.name))


def read(case: Any) -> None:
    """Reads the model and the first data set of a case that is stored in files."""
    folder = Path(case.model_dir)
    case.model = onnx.load(str(folder / "model.onnx"))
    data = folder / "test_data_set_0"
    case.data_sets = [
        tuple(
            [_stored(data / f"{kind}_{number}.pb", value) for number, value in enumerate(values)]
            for kind, values in (("input", without_weights(case.model)), ("output", case.model.graph.output))
        )
    ]


def without_weights(model: Any) -> list[Any]:
    """Returns the inputs of a model that are no initializers."""
    stored = {each.name for each in model.graph.initializer}
    return [each for each in model.graph.input if each.name not in stored]


def _stored(path: Path, value: Any) -> Any:
    content = path.read_bytes()
    if value.type.WhichOneof("value") != "tensor_type":
        return np.zeros(())  # not counted
    return onnx.TensorProto.FromString(content)


def outside(case: Any) -> str:
    """Returns why a case is not counted; empty if it is."""
    operators = {node.op_type for node in case.model.graph.node}
    for function in case.model.functions:
        operators |= {node.op_type for node in function.node}
    for reason, names in OUTSIDE.items():
        if operators & set(names.split()):
            return reason
    domains = {each.domain for each in case.model.graph.node}
    if any("ai.onnx.ml" in each for each in domains):
        return "classical models (ai.onnx.ml)"
    if any("training" in each for each in domains) or "training" in case.name:
        return "training"
    values = [*case.model.graph.input, *case.model.graph.output]
    if any(each.type.WhichOneof("value") != "tensor_type" for each in values):
        return "sequences and optionals"
    if any(each.type.tensor_type.elem_type == onnx.TensorProto.STRING for each in values):
        return "strings"
    return ""


def arrays(values: Sequence[Any]) -> list[np.ndarray]:
    """Returns the arrays of a data set, without the types that only ml_dtypes has."""
    made = [
        numpy_helper.to_array(each) if hasattr(each, "data_type") else np.asarray(each) for each in values
    ]
    return [plain(each) for each in made]


def plain(array: np.ndarray) -> np.ndarray:
    """Returns an array as a graph holds it: four bits in eight, small floats as float32."""
    if array.dtype.name in ("int4", "int2"):
        return array.astype(np.int8)
    if array.dtype.name in ("uint4", "uint2"):
        return array.astype(np.uint8)
    return array.astype(np.float32) if array.dtype.kind == "V" or "float8" in array.dtype.name else array


def settings(model: Any) -> set[str]:
    """Returns the names of the inputs that stand for attributes."""
    fixed: set[str] = set()
    for numbers, names in SETTINGS.items():
        for node in model.graph.node:
            if node.op_type in names.split():
                fixed |= {node.input[number] for number in numbers if number < len(node.input)}
    return fixed


def with_settings(model: Any, inputs: list[np.ndarray], fixed: set[str]) -> tuple[Any, list[np.ndarray]]:
    """Returns the model with the inputs ``fixed`` as constants, and the other inputs."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    del made.graph.input[:]
    kept = []
    for value, array in zip(without_weights(model), inputs, strict=True):
        if value.name in fixed:
            made.graph.initializer.append(numpy_helper.from_array(array, value.name))
        else:
            made.graph.input.append(value)
            kept.append(array)
    return made, kept


def agree(made: Sequence[np.ndarray], wanted: Sequence[np.ndarray], case: Any) -> str:
    """Returns how results differ from the expected ones; empty if they do not."""
    types = [each.type.tensor_type.elem_type for each in case.model.graph.output]
    names = [onnx.helper.tensor_dtype_to_string(each).rpartition(".")[2] for each in types]
    if len(made) != len(wanted):
        return f"{len(made)} outputs instead of {len(wanted)}"
    for number, (one, other) in enumerate(zip(made, wanted, strict=True)):
        one, other = plain(np.asarray(one)), plain(np.asarray(other))
        if one.shape != other.shape:
            return f"output {number} has shape {list(one.shape)}, not {list(other.shape)}"
        if one.dtype != other.dtype:
            return f"output {number} is {one.dtype}, not {other.dtype}"
        rtol, atol = TOLERANCES.get(names[number], (1e-4, 1e-5))
        rtol, atol = max(case.rtol, rtol), max(case.atol, atol)
        if not np.allclose(one.astype(np.float64), other.astype(np.float64), rtol, atol, equal_nan=True):
            return f"output {number} differs"
    return ""


def measured(
    case: Any, measure: Sequence[str], fixed: set[str], folder: Path, *, verify: bool = False
) -> Iterator[tuple[str, str]]:
    """Yields (measurement, "" or what is wrong) for each measurement that applies."""
    import tmconvert

    inputs, wanted = (arrays(each) for each in case.data_sets[0])
    model, inputs = with_settings(case.model, inputs, fixed)
    path = folder / "case.onnx"
    onnx.save(model, str(path))
    loaded: list[Any] = []

    def load() -> str:
        loaded.append(tmconvert.load(path))
        made = loaded[0](*inputs)
        return agree(list(made) if isinstance(made, (list, tuple)) else [made], wanted, case)

    def to_onnx() -> str:
        out = folder / "out.onnx"
        own = outputs_or_error(path, inputs)
        try:
            tmconvert.to_onnx(loaded[0] if loaded else path, out, opset="auto", verify=verify)
        except Exception as error:
            if isinstance(own, str):
                return f"{OF_RUNTIME} {own}; {error}"
            raise
        made = outputs_or_error(out, inputs)
        if isinstance(own, str):
            return f"{OF_RUNTIME} {own}" if isinstance(made, str) or agree(made, wanted, case) else ""
        if isinstance(made, str):
            return made
        different = agree(made, wanted, case)
        return f"{OF_RUNTIME} {different}" if different and not agree(made, own, case) else different

    def to_tflite() -> str:
        out = folder / "out.tflite"
        tmconvert.to_tflite(loaded[0] if loaded else path, out, io_layout="source", verify=False)
        return agree(in_litert(out, inputs, wanted), wanted, case)

    for name, run in zip(MEASUREMENTS, (load, to_onnx, to_tflite), strict=True):
        types = {array.dtype.name for array in (*inputs, *wanted)}
        if name in measure and (name != "tflite" or types <= TFLITE_TYPES):
            yield name, outcome(run)


def outcome(run: Any) -> str:
    """Returns what is wrong with a measurement; empty if it is right."""
    try:
        different = run()
        return f"wrong: {different}" if different and not different.startswith(OF_RUNTIME) else different
    except Exception as error:
        text = " ".join(str(error).split())
        return f"{type(error).__name__}: {text}"


def in_onnx_runtime(path: Path, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    # inputs that nothing needs are not in the file
    given = {each.name: array for each, array in zip(session.get_inputs(), inputs, strict=True)}
    return list(session.run(None, given))


def outputs_or_error(path: Path, inputs: Sequence[np.ndarray]) -> list[np.ndarray] | str:
    """Returns the outputs in ONNX Runtime, or its error."""
    try:
        return in_onnx_runtime(path, inputs)
    except Exception as error:
        return " ".join(str(error).split())


def in_litert(path: Path, inputs: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> list[np.ndarray]:
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(str(path), num_threads=1)
    given = interpreter.get_input_details()
    for detail, array in zip(given, inputs, strict=True):
        interpreter.resize_tensor_input(detail["index"], array.shape)
    interpreter.allocate_tensors()
    for detail, array in zip(given, inputs, strict=True):
        if array.size:  # an empty one cannot be set
            interpreter.set_tensor(detail["index"], array.astype(detail["dtype"]))
    interpreter.invoke()
    made = [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]
    # indices have 32 bits there
    return [
        one.astype(np.int64) if one.dtype == np.int32 and other.dtype == np.int64 else one
        for one, other in zip(made, wanted, strict=False)
    ]


# ---- processes: a runtime may end its own


class Rows:
    """The rows (case, measurement, "" or what is wrong) of a file, each with the version that it is of."""

    def __init__(self, path: Path | None) -> None:
        self.path, self.version = path, version()
        self.found: dict[str, dict[str, Any]] = {}
        if path is not None and path.is_file():
            self.found = json.loads(path.read_text())

    def add(self, case: str, found: Sequence[tuple[str, str]]) -> None:
        self.found[case] = {"version": self.version, "rows": [list(each) for each in found]}

    def save(self) -> None:
        if self.path is not None:
            fresh = self.path.with_suffix(".new")
            fresh.write_text(json.dumps(self.found, indent=0))
            fresh.replace(self.path)

    def lacks(self, case: str, misses_only: bool) -> bool:
        """Whether a case has to be measured: of this version, or with ``misses_only`` one that was wrong."""
        known = self.found.get(case)
        if known is not None and misses_only:
            return any(text for _, text in known["rows"]) and known["version"] != self.version
        return known is None or known["version"] != self.version

    def versions(self, chosen: Sequence[Any]) -> Counter[str]:
        """Counts the cases of each version of the source, the most first."""
        known = (self.found[case.name] for case in chosen if case.name in self.found)
        return Counter(dict(Counter(each["version"] for each in known).most_common()))

    def of(self, chosen: Sequence[Any]) -> list[tuple[str, str, str]]:
        names = [case.name for case in chosen if case.name in self.found]
        return [(name, *each) for name in names for each in self.found[name]["rows"]]


def version() -> str:
    """Returns a digest of the source of tmconvert."""
    import tmconvert

    folders = [Path(each) for each in tmconvert.__path__]
    root = folders[0] if (folders[0] / "symbolics").is_dir() else folders[0].parent
    names = ["."] if root == folders[0] else ["convert", "symbolics", "cli"]
    state = hashlib.sha1()
    for path in sorted(path for name in names for path in (root / name).rglob("*.py")):
        state.update(path.read_bytes())
    return state.hexdigest()[:12]


class Worker:
    """A process that measures cases one after the other, and is ended where one takes too long."""

    def __init__(self, chosen: Sequence[Any], numbers: list[int], options: Any) -> None:
        self.chosen, self.numbers, self.limit = chosen, numbers, options.limit
        context = multiprocessing.get_context("fork")
        self.pipe, theirs = context.Pipe(False)
        self.process = context.Process(target=_work, args=(chosen, numbers, options, theirs))
        self.process.start()
        theirs.close()
        self.since = self._times()
        self.found: list[tuple[str, str]] = []  # of the case at hand

    def progress(self, rows: Rows) -> bool:
        """Adds what was measured; returns whether there is more to come."""
        is_open = True
        try:
            while self.pipe.poll(0.1):
                found = self.pipe.recv()
                self.since = self._times()
                self.found += [found] if found else []
                if not found:  # the case is complete
                    rows.add(self.chosen[self.numbers.pop(0)].name, self.found)
                    self.found = []
        except EOFError:
            is_open = False
        if is_open and self.numbers and not self._is_late():
            return True
        if self.numbers:
            reason = f"no result in {self.limit:.0f} s" if is_open else "the process ended"
            name = MEASUREMENTS[len(self.found)]
            rows.add(self.chosen[self.numbers.pop(0)].name, [*self.found, (name, reason)])
        self.stop()
        return False

    def _times(self) -> tuple[float, float]:
        """Returns the processor time of the process, and the time of day."""
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            return 0.0, time.monotonic()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), time.monotonic()

    def _is_late(self) -> bool:
        """Whether a case used the processor for too long, or waits; other programs may delay it."""
        used, waited = (now - then for now, then in zip(self._times(), self.since, strict=True))
        return used > self.limit or waited > WAITING * self.limit

    def stop(self) -> None:
        self.process.kill()
        self.process.join(5)
        self.pipe.close()


def run_all(chosen: Sequence[Any], rows: Rows, options: Any) -> int:
    """Measures the cases that ``rows`` lack until the time is over; returns how many are left."""
    numbers = [number for number, case in enumerate(chosen) if rows.lacks(case.name, options.misses)]
    waiting = [numbers[start : start + CHUNK] for start in range(0, len(numbers), CHUNK)]
    end, saved, running = time.monotonic() + options.seconds, time.monotonic(), list[Worker]()
    while time.monotonic() < end and (waiting or running):
        while waiting and len(running) < options.jobs:
            running.append(Worker(chosen, waiting.pop(0), options))
        for worker in list(running):
            if not worker.progress(rows):
                running.remove(worker)
                waiting[:0] = [worker.numbers] if worker.numbers else []
        if time.monotonic() - saved > 2:
            rows.save()
            saved = time.monotonic()
    rows.save()
    for worker in running:
        worker.stop()
    return sum(map(len, waiting)) + sum(len(worker.numbers) for worker in running)


def _work(chosen: Sequence[Any], numbers: Sequence[int], options: Any, pipe: Any) -> None:
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    with tempfile.TemporaryDirectory() as folder:
        for number in list(numbers):
            case = chosen[number]
            fixed = set() if options.raw else settings(case.operator_model)
            for each in measured(case, options.measure, fixed, Path(folder), verify=options.verify):
                pipe.send(each)
            pipe.send(None)
    pipe.close()
    os._exit(0)  # threads of runtimes may keep the process from ending


# ---- tables


def reason(text: str) -> str:
    """Returns an error without what differs from case to case."""
    short = re.sub(r"'[^']*'|\"[^\"]*\"|%\S+|/\S+", "…", text.partition(" -->")[0])
    return re.sub(r"\d+(?:[., ]+\d+)*", "N", short)[:150]


def table(rows: Sequence[tuple[str, str, str]], left_out: Counter[str], measure: Sequence[str]) -> str:
    """Returns counts and reasons as Markdown."""
    lines = ["| | right | errors | wrong | of ONNX Runtime |", "|---|---|---|---|---|"]
    for name in measure:
        found = [text for _, each, text in rows if each == name]
        apart = sum(text.startswith(OF_RUNTIME) for text in found)
        found = [text for text in found if not text.startswith(OF_RUNTIME)]
        wrong = sum(text.startswith("wrong") for text in found)
        right = sum(not text for text in found)
        share = 100 * right / max(len(found), 1)
        cells = f"{right} of {len(found)} ({share:.1f} %) | {len(found) - right - wrong} | {wrong} | {apart}"
        lines.append(f"| {name} | {cells} |")
    lines += ["", "| not right | measurement | cases |", "|---|---|---|"]
    groups = defaultdict(list)
    for case, name, text in rows:
        if text:
            groups[reason(text), name].append(case)
    for (text, name), names in sorted(groups.items(), key=lambda item: -len(item[1])):
        shown = ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")
        lines.append(f"| {text.replace('|', '/')} | {name} | {len(names)}: {shown} |")
    lines += ["", "| not counted | cases |", "|---|---|"]
    lines += [f"| {text} | {count} |" for text, count in left_out.most_common()]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="*", default=["*"])
    parser.add_argument("--measure", nargs="*", default=list(MEASUREMENTS))
    parser.add_argument("--raw", action="store_true")
    parser.add_argument("--verify", action="store_true", help="verify the conversions to ONNX")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=KINDS)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="to measure; the rest is left")
    parser.add_argument("--limit", type=float, default=60.0, help="processor seconds for one case")
    parser.add_argument("--misses", action="store_true", help="only cases that were not right before")
    parser.add_argument("--json", type=Path, help="rows, which a later call completes")
    parser.add_argument("--operators", type=Path, help="write the table of operators")
    options = parser.parse_args()
    everything = {case.name: case for case in cases(options.kinds)}
    for name, case in everything.items():
        # a case of the operator's function has the inputs of the operator's own
        case.operator_model = everything.get(name.partition("_expanded")[0], case).model
    named = [
        case for case in everything.values() if any(fnmatch.fnmatch(case.name, each) for each in options.only)
    ]
    left_out = Counter(filter(None, map(outside, named)))
    chosen = [case for case in named if not outside(case)]
    found = Rows(options.json)
    left = run_all(chosen, found, options)
    rows = found.of(chosen)
    if options.show:
        for case, name, text in sorted(rows):
            print(f"{case:60} {name:7} {text[:300] or 'right'}")
    print(table(rows, left_out, options.measure))
    if options.operators:
        from onnx_operators import operator_page

        options.operators.write_text(operator_page(chosen, rows, reason, found.versions(chosen)))
    if left:
        print(f"\n{left} cases are not measured yet: run the same command again")
    return int(bool(left) or any(each and not each.startswith(OF_RUNTIME) for _, _, each in rows))


if __name__ == "__main__":
    sys.exit(main())
