"""A file for a version that the installed runtime does not know yet is written, and said to be unverified."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

import tmconvert
from tmconvert.errors import VerificationError
from tmconvert.targets.onnx.target import newest_opset

DATA = Path(__file__).parents[1] / "data"


def test_newest_opset_is_written(tmp_path: Path) -> None:
    opset = newest_opset()
    report = tmconvert.to_onnx(DATA / "op_s_conv_bn_relu.tm", tmp_path / "out.onnx", opset=opset)
    written = onnx.load(tmp_path / "out.onnx")
    assert written.opset_import[0].version == opset
    if not report.verified:
        assert "is too old for this version of ONNX" in report.notes[0]
        with pytest.raises(VerificationError, match="TM4004"):
            tmconvert.verify(DATA / "op_s_conv_bn_relu.tm", tmp_path / "out.onnx")
