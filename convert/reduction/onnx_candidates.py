"""Candidates that are ONNX files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tmconvert.formats.onnx.candidates import OnnxCandidates
from tmconvert.frontends.torch.written_calls import MODULE, Edits
from tmconvert.reduction.trials import Candidate, Failure


class OnnxFileCandidates:
    """The nodes of an ONNX file; ``write`` makes a file of some of them.

    >>> OnnxFileCandidates(Path("net.onnx"), False).write([3], Path("folder"))  # doctest: +SKIP
    Candidate(model='folder/reduced.onnx', inputs=())
    """

    suffix = ".onnx"

    def __init__(self, path: Path, keeps_names: bool) -> None:
        self.parts, self.edits = OnnxCandidates(path, keeps_names=keeps_names), Edits()
        self.parts.sizes, self.parts.dropped = self.edits.sizes, self.edits.dropped
        self.sizes, self.attributes = self.parts.sizes_of, self.parts.attributes
        self.drop_weights = self.parts.drop_weights

    @property
    def count(self) -> int:
        return len(self.parts.nodes)

    @property
    def has_weights(self) -> bool:
        return self.parts.has_weights

    def write(self, kept: Sequence[int], folder: Path) -> Candidate | None:
        path = folder / f"{MODULE}.onnx"
        return Candidate(str(path)) if self.parts.write(kept, path) else None

    def named(self, failure: Failure) -> list[int]:
        """Returns the nodes whose types a failure names."""
        words = {each.rpartition("::")[2] for each in failure.ops}
        return [number for number, each in enumerate(self.parts.nodes) if each.op_type in words]
