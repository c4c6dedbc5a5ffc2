"""The description of a model or of a written file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from tmconvert.conversion.format_numbers import quantity, size
from tmconvert.conversion.io_description import quantization_text
from tmconvert.errors import UsageError
from tmconvert.errors.source import printable
from tmconvert.targets.options import check_choice
from tmconvert.targets.registry import target_named
from tmconvert.targets.usage import LANGUAGES
from tmconvert.targets.written_model import TensorInfo, TensorInfos


class Sizes(NamedTuple):
    """Bytes: of the files, of weights and other constants, of all activations, and of those alive at once.

    None where they are not known. Open sizes count as 1, or as in the example of a source model.
    """

    files: int | None = None
    weights: int | None = None
    activations: int | None = None
    peak_arena: int | None = None
    largest_activation: int | None = None


class ModuleLine(NamedTuple):
    """A module of a source model: its path, the name of its class, and the number of its own parameters."""

    path: str
    class_name: str
    parameters: int


@dataclass
class Inspection:
    """The contents of a model.

    ``format`` is "ONNX", "TFLite", "Caffe" or "source"; ``version`` that of its operators. ``operators``
    counts operators by type, for source models by kind (modules, functions, methods). ``parameters`` are
    counted as PyTorch does: trained elements, without the statistics of batch norms, which are ``buffers``.
    ``macs`` are the multiply-accumulates of convolutions, matrix products and recurrent layers, None where
    they are not known. ``target`` is that of a written file, by its name, and ``metadata`` what it states to
    its users. ``details`` are further entries of the JSON document. ``signatures`` are the parts of a file
    that has several, by name; then the inputs, outputs and operators are theirs.

    >>> tmconvert.inspect("model.tflite").inputs[0].scale  # doctest: +SKIP
    (0.01847,)
    """

    model: str
    format: str
    version: str
    producer: str
    inputs: list[TensorInfo]
    outputs: list[TensorInfo]
    operators: Mapping[str, Counter[str]]
    parameters: int
    sizes: Sizes
    macs: int | None = None
    buffers: int = 0
    name: str = ""
    quantization: str = ""
    dynamic_shapes: Mapping[str, Mapping[int, str]] | None = None
    modules: Sequence[ModuleLine] = ()
    target: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    signatures: Mapping[str, Inspection] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Returns the JSON document of ``tmconvert inspect --json``."""
        return {
            "model": self.model,
            "format": self.format,
            "version": self.version or None,
            "name": self.name or None,
            "producer": self.producer or None,
            "parameters": self.parameters,
            "buffers": self.buffers,
            "macs": self.macs,
            "bytes": self.sizes.weights,
            "sizes": self.sizes._asdict(),
            "inputs": [each.to_json() for each in self.inputs],
            "outputs": [each.to_json() for each in self.outputs],
            "ops": {kind: dict(counts) for kind, counts in self.operators.items()},
            **({"metadata": dict(self.metadata)} if self.metadata else {}),
            **self.details,
            **({"signatures": self._signatures_to_json()} if self.signatures else {}),
        }

    def usage(self, language: str) -> str:
        """Returns a program of about ten lines that runs the file: "python", "cpp" or "kotlin".

        Raises UsageError TM6002 for a source model, a file with several signatures, another language, and a
        target without programs.
        """
        check_choice("language", language, LANGUAGES)
        if not self.target or not self.outputs:
            reason = "is not a written file with one signature, which a program can run"
            raise UsageError("TM6002", f"{self.model} {reason}")
        target, path = target_named(self.target), Path(self.model)
        paths = [str(each) for each in target.output_paths([path])]
        lines = target.usage(language, paths, self.inputs, self.outputs)
        if not lines:
            raise UsageError("TM6002", f"there is no program for {target.title} files in {language}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return "\n".join(map(printable, self.lines()))

    def lines(self) -> Iterator[str]:
        """Returns the text of ``tmconvert inspect``: fields, then sections of indented lines."""
        yield _field("model", self.model)
        if self.version:
            yield _field("format", f"{self.format}, {self.version}")
        if self.name:
            yield _field("name", self.name)
        yield _field("producer", self.producer or "not recorded")
        yield _field("parameters", self._parameters())
        yield from self._contents()
        for name, each in self.signatures.items():
            yield from _section(f"signature {name}", list(each._contents()))
        width = max(map(len, self.metadata), default=0)
        about = (f"{key:<{width}}  {_shortened(text)}" for key, text in self.metadata.items())
        yield from _section("metadata", list(about))
        yield from _section("module tree", [_module_line(each) for each in self.modules])

    def _contents(self) -> Iterator[str]:
        if self.macs:
            yield _field("MACs", quantity(self.macs, "").strip().rstrip("s").strip())
        yield from self._activations()
        if self.quantization:
            yield _field("quantized", self.quantization)
        yield from _section("inputs", _tensors(self.inputs, self.dynamic_shapes or {}))
        yield from _section("outputs", _tensors(self.outputs))
        for kind, counts in self.operators.items():
            ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
            width = max((len(str(count)) for _, count in ordered), default=0)
            yield from _section(kind, [f"{count:>{width}}  {name}" for name, count in ordered])

    def _signatures_to_json(self) -> dict[str, Any]:
        keys = ("macs", "sizes", "inputs", "outputs", "ops")
        documents = {name: each.to_json() for name, each in self.signatures.items()}
        return {name: {key: each[key] for key in keys} for name, each in documents.items()}

    def _parameters(self) -> str:
        count = quantity(self.parameters, "parameter").rsplit(" ", 1)[0]
        more = (
            f" and {quantity(self.buffers, 'element').rsplit(' ', 1)[0]} in buffers" if self.buffers else ""
        )
        weights, files = self.sizes.weights, self.sizes.files
        sizes = [] if weights is None else [size(weights)]
        if files is not None and self.format != "source":
            sizes.append(f"files of {size(files)}")
        return f"{count}{more} ({', '.join(sizes)})" if sizes else f"{count}{more}"

    def _activations(self) -> Iterator[str]:
        sizes = self.sizes
        if sizes.activations is not None and sizes.peak_arena is not None:
            text = f"{size(sizes.activations)}, at most {size(sizes.peak_arena)} at once"
            yield _field("activations", text)


def _shortened(text: str) -> str:
    first = " ".join(text[:200].split())
    return first if len(text) <= 100 else f"{first[:96]} ..."


def _field(name: str, text: str) -> str:
    return f"{name:<12}{text}"


def _section(title: str, lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield ""
        yield title
        yield from (f"  {line}".rstrip() for line in lines)


def _tensors(tensors: TensorInfos, dynamic: Mapping[str, Mapping[int, str]] | None = None) -> list[str]:
    width = max((len(each.name) for each in tensors), default=0)
    return [f"{each.name:<{width}}  {tensor_text(each)}{_open(each, dynamic or {})}" for each in tensors]


def tensor_text(tensor: TensorInfo) -> str:
    """Returns ``int8[1,32,32,3]  NHWC, real = 0.0184 * (q + 14)``."""
    about = [tensor.layout] if tensor.layout else []
    if len(tensor.scale) == 1:
        about.append(quantization_text(tensor.scale[0], tensor.zero_point[0]))
    elif tensor.scale:
        about.append(f"{len(tensor.scale)} scales along axis {tensor.axis}")
    return f"{tensor.type_text}  {', '.join(about)}" if about else tensor.type_text


def _open(tensor: TensorInfo, dynamic: Mapping[str, Mapping[int, str]]) -> str:
    """Returns ``  (dynamic: axis 0 is batch)`` for an input with dynamic axes."""
    axes = dynamic.get(tensor.name, {})
    text = ", ".join(f"axis {axis} is {name}" for axis, name in axes.items())
    return f"  (dynamic: {text})" if axes else ""


def _module_line(module: ModuleLine) -> str:
    depth = module.path.count(".") + 1 if module.path else 0
    name = module.path.rpartition(".")[2]
    kind = module.class_name.rpartition(".")[2]
    about = f"  ({quantity(module.parameters, 'parameter')})" if module.parameters else ""
    return f"{'  ' * depth}{f'{name}: ' if name else ''}{kind}{about}"
