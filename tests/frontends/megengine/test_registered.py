"""Functions of the user's that MegEngine recorded by name, and what register_symbolic makes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tmconvert
from tmconvert.errors import UnsupportedError, UsageError
from tmconvert.verification.compare import check

DATA = Path(__file__).parents[2] / "data"


def test_a_function_that_was_wrapped(tmp_path: Path) -> None:
    model, truth = (
        tmconvert.load(DATA / "custom_user_function.tm"),
        np.load(DATA / "custom_user_function.npz"),
    )
    with tmconvert.temporary_symbolics():

        @tmconvert.register_symbolic("userlib_layers.my_act")
        def my_act(g: Any, x: Any, slope: float) -> Any:
            return g.call("aten::leaky_relu", x, slope)

        check([model(truth["in0"])], [truth["out0"]], ["y"])
        assert tmconvert.to_onnx(model, tmp_path / "model.onnx", opset=7).verified
        assert tmconvert.to_caffe(model, tmp_path / "model.prototxt").verified
    with pytest.raises(UnsupportedError, match=r"userlib_layers\.my_act is not supported"):
        tmconvert.to_onnx(model, tmp_path / "model.onnx")


def test_a_function_with_too_few_parameters_is_no_defect(tmp_path: Path) -> None:
    model = tmconvert.load(DATA / "custom_user_function.tm")
    with tmconvert.temporary_symbolics():

        @tmconvert.register_symbolic("userlib_layers.my_act")
        def my_act(g: Any, x: Any) -> Any:
            return g.call("aten::relu", x)

        with pytest.raises(UsageError, match=r"TM6021.*take \(x\), but the call has 2 arguments"):
            tmconvert.to_onnx(model, tmp_path / "model.onnx")
