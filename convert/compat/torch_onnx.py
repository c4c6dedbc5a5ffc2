"""``export`` with the signature of ``torch.onnx.export`` of PyTorch 2.13, of both of its exporters."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tmconvert import api, api_convert
from tmconvert.compat.keywords import check_keywords
from tmconvert.conversion.io_names import written_outputs
from tmconvert.conversion.report import Report
from tmconvert.errors import UsageError
from tmconvert.formats.onnx.objects import save_proto
from tmconvert.frontends.torch.entry import trace_object
from tmconvert.frontends.torch.request import AutomaticSize, Tracing
from tmconvert.ir.flatten import flatten_module

LOGGER = logging.getLogger(__name__)
_OF_TORCH = "there is no program of torch.export; the report of tmconvert has what was done"
WITHOUT_MEANING = {
    **dict.fromkeys(
        ("optimize", "do_constant_folding", "autograd_inlining"), "the graph is always optimized"
    ),
    **dict.fromkeys(("report", "profile", "dump_exported_program", "artifacts_dir", "fallback"), _OF_TORCH),
    "custom_opsets": "domains of operators have the versions that register_symbolic states",
    "export_modules_as_functions": "modules are inlined",
    "verify": "the file is always compared with the module",
}
REFUSED = {
    "custom_translation_table": "register a conversion with register_symbolic",
    "keep_initializers_as_inputs": "the file has weights as constants",
    "export_params": "the file has the weights",
    "operator_export_type": "all operators are those of ONNX, or of register_symbolic",
}
_DEFAULTS: Mapping[str, Any] = {
    **dict.fromkeys(("optimize", "do_constant_folding", "autograd_inlining", "export_params"), True),
    "artifacts_dir": ".",
}


class OnnxProgram:
    """The result of ``export``, with what users of ``torch.onnx.ONNXProgram`` call.

    ``model_proto`` is the ModelProto, ``model`` an ``onnx_ir.Model``, ``report`` the report of the
    conversion. Called with the arguments of the module, it runs the file in ONNX Runtime.
    """

    def __init__(self, report: Report) -> None:
        self.report = report

    @property
    def model_proto(self) -> Any:
        return self.report.model

    @property
    def model(self) -> Any:
        return self.report.ir()

    def save(
        self, destination: Any,
        *, include_initializers: bool = True, keep_initializers_as_inputs: bool = False,
        external_data: bool | None = None,
    ) -> None:  # fmt: skip
        """Writes the model.

        Args:
            destination: A path, or a file that is open for binary writing.
            include_initializers: Must be True.
            keep_initializers_as_inputs: Must be False.
            external_data: Store the weights in a file next to it.

        Raises:
            UsageError: TM6002 for other values.
            WriteError: The file cannot be written.

        Example:
            >>> program.save("net.onnx")  # doctest: +SKIP
        """
        refused = {"export_params": not include_initializers} | {
            "keep_initializers_as_inputs": keep_initializers_as_inputs
        }
        check_keywords("ONNXProgram.save", refused, {}, REFUSED)
        _write(self.model_proto, destination, bool(external_data))

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        torch = sys.modules["torch"]  # which the caller has for the tensors
        leaves = torch.utils._pytree.tree_leaves((args, kwargs))
        arrays = [each for each in leaves if isinstance(each, torch.Tensor)]
        names = [each["name"] for each in self.report.inputs]
        given = {name: each.numpy(force=True) for name, each in zip(names, arrays, strict=True)}
        return tuple(torch.from_numpy(each) for each in api.run(self.report.paths[0], given).values())

    def optimize(self) -> None:
        """Does nothing: the model is optimized.

        Example:
            >>> program.optimize()  # doctest: +SKIP
        """

    release = optimize


def export(
    model: Any, args: Any = (), f: Any = None,
    *, kwargs: Mapping[str, Any] | None = None, verbose: bool | None = None,
    input_names: Sequence[str] | None = None, output_names: Sequence[str] | None = None,
    opset_version: int | None = None, dynamo: bool = True, external_data: bool = True,
    dynamic_shapes: Any = None, dynamic_axes: Mapping[str, Any] | None = None, training: Any = None,
    **others: Any,
) -> OnnxProgram | None:  # fmt: skip
    """Converts a PyTorch model to ONNX with the arguments of ``torch.onnx.export``, and verifies the file.

    Args:
        model: A module, an ExportedProgram, a ScriptModule or an ``ExportableModule``.
        args: The inputs: a tuple, or one tensor. With ``dynamo=False``, a dict at its end has keywords.
        f: The file to write: a path, a file that is open for binary writing, or None.
        kwargs: Inputs by name.
        verbose: Log the report.
        input_names: Names of the inputs of the file, in order.
        output_names: Names of its outputs, in order.
        opset_version: The opset; None is that of ``tmconvert.to_onnx``.
        dynamo: False returns None, and takes keywords in ``args``, as the older exporter does.
        external_data: Store the weights in a file next to ``f``.
        dynamic_shapes: Dynamic sizes in any form of ``torch.export``.
        dynamic_axes: Names of dynamic sizes by input name and axis, or lists of axes.
        training: ``TrainingMode.TRAINING`` or ``PRESERVE`` keep the mode of a module in training mode.
        **others: Further keywords of ``torch.onnx.export``; those without a meaning give a warning that
            states why.

    Returns:
        The program, which saves and runs the model; None with ``dynamo=False``.

    Raises:
        UsageError: TM6002, TM6009 for keywords that cannot be followed; TM6014 for names.
        TmconvertError: What ``tmconvert.to_onnx`` raises.

    Example:
        >>> from tmconvert.compat import torch_onnx
        >>> torch_onnx.export(net, (x,), "net.onnx", input_names=["image"])  # doctest: +SKIP
    """
    given = dict(others)
    if getattr(given.get("operator_export_type"), "name", "ONNX") == "ONNX":
        given.pop("operator_export_type", None)
    check_keywords("torch.onnx.export", given, WITHOUT_MEANING, REFUSED, _DEFAULTS)
    args, named = _inputs(args, dict(kwargs or {}), dynamo)
    if not args and not named and callable(getattr(model, "example_arguments", None)):
        args, own = model.example_arguments()
        named = dict(own or {})
        dynamic_shapes = model.dynamic_shapes() if dynamic_shapes is None else dynamic_shapes
        input_names, output_names = input_names or model.input_names(), output_names or model.output_names()
    sizes = dynamic_shapes
    if dynamic_axes and sizes is None:
        sizes = _sizes(model, args, named, dynamic_axes, input_names)
    is_kept = getattr(training, "name", "EVAL") in ("TRAINING", "PRESERVE")
    tracing = Tracing.of(args, named, sizes, False, False, is_kept)
    module = trace_object(model, tracing)
    rename = _names(module, input_names, output_names)
    options: dict[str, Any] = {"rename": rename} if rename else {}
    if opset_version is not None:
        options["opset"] = opset_version
    is_path = isinstance(f, (str, os.PathLike))
    if is_path and external_data and dynamo:
        options["external_data"] = True
    report = api_convert.to_onnx(module, f if is_path else None, **options)
    if not is_path and f is not None:
        _write(report.model, f, is_external=False)
    if verbose:
        LOGGER.info("%s", report)
    return OnnxProgram(report) if dynamo else None


def _inputs(args: Any, named: dict[str, Any], dynamo: bool) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Returns the arguments of a call, in place of the forms that exporters take."""
    if not isinstance(args, (tuple, list)):
        return (args,), named
    is_named = not dynamo and args and isinstance(args[-1], dict)
    return (tuple(args[:-1]), {**args[-1], **named}) if is_named else (tuple(args), named)


def _names(module: Any, inputs: Sequence[str] | None, outputs: Sequence[str] | None) -> dict[str, str]:
    """Returns the new names by those that the file would have. Raises UsageError TM6014 for too many."""
    if not inputs and not outputs:
        return {}
    graph = flatten_module(module).graph
    assert graph is not None
    own = ([node.name for node in graph.inputs[1:]], list(written_outputs(graph)))
    rename: dict[str, str] = {}
    for kind, old, new in zip(("input", "output"), own, (inputs or (), outputs or ()), strict=True):
        if len(new) > len(old):
            message = f"{len(new)} {kind}_names were given, and the model has {len(old)}: {', '.join(old)}"
            raise UsageError("TM6014", message)
        rename |= {a: b for a, b in zip(old, new, strict=False) if a != b}
    return rename


def _sizes(
    model: Any, args: tuple[Any, ...], named: dict[str, Any], dynamic_axes: Mapping[str, Any],
    input_names: Sequence[str] | None,
) -> dict[str, dict[int, str]]:  # fmt: skip
    """Returns the dynamic sizes by the inputs of the model; those of outputs follow from them."""
    from tmconvert.frontends.torch.tracing.tracer import named_tensors

    own = list(named_tensors(model, args, named))
    inputs = dict(zip(input_names or own, own, strict=False)) | {name: name for name in own}
    sizes: dict[str, dict[int, str]] = {}
    for name, axes in dynamic_axes.items():
        if name not in inputs:
            continue
        pairs = axes.items() if isinstance(axes, Mapping) else ((axis, None) for axis in axes)
        sizes[inputs[name]] = {axis: _size(size, f"{name}_{axis}") for axis, size in pairs}
    return sizes


def _size(name: Any, automatic: str) -> str:
    word = re.sub(r"\W", "_", name or automatic)
    return word if name else AutomaticSize(word)


def _write(model: Any, destination: Any, is_external: bool) -> None:
    if not isinstance(destination, (str, os.PathLike)):
        destination.write(model.SerializeToString())
        return
    save_proto(model, Path(destination), is_external=is_external)
