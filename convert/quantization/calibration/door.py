"""A calibration from what a caller gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...ir import TensorNode, TracedModule
from ...symbolics.op import Op
from .calibrate import Settings, calibrate
from .data import Pixels, Samples


def calibrated(
    module: TracedModule,
    data: Any,
    pixels: tuple[tuple[float, ...], tuple[float, ...], str],
    settings: tuple[str, bool, tuple[tuple[str, str], ...], bool],
    catalogue: Mapping[str, Op],
    progress: Callable[[int, int], None] | None = None,
) -> TracedModule:
    """``module`` with grids; the arguments are those of ``Pixels`` and of ``Settings``."""
    assert module.graph is not None
    inputs = [(node.name, node.type) for node in module.graph.inputs[1:] if isinstance(node, TensorNode)]
    samples = Samples(data, inputs, Pixels(*pixels))
    tell = progress or (lambda done, total: None)
    total = 0 if progress is None else len(samples)
    return calibrate(module, samples, catalogue, Settings(*settings), lambda done: tell(done, total))
