"""Vectors of texts, in a consumer and in PyTorch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tmconvert.packaging.kind import Converted, Parts
from tmconvert.packaging.trial import Trial, unpacked
from tmconvert.packaging.vectors import difference_of_arrays, refuse_difference

TEXTS = ("A small text.", "Another one, which has more words than the first.")


def trial(made: Converted) -> Trial:
    """Compares the vectors of texts with those of PyTorch for the tokens that the consumer made of them."""
    original, report = made.modules[""].original, made.files[0][1]

    def judge(parts: Parts, answer: Mapping[str, Any]) -> str:
        features = {name: np.array(each, np.int64) for name, each in answer["features"].items()}
        outputs = original and original.run([features[each["name"]] for each in report.inputs])
        if not outputs:
            return "not compared with PyTorch, which cannot be run again"
        error = difference_of_arrays({"": unpacked(answer["vectors"])}, {"": outputs[1]})
        refuse_difference(parts, "PyTorch", error)
        return f"PyTorch's vectors of {len(TEXTS)} texts to {error:.1e}"

    return Trial({"texts": list(TEXTS)}, judge)
