"""The public function that makes packages; ``tmconvert.api`` has the others."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tmconvert.api_convert import to_onnx, to_tflite
from tmconvert.conversion.options.arguments import entry_point

if TYPE_CHECKING:
    from tmconvert.packaging.report import PackageReport


@entry_point
def package(
    source: str | PathLike[str],
    output: str | PathLike[str],
    *,
    kind: str,
    weights: Literal["float16", "int8", "int4"] | None = None,
    float_type: Literal["float16"] | None = None,
    activations: Literal["float32", "int8"] | None = None,
    dtypes: Sequence[str] | None = None,
    opset: int | Literal["auto"] | None = None,
    external_data: bool = False,
    accept_range: bool = False,
    cache_length: int | None = None,
    prefill_lengths: Sequence[int] | None = None,
    download: bool = False,
    allow_code: bool = False,
    verify: bool = True,
) -> PackageReport:
    """Writes the folder that a program opens: model files, configuration and tokenizer.

    The folder gets its name after that program has opened it, in a process of its own, and has computed the
    tokens or vectors of PyTorch. Nothing of the source is executed without ``allow_code``.

    Args:
        source: A folder of transformers, or the name of one in the local cache of Hugging Face; for
            "ultralytics" a checkpoint, for "diffusers" the folder of a pipeline.
        output: The folder to write, which must not exist.
        kind: The program: "onnxruntime-genai", "transformers.js", "sentence-transformers", "optimum",
            "ultralytics", "diffusers", "litert-lm".
        weights: Type of large weights, for kinds with one model file.
        float_type: Type of floats, for kinds with one model file.
        activations: Type to which ONNX Runtime rounds the inputs of products with int4 weights, for
            "onnxruntime-genai"; by default "int8", and "float32" does not round them.
        dtypes: Data types of the model files, for kinds with several: "fp32", "fp16", "q8", "q4", "q4f16".
        opset: ONNX opset version; int4 weights need 21, and take it by default.
        external_data: Store the weights next to the model file; always above 2 GiB.
        accept_range: Accept files that are valid for a range of sizes only, which a note states.
        cache_length: Positions of the caches of a decoder, for "litert-lm"; by default those of the model, at
            most 4096.
        prefill_lengths: Numbers of tokens that a prefill takes at once, for "litert-lm"; by default [128].
        download: Fetch a source that is neither a folder nor in the cache from the hub of Hugging Face.
        allow_code: Allow the code in a checkpoint of ultralytics, a pickle, to run.
        verify: Compare the files with PyTorch, and open the package.

    Returns:
        The files with their sizes, what opened them, and what was left out because it is not installed.

    Raises:
        LoadError: TM1001, TM1025, TM1028 for a source that cannot be used; TM1030 for a download that fails.
        UnsupportedError: TM2032 for a model that the kind does not take; what ``to_onnx`` raises.
        VerificationError: TM4008 if the program does not open the package, or computes something else.
        UsageError: TM6002 for options that do not fit the kind.
        WriteError: TM5001 if the folder exists, or cannot be written.

    Example:
        >>> tmconvert.package("folder", "out", kind="onnxruntime-genai", weights="int4")  # doctest: +SKIP
    """
    from tmconvert.packaging.kind import Lengths
    from tmconvert.packaging.package import make_package

    options: dict[str, object] = {"weights": weights, "float_type": float_type, "opset": opset}
    options |= {"external_data": external_data or None, "accept_range": accept_range or None}
    return make_package(
        fspath(source),
        Path(output),
        kind,
        {"onnx": to_onnx, "tflite": to_tflite},
        options=options,
        dtypes=dtypes,
        lengths=Lengths(cache_length, prefill_lengths),
        activations=activations,
        download=download,
        allow_code=allow_code,
        verify=verify,
    )
