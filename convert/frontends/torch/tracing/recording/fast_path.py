"""Makes the regular code path, which is traced, return the results of torch's fast paths for evaluation mode.

Without gradients ``nn.TransformerEncoder`` packs sequences whose padding is at the end; its results at padded
positions are then zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def called(original: Callable[..., Any], module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Calls a traced TransformerEncoder so that its results equal those of evaluation mode."""
    padding = _packed(module, *args, **kwargs)
    if padding is None:
        return original(module, *args, **kwargs)
    norm, module.norm = module.norm, None
    try:
        output = original(module, *args, **kwargs)
    finally:
        module.norm = norm
    output = output.masked_fill(padding.unsqueeze(-1), 0.0)
    return output if norm is None else norm(output)


def _packed(
    module: Any, src: torch.Tensor, mask: torch.Tensor | None = None,
    src_key_padding_mask: torch.Tensor | None = None, is_causal: bool | None = None,
) -> torch.Tensor | None:  # fmt: skip
    """Returns where the module's result is zero, if its own conditions allow it to pack its input."""
    padding = src_key_padding_mask
    if padding is None or mask is not None or src.ndim != 3 or module.layers[0].training:
        return None
    if not torch.backends.mha.get_fastpath_enabled() or not getattr(module, "use_nested_tensor", False):
        return None
    if padding.dtype != torch.bool:
        padding = padding != 0
    if not getattr(module, "mask_check", True):
        return padding
    is_at_the_end = (padding[:, 1:] | ~padding[:, :-1]).all()
    return padding & is_at_the_end
