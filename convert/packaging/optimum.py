"""Packages of optimum: ``model.onnx`` with its names of inputs and outputs, configuration and tokenizer."""

from __future__ import annotations

from tmconvert.packaging.consumer import Consumer
from tmconvert.packaging.decoders import check_tokens, is_decoder
from tmconvert.packaging.kind import Converted, Kind, write_json
from tmconvert.packaging.report import Check
from tmconvert.packaging.source import PackageSource
from tmconvert.packaging.vectors import check_vectors

CONSUMER = Consumer("optimum", "open_optimum.py", "pip install optimum-onnx")


class OptimumKind(Kind):
    """The folder that the ORTModel classes read."""

    name = "optimum"
    has_dtypes = False

    def refusal(self, source: PackageSource) -> str:
        if source.configuration.get("is_encoder_decoder"):
            return (
                "it opens an encoder-decoder as two files with caches, and one file without is written here"
            )
        return ""

    def path(self, dtype: str) -> str:
        return "model.onnx"

    def write(self, made: Converted) -> None:
        write_json(made.folder / "config.json", made.source.configuration)

    def check(self, made: Converted) -> list[Check]:
        return (check_tokens if is_decoder(made.source) else check_vectors)(CONSUMER, made)


KIND = OptimumKind()
