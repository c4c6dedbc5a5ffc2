"""The converters of mgeconvert with their signatures; MegEngine is not needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tmconvert import api_convert
from tmconvert.compat.keywords import check_keywords
from tmconvert.errors import UsageError

Numbers = float | Sequence[float] | None

_DECIDED = "the form of the layers follows from the target and its runtime"
WITHOUT_MEANING = {
    "graph_name": "the graph has the name of the model",
    **dict.fromkeys(
        (
            *("mtk", "remove_relu", "prefer_same_pad_mode", "use_int64_bias", "use_empty_blobs"),
            *("split_conv_relu", "fuse_bn", "disable_nhwc", "optimize_for_inference", "frozen_input_shape"),
        ),
        _DECIDED,
    ),
}
_DEFAULTS = {"graph_name": "graph"}
_DIALECTS = {"caffe": None, "nnie": "nnie", "snpe": "snpe", "trt": "trt"}


def tracedmodule_to_onnx(
    traced_module: Any, output: Any = "out.onnx", *, opset: int = 8, **others: Any
) -> None:
    """Converts a TracedModule to ONNX with the arguments of mgeconvert's function of this name.

    Args:
        traced_module: The path of a file, or a model that ``tmconvert.load`` returns.
        output: The file to write.
        opset: The opset of the file.
        **others: ``outspec``, ``input_data_type``, ``input_scales``, ``input_zero_points``,
            ``require_quantize``, ``param_fake_quant``, ``quantize_file_path`` as in mgeconvert; those without
            a meaning give a warning that states why.

    Raises:
        UsageError: TM6002, TM6009 for keywords that are unknown or exclude each other.
        TmconvertError: What ``tmconvert.to_onnx`` raises.

    Example:
        >>> from tmconvert.compat import mgeconvert
        >>> mgeconvert.tracedmodule_to_onnx("net.tm", "net.onnx", opset=12)  # doctest: +SKIP
    """
    _convert("onnx", traced_module, [output], {"opset": opset}, others)


def tracedmodule_to_tflite(traced_module: Any, output: Any = "out.tflite", **others: Any) -> None:
    """Converts a TracedModule to TFLite; see ``tracedmodule_to_onnx``.

    Args:
        traced_module: The path of a file, or a model that ``tmconvert.load`` returns.
        output: The file to write.
        **others: Keywords of ``tracedmodule_to_onnx``, and those of mgeconvert for TFLite.

    Raises:
        TmconvertError: What ``tmconvert.to_tflite`` raises.

    Example:
        >>> from tmconvert.compat import mgeconvert
        >>> mgeconvert.tracedmodule_to_tflite("qat.tm", require_quantize=True)  # doctest: +SKIP
    """
    _convert("tflite", traced_module, [output], {}, others)


def tracedmodule_to_caffe(
    traced_module: Any, prototxt: Any = "out.prototxt", caffemodel: Any = "out.caffemodel",
    outspec: Sequence[str] | None = None, use_empty_blobs: bool = False,
    *, convert_backend: Any = "caffe", **others: Any,
) -> None:  # fmt: skip
    """Converts a TracedModule to Caffe; see ``tracedmodule_to_onnx``.

    Args:
        traced_module: The path of a file, or a model that ``tmconvert.load`` returns.
        prototxt: The file of the structure.
        caffemodel: The file of the weights.
        outspec: Names of tensors at which the file ends.
        use_empty_blobs: Has no meaning, which a warning states.
        convert_backend: "caffe", "nnie", "snpe" or "trt", or mgeconvert's ``BackEnd`` of this name, which
            choose the dialect.
        **others: Keywords of ``tracedmodule_to_onnx``, and those of mgeconvert for Caffe.

    Raises:
        TmconvertError: What ``tmconvert.to_caffe`` raises.

    Example:
        >>> from tmconvert.compat import mgeconvert
        >>> mgeconvert.tracedmodule_to_caffe("net.tm", "net.prototxt", "net.caffemodel")  # doctest: +SKIP
    """
    backend = str(getattr(convert_backend, "name", convert_backend)).lower()
    if backend not in _DIALECTS:
        known = [("help", f"use {', '.join(_DIALECTS)}")]
        raise UsageError("TM6002", f"convert_backend is {backend!r}", notes=known)
    others |= {"outspec": outspec, "use_empty_blobs": use_empty_blobs}
    _convert("caffe", traced_module, [prototxt, caffemodel], {"dialect": _DIALECTS[backend]}, others)


mge_to_onnx, mge_to_tflite, mge_to_caffe = tracedmodule_to_onnx, tracedmodule_to_tflite, tracedmodule_to_caffe


def _convert(
    target: str, model: Any, paths: Sequence[Any], options: Mapping[str, Any], others: Mapping[str, Any]
) -> None:
    given = dict(others)
    outputs, type_ = given.pop("outspec", None), given.pop("input_data_type", None)
    scales, zeros = given.pop("input_scales", None), given.pop("input_zero_points", None)
    is_quantized, is_rounded = given.pop("require_quantize", False), given.pop("param_fake_quant", False)
    parameters = given.pop("quantize_file_path", None)
    refused = {"require_quantize": "Caffe has no integer files"} if target == "caffe" else {}
    if target == "caffe":
        given["require_quantize"], is_quantized = is_quantized, False
    check_keywords(f"mgeconvert, to {target}", given, WITHOUT_MEANING, refused, _DEFAULTS)
    options = {name: value for name, value in options.items() if value is not None}
    if outputs:
        options["outputs"] = list(outputs)
    if type_ is not None:
        options["input_qparams"] = _input_qparams(model, type_, scales, zeros)
    if is_quantized:
        options["quantized"] = True
    elif is_rounded:
        options["fake_quant_weights"] = True
    write = getattr(api_convert, f"to_{target}")
    if is_quantized:
        write(model, *paths, **options)
        return
    file = Path(parameters or "quant_params.json")
    try:
        write(model, *paths, qparams=file, **options)
    except UsageError as error:
        if error.code != "TM6040" or parameters is not None:
            raise
        write(model, *paths, **options)  # a float model has no such file


def _input_qparams(model: Any, type_: str, scales: Numbers, zeros: Numbers) -> dict[str, Any]:
    """Returns the types of inputs, by name where there are several scales."""
    many, zero_points = _list(scales), _list(zeros) or [0]
    if len(many) <= 1:
        return {"*": (type_, *(many or [1.0]), int(zero_points[0]))}
    from tmconvert import api

    module = api.load(model) if isinstance(model, (str, Path)) else model
    assert module.graph is not None
    names = [each.name for each in module.graph.inputs[1:]]
    pairs = zip(many, zero_points * (len(many) if len(zero_points) == 1 else 1), strict=True)
    return {name: (type_, scale, int(zero)) for name, (scale, zero) in zip(names, pairs, strict=True)}


def _list(value: Numbers) -> list[float]:
    if value is None:
        return []
    return list(value) if isinstance(value, Sequence) else [value]
