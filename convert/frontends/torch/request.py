"""What has to be said where a model of PyTorch is run to be traced; nothing here needs torch itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple


class Tracing(NamedTuple):
    """How a model is run.

    ``args`` and ``kwargs`` are the example inputs, tensors or arrays; without any, those that come with the
    model are taken. ``dynamic_shapes`` and ``freeze_control_flow`` are those of ``tmconvert.trace``;
    ``allow_code`` says that the code in a file may run.
    """

    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = MappingProxyType({})
    dynamic_shapes: Mapping[str, Mapping[int, str]] | None = None
    freeze_control_flow: bool = False
    allow_code: bool = False

    @classmethod
    def of(
        cls,
        args: Sequence[Any] | None,
        kwargs: Mapping[str, Any] | None,
        dynamic_shapes: Mapping[str, Mapping[int, str]] | None,
        freeze_control_flow: bool,
        allow_code: bool,
    ) -> Tracing:
        """From what callers give, None for nothing."""
        return cls(tuple(args or ()), kwargs or {}, dynamic_shapes, freeze_control_flow, allow_code)

    @property
    def has_inputs(self) -> bool:
        return bool(self.args or self.kwargs)
