"""Every op of torch's own test database through the tracer, the interpreter and ONNX Runtime.

    python benchmarks/torch_op_db.py                     # all ops, a line each; minutes
    python benchmarks/torch_op_db.py --only linalg,fft   # ops whose name holds one of these
    python benchmarks/torch_op_db.py --write docs/torch-ops.md

The package expecttest must be there. For each sample that torch's ``op_db`` has in float32 and int64, the
op becomes a function of the sample's tensors. It is traced, interpreted, converted to ONNX and run; both
results are compared with what torch computes. A sample is right, an error (with the reason), or wrong.
No sample is left out silently.
"""

from __future__ import annotations

import argparse
import collections
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch

import tmconvert
from tmconvert.errors import TmconvertError
from tmconvert.frontends.torch.tracing.structure import plain_structure
from tmconvert.ir.tree import leaves, map_leaves

DTYPES = (torch.float32, torch.int64)
OPSET = 20
TOLERANCE = 1e-4
# What is no inference, or has no fixed result.
OUTSIDE = {
    "random": "uniform normal bernoulli multinomial rand randn randint randperm dropout poisson rrelu gumbel "
    "cauchy exponential geometric log_normal alpha_dropout fractional_max_pool empty",
    "sparse": "sparse to_sparse",
}


@dataclass
class Outcome:
    """What became of an op's samples."""

    name: str
    right: int = 0
    errors: collections.Counter[str] = field(default_factory=collections.Counter)
    wrong: collections.Counter[str] = field(default_factory=collections.Counter)
    seconds: float = 0.0

    @property
    def samples(self) -> int:
        return self.right + self.errors.total() + self.wrong.total()

    @property
    def state(self) -> str:
        if self.wrong:
            return "wrong"
        if not self.samples:
            return "no samples"
        return "right" if not self.errors else "partly" if self.right else "refused"

    def reason(self) -> str:
        found = (self.wrong or self.errors).most_common(1)
        return found[0][0] if found else ""


def ops(only: list[str]) -> Iterator[Any]:
    from torch.testing._internal.common_methods_invocations import op_db

    for op in op_db:
        if not only or any(part in op.name for part in only):
            yield op


def outside(op: Any) -> str:
    """Why an op is not for inference, or has no one result; empty when it is to be converted."""
    for reason, names in OUTSIDE.items():
        if any(name in op.name.split(".")[-1] for name in names.split()):
            return reason
    return ""


def tried(op: Any, limit: int) -> Outcome:
    """All samples of an op."""
    outcome = Outcome(f"{op.name} ({op.variant_test_name})" if op.variant_test_name else op.name)
    start = time.perf_counter()
    for dtype in DTYPES:
        if not op.supports_dtype(dtype, "cpu"):
            continue
        torch.manual_seed(0)
        for number, sample in enumerate(op.sample_inputs("cpu", dtype)):
            if limit and number >= limit:
                break
            verdict, reason = judged(op.op, sample)
            if verdict == "right":
                outcome.right += 1
            elif verdict != "skipped":
                getattr(outcome, verdict)[reason] += 1
    outcome.seconds = time.perf_counter() - start
    return outcome


def judged(function: Any, sample: Any) -> tuple[str, str]:
    """("right", "errors" or "wrong", and why)."""
    trees = (sample.input, tuple(sample.args), dict(sample.kwargs))
    tensors = [leaf for leaf in leaves(plain_structure(trees)) if isinstance(leaf, torch.Tensor)]

    def call(*given: torch.Tensor) -> Any:
        fresh = iter(given)
        first, args, kwargs = map_leaves(
            lambda leaf: next(fresh) if isinstance(leaf, torch.Tensor) else leaf, trees
        )
        return map_leaves(as_real, plain_structure(function(first, *args, **kwargs)))

    own = [tensor.detach().clone() for tensor in tensors]
    try:
        with torch.no_grad():
            expected = arrays(call(*[tensor.clone() for tensor in own]))
    except Exception as error:
        return "skipped", f"torch itself refuses: {error}"
    try:
        traced = tmconvert.trace(call, *own)
        fed = list(traced.example.inputs)
        interpreted = [leaf for leaf in leaves(traced(*fed)) if isinstance(leaf, np.ndarray)]
        close = agree(interpreted, expected)
        if close:
            return "wrong", f"interpreter: {close}"
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "op.onnx"
            tmconvert.to_onnx(traced, path, opset=OPSET, verify=False)
            close = agree(run(path, fed), expected)
        return ("wrong", f"ONNX: {close}") if close else ("right", "")
    except TmconvertError as error:
        notes = [text for label, text in error.notes if label == "also"]
        return (
            "errors" if error.exit_status != 3 else "wrong"
        ), f"{error.code} {error.message} {' '.join(notes[:1])}"
    except Exception as error:
        return "wrong", f"{type(error).__name__}: {str(error)[:200]}"


def as_real(leaf: Any) -> Any:
    """Complex numbers, which no model returns, as pairs of reals."""
    if isinstance(leaf, torch.Tensor) and leaf.is_complex():
        return torch.view_as_real(leaf.resolve_conj())
    return leaf


def arrays(tree: Any) -> list[np.ndarray]:
    return [
        leaf.detach().resolve_conj().resolve_neg().numpy()
        for leaf in leaves(plain_structure(tree))
        if isinstance(leaf, torch.Tensor)
    ]


def agree(actual: list[np.ndarray], expected: list[np.ndarray]) -> str:
    """Where two results differ; empty where they agree."""
    if len(actual) != len(expected):
        return f"{len(actual)} results for {len(expected)}"
    for a, b in zip(actual, expected, strict=True):
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"{a.dtype}{list(a.shape)} for {b.dtype}{list(b.shape)}"
        if b.dtype.kind in "fc":
            scale = np.abs(b[np.isfinite(b)]).max(initial=1e-30)
            if not np.allclose(a, b, rtol=1e-3, atol=TOLERANCE * scale, equal_nan=True):
                return "other numbers"
        elif not np.array_equal(a, b):
            return "other numbers"
    return ""


def run(path: Path, inputs: list[np.ndarray]) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [node.name for node in session.get_inputs()]
    return session.run(None, dict(zip(names, inputs, strict=True)))


def table(outcomes: list[Outcome]) -> str:
    counts = collections.Counter(outcome.state for outcome in outcomes)
    lines = [
        "# What torch's own op database says",
        "",
        "Made by `python benchmarks/torch_op_db.py --write docs/torch-ops.md`,",
        f"with torch {torch.__version__}, at opset {OPSET}.",
        "Each op's samples in float32 and int64 are traced, interpreted, converted, run in ONNX Runtime, and",
        "compared with what torch computes.",
        "",
        ", ".join(f"{state}: {count}" for state, count in sorted(counts.items())),
        "",
        "| op | state | samples right | why not |",
        "|---|---|---|---|",
    ]
    for outcome in sorted(outcomes, key=lambda outcome: outcome.name):
        reason = outcome.reason().replace("|", "/").replace("\n", " ")[:160]
        lines.append(
            f"| {outcome.name} | {outcome.state} | {outcome.right} of {outcome.samples} | {reason} |"
        )
    return "\n".join(lines) + "\n"


def shown(outcome: Outcome) -> str:
    counts = f"{outcome.right}/{outcome.samples} {outcome.seconds:5.1f}s"
    return f"{outcome.name:45s} {outcome.state:8s} {counts} {outcome.reason()[:150]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="parts of names, separated by commas")
    parser.add_argument("--limit", type=int, default=0, help="samples of each op and type, at most")
    parser.add_argument("--write", help="a Markdown file for the table")
    parser.add_argument("--shard", default="0/1", help="this part of the ops: 0/2, 1/2")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    part, parts = map(int, options.shard.split("/"))
    outcomes = []
    for number, op in enumerate(ops([part for part in options.only.split(",") if part])):
        if number % parts != part:
            continue
        reason = outside(op)
        if reason:
            print(f"{op.name:45s} outside: {reason}")
            continue
        outcome = tried(op, options.limit)
        outcomes.append(outcome)
        print(shown(outcome), flush=True)
    print(collections.Counter(outcome.state for outcome in outcomes), file=sys.stderr)
    if options.write:
        Path(options.write).write_text(table(outcomes))
    return int(any(outcome.wrong for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
