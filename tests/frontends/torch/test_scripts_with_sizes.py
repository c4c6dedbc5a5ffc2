"""Scripts and modules of torch.jit.trace with open sizes, in ONNX Runtime, compared with PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import tmconvert
from tests.frontends.torch.harness import arrays, run_onnx_on_each

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*torch.jit.*:DeprecationWarning", "ignore::torch.jit.TracerWarning"
)
SIZES = ((2, 6), (1, 4), (3, 9), (5, 16), (4, 5))  # the first is the example's
WIDTH = 4


def drawn(batch: int, length: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(batch * 100 + length)
    return torch.rand(batch, length, WIDTH, generator=generator) + 0.1


def agrees(
    function: Callable[..., Any], folder: Path, axes: dict[int, str] | None = None, sizes: Any = SIZES
) -> tmconvert.TracedModule:
    """The file leaves the named axes open, and is what PyTorch is at all sizes."""
    axes = {0: "batch", 1: "length"} if axes is None else axes
    path = folder / "model.onnx"
    traced = tmconvert.trace(function, drawn(*SIZES[0]), dynamic_shapes={"x": axes})
    report = tmconvert.to_onnx(traced, path, accept_range=True)
    shape = report.inputs[0]["shape"]
    assert {axis: shape[axis] for axis in axes} == axes
    given = [
        drawn(
            *(
                each if axis in axes else first
                for axis, (each, first) in enumerate(zip(size, SIZES[0], strict=True))
            )
        )
        for size in sizes
    ]
    for x, found in zip(given, run_onnx_on_each(path, [[x.numpy()] for x in given]), strict=True):
        for result, wanted in zip(found, arrays(function(x)), strict=True):
            assert result.shape == wanted.shape
            np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-5, err_msg=f"at {x.shape}")
    return traced


# ---- what scripts compute with sizes


def flattened(x: torch.Tensor) -> torch.Tensor:
    batch, length, width = x.shape
    return x.view(batch * length, width // 2, 2).sum(-1).view(batch, -1)


def halves(x: torch.Tensor) -> torch.Tensor:
    half = x.size(1) // 2
    return torch.cat([x[:, half:], x[:, :half] * 2], dim=1)


def last(x: torch.Tensor) -> torch.Tensor:
    return x[:, x.size(1) - 3 :] + x[:, -3:] * float(x.size(1))


def scaled(x: torch.Tensor) -> torch.Tensor:
    return x / (x.size(0) * x.size(1) + 1) - 1 / x.size(1)


def positions(x: torch.Tensor) -> torch.Tensor:
    places = torch.arange(x.size(1), dtype=torch.float32, device=x.device)
    return x + places[None, :, None] + torch.zeros(x.size(0), 1, 1) + torch.ones_like(x[:, :1])


def listed(x: torch.Tensor) -> torch.Tensor:
    sizes = [x.size(0)]
    sizes.append(x.size(1) * 2)
    sizes += [x.size(2) // 2]
    sizes.extend([1])
    last = sizes.pop()
    sizes[2] = sizes[2] * last
    return x.reshape(sizes)


def of_shapes(x: torch.Tensor) -> torch.Tensor:
    shape = x.shape
    flat = x.flatten(0, len(shape[:-1]) - 1)
    whole = [2]
    whole.extend(shape)
    return flat[None].expand(2, flat.size(0), flat.size(1)).reshape(whole) * shape[-1]


def in_a_dict(x: torch.Tensor) -> torch.Tensor:
    sizes = {"batch": x.size(0), "length": x.size(1)}
    sizes["all"] = sizes["batch"] * sizes["length"]
    return x.reshape(sizes["all"], -1) * len(sizes)


def padded(x: torch.Tensor) -> torch.Tensor:
    missing = (8 - x.size(1) % 8) % 8
    x = F.pad(x, [0, 0, 0, missing])
    return x.view(x.size(0), x.size(1) // 8, 8, x.size(2)).mean(2)


def windows(x: torch.Tensor) -> torch.Tensor:
    parts: list[torch.Tensor] = []
    for i in range(3):
        parts.append(x[:, i : x.size(1) - 2 + i])
    return torch.stack(parts, dim=-1)


def resized(x: torch.Tensor) -> torch.Tensor:
    return F.interpolate(x.transpose(1, 2), size=[x.size(1) * 2 + 1], mode="linear", align_corners=False)


def causal(x: torch.Tensor) -> torch.Tensor:
    n = x.size(1)
    mask = torch.ones(n, n, dtype=torch.bool, device=x.device).triu(1)
    scores = (x @ x.transpose(1, 2)) / (x.size(-1) ** 0.5)
    return torch.softmax(scores.masked_fill(mask, float("-inf")), -1) @ x


def largest(x: torch.Tensor) -> torch.Tensor:
    return x.sum(1) * max(x.size(1), 1) + min(x.size(0), 100)


def rooted(x: torch.Tensor) -> torch.Tensor:
    return x.reshape(int(x.numel() / 4), 4) * x.dim()


def optional(x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
    if mask is None:
        mask = torch.ones(x.size(0), x.size(1), dtype=x.dtype)
    return x * mask.unsqueeze(-1)


def asserted(x: torch.Tensor) -> torch.Tensor:
    assert x.size(1) > 2, f"a length of {x.size(1)}"
    if x.dim() != 3:
        raise ValueError("no batch")
    return x[:, 1:-1]


def chosen(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x) if x.size(1) >= 1 else -x


def of_fractions(x: torch.Tensor) -> torch.Tensor:
    keep = int(x.size(1) * 0.5) + 1
    return x[:, :keep] * (x.size(0) / 2) + 1 / x.size(1)


def mixed(x: torch.Tensor) -> torch.Tensor:
    count = torch.full((1,), x.size(1), dtype=torch.float32)
    return torch.sqrt(count) * x.mean(1) + x.new_zeros(x.size(0), 1)


FUNCTIONS = (
    *(
        flattened,
        halves,
        last,
        scaled,
        positions,
        listed,
        of_shapes,
        in_a_dict,
        padded,
        windows,
        resized,
        causal,
    ),
    *(largest, of_fractions, mixed, rooted, optional, asserted, chosen),
)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_sizes_in_scripts_stay_open(function: Any, tmp_path: Path) -> None:
    agrees(torch.jit.script(function), tmp_path)


@pytest.mark.parametrize("function", FUNCTIONS[:-4], ids=lambda function: function.__name__)
def test_sizes_in_traced_modules_stay_open(function: Any, tmp_path: Path) -> None:
    agrees(torch.jit.trace(function, drawn(*SIZES[0])), tmp_path)


@pytest.mark.parametrize("function", [scaled, of_fractions], ids=lambda function: function.__name__)
def test_quotients_of_sizes_stay_open(function: Any, tmp_path: Path) -> None:
    agrees(function, tmp_path)


# ---- modules


class Recurrent(nn.Module):
    def __init__(self, kind: str, **options: Any) -> None:
        super().__init__()
        self.cells = getattr(nn, kind)(WIDTH, 3, batch_first=True, **options)
        self.last = nn.Linear(3 * (1 + options.get("bidirectional", False)), 2)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        states = self.cells(x)[0]
        return self.last(states), states[:, -1]


class Pictures(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(1, 4, 3, padding=1), nn.Conv2d(4, 2, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pictures = x.unsqueeze(1)
        small = F.max_pool2d(torch.relu(self.norm(self.first(pictures))), 2)
        large = F.interpolate(self.second(small), size=pictures.shape[-2:], mode="nearest")
        return large.flatten(2).softmax(-1) + F.adaptive_avg_pool2d(large, 1).view(x.size(0), 2, 1)


class Attending(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(WIDTH, 2, 8, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)


class Looped(nn.Module):
    """Layers in a loop, whose states are kept in a list."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(WIDTH, WIDTH) for _ in range(3)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        states = [x]
        for layer in self.layers:
            states.append(torch.tanh(layer(states[-1])) + x.size(1))
        return torch.cat(states, dim=-1).view(x.size(0), -1, len(states), 4)


MODULES: dict[str, Callable[[], nn.Module]] = {
    "lstm": lambda: Recurrent("LSTM"),
    "lstm-both-ways": lambda: Recurrent("LSTM", bidirectional=True, num_layers=2),
    "gru": lambda: Recurrent("GRU"),
    "rnn": lambda: Recurrent("RNN"),
    "pictures": Pictures,
    "attention": Attending,
    "loop": Looped,
}


@pytest.mark.slow
@pytest.mark.parametrize("way", ["script", "trace", "freeze"])
@pytest.mark.parametrize("name", MODULES)
def test_modules_with_sizes(name: str, way: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    module = MODULES[name]().eval()
    with torch.no_grad():
        made: Any = torch.jit.trace(module, drawn(*SIZES[0])) if way == "trace" else torch.jit.script(module)
    agrees(torch.jit.freeze(made) if way == "freeze" else made, tmp_path)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_recurrent_layers_of_scripts_are_one_call(kind: str) -> None:
    script = torch.jit.script(Recurrent(kind).eval())
    traced = tmconvert.trace(script, drawn(2, 6))
    assert len(traced.flatten().graph) < 20


def counts(x: torch.Tensor) -> torch.Tensor:
    for i in range(x.size(1)):
        x = x * 0.5 + i
    return x


def test_loops_over_a_size_stay_loops(tmp_path: Path) -> None:
    options = {"dynamic_shapes": {"x": {0: "batch", 1: "length"}}}
    loop = tmconvert.trace(torch.jit.script(counts), drawn(2, 6), **options)
    assert tmconvert.to_onnx(loop, tmp_path / "loop.onnx").verified
    for length in (1, 3, 11):
        x = drawn(3, length)
        found = tmconvert.run(tmp_path / "loop.onnx", x.numpy())
        np.testing.assert_allclose(*found.values(), counts(x).numpy(), rtol=1e-5)
    traced = tmconvert.trace(torch.jit.script(counts), drawn(2, 6), fix={"length": 5}, **options)
    report = tmconvert.to_onnx(traced, tmp_path / "model.onnx")
    assert report.inputs[0]["shape"] == ["batch", 5, WIDTH]


def test_inputs_have_the_names_of_the_script() -> None:
    function = torch.jit.trace(lambda picture, scale: picture * scale, (torch.ones(2), torch.ones(2)))
    graph = tmconvert.trace(function, torch.ones(2), torch.ones(2)).graph
    assert graph is not None and [node.name for node in graph.inputs[1:]] == ["picture", "scale"]


class Masked(nn.Module):
    """Attention with a mask of keys, of which PyTorch computes all in one op."""

    def __init__(self, layer: bool) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(WIDTH, 2, batch_first=True)
        self.layer = nn.TransformerEncoderLayer(
            WIDTH, 2, 8, activation="gelu", norm_first=True, batch_first=True
        )
        self.uses_layer = layer

    def forward(self, x: torch.Tensor) -> Any:
        padding = x[..., 0] > 0.9
        if self.uses_layer:
            return self.layer(x, src_key_padding_mask=padding)
        return self.attention(x, x, x, key_padding_mask=padding)


@pytest.mark.slow
@pytest.mark.parametrize("layer", [False, True])
def test_fused_layers_with_masks(layer: bool, tmp_path: Path) -> None:
    torch.manual_seed(0)
    with torch.no_grad():
        traced = torch.jit.trace(Masked(layer).eval(), drawn(*SIZES[0]))
        kinds = {node.kind() for node in traced.inlined_graph.nodes()}
        assert kinds & {"aten::_transformer_encoder_layer_fwd", "aten::_native_multi_head_attention"}
        agrees(traced, tmp_path)


def both(x: torch.Tensor) -> torch.Tensor:
    is_long = x.size(1) > 2
    return x * 2 if is_long and bool(x.sum() > 100) else x - 1


def test_conditions_of_sizes_and_data_read_no_data(tmp_path: Path) -> None:
    traced = tmconvert.trace(torch.jit.script(both), drawn(2, 6))
    for factor in (1, 100):
        x = drawn(2, 6) * factor
        np.testing.assert_allclose(traced(x.numpy()), both(x), rtol=1e-6)
