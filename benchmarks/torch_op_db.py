"""Every op of torch's own test database through the tracer, the interpreter and ONNX Runtime.

    python benchmarks/torch_op_db.py                     # all ops, a line each; minutes
    python benchmarks/torch_op_db.py --only linalg,fft   # ops whose name holds one of these
    python benchmarks/torch_op_db.py --only ^pow$        # this op
    python benchmarks/torch_op_db.py --write docs/torch-ops.md

The package expecttest must be there. For each sample that torch's ``op_db`` has in float32 and int64, the
op becomes a function of the sample's tensors. It is traced, interpreted, converted to ONNX and run; both
results are compared with what torch computes. A sample is right, an error (with the reason), or wrong.
No sample is left out silently: those that torch itself refuses are counted, and an op that is no matter for
ONNX stands in ``OUTSIDE`` with the reason. Complex results are looked at as pairs of reals, since ONNX has no
complex numbers.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import fnmatch
import functools
import itertools
import multiprocessing
import re
import sys
import tempfile
import time
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch

import tmconvert
from tmconvert.errors import TmconvertError
from tmconvert.frontends.torch.tracing.recording.structure import plain_structure
from tmconvert.ir.tree import leaves, map_leaves

DTYPES = (torch.float32, torch.int64)
OPSET = 20
TOLERANCE = 1e-4  # relative; of a result's largest number, a tenth of it is allowed absolutely
NOISE = 1e-7  # of float32 numbers around 1, which cancel
# Ops whose results ONNX cannot say, whatever the samples, with the reason; * stands for any characters.
OUTSIDE = {
    "its results are random": "uniform normal normal.* bernoulli multinomial rand randn randint rand_like "
    "randn_like randint_like cauchy exponential geometric log_normal nn.functional.*dropout* "
    "nn.functional.rrelu nn.functional.fractional_max_pool* svd_lowrank pca_lowrank",
    "its elements have no fixed value": "empty empty_like empty_permuted empty_strided new_empty "
    "new_empty_strided resize_ resize_as_",
    "ONNX has no complex numbers of halves": "chalf",
    "it computes with the bits of numbers": "hash_tensor nextafter",
    "it updates running statistics": "_batch_norm_with_update",
    "sparse tensors": "sparse.* to_sparse",
    "it returns a Python value, not a tensor": "item equal allclose broadcast_shapes",
    "the signs of its vectors are arbitrary": "svd linalg.svd linalg.eigh",
    "ONNX has no eigenvalues of general matrices": "linalg.eig linalg.eigvals",
}
# Of equal elements torch may take any, and says so: what is at the place counts. Where the axis is given.
TIES = {"kthvalue": 2, "topk": 2, "mode": 1}
# Single samples that ONNX cannot say: what the refusal holds, and the reason.
SAMPLES_OUTSIDE = {
    "in training|applies dropout": "random results",
    "the number of parts is computed from the data": "as many results as the data says",
    "singular values": "singular values",
}
# Samples with NaNs, of which ONNX does not say what the largest element is. ONNX Runtime forgets them.
WITHOUT_NANS = {"masked.amax", "masked.amin", "masked.argmax", "masked.argmin", "masked.norm"}


@dataclass
class Outcome:
    """What became of an op's samples."""

    name: str
    right: int = 0
    errors: collections.Counter[str] = field(default_factory=collections.Counter)
    wrong: collections.Counter[str] = field(default_factory=collections.Counter)
    beyond: collections.Counter[str] = field(default_factory=collections.Counter)  # ONNX cannot say them
    refused_by_torch: int = 0
    outside: str = ""
    seconds: float = 0.0

    @property
    def samples(self) -> int:
        return self.right + self.errors.total() + self.wrong.total()

    @property
    def state(self) -> str:
        if self.outside or (self.beyond and not self.samples):
            return "outside"
        if self.wrong:
            return "wrong"
        if not self.samples:
            return "no samples"
        return "right" if not self.errors else "partly" if self.right else "refused"

    def reasons(self) -> list[str]:
        """The most frequent first, with their counts."""
        found = (*self.wrong.most_common(), *self.errors.most_common())
        notes = [f"{count} more samples left out: {reason}" for reason, count in self.beyond.most_common()]
        return [f"{count} x {reason}" for reason, count in found] + notes


def ops(only: list[str]) -> Iterator[Any]:
    from torch.testing._internal.common_methods_invocations import op_db

    for op in op_db:
        if not only or any(re.search(part, op.name) for part in only):
            yield op


def outside(name: str) -> str:
    """Why ONNX cannot say an op; empty when it is to be converted."""
    for reason, names in OUTSIDE.items():
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in names.split()):
            return reason
    return ""


def tried(op: Any, limit: int = 0, opset: int = OPSET) -> Outcome:
    """All samples of an op, or the first ``limit`` of each element type."""
    outcome = Outcome(f"{op.name} ({op.variant_test_name})" if op.variant_test_name else op.name)
    outcome.outside = outside(op.name)
    if outcome.outside:
        return outcome
    start = time.perf_counter()
    for dtype in DTYPES:
        if not op.supports_dtype(dtype, "cpu"):
            continue
        torch.manual_seed(0)
        for sample in itertools.islice(op.sample_inputs("cpu", dtype), limit or None):
            verdict, reason = judged(op, sample, opset)
            if verdict in ("right", "refused_by_torch"):
                setattr(outcome, verdict, getattr(outcome, verdict) + 1)
            else:
                getattr(outcome, verdict)[reason] += 1
    outcome.seconds = time.perf_counter() - start
    return outcome


def judged(op: Any, sample: Any, opset: int = OPSET) -> tuple[str, str]:
    """("right", "errors", "wrong", "beyond" or "refused_by_torch", and why)."""
    function = picked(op) if op.name in TIES else op.op
    trees = (sample.input, tuple(sample.args), dict(sample.kwargs))
    tensors = [leaf for leaf in leaves(plain_structure(trees)) if isinstance(leaf, torch.Tensor)]

    def call(*given: torch.Tensor) -> Any:
        fresh = iter(given)
        first, args, kwargs = map_leaves(
            lambda leaf: next(fresh) if isinstance(leaf, torch.Tensor) else leaf, trees
        )
        return map_leaves(as_real, plain_structure(function(first, *args, **kwargs)))

    own = [tensor.detach().clone() for tensor in tensors]
    if op.name in WITHOUT_NANS and any(bool(torch.isnan(tensor).any()) for tensor in own):
        return "beyond", "the largest of numbers and NaNs"
    try:
        with torch.no_grad():
            expected = arrays(call(*[tensor.clone() for tensor in own]))
    except Exception as error:
        return "refused_by_torch", str(error)
    if not expected:
        return "beyond", "no tensor among the results"
    try:
        traced = tmconvert.trace(call, *own)
        fed = list(traced.example.inputs)
        interpreted = [leaf for leaf in leaves(traced(*fed)) if isinstance(leaf, np.ndarray)]
        close = agree(interpreted, expected)
        if close:
            return "wrong", f"interpreter: {close}"
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "op.onnx"
            tmconvert.to_onnx(traced, path, opset=opset, verify=False)
            close = agree(run(path, fed), expected)
        return ("wrong", f"ONNX: {close}") if close else ("right", "")
    except TmconvertError as error:
        text = shortened(error)
        for pattern, reason in SAMPLES_OUTSIDE.items():
            if re.search(pattern, text):
                return "beyond", reason
        return ("errors" if error.exit_status != 3 else "wrong"), text
    except Exception as error:
        return "wrong", f"{type(error).__name__}: {str(error)[:200]}"


def shortened(error: TmconvertError) -> str:
    """The essence of a refusal: code and message, without the call's name and the sizes of tensors."""
    notes = [text for label, text in error.notes if label == "also"]
    text = f"{error.code} {error.message} {' '.join(notes[:1])}".strip()
    return re.sub(r"\[[\d, ]*\]", "[...]", text)


def picked(op: Any) -> Any:
    """The op with the elements at the places that it gives instead of these."""

    def function(x: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        values, places = op.op(x, *args, **kwargs)
        position = TIES[op.name]
        axis = kwargs.get("dim", args[position - 1] if len(args) >= position else -1)
        keeps = places.dim() == x.dim() or not x.dim()
        at = places if keeps else places.unsqueeze(axis)
        found = torch.gather(x, axis, at)
        return values, found if keeps else found.squeeze(axis)

    return function


def as_real(leaf: Any) -> Any:
    """Complex numbers, which no model returns, as pairs of reals."""
    if isinstance(leaf, torch.Tensor) and leaf.is_complex():
        return torch.view_as_real(leaf.resolve_conj())
    return leaf


def arrays(tree: Any) -> list[np.ndarray]:
    return [
        leaf.detach().resolve_neg().numpy()
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
            scale = np.abs(b[np.isfinite(b)]).max(initial=0)
            small = max(TOLERANCE * scale / 10, NOISE)
            if not np.allclose(a, b, rtol=TOLERANCE, atol=small, equal_nan=True):
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


def table(outcomes: list[Outcome], opset: int) -> str:
    counts = collections.Counter(outcome.state for outcome in outcomes)
    lines = [
        "# What torch's own op database says",
        "",
        "Made by `python benchmarks/torch_op_db.py --write docs/torch-ops.md`,",
        f"with torch {torch.__version__}, at opset {opset}.",
        "Each op's samples in float32 and int64 are traced, interpreted, converted, run in ONNX Runtime, and",
        "compared with what torch computes.",
        "",
        f"{share(outcomes)}.",
        ", ".join(f"{state}: {count}" for state, count in sorted(counts.items())) + ".",
        "",
        "| op | state | samples right | why not |",
        "|---|---|---|---|",
    ]
    for outcome in sorted(outcomes, key=lambda outcome: outcome.name):
        reasons = outcome.reasons()
        more = f"; {len(reasons) - 2} other reasons" if len(reasons) > 2 else ""
        why = outcome.outside or "; ".join(reason[:200] for reason in reasons[:2]) + more
        why = " ".join(why.replace("|", "/").split())
        samples = f"{outcome.right} of {outcome.samples}" if outcome.samples else ""
        lines.append(f"| {outcome.name} | {outcome.state} | {samples} | {why} |")
    return "\n".join(lines) + "\n"


def share(outcomes: list[Outcome]) -> str:
    counts = collections.Counter(outcome.state for outcome in outcomes)
    all_ = sum(counts[state] for state in ("right", "partly", "refused", "wrong"))
    part = counts["right"] / max(all_, 1)
    return f"{counts['right']} of {all_} ops that ONNX can say are right on all samples ({part:.1%})"


def shown(outcome: Outcome, verbose: bool) -> str:
    counts = f"{outcome.right}/{outcome.samples} {outcome.seconds:5.1f}s"
    reasons = outcome.reasons() or [outcome.outside]
    if verbose and len(reasons) > 1:
        reasons = ["", *reasons]
    lines = [reason.replace("\n", " ") for reason in (reasons if verbose else reasons[:1])]
    return f"{outcome.name:45s} {outcome.state:8s} {counts} " + "\n    ".join(line[:250] for line in lines)


def tried_number(number: int, options: argparse.Namespace) -> Outcome:
    """In a process of the pool, where ops cannot be sent to."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    op = next(itertools.islice(ops(options.parts), number, None))
    return tried(op, options.limit, options.opset)


def all_tried(options: argparse.Namespace) -> Iterable[Outcome]:
    numbers = range(len(list(ops(options.parts))))
    if options.jobs == 1:
        yield from (tried_number(number, options) for number in numbers)
        return
    context = multiprocessing.get_context("fork")  # op_db takes seconds to load
    with concurrent.futures.ProcessPoolExecutor(options.jobs, context) as pool:
        yield from pool.map(functools.partial(tried_number, options=options), numbers)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="patterns of names, separated by commas")
    parser.add_argument("--limit", type=int, default=0, help="samples of each op and type, at most")
    parser.add_argument("--opset", type=int, default=OPSET)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--verbose", action="store_true", help="all reasons, not only the first")
    parser.add_argument("--write", help="a Markdown file for the table")
    options = parser.parse_args()
    options.parts = [part for part in options.only.split(",") if part]
    outcomes = []
    for outcome in all_tried(options):
        outcomes.append(outcome)
        print(shown(outcome, options.verbose), flush=True)
    print(collections.Counter(outcome.state for outcome in outcomes), share(outcomes), file=sys.stderr)
    if options.write:
        Path(options.write).write_text(table(outcomes, options.opset))
    return int(any(outcome.wrong for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
