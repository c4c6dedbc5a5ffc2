"""An ONNX file as the source of a model, also at other sizes than it states."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from tmconvert.errors import LoadError, VerificationError
from tmconvert.frontends.frontend import FileRuntime, SourceFile


class OnnxSource(SourceFile):
    """A file; ``shapes`` are those of its inputs, with None for open sizes.

    A copy in which all sizes are open runs inputs of other sizes than those; parts of a batch are run by
    themselves, so that constants which hold the batch are right.
    """

    def __init__(
        self,
        path: Path,
        inputs: Sequence[str],
        outputs: Sequence[str],
        shapes: Mapping[str, Sequence[int | None]],
    ) -> None:
        fixed = {name: shape[0] for name, shape in shapes.items() if shape}
        batches = {name: size for name, size in fixed.items() if size is not None}
        super().__init__([path], inputs, outputs, batches if len(batches) == len(shapes) else {})
        self.shapes = shapes
        self._copy: Path | None = None

    def run_once(self, runtime: FileRuntime, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        if all(self._fits(name, array.shape) for name, array in inputs.items()):
            return super().run_once(runtime, inputs)
        from tmconvert.formats.onnx.tap import opened_onnx

        if self._copy is None:
            folder = tempfile.mkdtemp(prefix="tmconvert-")
            weakref.finalize(self, shutil.rmtree, folder, True)
            try:
                self._copy = opened_onnx(self.paths[0], Path(folder))
            except (LoadError, OSError) as error:
                raise VerificationError("TM4002", "the file cannot be copied") from error
        return runtime.run([self._copy], inputs, self.outputs)

    def _fits(self, name: str, shape: Sequence[int]) -> bool:
        own = self.shapes.get(name, shape)
        return len(own) == len(shape) and all(a is None or a == b for a, b in zip(own, shape, strict=True))
