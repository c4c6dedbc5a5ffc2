"""Generated tokens: of decoders after prompts, and of models with an encoder for its inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from tmconvert.packaging.continuations import (
    STEPS,
    Continuation,
    Prompt,
    agreement,
    choices_of_source,
    continuations_of_files,
    difference,
)
from tmconvert.packaging.kind import Converted, Parts
from tmconvert.packaging.tasks import DECODER, VISION_LANGUAGE
from tmconvert.packaging.trial import Trial, Wrong, packed

LENGTHS = (1, 5, 12)  # of texts, in tokens
TEXT = "The quick brown fox, 123."
Decoded = Callable[[], list[Continuation] | None]
_TOKENIZER = "tokenizer.json"


def trial(made: Converted) -> Trial:
    """Decodes greedily. Files in float32 must give the tokens of PyTorch; one that rounds weights or floats,
    those that ONNX Runtime decodes with the file.
    """
    given = prompts(made)
    source = made.source
    padding = source.known_token(source.setting("pad_token_id"))
    ends = source.known_ends or [padding or 0]  # which onnxruntime-genai takes instead

    def compared(
        parts: Parts, found: list[list[int]], of_source: list[Continuation] | None, of_files: Decoded
    ) -> str:
        reference = of_source if of_source and parts.is_exact else of_files()
        wrong = difference(found, reference, ends, is_exact=parts.is_exact) if reference else ""
        if wrong:
            name = "PyTorch" if reference is of_source else "ONNX Runtime"
            raise Wrong(f"it decodes other tokens than {name}: {wrong}")
        if of_source:
            return agreement(found, of_source)
        return f"not compared with PyTorch{', the tokens are those of ONNX Runtime' if reference else ''}"

    def judge(parts: Parts, answer: Mapping[str, Any]) -> str:
        found = answer["tokens"]
        of_files = partial(continuations_of_files, made.folder, parts, given)
        text = compared(parts, found, choices_of_source(made, given, found), of_files)
        return text + _text_note(made, answer)

    def alone(parts: Parts) -> str:
        of_files = continuations_of_files(made.folder, parts, given)
        found = [each.tokens for each in of_files or ()]
        of_source = choices_of_source(made, given, found) if found else None
        return f"ONNX Runtime: {compared(parts, found, of_source, lambda: None)}" if of_source else ""

    question = {
        "prompts": [each.tokens for each in given],
        "inputs": [{name: packed(array) for name, array in each.encoder.items()} for each in given],
        "image_token": given[0].image_token,
        "steps": STEPS,
        "ends": source.ends,
        "padding": source.setting("pad_token_id"),
        "text": TEXT if (source.folder / _TOKENIZER).is_file() else "",
    }
    return Trial(question, judge, alone)


def prompts(made: Converted) -> list[Prompt]:
    """Returns prompts of random tokens, after which ``STEPS`` more fit into the context.

    An encoder-decoder begins with its first token, and its encoder has random inputs. The prompt of a model
    of text and images has a random image after the first of its tokens.
    """
    random = np.random.default_rng(0)
    vocabulary = int(made.source.text.get("vocab_size") or 4)
    lengths = [min(length, max(1, made.source.context - STEPS)) for length in LENGTHS]

    def tokens(length: int, count: int = vocabulary) -> np.ndarray:
        return random.integers(min(3, count - 1), count, (1, length))

    if made.task == DECODER:
        return [Prompt(tokens(length)[0].tolist(), {}) for length in lengths]
    if made.task == VISION_LANGUAGE:
        return [_with_image(made, tokens(length)[0].tolist(), random) for length in lengths]
    first = made.source.setting("decoder_start_token_id")
    start = [int(made.source.setting("bos_token_id") or 0) if first is None else int(first)]
    joined = made.source.configuration.get("encoder")  # a model with a vocabulary of its own
    count = int(joined.get("vocab_size") or vocabulary) if isinstance(joined, dict) else vocabulary
    return [Prompt(start, dict(_encoder_inputs(made, tokens(length, count), random))) for length in lengths]


def _with_image(made: Converted, tokens: list[int], random: np.random.Generator) -> Prompt:
    example, inputs = made.modules["vision"].example, next(made.by_dtype()).files["vision"][1].inputs
    assert example is not None and example.outputs is not None
    image_token = made.source.image_token
    tokens = [each for each in tokens if each != image_token] or [0]
    images, pixels = 1, {}
    for each, array in zip(inputs, example.inputs, strict=True):
        shape = [size if isinstance(size, int) else 1 for size in each["shape"]]
        images = array.size // int(np.prod(shape))
        is_float = array.dtype.kind == "f"
        made_up = random.standard_normal(shape) if is_float else np.ones(shape)
        pixels[each["name"]] = made_up.astype(each["dtype"])
    features = len(example.outputs[0]) // images
    return Prompt([tokens[0], *[image_token] * features, *tokens[1:]], pixels, image_token)


def _encoder_inputs(
    made: Converted, tokens: np.ndarray, random: np.random.Generator
) -> Iterator[tuple[str, np.ndarray]]:
    example = made.modules["encoder"].example
    assert example is not None
    inputs = next(made.by_dtype()).files["encoder"][1].inputs
    for each, array in zip(inputs, example.inputs, strict=True):
        if array.dtype.kind == "f":
            yield each["name"], random.standard_normal((1, *array.shape[1:])).astype(array.dtype)
        else:
            yield each["name"], tokens if each["name"] == "input_ids" else np.ones_like(tokens)


def _text_note(made: Converted, answer: Mapping[str, Any]) -> str:
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
