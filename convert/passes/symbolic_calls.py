"""Calls that a target, or our formula for it, does not support with symbolic sizes."""

from __future__ import annotations

from tmconvert.errors import Refusal
from tmconvert.ir import CallFunction, TensorNode
from tmconvert.ir.symbolic.dims import Dim, is_symbolic
from tmconvert.ir.symbolic.journal import current_journal
from tmconvert.ir.tree import leaves


def refuse_symbolic(call: CallFunction, error: Exception) -> None:
    """Raises Refusal if a call with symbolic sizes failed with ``error``; without them it does nothing."""
    if is_symbolic(_sizes(call)):
        words = (
            f": {error}" if isinstance(error, ValueError) else ""
        )  # those of other exceptions are Python's
        raise Refusal(f"{call.function} does not support symbolic sizes{words}") from error


def give_up_sizes(call: CallFunction, reason: str) -> None:
    """Specializes a size of an unsupported call, so that it may be supported."""
    sizes = [size for size in leaves(_sizes(call)) if isinstance(size, Dim)]
    current_journal().give_up(sizes, f"requires a static size: {reason}")


def _sizes(call: CallFunction) -> tuple[object, ...]:
    nodes = (*call.inputs, *call.outputs)
    return call.kwargs, [node.shape for node in nodes if isinstance(node, TensorNode)]
