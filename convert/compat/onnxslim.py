"""``slim`` with the signature of onnxslim 0.1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tmconvert import api_convert
from tmconvert.compat.keywords import check_keywords

WITHOUT_MEANING = {
    **dict.fromkeys(
        ("no_shape_infer", "skip_optimizations", "skip_fusion_patterns", "no_constant_folding"),
        "tmconvert decides by the result what it does",
    ),
    "size_threshold": "constants of any size are folded where that removes nodes",
    "model_check": "the result is always compared with the model",
    "verbose": "logging of the name tmconvert states what happens",
    "inspect": "there is `tmconvert inspect`",
}
REFUSED = {"dump_to_disk": "use `tmconvert inspect --json`"}
_WEIGHTS = {"float16": {"float_type": "float16"}, "float32": {"float_type": "float32"}}


def slim(
    model: Any, output_model: Any = None,
    *, input_shapes: Mapping[str, Sequence[int]] | Sequence[str] | None = None,
    inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None, dtype: str | None = None,
    save_as_external_data: bool = False, model_check_inputs: Sequence[str] | None = None, **others: Any,
) -> Any:  # fmt: skip
    """Simplifies an ONNX model as ``tmconvert.simplify`` does, with the arguments of ``onnxslim.slim``.

    Args:
        model: A path or a ModelProto.
        output_model: A file to write.
        input_shapes: Shapes by input, or texts such as ``"x:1,3,224,224"``.
        inputs: Names of tensors at which the result starts; an element type after ``:`` is ignored.
        outputs: Names of tensors at which the result ends.
        dtype: "float16" or "float32": the type of floats; "int8" stores large weights in it.
        save_as_external_data: Store the weights in a file of their own.
        model_check_inputs: Files for the comparison, as ``"x:x.npy"``.
        **others: Further keywords of onnxslim; those without a meaning give a warning that states why.

    Returns:
        The ModelProto, or None with ``output_model``.

    Raises:
        UsageError: TM6002 for keywords that cannot be followed.
        TmconvertError: What ``tmconvert.simplify`` raises.

    Example:
        >>> from tmconvert.compat import onnxslim
        >>> slimmed = onnxslim.slim("net.onnx")  # doctest: +SKIP
    """
    types = {**_WEIGHTS, "int8": {"weights": "int8"}}
    given = {**others, "dtype": None if dtype in types else dtype}
    refused = {**REFUSED, "dtype": "use float16, float32 or int8"}
    check_keywords("onnxslim.slim", given, WITHOUT_MEANING, refused)
    options: dict[str, Any] = dict(types.get(dtype or "", {}))
    if input_shapes:
        options["input_shapes"] = _shapes(input_shapes)
    if inputs:
        options["inputs"] = [name.partition(":")[0] for name in inputs]
    if outputs:
        options["outputs"] = [name.partition(":")[0] for name in outputs]
    if save_as_external_data:
        options["external_data"] = True
    if model_check_inputs:
        options["verify_with"] = _arrays(model_check_inputs)
    report = api_convert.simplify(model, output_model, **options)
    return None if output_model else report.model


def _shapes(given: Mapping[str, Sequence[int]] | Sequence[str]) -> dict[str, list[int]]:
    if isinstance(given, Mapping):
        return {name: list(shape) for name, shape in given.items()}
    pairs = (each.rpartition(":") for each in given)
    return {name: [int(size) for size in shape.split(",")] for name, _, shape in pairs}


def _arrays(given: Sequence[str]) -> dict[str, Any]:
    import numpy as np

    pairs = (each.partition(":") for each in given)
    return {name: np.load(path, allow_pickle=False) for name, _, path in pairs}
