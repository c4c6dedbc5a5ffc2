"""Packed sequences: batches of sequences of different lengths without padding.

On the tape they keep their padding, and the recurrent layers receive the lengths, so that a file works for
sequences of other lengths. ``batch_sizes`` has the values for sequences of full length, and refers to the
lengths.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.utils.rnn import pad_packed_sequence

if TYPE_CHECKING:
    from tmconvert.frontends.torch.tracing.recording.recorder import Recorder

LENGTHS = "_lengths_of_sequences"
LAYERS = ("lstm", "gru", "rnn_tanh", "rnn_relu")


def _packed(recorder: Recorder, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``torch._pack_padded_sequence(input, lengths, batch_first)``: [T N, ...] and batch sizes [T]."""
    input, lengths, batch_first = args
    recorder.run(function, input, lengths, batch_first)  # raises for lengths that do not fit
    with recorder:
        steps = input.transpose(0, 1) if batch_first else input
        data = steps.flatten(0, 1)
        length, batch = recorder.shape_of(steps)[:2]
        sizes = torch.full((length,), batch)
    recorder.size_tensors.fill(sizes, batch)
    setattr(sizes, LENGTHS, lengths)
    return data, sizes


def _padded(recorder: Recorder, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``torch._pad_packed_sequence``: [T, N, ...] up to the longest sequence, and the lengths."""
    data, sizes, batch_first, value, total = args
    lengths = getattr(sizes, LENGTHS, None)
    if lengths is None:
        return recorder.record(recorder._name(function), function, args, kwargs)
    (length,) = recorder.shape_of(sizes)
    with recorder:
        steps = data.reshape(length, -1, *data.shape[1:])
        is_there = torch.arange(length).unsqueeze(1) < lengths
        steps = torch.where(is_there.reshape(length, -1, *[1] * (data.dim() - 1)), steps, value)
        if not _is_total_given():
            steps = steps.index_select(0, is_there.any(1).nonzero().squeeze(1))
        elif total > length:
            steps = torch.cat([steps, steps.new_full((total - length, *steps.shape[1:]), value)])
        return (steps.transpose(0, 1) if batch_first else steps), lengths


def _is_total_given() -> bool:
    """Whether the user passed a total length; otherwise the longest sequence determines it."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code is not pad_packed_sequence.__code__:
        frame = frame.f_back
    return frame is not None and frame.f_locals.get("total_length") is not None


def _layer(recorder: Recorder, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A recurrent layer: with packed sequences it is recorded as one with a lengths argument."""
    name, lengths = recorder._name(function), getattr(args[1], LENGTHS, None)
    if lengths is None:
        return recorder.record(name, function, args, kwargs)
    data, sizes, hx, params, *settings = args
    with recorder:
        steps = data.reshape(*recorder.shape_of(sizes), -1, *data.shape[1:])
    output, *states = recorder.record(
        name, _of_lengths(function), (steps, hx, params, *settings, False), {"lengths": lengths}
    )
    with recorder:
        return output.flatten(0, 1), *states


def _of_lengths(layer: Callable[..., Any]) -> Callable[..., Any]:
    """The padded form of a layer with lengths; elements after the end of a sequence are zero."""

    def run(x: Any, hx: Any, params: Any, *settings: Any, lengths: Any) -> Any:
        packed, sizes = torch._pack_padded_sequence(x, lengths, False)
        output, *states = layer(packed, sizes, hx, params, *settings[:-1])
        padded, _ = torch._pad_packed_sequence(output, sizes, False, 0.0, len(x))
        return padded, *states

    return run


SPECIAL = {"_pack_padded_sequence": _packed, "_pad_packed_sequence": _padded, **dict.fromkeys(LAYERS, _layer)}
