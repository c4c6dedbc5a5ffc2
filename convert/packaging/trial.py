"""The check of a package: its consumer opens the files of each data type, and answers one question."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tmconvert.errors import VerificationError
from tmconvert.packaging.report import Check
from tmconvert.packaging.tasks import DECODER, ENCODER_DECODER, ONCE, PIPELINE, SENTENCES, VISION_LANGUAGE

if TYPE_CHECKING:
    from tmconvert.packaging.kind import Converted, Kind, Parts

# by task, the module whose ``trial`` makes the question and judges the answer
TRIALS = {
    **dict.fromkeys((DECODER, ENCODER_DECODER, VISION_LANGUAGE), "generation"),
    **dict.fromkeys((ONCE, PIPELINE), "vectors"),
    SENTENCES: "sentences",
}


class Wrong(Exception):
    """The answer is not what the model computes; the text states the difference."""


class Trial(NamedTuple):
    """A question, and what is made of answers.

    ``judge`` returns the result of an answer for the files of a data type, or raises Wrong. ``alone`` does
    that without the consumer, where it is not installed; an empty text means that nothing could be compared.
    """

    question: Mapping[str, Any]
    judge: Callable[[Parts, Mapping[str, Any]], str]
    alone: Callable[[Parts], str] = lambda parts: ""


def check_package(kind: Kind, made: Converted) -> list[Check]:
    """Opens the package in its consumer, by data type. Raises VerificationError TM4008."""
    checks: list[Check] = []
    trial: Trial = import_module(f"tmconvert.packaging.{kind.trial or TRIALS[made.task]}").trial(made)
    for parts in made.by_dtype():
        question = {"task": made.task, "dtype": parts.dtype, **trial.question}
        answer, note = answer_of(kind, made, question)
        try:
            if isinstance(answer, str):
                return [*checks, Check(kind.consumer.name, parts.name, trial.alone(parts), answer)]
            result = trial.judge(parts, answer) + note
        except Wrong as error:
            raise kind.consumer.refuses(f"{parts.name}: {error}") from None
        checks.append(Check(f"{kind.consumer.name} {answer['version']}", parts.name, result))
    return checks


def answer_of(kind: Kind, made: Converted, question: Mapping[str, Any]) -> tuple[dict[str, Any] | str, str]:
    """Runs the script of the consumer, again with a type that it knows where it refuses that of the source.

    Returns the answer, and a note where the type was changed. Raises VerificationError TM4008.
    """
    try:
        return kind.consumer.ask(question, made.folder, made.source.folder), ""
    except VerificationError as error:
        chosen = kind.generalize(made)
        if not chosen:
            raise
        with suppress(VerificationError):
            answer = kind.consumer.ask(question, made.folder, made.source.folder)
            reason = error.message.partition(": ")[2]
            return answer, f"; config.json has the general type {chosen}, since with its own: {reason:.120}"
        raise


def packed(array: np.ndarray) -> dict[str, Any]:
    data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")
    return {"dtype": str(array.dtype), "shape": list(array.shape), "data": data}


def unpacked(given: Mapping[str, Any]) -> np.ndarray:
    return np.frombuffer(base64.b64decode(given["data"]), np.float32).reshape(given["shape"])
