"""Decoders in packages: which models are taken, and the comparison of their tokens."""

from __future__ import annotations

from typing import Any

from tmconvert.packaging.consumer import Consumer
from tmconvert.packaging.continuations import (
    STEPS,
    Continuation,
    agreement,
    continuations_of_file,
    continuations_of_source,
    difference,
    prompts,
)
from tmconvert.packaging.kind import Converted
from tmconvert.packaging.report import Check
from tmconvert.packaging.source import PackageSource

DECODERS = ("ForCausalLM", "LMHeadModel")
TEXT = "The quick brown fox, 123."
_TOKENIZER = "tokenizer.json"


def is_decoder(source: PackageSource) -> bool:
    return source.architecture.endswith(DECODERS) and not source.configuration.get("is_encoder_decoder")


def refusal_of_decoder(source: PackageSource) -> str:
    """Returns why a model is not a decoder with a cache; empty if it is one."""
    if source.configuration.get("is_encoder_decoder"):
        return "an encoder-decoder is one file without a cache here, and generation needs two with caches"
    if not source.architecture.endswith(DECODERS):
        return f"the class that architectures names must end in {' or '.join(DECODERS)}"
    return ""


def check_tokens(consumer: Consumer, made: Converted, dtypes: tuple[str, ...] = ()) -> list[Check]:
    """Decodes prompts in the consumer with each model file, and compares the tokens.

    A file in float32 must give the tokens of PyTorch; one that rounds weights or floats, those that ONNX
    Runtime decodes with the file. ``dtypes`` are those of the files, for consumers that choose by them.
    Raises VerificationError TM4008.
    """
    given = prompts(int(made.source.text.get("vocab_size") or 4), made.source.context)
    of_source = continuations_of_source(made, given)
    checks: list[Check] = []
    for number, (file, report) in enumerate(made.files):
        wanted = of_source if file.is_exact else None
        if wanted is None:
            wanted = continuations_of_file(made.folder / file.path, report, given)
        question = {
            "prompts": given,
            "steps": STEPS,
            "text": TEXT if (made.source.folder / _TOKENIZER).is_file() else "",
            "dtype": dtypes[number] if dtypes else "",
            "task": "generation",
        }
        answer = consumer.ask(question, made.folder, made.source.folder)
        if isinstance(answer, str):
            return [
                *checks,
                Check(consumer.name, file.path, _in_onnx_runtime(consumer, made, given, of_source), answer),
            ]
        checks.append(_compared(consumer, made, number, answer, wanted, of_source))
    return checks


def _compared(
    consumer: Consumer,
    made: Converted,
    number: int,
    answer: dict[str, Any],
    wanted: list[Continuation] | None,
    of_source: list[Continuation] | None,
) -> Check:
    file, found = made.files[number][0], answer["tokens"]
    ends = made.source.ends or [made.source.setting("pad_token_id")]  # onnxruntime-genai takes that instead
    wrong = difference(found, wanted, ends, file) if wanted is not None else ""
    if wrong:
        reference = "PyTorch" if file.is_exact and of_source else "ONNX Runtime"
        raise consumer.refuses(f"{file.path} decodes other tokens than {reference}: {wrong}")
    result = agreement(found, of_source) if of_source else "opened"
    return Check(f"{consumer.name} {answer['version']}", file.path, result + _text_note(made, answer))


def _text_note(made: Converted, answer: dict[str, Any]) -> str:
    """Compares the tokens of a text with those of the library that wrote the tokenizer."""
    if "text_error" in answer:
        return f"; its tokenizer does not open: {answer['text_error']:.120}"
    if "text_tokens" not in answer:
        return ""
    try:
        from tokenizers import Tokenizer

        wanted = Tokenizer.from_file(str(made.source.folder / _TOKENIZER)).encode(TEXT).ids
    except Exception:  # not installed, or a file of a newer release
        return ""
    return (
        ""
        if answer["text_tokens"] == wanted
        else "; its tokenizer splits text into other tokens than that of the source"
    )


def _in_onnx_runtime(
    consumer: Consumer, made: Converted, given: list[list[int]], of_source: list[Continuation] | None
) -> str:
    """Decodes with the first file in ONNX Runtime, where the consumer is not installed."""
    file, report = made.files[0]
    found = continuations_of_file(made.folder / file.path, report, given)
    if found is None or of_source is None:
        return ""
    tokens = [each.tokens for each in found]
    wrong = difference(tokens, of_source, [], file) if file.is_exact else ""
    if wrong:
        raise consumer.refuses(f"ONNX Runtime decodes other tokens than PyTorch: {wrong}")
    return f"ONNX Runtime: {agreement(tokens, of_source)}"
