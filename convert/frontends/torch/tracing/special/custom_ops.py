"""Custom ops that tracing goes through. This module does not need torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

FOLLOWED_OPS: set[str] = set()  # the names of the ops of ``trace_through``


def body_of(function: object) -> Callable[..., Any] | None:
    """Returns the Python body of a custom op for which ``trace_through`` was called; None for all else."""
    if not FOLLOWED_OPS:
        return None
    import torch

    if not isinstance(function, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        return None
    packet: Any = getattr(function, "overloadpacket", function)
    name = str(packet._qualified_op_name)
    if name not in FOLLOWED_OPS:
        return None
    from torch._library.custom_ops import OPDEFS

    definition = OPDEFS.get(name)
    return None if definition is None else definition._init_fn
