"""Types that the source recorded judge the adapters: nothing else does at conversion time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tmconvert
from tmconvert.errors import TmconvertError
from tmconvert.passes.normalize import normalize
from tmconvert.symbolics.registry import catalogue

DATA = Path(__file__).parents[1] / "data"
MODELS = sorted(path for path in DATA.rglob("*.tm") if "hostile" not in path.name)


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_computed_types_are_those_that_megengine_recorded(path: Path) -> None:
    try:
        normalized = normalize(tmconvert.load(path).flatten(), catalogue())
    except TmconvertError:
        pytest.skip("it cannot be normalized")
    assert normalized.disagreements == []


def test_a_disagreement_is_reported(tmp_path: Path) -> None:
    module = tmconvert.load(DATA / "op_s_elemwise.tm")
    assert module.graph is not None
    for expr in module.graph:
        for node in expr.outputs:
            if node.name == "sub_out":
                node.dtype = np.dtype(np.int32)  # type: ignore[attr-defined]
    report = tmconvert.to_onnx(module, tmp_path / "out.onnx")
    assert report.notes == [
        "types differ from what the model recorded, in 1 results; the first is sub_out in "
        f"{DATA / 'op_s_elemwise.tm'}:%8, in SElem: i32[1,4,8,8] recorded, f32[1,4,8,8] computed"
    ]
