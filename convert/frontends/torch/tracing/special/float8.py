"""Casts to float8 inside of a run, and products of float8, recorded in float32.

A cast rounds to the numbers of the type, by arithmetic that all targets have: runtimes have few kernels for
float8. What reads the bits of such a tensor sees float32.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from tmconvert.errors import UnsupportedError
from tmconvert.frontends.torch.tracing.recording.source_lines import user_place

if TYPE_CHECKING:
    from tmconvert.frontends.torch.tracing.recording.recorder import Recorder

NOTE = "casts to {} round to its numbers, which the file holds in float32"


class _Format(NamedTuple):
    """Explicit bits of the mantissa, the least exponent, and the largest number."""

    bits: int
    least: int
    largest: float


_FORMATS = {
    torch.float8_e4m3fn: _Format(3, -6, 448.0),
    torch.float8_e5m2: _Format(2, -14, 57344.0),
}
_CASTS = (
    *(torch.Tensor.to, torch.Tensor.type),
    *(torch.ops.aten.to.dtype, torch.ops.aten._to_copy.default),
)
_PRODUCTS = (torch._scaled_mm, torch.ops.aten._scaled_mm.default)


def in_float32(
    recorder: Recorder, function: object, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Callable[[], object] | None:
    """Returns the steps of a call with float8, in float32; None for other calls."""
    dtype = float8_of(function, args, kwargs)
    if dtype is not None:
        recorder.tape.note(NOTE.format(str(dtype).removeprefix("torch.")))
        return functools.partial(rounded, args[0], dtype)
    return functools.partial(scaled_mm, *args, **kwargs) if is_product(function) else None


def float8_of(function: object, args: tuple[object, ...], kwargs: dict[str, object]) -> torch.dtype | None:
    """Returns the float8 type that a call casts its tensor to; None for other calls."""
    given = [arg for arg in (*args[1:], *kwargs.values()) if isinstance(arg, torch.dtype)]
    is_cast = bool(given) and given[0] in _FORMATS and any(function is each for each in _CASTS)
    return given[0] if is_cast else None


def is_product(function: object) -> bool:
    """Whether a function is ``torch._scaled_mm``."""
    return any(function is each for each in _PRODUCTS)


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
    a: torch.Tensor,
    b: torch.Tensor,
    scale_a: torch.Tensor,
    scale_b: torch.Tensor,
    bias: torch.Tensor | None = None,
    scale_result: torch.Tensor | None = None,
    out_dtype: torch.dtype | None = None,
    use_fast_accum: bool = False,
) -> Any:
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
