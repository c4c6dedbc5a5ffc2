"""Small modules that stress what a model may do: name -> (module, args, kwargs)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

Example = tuple[torch.nn.Module, tuple[Any, ...], dict[str, Any]]


class Called(nn.Module):
    """A function, with modules as its first argument."""

    def __init__(self, function: Callable[..., Any], *parts: nn.Module) -> None:
        super().__init__()
        self.function, self.parts = function, nn.ModuleList(parts)

    def forward(self, **inputs: Any) -> Any:
        return self.function(*self.parts, **inputs)


def called(
    function: Callable[..., Any], *parts: Callable[[], nn.Module], **inputs: Any
) -> Callable[[], Example]:
    """``inputs`` are shapes of normal numbers, or functions that make a tensor."""

    def factory() -> Example:
        torch.manual_seed(0)
        made = {name: make() if callable(make) else torch.randn(make) for name, make in inputs.items()}
        return Called(function, *(part() for part in parts)).eval(), (), made

    return factory


def encoder(**settings: Any) -> nn.Module:
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, **settings), 2)


def padding() -> torch.Tensor:
    return torch.tensor([[False] * 5, [False] * 3 + [True] * 2])


MODELS: dict[str, Callable[[], Example]] = {
    "lstm_bidirectional": called(
        lambda m, x: m(x), lambda: nn.LSTM(8, 6, 2, bidirectional=True, batch_first=True), x=(2, 5, 8)
    ),
    "lstm_projected": called(lambda m, x: m(x), lambda: nn.LSTM(8, 6, proj_size=4), x=(5, 2, 8)),
    "gru_states": called(
        lambda m, x, states: m(x, states), lambda: nn.GRU(8, 6, 2), x=(5, 2, 8), states=(2, 2, 6)
    ),
    "transformer_encoder_masked": called(
        lambda m, x, mask: m(x, src_key_padding_mask=mask), encoder, x=(2, 5, 16), mask=padding
    ),
    "transformer": called(
        lambda m, x, target: m(
            x, target, tgt_mask=nn.Transformer.generate_square_subsequent_mask(target.size(0))
        ),
        lambda: nn.Transformer(16, 4, 1, 1, 32),
        x=(5, 2, 16),
        target=(4, 2, 16),
    ),
    "attention_weights": called(
        lambda m, x, y: m(x, y, y),
        lambda: nn.MultiheadAttention(8, 2, batch_first=True),
        x=(2, 3, 8),
        y=(2, 5, 8),
    ),
    "pool_divisor": called(lambda m, x: m(x), lambda: nn.AvgPool2d(3, divisor_override=4), x=(1, 3, 9, 9)),
    "pool_uneven": called(lambda m, x: m(x), lambda: nn.AdaptiveAvgPool2d((3, 5)), x=(1, 3, 7, 11)),
    "unpool": called(
        lambda pool, back, x: back(*pool(x)),
        lambda: nn.MaxPool2d(2, return_indices=True),
        lambda: nn.MaxUnpool2d(2),
        x=(1, 3, 8, 8),
    ),
    "resize_antialiased": called(
        lambda x: nn.functional.interpolate(x, size=(5, 6), mode="bilinear", antialias=True), x=(1, 3, 11, 9)
    ),
    "resize_nearest_exact": called(
        lambda x: nn.functional.interpolate(x, scale_factor=1.7, mode="nearest-exact"), x=(1, 3, 7, 9)
    ),
    "spatial_transformer": called(
        lambda x, theta: nn.functional.grid_sample(
            x, nn.functional.affine_grid(theta, x.shape, align_corners=False), align_corners=False
        ),
        x=(2, 3, 8, 9),
        theta=(2, 2, 3),
    ),
}
