"""Random models of MegEngine, converted and compared.

Needs MegEngine: set TMCONVERT_MEGENGINE to a Python 3.8 that has it, and, for other programs than
those of every run, TMCONVERT_GRAPHS to a range of seeds such as 1000:1500. Seeds that found defects
are models in tests/data/differential, which are always run.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.differential.compared import arrays, difference, onnx_difference
from tests.opsets import newest_runnable
from tmconvert import load
from tmconvert.errors import UnsupportedError
from tmconvert.ir.tree import leaves

HERE = Path(__file__).parent
FOUND = sorted((HERE.parent / "data/differential").glob("*.tm"))
PYTHON = os.environ.get("TMCONVERT_MEGENGINE")
FIRST, END = map(int, os.environ.get("TMCONVERT_GRAPHS", "0:100").split(":"))
OLD = 9  # elements that a mask lets through need 9, boxes 10
OPSETS = (7, 9, 11, 13, 17, newest_runnable())


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("model", FOUND, ids=lambda path: path.stem)
def test_found(model: Path, opset: int, tmp_path: Path) -> None:
    assert onnx_difference(model, tmp_path, opset) is None


@pytest.mark.parametrize("model", FOUND, ids=lambda path: path.stem)
def test_interpreter(model: Path) -> None:
    assert difference(list(leaves(load(model)(*arrays(model, "in")))), arrays(model, "out")) is None


@pytest.mark.parametrize("opset", (10, 13, newest_runnable()))
def test_operators_on_boxes(opset: int, tmp_path: Path) -> None:
    assert onnx_difference(HERE.parent / "data/made/raw_boxes.tm", tmp_path, opset) is None


@pytest.mark.megengine
@pytest.mark.skipif(PYTHON is None, reason="needs MegEngine; set TMCONVERT_MEGENGINE to its Python")
def test_random_programs(tmp_path: Path) -> None:
    assert PYTHON is not None
    command = [PYTHON, str(HERE / "generator.py"), str(FIRST), str(END - FIRST), str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True)
    models = sorted(tmp_path.glob("*.tm"), key=lambda path: int(path.stem))
    assert len(models) > (END - FIRST) * 0.9
    assert {model.stem: found for model in models if (found := _checked(model, tmp_path))} == {}


def _checked(model: Path, folder: Path) -> str | None:
    """What is wrong with the conversion of one model; its seed chooses the opset."""
    opset = OPSETS[int(model.stem) % len(OPSETS)]
    try:
        try:
            return onnx_difference(model, folder, opset)
        except UnsupportedError as error:  # what an old opset cannot say, the one that the error names can
            needed = re.search(r"use --opset (\d+)", str(dict(error.notes).get("help")))
            if opset > OLD or needed is None:
                raise
            return onnx_difference(model, folder, int(needed[1]))
    except Exception as error:
        return f"opset {opset}: {error!r}"
