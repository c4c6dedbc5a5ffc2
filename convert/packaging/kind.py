"""The interface of kinds of packages."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from tmconvert.errors import UnsupportedError
from tmconvert.packaging.source import PackageSource

if TYPE_CHECKING:
    from tmconvert.conversion.report import Report
    from tmconvert.ir import TracedModule
    from tmconvert.packaging.report import Check

INT4 = {"weights": "int4", "integer_weights": "MatMulNBits", "opset": "auto"}
# the options of a conversion by the data type of a file, as transformers.js calls it
DTYPES: Mapping[str, Mapping[str, Any]] = {
    "fp32": {},
    "fp16": {"float_type": "float16", "io_type": "float32"},
    "q8": {"weights": "int8"},
    "q4": INT4,
}


class ModelFile(NamedTuple):
    """A model file of a package: its path in the folder, and the options of its conversion."""

    path: str
    options: Mapping[str, Any]

    @property
    def is_exact(self) -> bool:
        """Whether the file computes in float32 with the weights of the source."""
        return not (self.options.get("weights") or self.options.get("float_type"))


class Converted(NamedTuple):
    """Model files of a package, around which a kind writes the rest.

    ``files`` are the model files with the reports of their conversions, the first of them in float32 if one
    is; ``folder`` is the hidden one in which the package is made.
    """

    source: PackageSource
    module: TracedModule
    files: Sequence[tuple[ModelFile, Report]]
    folder: Path

    @property
    def caches(self) -> dict[str, list[int | str]]:
        """Returns the shapes of the keys and values of a decoder's cache, by the names of inputs."""
        inputs = self.files[0][1].inputs
        return {each["name"]: each["shape"] for each in inputs if each["name"].startswith("past_key_values.")}


class Vectors(NamedTuple):
    """Modes of pooling, whose vectors are concatenated, and whether the result is normalized."""

    modes: tuple[str, ...]
    normalizes: bool


class Kind(Protocol):
    """A kind of package: which models it takes, its model files, and what is around them."""

    name: str
    has_dtypes: bool  # several files of one model, by data type

    def refusal(self, source: PackageSource) -> str:
        """Returns why the kind does not take a model; empty if it does."""

    def path(self, dtype: str) -> str:
        """Returns the path in the package of the model file of a data type; empty for that of options."""

    def pooling(self, source: PackageSource) -> Vectors | None:
        """Returns how vectors of tokens become one of a text; None for a model that stays as it is."""
        return None

    def write(self, made: Converted) -> None:
        """Writes the files around the model files. Raises UnsupportedError TM2032."""

    def check(self, made: Converted) -> list[Check]:
        """Opens the package in its consumer. Raises VerificationError TM4008."""


def refused(kind: str, source: PackageSource, reason: str) -> UnsupportedError:
    return UnsupportedError(
        "TM2032",
        f"{kind} does not take {source.architecture}: {reason}",
        notes=[
            ("help", f"`tmconvert onnx {source.folder} model.onnx --names optimum` writes the file alone")
        ],
    )


def write_json(path: Path, document: object) -> None:
    """Writes a JSON file with keys in the given order."""
    path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
