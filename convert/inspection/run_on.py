"""Compares a written file on accelerators with itself on the processor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path

import numpy as np

from tmconvert.errors import UsageError, VerificationError
from tmconvert.inspection.compared_models import FileSide
from tmconvert.inspection.given_inputs import Inputs
from tmconvert.inspection.run_file import FileRunner, no_runtime, qparams_of
from tmconvert.output.atomic import temporary_folder
from tmconvert.targets.written_model import TensorInfo
from tmconvert.verification.accelerators.check import check_on
from tmconvert.verification.accelerators.registry import accelerators_named
from tmconvert.verification.verify import Verification


def verified_on(names: Sequence[str], model: object, inputs: Inputs | None) -> Verification:
    """Returns the runtime of the processor, and a sentence for each accelerator; see ``check_on``.

    Without ``inputs`` they are random. Raises UsageError TM6002 where there is no file or no accelerator.
    """
    if not names or not isinstance(model, (str, PathLike)):
        raise UsageError(
            "TM6002", "verify without path requires the path of a written file and accelerators (on)"
        )
    path = Path(model)
    runner = FileRunner(path, warns=False)
    accelerators = accelerators_named(names, runner.target.name)
    runtime = runner.target.runtime(path)
    if runtime is None:
        raise no_runtime(runner.target)
    random = np.random.default_rng(0)
    fed = (
        runner.fed(runner.arrays(inputs))
        if inputs is not None
        else {each.name: _random(each, random) for each in runner.inputs}
    )
    outputs = [each.name for each in runner.outputs]
    found = check_on(accelerators, runtime, runner.target.model_files(path), fed, outputs, "--on")
    return Verification(f"{runtime.name} {runtime.version}", (), accelerators=tuple(found))


class AcceleratedRunner(FileRunner):
    """A written file on an accelerator, which runs copies of it with tensors between operators as outputs.

    Raises VerificationError TM4007 where it refuses the file, or ends its process.
    """

    def __init__(self, path: Path, name: str) -> None:
        super().__init__(path, warns=False)
        (self.accelerator,) = accelerators_named([name], self.target.name)

    def computed(self, fed: Mapping[str, np.ndarray], names: Sequence[str]) -> Sequence[np.ndarray]:
        return self._run(self.path, fed, names)

    def between(self, fed: Mapping[str, np.ndarray], names: Sequence[str]) -> Sequence[np.ndarray]:
        with temporary_folder() as folder:
            return self._run(self.target.tapped(self.path, names, folder), fed, names)

    def _run(self, path: Path, fed: Mapping[str, np.ndarray], names: Sequence[str]) -> Sequence[np.ndarray]:
        made, name = self.accelerator.run(path, fed, names), self.accelerator.name
        if made.outputs is None:
            raise VerificationError(
                "TM4007", f"{name} does not run {self.path}: {made.ended or made.refused}"
            )
        return made.outputs


def side_on(names: Sequence[str], side: object) -> None:
    """Makes a side of a comparison run on an accelerator. Raises UsageError TM6002 for a source model."""
    if len(names) != 1 or not isinstance(side, FileSide):
        raise UsageError("TM6002", "compare on takes one accelerator, and a written file as the second model")
    side.runner, side.title = AcceleratedRunner(side.path, names[0]), f"{side.title} on {names[0]}"


def _random(info: TensorInfo, random: np.random.Generator) -> np.ndarray:
    """Returns a random array as the file stores it: 0 and 1 for integers without a scale, such as indices."""
    shape = tuple(size if isinstance(size, int) else 1 for size in info.shape or ())
    dtype = np.dtype(info.dtype or "float32")
    if len(info.scale) == 1 and dtype.kind in "iu":
        ends = qparams_of(info)
        return random.integers(ends.quant_min, ends.quant_max + 1, shape).astype(dtype)
    is_float = dtype.kind not in "iub"
    return (random.standard_normal(shape) if is_float else random.integers(0, 2, shape)).astype(dtype)
