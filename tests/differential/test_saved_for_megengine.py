"""Models saved with ``format="megengine"`` are loaded by MegEngine and compute what they did before.

Needs MegEngine: set TMCONVERT_MEGENGINE to a Python 3.8 that has it. TMCONVERT_SAVED may name another folder
of models with .npz files beside them; the models of tests/data are taken otherwise.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

import tmconvert

HERE = Path(__file__).parent
FOLDER = Path(os.environ.get("TMCONVERT_SAVED", HERE.parent / "data"))
PYTHON = os.environ.get("TMCONVERT_MEGENGINE")
# MegEngine computes sums in an order that depends on the alignment of its memory
TOLERANCE = 1e-4
LEFT_OUT = {
    "custom_user_function": "calls a function of a module that is not there",
    "op_sort_gather_onehot": "MegEngine runs two aranges at the same time, and mixes them up",
}


@pytest.mark.megengine
@pytest.mark.skipif(PYTHON is None, reason="needs MegEngine; set TMCONVERT_MEGENGINE to its Python")
def test_models_compute_the_same(tmp_path: Path) -> None:
    assert PYTHON is not None
    models = [path for path in sorted(FOLDER.glob("*.tm")) if _has_arrays(path)]
    for path in models:
        tmconvert.load(path).save(tmp_path / path.name, format="megengine")
        (tmp_path / path.name).with_suffix(".npz").write_bytes(path.with_suffix(".npz").read_bytes())
    subprocess.run(
        [PYTHON, str(HERE / "run_in_megengine.py"), str(tmp_path)], check=True, capture_output=True
    )
    assert {path.stem: found for path in models if (found := _difference(path, tmp_path))} == {}
    assert len(models) >= 40


def _has_arrays(path: Path) -> bool:
    return path.with_suffix(".npz").exists() and path.stem not in LEFT_OUT


def _difference(path: Path, folder: Path) -> str | None:
    error = folder / f"{path.stem}.error"
    if error.exists():
        return error.read_text()
    with np.load(path.with_suffix(".npz")) as golden, np.load(folder / f"{path.stem}.out.npz") as found:
        wanted = [golden[f"out{i}"] for i in range(sum(name.startswith("out") for name in golden.files))]
        made = [found[f"out{i}"] for i in range(len(found.files))]
    if [array.shape for array in made] != [array.shape for array in wanted]:
        return "the outputs have other shapes"
    for i, (ours, theirs) in enumerate(zip(made, wanted, strict=True)):
        distance = np.abs(ours.astype(np.float64) - theirs.astype(np.float64))
        if distance.size and distance.max() > TOLERANCE * max(float(np.abs(theirs).max()), 1e-3):
            return f"output {i} differs by {distance.max():.1e}"
    return None
