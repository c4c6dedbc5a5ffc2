"""Tensors as arrays, without copying them."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import torch

from ....errors import UnsupportedError

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


def array_of(tensor: torch.Tensor) -> np.ndarray:
    """The tensor's data, in its own memory where it can be. Raises UnsupportedError TM2013."""
    tensor = tensor.detach()
    if tensor.layout != torch.strided or tensor.is_quantized:
        raise UnsupportedError("TM2013", f"a constant of the module is {tensor.layout}, and not dense")
    if tensor.device.type != "cpu":
        tensor = tensor.cpu()
    if tensor.is_conj() or tensor.is_neg():
        tensor = tensor.resolve_conj().resolve_neg()
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(BFLOAT16)
    return tensor.numpy()


def numpy_dtype(name: str) -> np.dtype | None:
    """NumPy's dtype for torch's of that name; None for what it does not have."""
    if name == "bfloat16":
        return BFLOAT16
    try:
        return np.dtype(name)
    except TypeError:
        return None
