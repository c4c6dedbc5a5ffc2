"""Compares the weights of a TFLite file in fewer bits with those of its source."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tmconvert.errors import VerificationError
from tmconvert.lowering.target_graph import Value
from tmconvert.targets.tflite.compress_weights import restored, rows_of, step_of
from tmconvert.targets.tflite.reader import tflite_constants


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
