"""The tasks of models, which decide about the parts of a package and about its check."""

from __future__ import annotations

import re

from tmconvert.packaging.source import PackageSource

DECODER, ENCODER_DECODER, ONCE, SENTENCES = "decoder", "encoder-decoder", "once", "sentences"
PIPELINE, VISION_LANGUAGE = "pipeline", "vision-language"
DECODERS = ("ForCausalLM", "LMHeadModel")  # endings of classes of transformers that generate
GENERATORS = (*DECODERS, "ForConditionalGeneration", "MTModel", "ForSpeechSeq2Seq", "EncoderDecoderModel")
_HEAD = re.compile(r"For[A-Z]\w+$")
NAMES = {
    DECODER: "decoders (...ForCausalLM)",
    ENCODER_DECODER: "encoder-decoders that generate",
    ONCE: "models that are run once",
    SENTENCES: "encoders of text",
    VISION_LANGUAGE: "models of text and images that generate",
    PIPELINE: "pipelines of diffusers",
}


def task_of(source: PackageSource) -> str:
    """Returns the task of a model; an empty text for one that is not known."""
    if source.configuration.get("is_encoder_decoder"):
        if source.architecture.endswith(GENERATORS):
            return ENCODER_DECODER
        return ONCE if _HEAD.search(source.architecture) else ""  # DETR, BART that classifies
    if source.architecture.endswith(DECODERS):
        return DECODER
    if not source.architecture.endswith(GENERATORS):
        return ONCE
    return VISION_LANGUAGE if {"vision_config", "text_config"} <= set(source.configuration) else ""


def refusal_of_task(task: str, taken: tuple[str, ...]) -> str:
    """Returns why a package for some tasks does not take a model of another one; empty if it does."""
    if task in taken:
        return ""
    found = f"this is one of the {NAMES[task]}" if task else "the parts that this has are not known"
    return f"it takes {', '.join(NAMES[each] for each in taken)}; {found}"
