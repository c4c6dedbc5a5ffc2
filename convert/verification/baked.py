"""Verifies a float file with fake-quantized weights by its constants: outputs may hide differences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from tmconvert.errors import VerificationError
from tmconvert.lowering.target_graph import TargetGraph
from tmconvert.targets.registry import target_named
from tmconvert.verification.references import References
from tmconvert.verification.verify import Verification, verify_written


def verify_baked(paths: Sequence[Path], graph: TargetGraph, references: References) -> Verification | None:
    """Compares the files at ``paths``, written from ``graph``, with the source with fake-quantized weights.

    Raises VerificationError TM4001 where a constant or an output is another; None as ``verify_written``.
    """
    assert isinstance(graph.version, int)
    stored = target_named(graph.target).constants(paths, graph.version)
    for name, array in _wanted(graph):
        if not any(np.array_equal(each, array, equal_nan=True) for each in stored.get(name, [])):
            message = f"the constant {name} of the file differs from that of its source"
            raise VerificationError("TM4001", message)
    return verify_written(graph.target, paths, graph, references)


def _wanted(graph: TargetGraph) -> Iterator[tuple[str, np.ndarray]]:
    """Returns the constants in float32, by the same names."""
    if target_named(graph.target).names_constants:
        for value in graph.constants():
            if value.dtype == np.float32 and value.data is not None:
                yield value.name, value.data
        return
    for operator in graph.operators:
        blobs = [value.data for value in operator.inputs if value is not None and value.data is not None]
        for number, blob in enumerate(blobs):
            yield f"{operator.name}/{number}", blob
