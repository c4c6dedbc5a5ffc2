"""Runs the file of a model in its runtime: the reference for what is made of the model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tmconvert.frontends.frontend import SourceFile
from tmconvert.targets.registry import target_named


class SourceRuntime:
    """The files of a model, and the target whose runtime runs them; see ``ir.traced_module.Original``."""

    def __init__(self, target: str, source: SourceFile) -> None:
        self.target, self.source = target, source
        self.name, self.refusal = "the runtime of the source", ""
        self.sides: Sequence[Sequence[np.ndarray]] = ()

    @property
    def saturates(self) -> bool:
        return target_named(self.target).saturates_here()

    @property
    def inputs(self) -> list[str]:
        """The names of the inputs, in order."""
        return self.source.inputs

    def run(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray] | None:
        """Returns the outputs that the runtime computes; None where it is missing or refuses the file."""
        runtime = target_named(self.target).source_runtime(self.source.paths[0])
        made = self.source.run(runtime, dict(zip(self.inputs, inputs, strict=True)))
        if runtime is not None or self.source.judge:
            self.name = self.source.judge or f"{runtime.name} {runtime.version}"  # type: ignore[union-attr]
        self.refusal = f"{self.name} does not run the source ({self.source.refusal})" if made is None else ""
        return made

    def run_rounded(self, inputs: Sequence[np.ndarray], seed: int, units: int) -> list[np.ndarray] | None:
        """Returns None: runtimes of files have their own rounding only."""
