"""The text of generated code."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

import tmconvert
from tests.models import corpus
from tmconvert.errors import UnsupportedError, UsageError
from tmconvert.ir import InternalGraph
from tmconvert.torch_code.literals import number_text
from tmconvert.torch_code.names import MODULE_NAMES, Names, attribute_name, identifier

torch = pytest.importorskip("torch")

DIGITS = Path(__file__).parents[2] / "samples" / "digits.tm"
HOSTILE = ['"); import os; os.system("touch hit', "'''", "a\nimport os #", "class", "__init__", "\u202e", "7"]


def traced(module: torch.nn.Module, *inputs: torch.Tensor, **options: object) -> tmconvert.ir.TracedModule:
    return tmconvert.trace(module.eval(), *inputs, **options)


def test_readable_calls() -> None:
    code = tmconvert.load(DIGITS).code
    for line in (
        "self.depthwise.conv = nn.Conv2d(24, 24, (3, 3), padding=(1, 1), groups=24, bias=False)",
        "bn_out = self.bn(conv_out)",
        "add_out = bn_out + x",
        "stem_out = self.stem(x)",
        "max_pool_out = F.max_pool2d(residual_out, (2, 2), (2, 2))",
        "flatten_out = avg_pool_out.reshape(avg_pool_out.shape[0], 192)",
    ):
        assert f"        {line}\n" in code
    assert code == tmconvert.load(DIGITS).code


def test_sizes_are_expressions() -> None:
    class Net(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            pooled = torch.nn.functional.max_pool2d(x, 2)
            return pooled.flatten(2).transpose(1, 2).reshape(-1, 6) * x.shape[2]

    x = torch.rand(2, 3, 8, 8)
    sizes = {"x": {0: "batch", 2: "height"}}
    net = traced(Net(), x, dynamic_shapes=sizes).to_torch()
    for shape in ((4, 3, 6, 8), (1, 3, 10, 8)):
        other = torch.rand(shape)
        assert torch.equal(net(other), Net()(other))


def test_shared_modules_and_weights() -> None:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = torch.nn.Embedding(7, 4)
            self.head = torch.nn.Linear(4, 7, bias=False)
            self.head.weight = self.embed.weight
            self.layers = torch.nn.ModuleList([torch.nn.Linear(4, 4), torch.nn.ReLU()] * 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.embed(x)
            for layer in self.layers:
                y = layer(y)
            return self.head(y)

    source, x = Net(), torch.tensor([[1, 6]])
    net = traced(source, x).to_torch()
    assert torch.allclose(net(x), source(x))
    assert net.head.weight is net.embed.weight
    assert set(net.state_dict()) == set(source.state_dict())
    net.load_state_dict(source.state_dict())


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_data(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any text may be the name of a parameter, a module or an input; none becomes code."""

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            own = "init" if name == "__init__" else name.replace(".", " ")
            self.add_module(own, torch.nn.Linear(2, 2))
            self.register_parameter(f"{own} w", torch.nn.Parameter(torch.ones(2)))

        def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
            (child,) = self.children()
            (weight,) = self.parameters(recurse=False)
            return {name: child(x) * weight}

    monkeypatch.chdir(tmp_path)
    module = traced(Net(), torch.ones(1, 2))
    graph = module.graph
    assert graph is not None
    for node in (*graph.inputs[1:], *(node for expr in graph for node in expr.outputs)):
        node.expr.graph.rename(node, graph.free_name(name))
    graph.inputs[1].expr.name = name
    ast.parse(module.code)
    net = module.to_torch()
    assert list(net(torch.ones(1, 2))) == [name]
    assert not (tmp_path / "hit").exists()
    module.to_folder(tmp_path / "net", "Net")
    ast.parse((tmp_path / "net" / "module.py").read_text(encoding="utf-8"))
    assert "import os" not in [line.strip() for line in module.code.splitlines()]


def test_identifiers() -> None:
    assert [identifier(name) for name in ("a.b", "3x", "class", "", "é", "_fft")] == [
        "a_b",
        "x3x",
        "class_",
        "x",
        "x",
        "fft",
    ]
    names = Names()
    assert [names.new("x"), names.new("x"), names.new("torch")] == ["x", "x_1", "torch_1"]
    assert attribute_name("train", ()) == "train_"
    assert attribute_name("a", {"a"}) == "a_"


def test_names_of_modules_are_those_of_this_pytorch() -> None:
    assert {name for name in dir(torch.nn.Module()) if not name.startswith("_")} <= MODULE_NAMES


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.float32(0.1), "0.1"),
        (np.float32(1e-12), "1e-12"),
        (np.finfo(np.float32).min, "-3.4028234663852886e+38"),
        (np.float32(np.inf), 'float("inf")'),
        (2.0, "2.0"),
        (np.int64(3), "3"),
        (np.bool_(True), "True"),
    ],
)
def test_numbers(value: object, text: str) -> None:
    assert number_text(value) == text


def test_what_has_no_form_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="custom_user_function"):
        tmconvert.load(corpus.model("custom_user_function")).to_torch()
    with pytest.raises(UsageError, match="TM6004"):
        InternalGraph("empty").python_code()


def test_code_of_a_graph() -> None:
    module = tmconvert.load(DIGITS)
    assert module.graph is not None
    assert "class DigitsNet(nn.Module):" in module.graph.python_code()
