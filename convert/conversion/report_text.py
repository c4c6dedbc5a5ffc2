"""The text of a report, for the command line and for ``str``."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tmconvert.conversion.format_numbers import counted, quantity, size
from tmconvert.targets.registry import target_named

if TYPE_CHECKING:
    from tmconvert.conversion.report import Report
    from tmconvert.verification.compare import Comparison
    from tmconvert.verification.verify import Verification


def remarks(report: Report, reason: str) -> Iterator[str]:
    """Returns the verification result and the notes. ``reason`` states why the file was not verified; it is
    empty if it was.
    """
    if report.stopped:
        yield f"stopped after {report.seconds[-1][0]}: no model was written"
        return
    for name, each in report.signatures.items():
        if each.verification is not None:
            yield f"{name}: {verified(each.verification)}"
    if report.verification is not None:
        yield verified(report.verification)
    elif reason and not any(each.verification for each in report.signatures.values()):
        yield f"not verified: {reason}"
    yield from report.notes


def verified(verification: Verification) -> str:
    """Returns ``verified in ONNX Runtime 1.31.1 against PyTorch 2.13.0: max error 3.1e-07 (limit 1e-04)``, or
    ``verified with the NumPy definitions ...``.

    What was compared with tmconvert's own reading of a source that a runtime should run is not verified.
    """
    runtime = verification.runtime
    judge = f"with {runtime}" if runtime.startswith("the ") else f"in {runtime}"
    if verification.undecided:
        names = [
            _undecided(each) for each in verification.comparisons if each.output in verification.undecided
        ]
        what = f"{', '.join(names)}: rounding moves it as far in the source itself"
        return f"undecided {judge} against {verification.reference}: {what}, as where equal values are ranked"
    if not verification.tells and not verification.refusal:
        return f"not verified {judge}: no output was informative for the inputs tried"
    said = f"verified {judge} against {verification.reference}"
    if verification.refusal:
        said = f"not verified: {verification.refusal}; compared {judge} with {verification.reference}"
    left_out = f"; not compared: {', '.join(verification.vacuous)}" if verification.vacuous else ""
    worst = max(verification.comparisons, key=lambda each: (each.max_error, each.tolerance), default=None)
    if worst is None or worst.max_error == 0:
        return f"{said}: equal outputs{left_out}"
    error = f"max error {worst.max_error:.1e} (limit {worst.tolerance:.0e})"
    return f"{said}: {error}{left_out}"


def _undecided(each: Comparison) -> str:
    """Returns the name of an output, with its shapes where they differ."""
    if each.shape == each.expected_shape:
        return each.output
    return f"{each.output} (shape {list(each.shape)}, expected {list(each.expected_shape)})"


def results(report: Report) -> Iterator[str]:
    """Returns one line per written file."""
    first, *others = report.paths
    unit = target_named(report.target).operator_word
    about = [
        version_text(report.target, report.version),
        counted(report.operators, unit),
        quantity(report.parameters, "parameter"),
    ]
    yield f"{first}  ({', '.join(about)})"
    for path in others:
        with contextlib.suppress(OSError):
            yield f"{path}  (weights, {size(path.stat().st_size)})"
    yield from feeding(report)
    for name, each in report.signatures.items():
        yield f"  signature {name}"
        yield from feeding(each)


def feeding(report: Report) -> Iterator[str]:
    """Returns one indented line per input and output of the file: what to feed, and what comes out."""
    lines = [("in", each) for each in report.fed_inputs] + [("out", each) for each in report.fed_outputs]
    width = max((len(each.tensor.name) for _, each in lines), default=0)
    for kind, each in lines:
        yield f"  {kind:<3}  {each.tensor.name:<{width}}  {each.text}"


def version_text(target: str, version: object) -> str:
    """Returns ``ONNX opset 17``, ``TFLite 2.23`` or ``Caffe, dialect bvlc``."""
    return f"{target_named(target).version_label or target_named(target).title} {version}"
