"""Written files on processors of other kinds: recorded quantized models, and samples of the ops.

    python benchmarks/processors.py tests/data --write docs/processors.md

The files are written once, on this machine, and run on each processor of ``tools/on_processor`` by
``processors_runner.py``. The folder holds recorded models: NAME.tm and NAME.npz. Exit status 1 if a result is
wrong on a processor and ``EXPLAINED`` of ``quantized_corpus.py`` does not say why.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnxruntime
from ai_edge_litert import interpreter as litert

sys.path.insert(0, str(Path(__file__).parents[1]))

import tmconvert
from benchmarks.quantized_corpus import EXPLAINED as QUANTIZED_EXPLAINED
from benchmarks.quantized_corpus import arrays, models
from tests.models import corpus, integers
from tests.symbolics.ops import harness
from tests.symbolics.ops.samples import SAMPLES, Sample
from tmconvert.ir import InternalGraph
from tmconvert.lowering.lower import Lowering
from tmconvert.symbolics.registry import catalogue
from tmconvert.targets.onnx.writer import write_onnx
from tmconvert.targets.options import DEFAULT_OPSET, TFLITE_RUNTIME
from tmconvert.targets.registry import lower
from tmconvert.targets.tflite.writer import write_tflite
from tmconvert.verification.compare import compare

ROOT = Path(__file__).parents[1]
RUNNER = ROOT / "benchmarks/processors_runner.py"
OPS = 100  # samples
HERE = "here"
PROCESSORS = {
    HERE: "this machine",
    "avx2": "AVX2, no VNNI",
    "haswell": "AVX2 in qemu",
    "sse": "SSE 4.2",
    "nehalem": "SSE 4.2 in qemu",
    "arm64": "arm64, dot products",
    "arm64-v8.0": "arm64, without",
}
VERSIONS = {"onnx": DEFAULT_OPSET, "tflite": TFLITE_RUNTIME}
RUNTIMES = {".onnx": "ONNX Runtime", ".tflite": "LiteRT"}

SQUARE_ROOTS = (
    "Outputs of float files in LiteRT with SQRT differ in the last bits: XNNPACK starts from an approximation"
    " that each maker of processors, and qemu, computes differently."
)

Outputs = dict[str, np.ndarray]


@dataclass(frozen=True)
class Judgement:
    """What a run's outputs are worth: in words, and whether they pass."""

    words: str
    passes: bool


@dataclass(frozen=True)
class Job:
    """One written file with its inputs, and the judge of its outputs."""

    path: Path
    inputs: Outputs
    judge: Callable[[Outputs], Judgement]

    def save_inputs(self) -> None:
        np.savez(self.path.with_name(f"{self.path.name}.npz"), **self.inputs)


@dataclass
class Results:
    """The judgements of one processor, and the outputs themselves."""

    judged: dict[str, Judgement] = field(default_factory=dict)
    outputs: dict[str, Outputs] = field(default_factory=dict)


def model_jobs(folder: Path) -> Iterator[Job]:
    """The recorded quantized models, as ``--quantized`` writes them by default."""
    for name, path in models().items():
        inputs, expected = arrays(path)
        known = name in QUANTIZED_EXPLAINED
        file = folder / f"model {name}.onnx"
        tmconvert.to_onnx(path, file, quantized=True, verify=False)
        named = dict(zip(onnx_inputs(file), inputs, strict=True))
        yield Job(file, named, _onnx_judge(file, expected, known))
        file = file.with_suffix(".tflite")
        tmconvert.to_tflite(path, file, quantized=True, allow_float=True, verify=False)
        yield Job(file, integers.tflite_feeds(file, inputs), _tflite_judge(file, expected, known))


def onnx_inputs(path: Path) -> list[str]:
    return [each.name for each in onnxruntime.InferenceSession(path).get_inputs()]


def _onnx_judge(path: Path, expected: Sequence[np.ndarray], known: bool) -> Callable[[Outputs], Judgement]:
    def judge(found: Outputs) -> Judgement:
        distance = integers.onnx_outputs_distance(path, list(found.values()), expected)
        return Judgement(str(distance), distance.is_near or known)

    return judge


def _tflite_judge(path: Path, expected: Sequence[np.ndarray], known: bool) -> Callable[[Outputs], Judgement]:
    def judge(found: Outputs) -> Judgement:
        distance = integers.tflite_outputs_distance(path, found, expected)
        return Judgement(str(distance), distance.is_near or known)

    return judge


def op_jobs(folder: Path, count: int = OPS) -> Iterator[Job]:
    """Evenly chosen ops that both targets express, the first sample of each."""
    suitable = [name for name in sorted(SAMPLES) if _is_for_both(name, SAMPLES[name][0])]
    for index in range(count):
        name = suitable[index * len(suitable) // count]
        for suffix in RUNTIMES:
            yield _op_job(folder / f"op {name.replace('::', '.')}{suffix}", name, SAMPLES[name][0])


def _is_for_both(name: str, sample: Sample) -> bool:
    if not all(sample.suits(target, VERSIONS[target]) for target in VERSIONS):
        return False
    if any(array.size == 0 for array in harness.reference(name, sample.args, sample.attributes)):
        return False  # LiteRT has no way to read an empty output
    return all(not lowered(target, name, sample)[1].unsupported for target in VERSIONS)


def lowered(target: str, name: str, sample: Sample) -> tuple[InternalGraph, Lowering]:
    """The graph of one call, and what the target has for it."""
    graph = harness.prepared(target, VERSIONS[target], name, sample.args, sample.attributes)
    if target == "tflite":
        harness.store_as(graph, harness.layouts_of(graph)[0])
    return graph, lower(graph, catalogue(), target, VERSIONS[target])


def _op_job(path: Path, name: str, sample: Sample) -> Job:
    graph, lowering = lowered(path.suffix[1:], name, sample)
    with path.open("wb") as file:
        (write_onnx if path.suffix == ".onnx" else write_tflite)(lowering.graph, file)
    expected = harness.reference(name, sample.args, sample.attributes)
    names = lowering.graph.output_names

    def judge(found: Outputs) -> Judgement:
        outputs = harness.in_source_order(graph, [found[each] for each in names])
        compared = compare(outputs, expected, names)
        worst = max(compared, key=lambda each: each.max_error)
        return Judgement(f"{worst.max_error:.1e}", all(each.ok for each in compared))

    inputs = harness.stored_inputs(graph, name, sample.args)
    if path.suffix == ".tflite":  # int64 is int32 there
        described = litert.Interpreter(str(path)).get_signature_runner().get_input_details()
        inputs = {key: inputs[key].astype(details["dtype"]) for key, details in described.items()}
    return Job(path, inputs, judge)


def run(processor: str, folder: Path, jobs: Sequence[Job]) -> Results:
    """The judgements of all files on a processor."""
    results = folder / processor
    results.mkdir()
    here = [sys.executable, ROOT / "tools/on_processor", processor] if processor != HERE else []
    python = "python" if processor.startswith("arm64") else sys.executable
    command = [*here, python, RUNNER, folder, results]
    count = -1
    while subprocess.run(command).returncode and count < len(list(results.iterdir())) < len(jobs):
        count = len(list(results.iterdir()))  # the file that ended the process is left out in the next one
    found = Results()
    for job in jobs:
        name, made = job.path.name, results / f"{job.path.name}.npz"
        if not made.exists():
            error = results / f"{name}.error"
            reason = error.read_text() if error.exists() else "not run"
            found.judged[name] = Judgement(reason.splitlines()[0], False)
            continue
        with np.load(made) as arrays_:
            outputs = {key.removeprefix("out:"): arrays_[key] for key in arrays_.files}
        found.outputs[name], found.judged[name] = outputs, job.judge(outputs)
    return found


def different(a: Results, b: Results) -> list[str]:
    """The files whose outputs are not the same bytes."""
    return [
        name
        for name, outputs in a.outputs.items()
        if name not in b.outputs or not _all_equal(outputs, b.outputs[name])
    ]


def _all_equal(a: Outputs, b: Outputs) -> bool:
    return all(np.array_equal(array, b[key], equal_nan=array.dtype.kind == "f") for key, array in a.items())


def page(jobs: Sequence[Job], found: dict[str, Results]) -> str:
    titles = [PROCESSORS[name] for name in found]
    lines = [INTRODUCTION.format(cpu=cpu()).strip(), ""]
    for suffix, runtime in RUNTIMES.items():
        lines += [f"## Recorded quantized models in {runtime}", "", f"| model | {' | '.join(titles)} |"]
        lines += ["|---" * (len(titles) + 1) + "|"]
        for job in jobs:
            name = job.path.name
            if job.path.suffix == suffix and name.startswith("model "):
                cells = [results.judged[name].words for results in found.values()]
                lines.append(f"| {job.path.stem.removeprefix('model ')} | {' | '.join(cells)} |")
        lines.append("")
    lines += ["## Samples of the ops", "", *_ops(jobs, found), ""]
    lines += ["## Differences, explained", ""]
    lines += [f"- {name}: {why}." for name, why in QUANTIZED_EXPLAINED.items()]
    for masked, emulated in (("avx2", "haswell"), ("sse", "nehalem")):
        if {masked, emulated} <= set(found):
            names = different(found[masked], found[emulated])
            same = f"`{masked}` and `{emulated}` give the same bytes for {len(jobs) - len(names)}"
            lines += ["", f"{same} of the {len(jobs)} files; not for {', '.join(map(_shown, names))}."]
    lines += ["", SQUARE_ROOTS]
    return "\n".join([*lines, ""])


def _shown(name: str) -> str:
    stem, _, suffix = name.rpartition(".")
    return f"{stem.split(' ', 1)[1]} in {RUNTIMES['.' + suffix]}"


def _ops(jobs: Sequence[Job], found: dict[str, Results]) -> Iterator[str]:
    yield f"{OPS} ops, chosen evenly by name; right is within the tolerance of the op's tests."
    yield ""
    yield "| processor | ONNX Runtime | LiteRT | the rest |"
    yield "|---|---|---|---|"
    ops = [job.path for job in jobs if job.path.name.startswith("op ")]
    for processor, results in found.items():
        wrong = [path for path in ops if not results.judged[path.name].passes]
        counts = [sum(path.suffix == suffix and path not in wrong for path in ops) for suffix in RUNTIMES]
        rest = "; ".join(f"{_shown(path.name)}: {results.judged[path.name].words}" for path in wrong)
        yield f"| {PROCESSORS[processor]} | {counts[0]} | {counts[1]} | {rest} |"


def cpu() -> str:
    """This machine's processor, with what decides the integer kernels."""
    text = Path("/proc/cpuinfo").read_text()
    model = next(line.split(":")[1].strip() for line in text.splitlines() if line.startswith("model name"))
    flags = next(line for line in text.splitlines() if line.startswith("flags"))
    return f"{model}, {'with' if 'vnni' in flags else 'without'} VNNI"


INTRODUCTION = """
# Processors

Made by `python benchmarks/processors.py tests/data --write docs/processors.md`. Runtimes have different
kernels for each kind of processor. `tools/on_processor NAME COMMAND...` runs a command as on another one:
`avx2` and `sse` hide instruction sets from programs that run natively, `haswell`, `nehalem`, `arm64` and
`arm64-v8.0` are emulated by qemu; `tools/on_processor --list` prints what each needs. Every file below was
written once, on this machine ({cpu}), and run on all of them.
Runs on an AMD EPYC with VNNI (22 November 2026) and on one without (23 November 2026) gave the same numbers
in all columns.

A number is the largest distance from what MegEngine computed, in steps of the output's scale (of 1/255 of the
range for outputs in float), and how many elements are more than one step off.
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("corpus", type=Path, help="the folder of recorded models")
    parser.add_argument("--processors", nargs="+", choices=list(PROCESSORS), default=list(PROCESSORS))
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the table here")
    options = parser.parse_args()
    corpus.DATA = options.corpus
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        print(f"files in {folder}", file=sys.stderr, flush=True)
        jobs = [*model_jobs(folder), *op_jobs(folder)]
        for job in jobs:
            job.save_inputs()
        with ThreadPoolExecutor(2) as pool:
            made = pool.map(lambda name: run(name, folder, jobs), options.processors)
            found = dict(zip(options.processors, made, strict=True))
    text = page(jobs, found)
    print(text)
    if options.write:
        options.write.write_text(text)
    wrong = [
        f"{processor}: {name}: {judgement.words}"
        for processor, results in found.items()
        for name, judgement in results.judged.items()
        if not judgement.passes
    ]
    print("\n".join(wrong), file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
