"""The report of a conversion: its fields, text and JSON."""

from __future__ import annotations

import builtins
import importlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tmconvert.conveniences import NotebookForm
from tmconvert.conversion.io_description import FedTensor
from tmconvert.errors import LoadError, UsageError
from tmconvert.errors.source import printable
from tmconvert.errors.values import checked_path
from tmconvert.lowering.target_graph import TargetGraph, Value
from tmconvert.output.atomic import commit_together, staged_outputs
from tmconvert.passes.rewriting import PassRecord
from tmconvert.targets.options import check_choice
from tmconvert.targets.registry import target_named

if TYPE_CHECKING:
    from tmconvert.verification.verify import Verification


@dataclass
class Report(NotebookForm):
    """The result of a conversion.

    ``max_error`` is the largest max|a - b| / max|b| over the outputs, or None when no runtime for the target
    is installed or verification was switched off (``verified`` is then False). ``seconds`` are (pass, time)
    pairs; ``passes`` has what each pass did (``done``) and what it refused to do (``refused``), as events
    with the name of a node, a text and a source. ``stopped`` is true if ``stop_after`` ended the conversion
    before the file was written. ``inputs`` and ``outputs`` describe those of the file: name, dtype, shape, in
    which a dynamic size is a text, layout, that of the model where it differs, scale, zero point and range;
    ``fed_inputs`` and ``fed_outputs`` are the same as records. ``ranges`` lists the ranges of dynamic sizes
    in which the file is right: ``n <= 512``. ``settings`` are the options that shaped the file; ``advice``
    has rules that were tried for a file in integers, with the gain of each. ``case`` has the inputs and
    expected outputs that a lock records. ``signatures`` has the reports of a file of several models, by name.
    """

    target: str
    version: int | str
    paths: tuple[Path, ...]
    operators: int = 0
    parameters: int = 0
    verification: Verification | None = None
    notes: list[str] = field(default_factory=list)
    seconds: list[tuple[str, float]] = field(default_factory=list, repr=False)
    passes: list[PassRecord] = field(default_factory=list, repr=False)
    stopped: bool = False
    inputs: list[dict[str, Any]] = field(default_factory=list)
    outputs: list[dict[str, Any]] = field(default_factory=list)
    ranges: list[str] = field(default_factory=list)
    fed_inputs: list[FedTensor] = field(default_factory=list, repr=False)
    fed_outputs: list[FedTensor] = field(default_factory=list, repr=False)
    settings: dict[str, Any] = field(default_factory=dict)
    advice: list[dict[str, Any]] = field(default_factory=list)
    case: tuple[dict[str, np.ndarray], dict[str, np.ndarray]] | None = field(default=None, repr=False)
    signatures: dict[str, Report] = field(default_factory=dict)

    @property
    def verified(self) -> bool:
        if self.signatures:
            return all(each.verified for each in self.signatures.values())
        return self.verification is not None and self.verification.tells

    @property
    def max_error(self) -> float | None:
        errors = [each.max_error for each in self.signatures.values()]
        if errors:
            return None if None in errors else max(each for each in errors if each is not None)
        return None if self.verification is None else self.verification.max_error

    @property
    def model(self) -> Any:
        """The written model as an object: ModelProto, bytes (TFLite), contents of prototxt and caffemodel."""
        return target_named(self.target).model_object(self.paths)

    @property
    def bytes(self) -> builtins.bytes:
        """The content of the file of the graph."""
        return self.paths[0].read_bytes()

    def ir(self) -> Any:
        """Returns an ONNX model as an ``onnx_ir.Model``, whose weights stay in the file.

        Raises:
            UsageError: TM6002 for another target.
            LoadError: TM1021 without the package ``onnx-ir``.

        Example:
            >>> tmconvert.to_onnx("net.tm").ir().graph.num_nodes()  # doctest: +SKIP
            12
        """
        if self.target != "onnx":
            raise UsageError("TM6002", f"ir() is for ONNX models: this one is {self.target}")
        try:
            onnx_ir = importlib.import_module("onnx_ir")
        except ImportError as error:
            raise LoadError("TM1021", "ir() needs the package onnx-ir, which is not installed") from error
        return onnx_ir.load(self.paths[0])

    def write_layers(self, path: str | PathLike[str]) -> None:
        """Writes the quantization error of each layer of an integer file.

        Args:
            path: The file to write: .html, .json or .txt; .nodes.json is node data of Model Explorer.

        Raises:
            UsageError: TM6002 for another suffix, and for a report without verified integer layers.
            WriteError: The file cannot be written.

        Example:
            >>> report = tmconvert.to_tflite("qat.tm", "net.tflite", quantized=True)  # doctest: +SKIP
            >>> report.write_layers("net.html")  # doctest: +SKIP
        """
        from tmconvert.verification.quantization_report.report_file import NODE_DATA, check_suffix

        path = checked_path(path)
        check_suffix(path)
        if self.verification is None or not self.verification.noise:
            raise UsageError("TM6002", f"{path} was not written: no integer file was verified")
        is_node_data = path.name.lower().endswith(NODE_DATA)
        text = self._layers_text(NODE_DATA if is_node_data else path.suffix.lower(), self.verification)
        with staged_outputs(path) as outputs:
            outputs[0].file.write(text.encode())
            outputs[0].finish()
            commit_together(outputs)

    def usage(self, language: str) -> str:
        """Returns a program of about ten lines that runs the file; empty where no file was written, and for
        several signatures.

        Args:
            language: "python", "cpp" or "kotlin".

        Raises:
            UsageError: TM6002 for another language.

        Example:
            >>> print(tmconvert.to_onnx("net.tm", "net.onnx").usage("python"))  # doctest: +SKIP
        """
        from tmconvert.targets.usage import LANGUAGES

        check_choice("language", language, LANGUAGES)
        if self.stopped or self.signatures:
            return ""
        inputs, outputs = (
            [each.tensor for each in tensors] for tensors in (self.fed_inputs, self.fed_outputs)
        )
        lines = target_named(self.target).usage(language, [str(path) for path in self.paths], inputs, outputs)
        return "\n".join(lines)

    def _layers_text(self, suffix: str, verification: Verification) -> str:
        from tmconvert.conversion.layer_report import layer_report
        from tmconvert.verification.quantization_report.report_file import json_text, node_data, plain_text

        record = layer_report(self, verification)
        if suffix.startswith(".nodes"):
            return node_data(record)
        if suffix == ".html":
            from tmconvert.viewer.view import view_text

            return view_text(None, self.paths[0], [record])
        return json_text(record) if suffix == ".json" else plain_text(self.paths[0].name, verification)

    def page_text(self) -> str:
        """Returns the HTML page of the written file, with the noise of its layers where it was measured."""
        from tmconvert.viewer.view import view_text

        if self.verification is not None and self.verification.noise:
            return self._layers_text(".html", self.verification)
        return view_text(None, self.paths[0])

    def __str__(self) -> str:
        """Returns the lines that the command prints for a conversion."""
        from tmconvert.conversion.report_text import remarks, results

        is_noted = any("not verified" in note for note in self.notes)
        lines = [*remarks(self, "" if is_noted else "verify=False was given")]
        return "\n".join(map(printable, lines if self.stopped else [*lines, *results(self)]))

    def to_json(self) -> dict[str, object]:
        """Returns the JSON document of the command with ``--json``."""
        return {
            "target": self.target,
            "version": self.version,
            "paths": [str(path) for path in self.paths],
            "inputs": self.inputs,
            "outputs": self.outputs,
            "operators": self.operators,
            "parameters": self.parameters,
            "verified": self.verified,
            "max_error": self.max_error,
            "verification": None if self.verification is None else self.verification.to_json(),
            "ranges": self.ranges,
            "notes": self.notes,
            "stopped": self.stopped,
            **({"signatures": self._signatures_to_json()} if self.signatures else {}),
        }

    def _signatures_to_json(self) -> dict[str, object]:
        return {name: each.to_json() for name, each in self.signatures.items()}


def describe(
    report: Report, graph: TargetGraph, paths: Sequence[Path], fed: tuple[list[FedTensor], list[FedTensor]]
) -> None:
    """Sets the fields of ``report`` for the graph written to ``paths``, with inputs and outputs ``fed``."""
    report.fed_inputs, report.fed_outputs = fed
    report.inputs, report.outputs = ([each.to_json() for each in tensors] for tensors in fed)
    report.operators = len(list(graph.all_operators()))
    report.parameters = sum(math.prod(value.shape) for value in weights_of(graph))
    report.paths = tuple(paths)


def weights_of(graph: TargetGraph) -> list[Value]:
    """Returns the constants other than scalars, indices and shapes."""
    readers = (each for each in graph.all_operators() if each.type == "DequantizeLinear")
    quantized = {id(each.inputs[0]) for each in readers}  # ONNX has the scales of weights in operators
    return [
        value
        for value in graph.constants()
        if value.shape
        and (
            value.quantization is not None
            or id(value) in quantized
            or not np.issubdtype(value.dtype, np.integer)
        )
    ]
