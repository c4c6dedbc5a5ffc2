"""Gradients that a model takes of its inputs are part of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import tmconvert
from tmconvert.errors import UnsupportedError

from .harness import check


class Forces(torch.nn.Module):
    def __init__(self, activation: Callable[[torch.Tensor], torch.Tensor] = torch.tanh) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(3, 8), torch.nn.Linear(8, 1)
        self.activation = activation

    def forward(self, x: torch.Tensor) -> Any:
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            energy = self.second(self.activation(self.first(x))).sum()
            (gradient,) = torch.autograd.grad(energy, x)
        return energy.detach(), -gradient


ACTIVATIONS = [
    torch.tanh,
    F.silu,
    F.gelu,
    F.relu,
    F.softplus,
    F.elu,
    torch.sigmoid,
    lambda x: x**3 / (1 + x**2),
]


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_forces_of_an_energy(activation: Any):
    torch.manual_seed(0)
    check(Forces(activation), torch.randn(5, 3), second=(torch.randn(5, 3),), tflite=activation is torch.tanh)


def _backward(x: torch.Tensor) -> torch.Tensor:
    with torch.enable_grad():
        x = x.clone().requires_grad_()
        (x.sin() * x).sum().backward()
    return x.grad


def _functional(x: torch.Tensor) -> torch.Tensor:
    return torch.autograd.functional.jacobian(lambda x: x.sin().sum(0), x)


def _twice(x: torch.Tensor) -> torch.Tensor:
    with torch.enable_grad():
        x = x.clone().requires_grad_()
        (first,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
        (second,) = torch.autograd.grad(first.sum(), x)
    return second + first.detach()


def _views(x: torch.Tensor) -> torch.Tensor:
    with torch.enable_grad():
        x = x.clone().requires_grad_()
        y = x.t()[:2].reshape(-1)
        z = torch.cat([y.exp(), (y * y)[1:]]).view(1, -1).squeeze(0)
        (gradient,) = torch.autograd.grad(z.softmax(0)[2] + z.mean(), x)
    return gradient


def _distances(x: torch.Tensor) -> torch.Tensor:
    with torch.enable_grad():
        x = x.clone().requires_grad_()
        difference = x[:, None] - x[None, :]
        squares = (difference**2).sum(-1) + 1
        (gradient,) = torch.autograd.grad((1 / squares.sqrt()).sum(), x)
    return gradient


def _normalized(x: torch.Tensor) -> torch.Tensor:
    with torch.enable_grad():
        x = x.clone().requires_grad_()
        y = F.layer_norm(x, (5, 3))
        (gradient,) = torch.autograd.grad((y * y.sigmoid()).sum(), x)
    return gradient


def _of_a_function(x: torch.Tensor) -> torch.Tensor:
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
            return 3 * ctx.saved_tensors[0] * gradient

    with torch.enable_grad():
        x = x.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(Square.apply(x).sum(), x)
    return gradient


def _cross_entropy(x: torch.Tensor) -> torch.Tensor:
    with torch.enable_grad():
        x = x.clone().requires_grad_()
        loss = F.cross_entropy(x, torch.tensor([0, 2, 1, 0, 1]))
        (gradient,) = torch.autograd.grad(loss, x)
    return gradient


@pytest.mark.parametrize(
    "function",
    [_backward, _functional, _twice, _views, _distances, _normalized, _of_a_function, _cross_entropy],
)
def test_gradients_are_recorded(function: Any):
    torch.manual_seed(0)
    check(function, torch.randn(5, 3), second=(torch.randn(5, 3),))


class Learns(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.enable_grad():
            (self.layer(x) ** 2).sum().backward()
        gradient = self.layer.weight.grad
        assert gradient is not None
        return x @ gradient.t()


@pytest.mark.parametrize("before", [None, torch.ones(2, 3)])
def test_gradients_of_parameters_are_put_back(before: torch.Tensor | None):
    model, x = Learns(), torch.randn(4, 3)
    model.layer.weight.grad = before
    traced = tmconvert.trace(model, x)
    assert model.layer.weight.grad is before and (before is None or before.tolist() == [[1, 1, 1]] * 2)
    other = torch.randn(4, 3)
    expected = model(other).detach().numpy()
    np.testing.assert_allclose(traced(other.numpy()), expected, rtol=1e-4, atol=1e-4)


def test_a_gradient_that_depends_on_no_input_is_a_constant():
    weight = torch.nn.Parameter(torch.tensor([1.0, 2.0]))

    def function(x: torch.Tensor) -> torch.Tensor:
        with torch.enable_grad():
            (gradient,) = torch.autograd.grad((weight**2).sum(), weight)
        return x * gradient

    check(function, torch.randn(3, 2))


LINEAR = torch.nn.Linear(4, 4)


def energy(x: torch.Tensor) -> torch.Tensor:
    return (torch.tanh(LINEAR(x)) * x).sum()


TRANSFORMS = {
    "grad": torch.func.grad(energy),
    "grad and value": torch.func.grad_and_value(energy),
    "gradients of samples": torch.vmap(torch.func.grad(energy)),
    "auxiliary": torch.func.grad(lambda x: (energy(x), x * 2), has_aux=True),
    "second derivative": torch.func.grad(lambda x: (torch.func.grad(energy)(x) ** 2).sum()),
    "vjp": lambda x: torch.func.vjp(lambda y: torch.tanh(LINEAR(y)), x)[1](x * 2)[0],
    "jvp": lambda x: torch.func.jvp(lambda y: torch.tanh(LINEAR(y)), (x,), (x * 2,)),
    "jacrev": lambda x: torch.func.jacrev(lambda y: torch.tanh(LINEAR(y)))(x[0]),
    "jacfwd": lambda x: torch.func.jacfwd(lambda y: torch.tanh(LINEAR(y)))(x[0]),
    "hessian": lambda x: torch.func.hessian(energy)(x[0]),
}


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")  # by forward mode
@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_of_functions(name: str) -> None:
    check(lambda x: TRANSFORMS[name](x * 1.5), torch.randn(3, 4))


def test_forward_mode_is_refused():
    def function(x: torch.Tensor) -> torch.Tensor:
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(x, torch.ones_like(x))
            return torch.autograd.forward_ad.unpack_dual(dual**2).tangent

    with pytest.raises(UnsupportedError, match="forward mode"):
        tmconvert.trace(function, torch.randn(3))


_IMAGE = torch.linspace(-1, 1, 6 * 4 * 3 * 3).sin().reshape(6, 4, 3, 3)
_BIAS = torch.linspace(-1, 1, 6)

BACKWARDS: list[tuple[tuple[int, ...], Callable[[torch.Tensor], torch.Tensor]]] = [
    ((2, 4, 7, 8), lambda x: F.conv2d(x, _IMAGE, _BIAS, stride=2, padding=1)),
    ((2, 4, 7, 8), lambda x: F.conv2d(x, _IMAGE[:, :2], stride=(3, 2), padding=(0, 2), groups=2)),
    ((2, 4, 9, 8), lambda x: F.conv2d(x, _IMAGE, dilation=2, padding=1)),
    ((2, 4, 9), lambda x: F.conv1d(x, _IMAGE[..., 0], _BIAS, stride=2)),
    ((1, 4, 5, 4, 5), lambda x: F.conv3d(x, _IMAGE[..., None].expand(6, 4, 3, 3, 2), _BIAS)),
    ((2, 6, 4, 3), lambda x: F.conv_transpose2d(x, _IMAGE, stride=2, padding=1, output_padding=1)),
    ((2, 6, 4, 3), lambda x: F.conv_transpose2d(x, _IMAGE, stride=2, dilation=2, groups=3)),
    ((2, 6, 5), lambda x: F.conv_transpose1d(x, _IMAGE[..., 0], stride=2)),
    ((2, 3, 8, 7), lambda x: F.avg_pool2d(x, 3, 2, 1)),
    ((2, 3, 8, 7), lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False)),
    ((2, 3, 8, 7), lambda x: F.avg_pool2d(x, (2, 3), divisor_override=5)),
    ((2, 3, 8), lambda x: F.avg_pool1d(x, 3, 2, 1)),
    ((1, 2, 4, 5, 4), lambda x: F.avg_pool3d(x, 2, padding=1)),
    ((2, 3, 8, 7), lambda x: F.adaptive_avg_pool2d(x, (3, 4))),
    ((2, 3, 8, 7), lambda x: F.adaptive_max_pool2d(x, (3, 4))),
    ((1, 2, 4, 5, 4), lambda x: F.max_pool3d(x, 2)),
    ((2, 3, 4, 5), lambda x: F.interpolate(x, scale_factor=2)),
    ((2, 3, 4, 5), lambda x: F.interpolate(x, size=(7, 3), mode="bilinear")),
    ((2, 3, 4, 5), lambda x: F.interpolate(x, size=(7, 9), mode="bilinear", align_corners=True)),
    ((2, 3, 4, 5), lambda x: F.interpolate(x, scale_factor=1.5, mode="bicubic")),
    ((2, 3, 5), lambda x: F.interpolate(x, size=8, mode="linear")),
    ((2, 3, 4, 5), lambda x: F.pad(x, (1, 2, 3, 0), mode="replicate")),
    ((3, 8), lambda x: F.softshrink(x, 0.2)),
    ((3, 8), lambda x: F.hardshrink(x, 0.2)),
    ((3, 8), F.logsigmoid),
    ((4, 3), lambda x: F.bilinear(x, x.sin(), _IMAGE[0, :, :, :3])),
    ((4, 3), lambda x: torch.cdist(x, _BIAS.reshape(2, 3))),
    ((4, 3), lambda x: torch.cdist(x, x)),
    ((4, 3), lambda x: torch.cdist(x, _BIAS.reshape(2, 3), p=1)),
    ((4, 3), lambda x: torch.cdist(x, _BIAS.reshape(2, 3), p=3)),
    ((4, 3), lambda x: torch.cdist(x, _BIAS.reshape(2, 3), p=float("inf"))),
    ((2, 2, 5, 4), lambda x: F.scaled_dot_product_attention(x, x.sin(), x.cos())),
    ((2, 2, 5, 4), lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True, scale=0.3)),
]


@pytest.mark.parametrize(("shape", "function"), BACKWARDS)
def test_backward_passes_of_layers(shape: tuple[int, ...], function: Any):
    def gradient_of(x: torch.Tensor) -> torch.Tensor:
        with torch.enable_grad():
            x = x.clone().requires_grad_()
            y = function(x)
            factors = torch.arange(y.numel()).reshape(y.shape) * 0.1
            (gradient,) = torch.autograd.grad((y * (y + factors).cos()).sum(), x)
        return gradient

    torch.manual_seed(0)
    check(gradient_of, torch.randn(shape), second=(torch.randn(shape),), tflite=False)


@pytest.mark.parametrize(
    ("stride", "padding", "dilation", "groups"), [(2, 1, 1, 2), (1, 0, 2, 1), (3, 2, 1, 3)]
)
@pytest.mark.parametrize("transposed", [False, True])
def test_gradients_of_weights(transposed: bool, stride: int, padding: int, dilation: int, groups: int):
    convolved = F.conv_transpose2d if transposed else F.conv2d
    images = torch.linspace(-1, 1, 2 * 6 * 8 * 7).cos().reshape(2, 6, 8, 7)
    options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    shape = (6, 12 // groups, 3, 2) if transposed else (12, 6 // groups, 3, 2)

    def gradients_of(weight: torch.Tensor, bias: torch.Tensor) -> Any:
        with torch.enable_grad():
            weight, bias = weight.clone().requires_grad_(), bias.clone().requires_grad_()
            y = convolved(images, weight, bias, **options)
            return torch.autograd.grad((y * y.sin()).sum(), (weight, bias))

    torch.manual_seed(0)
    other = (torch.randn(shape) / 4, torch.randn(12))
    check(gradients_of, torch.randn(shape) / 4, torch.randn(12), second=other, tflite=False)
