"""Files of float16 with stored weights may differ as far as rounding to float16 moves the source."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from tmconvert.errors import VerificationError
from tmconvert.verification.compressed_weights import _Files

EXACT = np.array([1.0, -2.0, 4.0], np.float32)


class Runtime:
    def run(self, *_: object) -> list[np.ndarray]:
        return [EXACT]


def compared(off: float, spread: float, computes_in: str = "float16") -> list[Any]:
    files = _Files([(cast(Any, Runtime()), [Path("exact.onnx")])], ["y"], computes_in)
    actual = [EXACT + np.float32(4 * off)]
    return files.compared({}, actual, lambda: [4 * spread])


@pytest.mark.parametrize(("off", "spread"), [(0.009, 0.0), (0.02, 0.03)])
def test_what_rounding_explains_passes(off: float, spread: float) -> None:
    assert [each.ok for each in compared(off, spread)] == [True]


@pytest.mark.parametrize(
    ("off", "spread", "computes_in"),
    [(0.02, 0.0, "float16"), (0.02, 0.015, "float16"), (0.08, 0.5, "float16"), (0.009, 0.5, "")],
    ids=["no spread", "a smaller spread", "more than the most", "float32"],
)
def test_more_than_that_is_wrong(off: float, spread: float, computes_in: str) -> None:
    with pytest.raises(VerificationError, match="output y differs by") as caught:
        compared(off, spread, computes_in)
    assert caught.value.code == "TM4001"
