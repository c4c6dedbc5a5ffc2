"""What callers may write for example inputs and open sizes, and where a message says that a call is."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tmconvert
from tmconvert.errors import UnsupportedError, UsageError
from tmconvert.frontends.torch.request import open_sizes


class Double(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


class Branch(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x if x.sum() > 0 else -x


class Spectrum(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.eigvals(x).abs()


SPECTRUM_LINE = Spectrum.forward.__code__.co_firstlineno + 1
BRANCH_LINE = Branch.forward.__code__.co_firstlineno + 1


@pytest.mark.parametrize("given", [torch.ones(2, 3), np.ones((2, 3), np.float32), [torch.ones(2, 3)]])
def test_one_example_input(given: Any, tmp_path: Path) -> None:
    report = tmconvert.to_onnx(Double(), tmp_path / "o.onnx", example_inputs=given)
    assert report.inputs[0]["shape"] == [2, 3]


@pytest.mark.parametrize(("name", "given"), [("example_inputs", 3), ("example_kwargs", [1])])
def test_inputs_of_another_kind(name: str, given: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"{name} must be .*, got {type(given).__name__}"):
        tmconvert.to_onnx(Double(), tmp_path / "o.onnx", **{name: given})


@pytest.mark.parametrize(
    ("axes", "wanted"),
    [
        ({0: "n"}, {0: "n"}),
        ({"0": "n", -1: None}, {0: "n"}),
        (["n"], {0: "n"}),
        (("n", None, 3), {0: "n"}),
        ({0: torch.export.Dim("n"), 1: torch.export.Dim.STATIC}, {0: "n"}),
        ([torch.export.Dim.AUTO, torch.export.Dim.DYNAMIC], {0: "x_0", 1: "x_1"}),
    ],
)
def test_spellings_of_open_sizes(axes: Any, wanted: dict[int, str]) -> None:
    assert open_sizes({"x": axes, "y": None}) == {"x": wanted}
    traced = tmconvert.trace(Double(), torch.ones(3, 4), dynamic_shapes={"x": axes})
    assert traced.dynamic_shapes == {"x": wanted}


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        (3, "dynamic_shapes must be a dict by input, or a tuple or list by argument, got int"),
        ({"x": "n"}, r"dynamic_shapes\['x'\] must be a dict by axis, or a list, got str"),
        ({"x": {"height": "n"}}, "must be a number, got str"),
        ({"x": {0: 1.5}}, "1.5 is not a valid name for a dimension"),
        ({"x": {0: 2 * torch.export.Dim("n")}}, r"2\*n is 3 as axis 0 of x"),
    ],
)
def test_no_open_sizes(sizes: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said) as error:
        tmconvert.trace(Double(), torch.ones(3, 4), dynamic_shapes=sizes)
    assert error.value.code == "TM6014"


@pytest.mark.slow
@pytest.mark.parametrize("how", ["-", "-c"])
def test_code_without_a_file(how: str) -> None:
    program = textwrap.dedent("""
        import torch, tmconvert
        from tmconvert.errors import UnsupportedError

        class Branch(torch.nn.Module):
            def forward(self, x):
                return x * round(x.sum().item())

        try:
            tmconvert.trace(Branch(), torch.ones(2))
        except UnsupportedError as error:
            print(error.source)
    """)
    arguments, given = ([how, program], None) if how == "-c" else ([how], program)
    done = subprocess.run([sys.executable, *arguments], input=given, capture_output=True, text=True)
    assert done.stdout == ("<string>:7\n" if how == "-c" else "<stdin>:7\n"), done.stderr


def test_the_line_of_a_number() -> None:
    with pytest.raises(UnsupportedError) as error:
        tmconvert.trace(lambda x: x * round(x.sum().item()), torch.ones(2))
    assert error.value.excerpt == "tmconvert.trace(lambda x: x * round(x.sum().item()), torch.ones(2))"


@pytest.mark.filterwarnings(
    "ignore:.*TorchScript:DeprecationWarning", "ignore:.*torch.jit:DeprecationWarning"
)
def test_the_line_in_a_script(tmp_path: Path) -> None:
    graph = tmconvert.trace(torch.jit.script(Branch()), torch.ones(2)).graph
    (call,) = [expr for expr in graph if "torch.cond" in repr(expr)]
    assert str(call.source) == f"{__file__}:{BRANCH_LINE}"
    with pytest.raises(UnsupportedError) as error:
        tmconvert.to_onnx(torch.jit.script(Spectrum()), tmp_path / "o.onnx", example_inputs=torch.ones(2, 2))
    assert str(error.value.source) == f"{__file__}:{SPECTRUM_LINE}, in RecursiveScriptModule"


def test_the_line_in_a_graph_module(tmp_path: Path) -> None:
    for _ in range(2):  # torch counts such modules, and their number may not come into a file
        with pytest.raises(UnsupportedError) as error:
            module = torch.fx.symbolic_trace(Spectrum())
            tmconvert.to_onnx(module, tmp_path / "o.onnx", example_inputs=torch.ones(2, 2))
        assert str(error.value.source).startswith("<eval_with_key>:")


def test_a_module_without_a_line(tmp_path: Path) -> None:
    module = torch.nn.Sequential(torch.nn.Dropout(), torch.nn.RReLU())
    with pytest.raises(UnsupportedError) as error:
        tmconvert.to_tflite(
            module, tmp_path / "o.tflite", example_inputs=torch.ones(1, 3, 4, 4), training=True
        )
    assert "\n  --> in Dropout (0)\n" in error.value.render()
    assert "torch.nn.functional.rrelu (1 in 1): " in error.value.render()


def test_no_place_at_all() -> None:
    error = UnsupportedError("TM2011", "no", source=tmconvert.trace(Double(), torch.ones(2)).graph and None)
    assert "-->" not in error.render()
