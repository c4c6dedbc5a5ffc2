"""The interface of kinds of packages: a kind is a row of settings, with functions for what is its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from tmconvert.errors import UnsupportedError
from tmconvert.frontends.torch.entry import trace_parts
from tmconvert.packaging.consumer import Consumer
from tmconvert.packaging.source import PackageSource, find_source
from tmconvert.packaging.tasks import DECODER, ENCODER_DECODER, ONCE, VISION_LANGUAGE, task_of

if TYPE_CHECKING:
    from tmconvert.conversion.report import Report
    from tmconvert.frontends.torch.tracing.programs.parts import Split
    from tmconvert.ir import TracedModule

INT4 = {"weights": "int4", "integer_weights": "MatMulNBits", "opset": "auto"}
# the options of a conversion by the data type of a file, as transformers.js calls it
DTYPES: Mapping[str, Mapping[str, Any]] = {
    "fp32": {},
    "fp16": {"float_type": "float16", "io_type": "float32"},
    "q8": {"weights": "int8"},
    "q4": INT4,
    "q4f16": {**INT4, "float_type": "float16", "io_type": "float32"},
}
STATES = ("past_conv.", "past_ssm.")  # how names of states begin that are not keys and values
Modules = Mapping[str, "TracedModule"]
_SPLITS: Mapping[str, Split] = {
    ENCODER_DECODER: "encoder-decoder",
    VISION_LANGUAGE: "vision-language",
}


class Lengths(NamedTuple):
    """Numbers of positions: of the caches, and of the tokens that each prefill takes; None for a default."""

    cache: int | None = None
    prefills: Sequence[int] | None = None


class ModelFile(NamedTuple):
    """A model file of a package: its path in the folder, and the options of its conversion.

    ``part`` is the part of the model that it has, and ``dtype`` the data type by which its consumer chooses
    it; they are empty for a model in one file, and for a consumer that does not choose.
    """

    path: str
    options: Mapping[str, Any]
    part: str = ""
    dtype: str = ""

    @property
    def is_exact(self) -> bool:
        """Whether the file computes in float32 with the weights of the source."""
        return not (self.options.get("weights") or self.options.get("float_type"))


class Parts(NamedTuple):
    """The files of one data type by part, each with the report of its conversion."""

    dtype: str
    files: Mapping[str, tuple[ModelFile, Report]]

    @property
    def name(self) -> str:
        """Returns the paths of the files, for messages."""
        return " and ".join(file.path for file, _ in self.files.values())

    @property
    def is_exact(self) -> bool:
        return all(file.is_exact for file, _ in self.files.values())


class Converted(NamedTuple):
    """Model files of a package, around which a kind writes the rest.

    ``modules`` are the parts of the model by name, ``files`` the model files with the reports of their
    conversions, those in float32 first; ``folder`` is the hidden one in which the package is made.
    ``rounds_activations`` asks for products with int4 weights whose inputs are rounded to 8 bits.
    """

    source: PackageSource
    task: str
    modules: Modules
    files: Sequence[tuple[ModelFile, Report]]
    folder: Path
    rounds_activations: bool = False

    def by_dtype(self) -> Iterator[Parts]:
        """Yields the files that the consumer opens together."""
        for dtype in dict.fromkeys(file.dtype for file, _ in self.files):
            yield Parts(dtype, {file.part: (file, each) for file, each in self.files if file.dtype == dtype})

    @property
    def caches(self) -> dict[str, list[int | str]]:
        """Returns the shapes of the tensors of a decoder's cache, by the names of inputs."""
        inputs = [each for _, report in next(self.by_dtype()).files.values() for each in report.inputs]
        return {each["name"]: each["shape"] for each in inputs if each["name"].startswith("past_")}


def trace_whole(source: PackageSource, task: str) -> Modules:
    """Traces a model of transformers in the parts that its task has."""
    return trace_parts(str(source.folder), split=_SPLITS.get(task, ""))


def write_configuration(made: Converted) -> None:
    """Writes the configuration of transformers."""
    write_json(made.folder / "config.json", made.source.configuration)


def keep_type(made: Converted) -> str:
    """Returns no other type of model."""
    return ""


def takes_all(source: PackageSource) -> str:
    """Returns no refusal."""
    return ""


class Kind(NamedTuple):
    """A kind of package: which models it takes, its model files, and what is around them.

    ``files`` has the path of each part for each task; ``{}`` in a path stands for the suffix of a data type.
    ``find(name, download=, allow_code=)`` returns the source, and raises LoadError.
    ``target`` is the format of the model files; those of "tflite" have the parts as signatures. ``trial`` is
    the module that makes the question of the check, where the task does not choose it. ``takes_lengths``
    states that ``trace`` takes the lengths of caches, ``takes_states`` that layers may have other states than
    keys and values, ``takes_activations`` that inputs of products may be rounded, ``copies_files`` that the
    files of the tokenizer are copied.
    ``suffixes`` are those by data type, and empty for a consumer that does not choose among data types.
    ``options`` of conversions are used where the caller gives none.
    ``refusal`` returns why a model is not taken, and an empty text if it is. ``write`` writes the files
    around the model files, returns a note for the report or none, and raises UnsupportedError TM2032.
    ``generalize`` changes the type of the model in the configuration to one that the consumer knows, and
    returns its name, empty where there is none.
    """

    name: str
    consumer: Consumer
    files: Mapping[str, Mapping[str, str]]
    suffixes: Mapping[str, str] = MappingProxyType({})
    options: Mapping[str, Any] = MappingProxyType({})
    find: Callable[..., PackageSource] = find_source
    refusal: Callable[[PackageSource], str] = takes_all
    task: Callable[[PackageSource], str] = task_of
    trace: Callable[..., Modules] = trace_whole
    write: Callable[[Converted], str | None] = write_configuration
    generalize: Callable[[Converted], str] = keep_type
    target: str = "onnx"
    trial: str = ""
    takes_lengths: bool = False
    takes_states: bool = False
    takes_activations: bool = False
    copies_files: bool = True

    def path(self, task: str, part: str, dtype: str) -> str:
        return self.files[task][part].format(self.suffixes.get(dtype, ""))


def layout(folder: str, *tasks: str) -> Mapping[str, Mapping[str, str]]:
    """Returns the paths of the layout that optimum and transformers.js share, in a folder of the package."""
    whole = {"": folder + "model{}.onnx"}
    parts = {"encoder": folder + "encoder_model{}.onnx", "decoder": folder + "decoder_model_merged{}.onnx"}
    return {
        task: parts if task == ENCODER_DECODER else whole
        for task in tasks or (DECODER, ENCODER_DECODER, ONCE)
    }


def refused(kind: Kind, source: PackageSource, reason: str) -> UnsupportedError:
    alone = ("help", f"`tmconvert onnx {source.folder} model.onnx --names optimum` writes the file alone")
    return UnsupportedError(
        "TM2032",
        f"{kind.name} does not take {source.architecture}: {reason}",
        notes=[alone] if kind.find is find_source else [],
    )


def write_json(path: Path, document: object) -> None:
    """Writes a JSON file with keys in the given order."""
    path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
