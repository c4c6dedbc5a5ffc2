"""Compares a written file with the outputs of its source that a lock records."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from tmconvert.errors import UsageError, VerificationError
from tmconvert.inspection.run_file import no_runtime
from tmconvert.lock.lock_file import Lock
from tmconvert.targets.recognize import target_of_file
from tmconvert.verification.compare import compare, refuse_wrong
from tmconvert.verification.verify import Verification


def verify_with_lock(path: Path, lock: Lock, arrays: Mapping[str, np.ndarray]) -> Verification:
    """Runs the file at ``path`` on the recorded inputs, and compares its outputs with those of the source.

    An output may differ by the tolerance of its type, or twice as much as it did when the lock was written;
    integers of a file in integers by two steps, as other processors round.

    Raises UsageError TM6002 for a lock without values, VerificationError TM4001 for a file that is wrong.
    """
    inputs, outputs = (
        {name.partition(".")[2]: each for name, each in arrays.items() if name.startswith(prefix)}
        for prefix in ("in.", "out.")
    )
    if not outputs:
        raise UsageError(
            "TM6002",
            "the lock has no values to compare with: its conversion was not verified, or had too many",
        )
    target = target_of_file(path)
    names = [each.name for each in target.written_model(path).output_tensors]
    if missing := sorted(outputs.keys() - set(names)):
        raise VerificationError("TM4001", f"the file lacks the output {', '.join(missing)} of the lock")
    runtime = target.runtime(path)
    if runtime is None:
        raise no_runtime(target)
    found = compare(
        runtime.run(target.model_files(path), inputs, [*outputs]), [*outputs.values()], [*outputs]
    )
    limits = [
        each._replace(tolerance=max(each.tolerance, lock.tolerances.get(each.output, 0.0))) for each in found
    ]
    return Verification(
        f"{runtime.name} {runtime.version}", tuple(refuse_wrong(limits)), reference=lock.reference
    )
