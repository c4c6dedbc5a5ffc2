"""Packages of transformers.js: a model file for each data type in ``onnx/``, configuration and tokenizer.

Source of the layout: https://huggingface.co/docs/transformers.js/custom_usage.
"""

from __future__ import annotations

from pathlib import Path

from tmconvert.formats.onnx.renamed_weights import rename_weights
from tmconvert.packaging.consumer import Consumer
from tmconvert.packaging.decoders import check_tokens, is_decoder
from tmconvert.packaging.kind import DTYPES, Converted, Kind, write_json
from tmconvert.packaging.report import Check
from tmconvert.packaging.source import PackageSource
from tmconvert.packaging.vectors import check_vectors

CONSUMER = Consumer("transformers.js", "open_transformers_js.cjs", "npm install @huggingface/transformers")
SUFFIXES = {"fp32": "", "fp16": "_fp16", "q8": "_quantized", "q4": "_q4"}
_SETTINGS = "transformers.js_config"


class TransformersJsKind(Kind):
    """A file for each data type, all of one trace."""

    name = "transformers.js"
    has_dtypes = True

    def refusal(self, source: PackageSource) -> str:
        if source.configuration.get("is_encoder_decoder"):
            return (
                "it opens an encoder-decoder as two files with caches, and one file without is written here"
            )
        if source.architecture.endswith("ForConditionalGeneration"):
            return "it opens a model of text and images as several files, and one file is written here"
        return ""

    def path(self, dtype: str) -> str:
        return f"onnx/model{SUFFIXES[dtype]}.onnx"

    def write(self, made: Converted) -> None:
        external = {}
        for file, _ in made.files:
            if rename_weights(made.folder / file.path):
                external[Path(file.path).name] = True
        configuration = {**made.source.configuration}
        if external:
            configuration[_SETTINGS] = {"use_external_data_format": external}
        write_json(made.folder / "config.json", configuration)

    def check(self, made: Converted) -> list[Check]:
        names = {self.path(dtype): dtype for dtype in DTYPES}
        dtypes = tuple(names[file.path] for file, _ in made.files)
        check = check_tokens if is_decoder(made.source) else check_vectors
        return check(CONSUMER, made, dtypes)


KIND = TransformersJsKind()
