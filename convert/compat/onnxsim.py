"""``simplify`` with the signature of onnxsim 0.8."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from tmconvert import api_convert
from tmconvert.compat.keywords import check_keywords

_ALWAYS = "tmconvert decides by the result what it does, and compares it with the model in ONNX Runtime"
_OF_RUNS = "the tolerances and inputs of the comparison are those of tmconvert"
_OF_FILES = "weights are written as they are in the model"
_OF_FOLDING = "constants are computed in NumPy"
WITHOUT_MEANING = {
    **dict.fromkeys(
        (
            *("skip_fuse_bn", "skipped_optimizers", "skip_constant_folding", "skip_shape_inference"),
            *("extra_optimizers", "include_subgraph", "inline_functions", "dynamic_input_shape"),
            *("import_custom_schemas", "gemm_fusion_backend", "skip_optimization", "skip_optimizers"),
        ),
        _ALWAYS,
    ),
    **dict.fromkeys(("check_rtol", "check_atol", "input_fill", "test_input_shapes"), _OF_RUNS),
    **dict.fromkeys(("tensor_size_threshold", "external_data_threshold"), _OF_FILES),
    **dict.fromkeys(("providers", "custom_lib"), f"{_OF_FOLDING}, and nodes of unknown operators stay"),
    **dict.fromkeys(("profile", "ort_profile", "merge_ort_profile"), "there is `tmconvert bench`"),
    **dict.fromkeys(
        ("certify", "check_hazards", "check_gradients", "gradient_precision"),
        "the result is compared with the model",
    ),
}
REFUSED = {
    "custom_rewriter": "register a pass with tmconvert.register_pass",
    "function_rewrite_rules": "use tmconvert.replace_pattern",
    **dict.fromkeys(
        ("mutable_initializer", "initializers_as_constants"), "weights are constants in the result"
    ),
    "perform_optimization": "a model that stays as it is needs no call",
    "range_opt": "values of inputs are not restricted",
}
_DEFAULTS = {
    "tensor_size_threshold": "1.5GB",
    "external_data_threshold": "100MB",
    "check_rtol": 1e-4,
    "check_atol": 1e-5,
    "input_fill": "random",
    **dict.fromkeys(("import_custom_schemas", "perform_optimization", "initializers_as_constants"), True),
    "gemm_fusion_backend": "ort_cpu",
    "gradient_precision": "fp32",
}


def simplify(
    model: Any, check_n: int = 0, perform_optimization: bool = True, skip_fuse_bn: bool = False,
    overwrite_input_shapes: Mapping[str, Sequence[int]] | None = None,
    *, input_data: Mapping[str, Any] | None = None, input_shapes: Mapping[str, Sequence[int]] | None = None,
    unused_output: Sequence[str] | None = None, target_opset_version: int | str | None = None,
    output_path: str | os.PathLike[str] | None = None, initializers_as_constants: bool = True, **others: Any,
) -> tuple[Any, bool]:  # fmt: skip
    """Simplifies an ONNX model as ``tmconvert.simplify`` does, with the arguments of ``onnxsim.simplify``.

    Args:
        model: A path or a ModelProto.
        check_n: The result is compared with the model in any case; other than 0, the second value states
            whether it could be.
        perform_optimization: Must be True.
        skip_fuse_bn: Has no meaning, which a warning states.
        overwrite_input_shapes: Shapes by input, or of the only input.
        input_data: Arrays by input to compare with.
        input_shapes: The older name of ``overwrite_input_shapes``.
        unused_output: Outputs that the result does not have.
        target_opset_version: The opset of the result, or "latest"; None keeps that of the model.
        output_path: A file to write as well.
        initializers_as_constants: Must be True.
        **others: Further keywords of onnxsim; those without a meaning give a warning that states why.

    Returns:
        The ModelProto, and whether it is right: compared with the model, or unchanged.

    Raises:
        UsageError: TM6002 for keywords that cannot be followed.
        TmconvertError: What ``tmconvert.simplify`` raises.

    Example:
        >>> from tmconvert.compat import onnxsim
        >>> simple, check = onnxsim.simplify("net.onnx")  # doctest: +SKIP
    """
    given = {**others, "skip_fuse_bn": skip_fuse_bn, "perform_optimization": perform_optimization}
    given["initializers_as_constants"] = initializers_as_constants
    check_keywords("onnxsim.simplify", given, WITHOUT_MEANING, REFUSED, _DEFAULTS)
    options: dict[str, Any] = {}
    shapes = overwrite_input_shapes or input_shapes
    if shapes:
        options["input_shapes"] = shapes if isinstance(shapes, Mapping) else {_only_input(model): shapes}
    if unused_output:
        names = [each.name for each in _graph(model).output]
        options["outputs"] = [name for name in names if name not in unused_output]
    if target_opset_version is not None:
        options["opset"] = _newest() if target_opset_version == "latest" else target_opset_version
    if input_data:
        options["verify_with"] = input_data
    report = api_convert.simplify(model, output_path, **options)
    is_unchanged = any("the file is unchanged" in note for note in report.notes)
    return report.model, report.verified or is_unchanged or not check_n


def _graph(model: Any) -> Any:
    from tmconvert.formats.onnx.model import read_model

    return read_model(os.fspath(model)).graph if isinstance(model, (str, os.PathLike)) else model.graph


def _only_input(model: Any) -> str:
    graph = _graph(model)
    stored = {each.name for each in graph.initializer}
    return next(each.name for each in graph.input if each.name not in stored)


def _newest() -> int:
    from tmconvert.targets.onnx.target import newest_opset

    return newest_opset()
