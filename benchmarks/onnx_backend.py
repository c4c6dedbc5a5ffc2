"""ONNX's own node tests: through the reference, to ONNX and to TFLite.

    python benchmarks/onnx_backend.py                              all cases
    python benchmarks/onnx_backend.py --only 'test_conv*' --show   some of them, a line each
    python benchmarks/onnx_backend.py --markdown table.md --json rows.json --jobs 2

Each case of ``onnx.backend.test`` is a model of one operator with inputs and outputs. "load" is right if the
model loads and computes these outputs in NumPy; "onnx", if the written model does in ONNX Runtime; "tflite",
in LiteRT, for cases whose inputs and outputs are float32, int32, int64 or bool.

Cases outside of the goal are listed by reason and not counted (``OUTSIDE``). Inputs that stand for attributes
in all models that exporters write, such as the axes of ReduceSum, are made constants of the model
(``SETTINGS``); with ``--raw`` they stay inputs. A case that is not right is an error with a reason, "wrong",
or "crash" if the process ended.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import multiprocessing
import os
import re
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
CHUNK = 40
SECONDS = 60.0  # for one case
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
    "ReduceSumSquare Squeeze Unsqueeze CumSum CumProd Trilu OneHot CenterCropPad Reshape Upsample",
    (0,): "BlackmanWindow HammingWindow HannWindow",
    (3, 4): "Slice",
    (1, 2): "DFT Col2Im",
    (2, 3, 4): "NonMaxSuppression",
    (1, 2, 3): "Resize Pad",
    (1, 3): "STFT",
    (0, 1, 2, 3, 4): "MelWeightMatrix",
}


def cases() -> list[Any]:
    """Returns all node cases, by name."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sorted(load_model_tests(kind="node"), key=lambda case: str(case.name))


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
    for value, array in zip(model.graph.input, inputs, strict=True):
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


def measured(case: Any, measure: Sequence[str], fixed: set[str], folder: Path) -> Iterator[tuple[str, str]]:
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
        tmconvert.to_onnx(loaded[0] if loaded else path, out, opset="auto", verify=False)
        return agree(in_onnx_runtime(out, inputs), wanted, case)

    def to_tflite() -> str:
        out = folder / "out.tflite"
        tmconvert.to_tflite(loaded[0] if loaded else path, out, io_layout="source", verify=False)
        return agree(in_litert(out, inputs, wanted), wanted, case)

    for name, run in zip(MEASUREMENTS, (load, to_onnx, to_tflite), strict=True):
        types = {array.dtype.name for array in (*inputs, *wanted)}
        if name in measure and (name != "tflite" or types <= TFLITE_TYPES):
            yield name, outcome(run)


def outcome(run: Any) -> str:
    try:
        different = run()
        return f"wrong: {different}" if different else ""
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


def in_litert(path: Path, inputs: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> list[np.ndarray]:
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(str(path), num_threads=1)
    given = interpreter.get_input_details()
    for detail, array in zip(given, inputs, strict=True):
        interpreter.resize_tensor_input(detail["index"], array.shape)
    interpreter.allocate_tensors()
    for detail, array in zip(given, inputs, strict=True):
        interpreter.set_tensor(detail["index"], array.astype(detail["dtype"]))
    interpreter.invoke()
    made = [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]
    # indices have 32 bits there
    return [
        one.astype(np.int64) if one.dtype == np.int32 and other.dtype == np.int64 else one
        for one, other in zip(made, wanted, strict=False)
    ]


# ---- processes: a runtime may end its own


def run_all(
    chosen: Sequence[Any], measure: Sequence[str], fixed: Sequence[set[str]], jobs: int
) -> list[tuple[str, str, str]]:
    """Returns (case, measurement, "" or what is wrong) for all cases."""
    waiting = [list(range(start, min(start + CHUNK, len(chosen)))) for start in range(0, len(chosen), CHUNK)]
    context = multiprocessing.get_context("fork")
    running: list[tuple[Any, Any, list[int], float]] = []
    rows: list[tuple[str, str, str]] = []
    while waiting or running:
        while waiting and len(running) < jobs:
            numbers = waiting.pop(0)
            ours, theirs = context.Pipe(False)
            process = context.Process(target=_work, args=(chosen, numbers, measure, fixed, theirs))
            process.start()
            theirs.close()
            running.append((process, ours, list(numbers), time.monotonic()))
        for entry in list(running):
            running.remove(entry)
            process, ours, numbers, since = entry
            is_open = True
            while is_open and ours.poll(0.05):
                try:
                    number, found = ours.recv()
                except EOFError:
                    is_open = False
                    continue
                rows += [(chosen[number].name, *each) for each in found]
                numbers.remove(number)
                since = time.monotonic()
            if time.monotonic() - since > SECONDS:
                process.kill()
                is_open = False
            if is_open and numbers:
                running.append((process, ours, numbers, since))
                continue
            process.join()
            if numbers:
                rows.append((chosen[numbers[0]].name, measure[-1], "crash or time limit"))
                waiting.insert(0, numbers[1:])
    return rows


def _work(
    chosen: Sequence[Any],
    numbers: Sequence[int],
    measure: Sequence[str],
    fixed: Sequence[set[str]],
    pipe: Any,
) -> None:
    warnings.simplefilter("ignore")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    with tempfile.TemporaryDirectory() as folder:
        for number in numbers:
            pipe.send((number, list(measured(chosen[number], measure, fixed[number], Path(folder)))))
    pipe.close()


# ---- tables


def reason(text: str) -> str:
    """Returns an error without what differs from case to case."""
    short = re.sub(r"'[^']*'|\"[^\"]*\"|%\S+|/\S+", "…", text.partition(" -->")[0])
    return re.sub(r"\(?[-\d][\d, .]*\)?", "N", short)[:150]


def table(rows: Sequence[tuple[str, str, str]], left_out: Counter[str], measure: Sequence[str]) -> str:
    """Returns counts and reasons as Markdown."""
    lines = ["| | right | errors | wrong |", "|---|---|---|---|"]
    for name in measure:
        found = [text for _, each, text in rows if each == name]
        wrong = sum(text.startswith("wrong") for text in found)
        right = sum(not text for text in found)
        share = 100 * right / max(len(found), 1)
        cells = f"{right} of {len(found)} ({share:.1f} %) | {len(found) - right - wrong} | {wrong}"
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
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--markdown", type=Path)
    options = parser.parse_args()
    everything = {case.name: case for case in cases()}
    named = [
        case for case in everything.values() if any(fnmatch.fnmatch(case.name, each) for each in options.only)
    ]
    left_out = Counter(filter(None, map(outside, named)))
    chosen = [case for case in named if not outside(case)]
    # a case of the operator's function has the inputs of the operator's own
    operators = [everything.get(case.name.partition("_expanded")[0], case) for case in chosen]
    fixed = [set() if options.raw else settings(case.model) for case in operators]
    rows = run_all(chosen, options.measure, fixed, options.jobs)
    if options.show:
        for case, name, text in sorted(rows):
            print(f"{case:60} {name:7} {text[:300] or 'right'}")
    text = table(rows, left_out, options.measure)
    print(text)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    if options.markdown:
        options.markdown.write_text(text + "\n")
    return 0 if all(not each for _, _, each in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
