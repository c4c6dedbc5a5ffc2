"""Records ``flex_attention`` as attention with a mask and scores over all positions at once.

Mask and score functions are written for one position. They are called with index tensors that broadcast to
all positions, so that their sizes stay dynamic; a function for which that differs from torch's own result is
batched by ``torch.vmap``, as torch does.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F

from tmconvert.frontends.torch.tracing.sizes.integers import untraced
from tmconvert.ir.tree import map_leaves
from tmconvert.ir.types import Args, Kwargs

if TYPE_CHECKING:
    from tmconvert.frontends.torch.tracing.recording.recorder import Recorder

Function = Callable[..., Any]


def recorded_flex_attention(recorder: Recorder, function: Function, args: Args, kwargs: Kwargs) -> Any:
    """Records a call of the higher-order function, and returns (output, logsumexp, maxima).

    The last two are in base 2, as torch's are.
    """
    plain = map_leaves(untraced, (args, kwargs))
    expected = recorder.run(function, *plain[0], **plain[1])
    with recorder:
        with contextlib.suppress(RuntimeError, IndexError, TypeError, ValueError):
            made = _attention(*args, **kwargs)
            if recorder.run(_are_close, made, expected):
                return made
        from torch._higher_order_ops.flex_attention import math_attention

        return math_attention(*plain[0], **plain[1])


def _attention(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, score_mod: Function, block_mask: Args,
    scale: float, kernel_options: object, score_mod_other_buffers: tuple[torch.Tensor, ...] = (),
    mask_mod_other_buffers: tuple[torch.Tensor, ...] = (),
) -> Any:  # fmt: skip
    from torch.nn.attention.flex_attention import _identity, noop_mask

    groups = query.shape[1] // key.shape[1]
    if groups > 1:
        key, value = (each.repeat_interleave(groups, 1) for each in (key, value))
    if key.shape[0] != query.shape[0]:
        key, value = (each.expand(query.shape[0], -1, -1, -1) for each in (key, value))
    places = _places(query, key)
    mask_mod = block_mask[-1]
    mask = None if mask_mod is noop_mask else mask_mod(*places, *mask_mod_other_buffers)
    precision = torch.float64 if query.dtype == torch.float64 else torch.float32
    scores = (query.to(precision) @ key.to(precision).transpose(-2, -1)) * scale
    if score_mod is not _identity:
        scores = score_mod(scores, *places, *score_mod_other_buffers)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    if score_mod is _identity:
        mask = None if mask is None else mask.expand(scores.shape)
        result = F.scaled_dot_product_attention(query, key, value, mask, scale=scale)
    else:
        result = torch._safe_softmax(scores, -1).to(query.dtype) @ value
    return result, scores.logsumexp(-1) / math.log(2), scores.amax(-1) / math.log(2)


def _places(query: torch.Tensor, key: torch.Tensor) -> list[torch.Tensor]:
    """Returns the indices of batch, head, query and key, each along an axis of its own."""
    sizes = (query.shape[0], query.shape[1], query.shape[2], key.shape[2])
    return [
        torch.arange(size).reshape([-1 if axis == own else 1 for axis in range(4)])
        for own, size in enumerate(sizes)
    ]


def _are_close(made: Any, expected: Any) -> bool:
    """Whether shapes and elements are equal up to rounding."""
    try:
        torch.testing.assert_close(made, expected, rtol=1e-3, atol=1e-4, equal_nan=True)
    except AssertionError:
        return False
    return True
