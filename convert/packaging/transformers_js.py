"""Packages of transformers.js: model files for each data type in ``onnx/``, configuration and tokenizer.

Source of the layout: https://huggingface.co/docs/transformers.js/custom_usage.
"""

from __future__ import annotations

from pathlib import Path

from tmconvert.formats.onnx.renamed_weights import rename_weights
from tmconvert.packaging.consumer import Consumer
from tmconvert.packaging.general_types import write_general_type
from tmconvert.packaging.kind import Converted, Kind, layout, write_json
from tmconvert.packaging.source import PackageSource
from tmconvert.packaging.tasks import VISION_LANGUAGE

_SETTINGS = "transformers.js_config"
_PROMPTED = ("sam", "sam_hq", "sam2", "sam2_video", "sam3_tracker", "edgetam")  # types that take points
_PARTS = {"vision": "vision_encoder", "embedding": "embed_tokens", "decoder": "decoder_model_merged"}


def _refusal(source: PackageSource) -> str:
    if source.configuration.get("model_type") in _PROMPTED:
        return "it opens an encoder of images and a decoder of prompts, into which this is not split"
    return ""


def _write(made: Converted) -> None:
    external = {}
    for file, _ in made.files:
        if rename_weights(made.folder / file.path):
            external[Path(file.path).name] = True
    configuration = {**made.source.configuration}
    if made.task == VISION_LANGUAGE:  # which transformers leaves out where it is the default of a class
        text = made.source.text
        configuration["text_config"] = {
            **text,
            "num_hidden_layers": len({name.split(".")[1] for name in made.caches}),
        }
    if external:
        configuration[_SETTINGS] = {"use_external_data_format": external}
    write_json(made.folder / "config.json", configuration)


KIND = Kind(
    "transformers.js",
    Consumer("transformers.js", "open_transformers_js.cjs", "npm install @huggingface/transformers"),
    {**layout("onnx/"), VISION_LANGUAGE: {part: f"onnx/{name}{{}}.onnx" for part, name in _PARTS.items()}},
    suffixes={"fp32": "", "fp16": "_fp16", "q8": "_quantized", "q4": "_q4", "q4f16": "_q4f16"},
    refusal=_refusal,
    write=_write,
    takes_states=True,
    generalize=write_general_type,
)
