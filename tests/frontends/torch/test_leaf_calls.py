"""Calls that tracing records whole: wrapped functions, leaf modules, TracedModules inside of modules."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import tmconvert
from tmconvert.errors import UnsupportedError, UsageError
from tmconvert.frontends.torch import customization

DATA = Path(__file__).parents[2] / "data"
HERE = __name__


@tmconvert.wrap
def swish(x: torch.Tensor, beta: float = 1.0) -> torch.Tensor:
    return x * torch.sigmoid(beta * x)


@tmconvert.wrap
def halves(pair: dict[str, torch.Tensor]) -> tuple[torch.Tensor, dict[str, torch.Tensor], str]:
    return pair["a"] / 2, {"b": pair["b"] / 2}, "both"


@tmconvert.wrap
def unchanged(x: torch.Tensor) -> torch.Tensor:
    return x


@tmconvert.wrap
def doubled_in_place(x: torch.Tensor) -> torch.Tensor:
    return x.mul_(2)


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([1.0, -2.0, 3.0, 4.0]))
        self.factor = 2.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.weight * self.factor


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scaled = Scaled()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return swish(self.linear(self.scaled(x)), beta=2.0)


X = torch.linspace(-2, 2, 8).reshape(2, 4)


def texts(model: Any) -> list[str]:
    return [repr(expr).partition("\t")[2] for expr in model.graph]


def register_swish() -> None:
    @tmconvert.register_symbolic(f"{HERE}.swish")
    def meaning(g: Any, x: Any, beta: float = 1.0) -> Any:
        scaled = g.call("aten::mul", x, g.constant(np.float32(beta)))
        return g.call("aten::mul", x, g.call("aten::sigmoid", scaled))


def register_scaled() -> None:
    @tmconvert.register_symbolic(f"{HERE}.Scaled")
    def meaning(g: Any, module: Any, x: Any) -> Any:
        weight = module.tensors["weight"] * np.float32(module.attributes["factor"])
        return g.call("aten::mul", x, g.constant(weight))


def test_a_wrapped_function_is_one_call(tmp_path: Path) -> None:
    torch.manual_seed(0)
    net = Net()
    model = tmconvert.trace(net, X)
    (call,) = [expr for expr in model.graph if "swish" in repr(expr)]
    assert call.function == f"{HERE}.swish"
    assert texts(model)[-1] == "swish_out = test_leaf_calls.swish(linear_out, beta=2.0)"
    assert call.output.shape == (2, 4)
    with pytest.raises(UnsupportedError, match=r"swish is not supported") as caught:
        tmconvert.to_onnx(model, tmp_path / "model.onnx")
    assert f"register_symbolic('{HERE}.swish')" in str(caught.value)
    with tmconvert.temporary_symbolics():
        register_swish()
        np.testing.assert_allclose(model(X.numpy()), net(X).detach(), rtol=1e-5, atol=1e-6)
        assert tmconvert.to_onnx(model, tmp_path / "model.onnx").verified
        assert tmconvert.to_tflite(model, tmp_path / "model.tflite").verified


def test_a_wrapped_function_runs_as_it_is_outside_of_tracing() -> None:
    x = torch.ones(2)
    assert unchanged(x) is x
    assert swish.__name__ == "swish"
    assert tmconvert.wrap(swish) is swish


def test_nested_arguments_and_results_of_a_wrapped_function() -> None:
    def net(x: torch.Tensor) -> torch.Tensor:
        first, others, text = halves({"a": x, "b": x + 1})
        assert text == "both"
        return first + others["b"]

    model = tmconvert.trace(net, X)
    (call,) = [expr for expr in model.graph if "halves(" in repr(expr)]
    assert [node.shape for node in call.outputs] == [(2, 4), (2, 4)]
    assert model.example.outputs[0].shape == (2, 4)


def test_a_result_that_is_an_argument_is_a_call_as_well() -> None:
    model = tmconvert.trace(lambda x: unchanged(x) + 1, X)
    assert texts(model)[0] == "unchanged_out = test_leaf_calls.unchanged(x, )"


def test_writing_to_an_argument_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"TM2021.*doubled_in_place writes to one of its arguments"):
        tmconvert.trace(lambda x: doubled_in_place(x + 1), X)


@pytest.mark.parametrize("leaf", [Scaled, "scaled", "module"])
def test_leaf_modules_are_one_call(leaf: Any, tmp_path: Path) -> None:
    torch.manual_seed(0)
    net = Net()
    leaf = net.scaled if leaf == "module" else leaf
    model = tmconvert.trace(net, X, leaf_modules=[leaf])
    assert texts(model)[:2] == ['scaled = getattr(self, "scaled") -> (Scaled)', "scaled_out = scaled(x, )"]
    assert model.get("scaled").graph is None
    assert list(model.get("scaled").tensors) == ["weight"]
    with tmconvert.temporary_symbolics():
        register_swish()
        register_scaled()
        np.testing.assert_allclose(model(X.numpy()), net(X).detach(), rtol=1e-5, atol=1e-6)
        assert tmconvert.to_onnx(model, tmp_path / "model.onnx").verified
        model.save(tmp_path / "model.tm")
        again = tmconvert.load(tmp_path / "model.tm")
        np.testing.assert_array_equal(again(X.numpy()), model(X.numpy()))


def test_registered_classes_are_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(customization, "_builtin_classes", [])
    assert tmconvert.register_as_builtin(Scaled) is Scaled
    model = tmconvert.trace(Net(), X)
    assert model.get("scaled").graph is None
    assert model.get("linear").graph is not None


def test_a_tracer_chooses_leaves() -> None:
    class Tracer(tmconvert.Tracer):
        def is_leaf_module(self, m: Any, qualname: str) -> bool:
            return qualname == "linear" or super().is_leaf_module(m, qualname)

    model = Tracer([Scaled]).trace(Net(), X)
    assert [expr for expr in texts(model) if "getattr" in expr] == [
        'scaled = getattr(self, "scaled") -> (Scaled)',
        'linear = getattr(self, "linear") -> (Linear)',
    ]
    assert model.get("linear").graph is None


def test_symbolics_that_nothing_heeds_are_noted() -> None:
    with tmconvert.temporary_symbolics():
        register_scaled()

        @tmconvert.register_symbolic(f"{HERE}.register_scaled")
        def other(g: Any, x: Any) -> Any:
            return x

        notes = tmconvert.trace(Net(), X).notes
        assert any(f"register_symbolic('{HERE}.Scaled') has no effect" in note for note in notes)
        assert any("decorate it with tmconvert.wrap" in note for note in notes)
        assert not any("Scaled" in note for note in tmconvert.trace(Net(), X, leaf_modules=[Scaled]).notes)


class Boxes:
    def __init__(self, tensor: torch.Tensor, name: str) -> None:
        self.tensor, self.name = tensor, name


def net_of_boxes(boxes: Boxes) -> Boxes:
    return Boxes(boxes.tensor * 2, boxes.name)


def test_registered_types_are_opened() -> None:
    with pytest.raises(UnsupportedError, match=r"(?s)TM2015.*register_supported_type"):
        tmconvert.trace(net_of_boxes, Boxes(X, "a"))
    tmconvert.register_supported_type(
        Boxes, lambda boxes: ((boxes.tensor,), boxes.name), lambda parts, name: Boxes(parts[0], name)
    )
    model = tmconvert.trace(net_of_boxes, Boxes(X, "a"))
    assert [node.name for node in model.graph.inputs] == ["self", "boxes_0"]
    np.testing.assert_array_equal(model.example.outputs[0], (X * 2).numpy())
    with pytest.raises(UsageError, match="the class Boxes is registered already"):
        tmconvert.register_supported_type(Boxes, lambda boxes: ([], None), lambda parts, _: None)


def test_what_cannot_be_registered() -> None:
    for call in (
        lambda: tmconvert.wrap(3),  # type: ignore[arg-type,type-var]
        lambda: tmconvert.wrap(Boxes),
        lambda: tmconvert.register_as_builtin(swish),  # type: ignore[arg-type]
        lambda: tmconvert.register_supported_type(Scaled, None, None),  # type: ignore[arg-type]
        lambda: tmconvert.trace(Net(), X, leaf_modules="scaled"),
    ):
        with pytest.raises(UsageError, match=r"TM6021|TM6009"):
            call()


class Around(nn.Module):
    """Holds a model that was traced before, and calls it with tensors."""

    def __init__(self, inner: tmconvert.load) -> None:  # type: ignore[valid-type]
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.inner(x)) + 1


def test_a_traced_module_inside_of_a_module(tmp_path: Path) -> None:
    inner = tmconvert.trace(nn.Sequential(nn.Linear(4, 3), nn.Tanh()), X)
    model = tmconvert.trace(Around(inner), X)
    assert texts(model)[1] == "inner_out = inner(x, )"
    assert model.get("inner") is inner
    expected = np.maximum(inner(X.numpy()), 0) + 1
    np.testing.assert_allclose(model(X.numpy()), expected, rtol=1e-6)
    assert tmconvert.to_onnx(model, tmp_path / "model.onnx").verified


def test_a_module_of_megengine_inside_of_a_module() -> None:
    inner = tmconvert.load(DATA / "op_s_conv_bn_relu.tm")
    with np.load(DATA / "op_s_conv_bn_relu.npz") as arrays:
        x, expected = arrays["in0"], arrays["out0"]
    model = tmconvert.trace(Around(inner), torch.from_numpy(x))
    np.testing.assert_allclose(model(x), np.maximum(expected, 0) + 1, rtol=1e-5, atol=1e-6)


def test_a_traced_module_is_not_traced_again() -> None:
    with pytest.raises(UsageError, match="it is traced already"):
        tmconvert.trace(tmconvert.trace(nn.ReLU(), X), X)


def test_wrapping_does_not_import_torch() -> None:
    import subprocess

    code = "import sys, tmconvert; tmconvert.wrap(len and (lambda: 1)); print('torch' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"


# ---- leaves of torch.nn

IMAGES = torch.randn(2, 3, 8, 8)
NETS: dict[str, tuple[list[torch.nn.Module], torch.Tensor]] = {
    "images": (
        [
            *(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.ConvTranspose2d(4, 2, 2, 2), nn.GELU(), nn.AvgPool2d(2), nn.AdaptiveAvgPool2d(2)),
            *(nn.Dropout(), nn.Flatten(), nn.Linear(8, 5), nn.LayerNorm(5), nn.Softmax(-1)),
        ],
        IMAGES,
    ),
    "rows": (
        [
            *(nn.Embedding(10, 6), nn.Linear(6, 6, bias=False), nn.GELU("tanh"), nn.Identity()),
            *(nn.LeakyReLU(0.2), nn.ELU(), nn.PReLU(), nn.Softplus(), nn.SiLU(), nn.Hardswish()),
            *(nn.ReLU6(), nn.Mish(), nn.LogSoftmax(1)),
        ],
        torch.randint(0, 10, (2, 3)),
    ),
    "signals": (
        [
            *(nn.Conv1d(3, 4, 3, padding="same"), nn.GroupNorm(2, 4), nn.BatchNorm1d(4), nn.MaxPool1d(2)),
            *(nn.Hardsigmoid(), nn.Softsign(), nn.Tanh(), nn.Sigmoid(), nn.AdaptiveAvgPool1d(1)),
        ],
        torch.randn(2, 3, 8),
    ),
}


@pytest.mark.parametrize("name", NETS)
def test_leaves_of_torch_run_and_convert(name: str, tmp_path: Path) -> None:
    layers, x = NETS[name]
    net = nn.Sequential(*layers).eval()
    traced = tmconvert.trace(net, x, leaf_modules=[type(layer) for layer in layers])
    assert all(traced.get(str(place)).graph is None for place in range(len(layers)))
    with torch.no_grad():
        wanted = net(x).numpy()
    np.testing.assert_allclose(traced(x.numpy()), wanted, atol=1e-5)
    np.testing.assert_allclose(traced.to_torch()(x).detach().numpy(), wanted, atol=1e-5)
    assert tmconvert.to_onnx(traced, tmp_path / "m.onnx").verified
    assert tmconvert.to_tflite(traced, tmp_path / "m.tflite").verified


def test_leaves_without_an_adapter_name_the_symbolic(tmp_path: Path) -> None:
    traced = tmconvert.trace(nn.Sequential(nn.LSTM(3, 4)), torch.randn(5, 3), leaf_modules=[nn.LSTM])
    with pytest.raises(UnsupportedError) as error:
        tmconvert.to_onnx(traced, tmp_path / "m.onnx")
    assert "register_symbolic('torch.nn.modules.rnn.LSTM')" in error.value.render()
    padded = tmconvert.trace(
        nn.Sequential(nn.Conv2d(3, 4, 3, padding=1, padding_mode="reflect")), IMAGES, leaf_modules=[nn.Conv2d]
    )
    with pytest.raises(UnsupportedError, match="padding_mode='reflect'"):
        tmconvert.to_onnx(padded, tmp_path / "m.onnx")


def test_functions_of_autograd_are_no_leaves() -> None:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 2

    for register in (
        lambda: tmconvert.register_as_builtin(Twice),
        lambda: tmconvert.trace(lambda x: Twice.apply(x), IMAGES, leaf_modules=[Twice]),
    ):
        with pytest.raises(UsageError, match="are not modules"):
            register()
