"""Casts to float8 inside of a run, and products of float8, recorded in float32.

A cast rounds to the numbers of the type, by arithmetic that all targets have: runtimes have few kernels for
float8. What reads the bits of such a tensor sees float32.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import torch

from tmconvert.errors import UnsupportedError
from tmconvert.frontends.torch.tracing.recording.source_lines import user_place


class _Format(NamedTuple):
    """Explicit bits of the mantissa, the least exponent, and the largest number."""

    bits: int
    least: int
    largest: float


_FORMATS = {torch.float8_e4m3fn: _Format(3, -6, 448.0), torch.float8_e5m2: _Format(2, -14, 57344.0)}


def rounded(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Returns float32 numbers rounded to those of a float8 type, halves to even, as a cast does."""
    form = _FORMATS[dtype]
    x = x.to(torch.float32)
    size = x.abs().clamp(max=2 * form.largest)
    power = torch.exp2(torch.floor(torch.log2(size.clamp(min=2.0**form.least))))
    power = torch.where(power > size.clamp(min=2.0**form.least), power * 0.5, power)
    power = torch.where(power * 2 <= size, power * 2, power)
    step = power * 2.0**-form.bits
    made = torch.round(size / step) * step
    made = torch.where(made > form.largest, _beyond(dtype), made)
    return torch.where(x < 0, -made, made)


@functools.cache
def _beyond(dtype: torch.dtype) -> float:
    """Returns what a number beyond the largest becomes: that, NaN or infinity, by the release of PyTorch."""
    with torch._C.DisableTorchFunction(), torch._C._DisableTorchDispatch():
        return float(torch.tensor(1e30).to(dtype).to(torch.float32))


def scaled_mm(
    a: torch.Tensor, b: torch.Tensor, scale_a: torch.Tensor, scale_b: torch.Tensor,
    bias: torch.Tensor | None = None, scale_result: torch.Tensor | None = None,
    out_dtype: torch.dtype | None = None, use_fast_accum: bool = False,
) -> Any:  # fmt: skip
    """``torch._scaled_mm`` in float32, with scales per tensor or per row.

    Raises UnsupportedError TM2003 for a result in float8.
    """
    if out_dtype is None or out_dtype in _FORMATS or scale_result is not None:
        raise UnsupportedError(
            "TM2003",
            "torch._scaled_mm with a result in float8 is not supported",
            source=user_place(),
            notes=[("help", "pass out_dtype=torch.float32, and cast the result")],
        )
    product = (a.to(torch.float32) * scale_a) @ (b.to(torch.float32) * scale_b)
    product = product if bias is None else product + bias
    return product.to(torch.float32 if out_dtype == torch.bfloat16 else out_dtype)
