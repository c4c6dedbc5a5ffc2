"""Each op with open sizes is right at other sizes, or is refused by its name."""

from __future__ import annotations

import pytest

from tests.symbolics.ops.harness import NEWEST_OPSET
from tests.symbolics.ops.open_sizes import (
    NO_OTHER,
    OP,
    RIGHT,
    Opening,
    has_subgraphs,
    openings_of,
    outcome_of,
    variants_of,
)
from tests.symbolics.ops.samples import SAMPLES, Sample
from tests.test_catalogue import RULES
from tmconvert.conversion.support import op_support
from tmconvert.symbolics.registry import catalogue
from tmconvert.targets.options import DEFAULT_OPSET, DEFAULT_TFLITE_RUNTIME

DEFAULTS = {"onnx": DEFAULT_OPSET, "tflite": DEFAULT_TFLITE_RUNTIME}
STATIC = Opening(())
MOST_SAMPLES = 3


@pytest.mark.one_in(20)
@pytest.mark.parametrize(("name", "target"), [rule for rule in RULES if rule[1] in DEFAULTS], ids=str)
def test_open_sizes(name: str, target: str) -> None:
    """The batch and each axis of each input are open in turn, and together; of other samples together."""
    version = max(DEFAULTS[target], op_support(catalogue()[name], target, NEWEST_OPSET).since or 0)
    samples = [each for each in SAMPLES[name] if each.suits(target, version) and not has_subgraphs(each)]
    for number, sample in enumerate(samples[:MOST_SAMPLES]):
        for variant in variants_of(name, sample) if number == 0 else [sample]:
            openings = list(openings_of(variant))
            for opening in openings if number == 0 else openings[-1:]:
                try:
                    outcome = outcome_of(target, version, name, variant, opening)
                except Exception as error:
                    if _is_no_model(target, version, name, variant):
                        break
                    form = f"sample {number} {variant.attributes}"
                    raise AssertionError(f"{form} with {opening} open: {error!r}") from error
                assert outcome in (RIGHT, NO_OTHER) or OP.search(outcome), outcome


def _is_no_model(target: str, version: int, name: str, sample: Sample) -> bool:
    """Whether a sample is no model with sizes of its own, either, as a call that only passes emit."""
    try:
        return outcome_of(target, version, name, sample, STATIC) != RIGHT
    except Exception:
        return True
