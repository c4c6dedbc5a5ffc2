"""A TFLite file whose weights are stored in fewer bits, beside the model it was made of.

Three steps, each with a limit of its own: the float32 file agrees with the source; the file agrees with a
float32 file that holds the very numbers of its weights, within what float kernels differ by; and what the
fewer bits cost, which depends on the model, is measured and told.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..lower.target_graph import TargetGraph
from ..serialize.writers import write
from .compare import check, compare
from .reference import Reference
from .report import Verification, verify_written
from .runtimes import runtime_for


def verify_compressed(
    path: Path,
    plain: TargetGraph,
    restored: TargetGraph,
    references: Sequence[Reference],
    inputs: Sequence[np.ndarray] | None,
    notes: list[str],
) -> Verification | None:
    """The comparison of the file at ``path`` with that of ``restored``; None, with a note, as without.

    Raises VerificationError for either of the first two steps.
    """
    with tempfile.TemporaryDirectory() as folder:
        float_path, restored_path = Path(folder) / "plain.tflite", Path(folder) / "restored.tflite"
        for graph, file_path in ((plain, float_path), (restored, restored_path)):
            with file_path.open("wb") as file:
                write(graph, [file])
        verified = verify_written("tflite", [float_path], plain, references, inputs, notes)
        runtime = runtime_for("tflite", path)
        if verified is None or runtime is None:
            return None
        reference, names = references[0], plain.output_names
        given, expected = reference.case(inputs)
        stored = dict(zip(plain.input_names, reference.stored_inputs(given), strict=True))
        actual = runtime.run([path], stored, names)
        comparisons = check(actual, runtime.run([restored_path], stored, names), names)
    distance = compare(reference.source_outputs(actual), expected, names)
    worst = max((each.max_error for each in distance), default=0.0)
    notes.append(f"the outputs differ by {worst:.1e} from those with float32 weights")
    return Verification(verified.runtime, tuple(comparisons))
