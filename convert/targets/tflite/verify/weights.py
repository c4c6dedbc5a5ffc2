"""Verifies a TFLite file with compressed weights against its source.

The allowed difference of such a file is computed from the rounded weights, not a constant for all models:

- The float32 file of the same conversion agrees with the source.
- Each stored weight is within half a step of the float32 one: max|w| / 127 of its channel is a step of int8,
  an eleventh bit that of float16.
- The file agrees with a float32 file that holds the very numbers of its weights: within what float kernels
  differ by, where all kernels are of float32. Where kernels round activations, too, the float32 file is run
  with its activations rounded likewise, to several numbers of steps. By how much its outputs move is what
  rounding does to this model; the file's may move ``_MARGIN`` times as much.

The error due to fewer bits, which depends on the model, is measured and reported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tmconvert.errors import VerificationError
from tmconvert.lowering.target_graph import TargetGraph, Value
from tmconvert.output.atomic import temporary_folder, written
from tmconvert.targets.registry import runtime_for, write
from tmconvert.targets.tflite.compress_weights import Compressed, restored, rows_of, step_of
from tmconvert.targets.tflite.reader import tflite_constants
from tmconvert.verification.compare import Comparison, check, compare
from tmconvert.verification.references import References
from tmconvert.verification.report import Verification, verify_written
from tmconvert.verification.runtime import Runtime

# The largest of several deviations that rounding to other places causes is hardly ever a fourth of one more.
_MARGIN = 4


def verify_compressed(
    path: Path, plain: TargetGraph, compressed: Compressed, source: References
) -> Verification | None:
    """Compares the file at ``path`` with its source; returns None, with a note, if not verifiable.

    Raises VerificationError for any of the three steps.
    """
    check_weights(path, compressed.stored)
    references, inputs, notes = source.references, source.inputs, source.notes
    with temporary_folder() as folder:
        float_path = _written(plain, folder, "plain")
        verified = verify_written("tflite", [float_path], plain, source)
        runtime = runtime_for("tflite", path)
        if verified is None or runtime is None:
            return None
        graphs = (compressed.restored, *compressed.rounded)
        paths = [_written(graph, folder, str(number)) for number, graph in enumerate(graphs)]
        files = _Files(runtime, path, paths, plain.output_names)
        found: list[list[Comparison]] = []
        for number, reference in enumerate(references):
            if reference.lacks(None if number else inputs):
                break
            given, expected = reference.case(None if number else inputs)
            stored = dict(zip(plain.input_names, reference.stored_inputs(given), strict=True))
            actual = runtime.run([path], stored, plain.output_names)
            found.append(files.compared(stored, actual))
            if not number:
                distance = compare(reference.source_outputs(actual), expected, plain.output_names)
                worst = max((each.max_error for each in distance), default=0.0)
    notes.append(f"the outputs differ by {worst:.1e} from those with float32 weights")
    return replace(verified, comparisons=tuple(found[0]))


def check_weights(path: Path, stored: Sequence[tuple[Value, Value]]) -> None:
    """Raises VerificationError TM4001 where the file at ``path`` does not have the weights of ``stored``."""
    constants = tflite_constants(path)
    for plain, kept in stored:
        assert plain.data is not None
        found = [restored(each) for each in constants.get(kept.name, [])]
        if kept.quantization is not None:
            tables = [constants.get(each.name, []) for each in rows_of(kept)]
            found += [restored(rows) * restored(scale) for rows, scale in zip(*tables, strict=False)]
        if not found:
            raise VerificationError("TM4001", f"the file has no weight {kept.name}, which its source has")
        half = step_of(plain.data, kept) / 2
        for each in found:
            if each.shape != plain.data.shape or np.any(np.abs(each - plain.data) > half):
                message = (
                    f"the weight {kept.name} of the file differs from that of its source by more than half "
                    "a step"
                )
                raise VerificationError("TM4001", message)


@dataclass
class _Files:
    """The file, and counterparts: one with the same weights in float32, then those that round."""

    runtime: Runtime
    path: Path
    counterparts: Sequence[Path]
    names: Sequence[str]

    def compared(self, inputs: Mapping[str, np.ndarray], actual: Sequence[np.ndarray]) -> list[Comparison]:
        """Compares the outputs ``actual``, in the file's layout. Raises VerificationError."""
        exact, *rounded = [
            self.runtime.run([counterpart], inputs, self.names) for counterpart in self.counterparts
        ]
        allowed = [each.tolerance for each in compare(exact, exact, self.names)]
        for outputs in rounded:
            moved = compare(outputs, exact, self.names)
            allowed = [
                max(allowance, comparison.tolerance + _MARGIN * comparison.max_error)
                for allowance, comparison in zip(allowed, moved, strict=True)
            ]
        return check(actual, exact, self.names, tolerances=allowed)


def _written(graph: TargetGraph, folder: Path, name: str) -> Path:
    path = folder / f"{name}.tflite"
    with written(path) as file:
        write(graph, [file])
    return path
