"""Alias analysis: tracks tensors that share storage, and the current Value of each after in-place writes.

A tensor is either the base of its storage or a view of another tensor. A write to a view becomes a call that
computes a new Value of its base, up to the outermost base; the other views are recomputed from it when they
are next read. So the tape is functional: it has no writes.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from tmconvert.errors import UnsupportedError
from tmconvert.errors.source import Source
from tmconvert.frontends.torch.tracing.recording.source_lines import user_place
from tmconvert.frontends.torch.tracing.recording.tape import Record, Value

_PLAIN = (torch.Tensor, torch.nn.Parameter)


class Memory:
    """Storage that several tensors share, with the number of writes to it."""

    __slots__ = ("writes",)

    def __init__(self) -> None:
        self.writes = 0


class View(NamedTuple):
    """The call that made a tensor a view: result number ``place`` of ``call`` on the tensor of ``viewed``."""

    base: Tracked
    call: Record
    viewed: Value
    place: int


class Tracked:
    """A tensor of the run; ``value`` is up to date if ``seen`` equals the number of writes to its storage."""

    __slots__ = ("address", "memory", "offset", "reference", "seen", "shape", "stride", "value", "view")

    def __init__(self, tensor: torch.Tensor, value: Value, view: View | None) -> None:
        self.value = value
        self.view = view
        self.memory: Memory = Memory() if view is None else view.base.memory
        self.seen = self.memory.writes
        self.reference: Any = None
        self.measure(tensor)

    def measure(self, tensor: torch.Tensor) -> None:
        """Records offset, shape and strides of the tensor in its storage."""
        self.shape = tuple(tensor.shape)
        is_strided = tensor.layout == torch.strided
        self.stride = tensor.stride() if is_strided else ()
        self.offset = tensor.storage_offset() if is_strided else 0
        self.address = _address(tensor)

    def has_moved(self, tensor: torch.Tensor) -> bool:
        """Whether the tensor was given other memory where no mode of torch sees it, as by ``set_``."""
        return self.address != _address(tensor)

    def covers(self, other: Tracked) -> bool:
        """Whether the tensor is contiguous and the other one lies within its elements."""
        step, end = 1, self.offset
        for extent, stride in zip(reversed(self.shape), reversed(self.stride), strict=True):
            if extent != 1 and stride != step:
                return False
            step *= extent
        end += step
        last = other.offset + sum((n - 1) * by for n, by in zip(other.shape, other.stride, strict=True))
        return self.offset <= other.offset and last < end

    def join(self, view: View) -> None:
        """Marks the tensor as a view of an earlier one; its Value is valid until the earlier is written."""
        self.view, self.memory, self.seen = view, view.base.memory, 0


class Aliases:
    """The tensors that are alive during the run, and their Values.

    ``repeat`` repeats the call of a View for another Value of its base; ``write_back`` computes the Value of
    a view's base from (view, Value of the base, Value of the view). ``keeps`` keeps tensors alive, so that
    the tensors which autograd derives from them can be identified.
    """

    def __init__(
        self,
        repeat: Callable[[View, Value], Value],
        write_back: Callable[[Tracked, Value, Value], Value],
        *,
        keeps: bool = False,
    ) -> None:
        self._keeps = keeps
        self._kept: dict[int | None, list[torch.Tensor]] = {}  # by their memory
        self._repeat = repeat
        self._write_back = write_back
        self._by_id: dict[int, Tracked] = {}

    def find(self, tensor: torch.Tensor) -> Tracked | None:
        tracked = self._by_id.get(id(tensor))
        return tracked if tracked is not None and tracked.reference() is tensor else None

    def add(self, tensor: torch.Tensor, value: Value, view: View | None = None) -> Tracked:
        """Tracks a new tensor."""
        if self._keeps:
            self._kept.setdefault(memory_of(tensor), []).append(tensor)
        tracked, key, by_id = Tracked(tensor, value, view), id(tensor), self._by_id

        def forget(reference: object) -> None:
            known = by_id.get(key)
            if known is not None and known.reference is reference:
                del by_id[key]

        tracked.reference = weakref.ref(tensor, forget)
        by_id[key] = tracked
        return tracked

    def with_same_elements(self, tensor: torch.Tensor, place: Source) -> Tracked | None:
        """Tracks a tensor with the same elements as a saved one, such as those that autograd saves."""
        memory = memory_of(tensor)
        if memory is None:
            return None
        lies = (tensor.dtype, tensor.shape, tensor.stride(), tensor.storage_offset())
        for kept in self._kept.get(memory, ()):
            base = self.find(kept)
            if base is not None and lies == (kept.dtype, kept.shape, kept.stride(), kept.storage_offset()):
                viewed = self.read(base)
                same = Record("detach", True, (viewed,), {}, viewed, place, torch.detach)
                return self.add(tensor, viewed, View(base, same, viewed, 0))
        return None

    def read(self, tracked: Tracked) -> Value:
        """Returns the current Value of the tensor."""
        if tracked.seen != tracked.memory.writes and tracked.view is not None:
            tracked.value = self._repeat(tracked.view, self.read(tracked.view.base))
            tracked.seen = tracked.memory.writes
        return tracked.value

    def write(self, tracked: Tracked, value: Value) -> None:
        """Assigns ``value`` to a tensor and marks all its aliases as changed."""
        if tracked.view is None:
            tracked.memory.writes += 1
        else:
            base = tracked.view.base
            self.write(base, self._write_back(tracked, self.read(base), value))
        tensor = tracked.reference()
        if tensor is not None and tuple(tensor.shape) != tracked.shape:  # it was given as ``out``
            tracked.measure(tensor)
        tracked.value, tracked.seen = value, tracked.memory.writes

    def viewed_by(self, tensor: torch.Tensor, arguments: Sequence[torch.Tensor]) -> Tracked | None:
        """Returns the argument that ``tensor``, a result, is a view of."""
        memory = memory_of(tensor)
        if memory is None:
            return None
        return next((self.find(each) for each in arguments if memory_of(each) == memory), None)


def check_sizes(tensor: torch.Tensor) -> None:
    """Raises UnsupportedError TM2013 for a nested tensor without sizes."""
    if tensor.is_nested and tensor.layout == torch.strided:
        raise UnsupportedError(
            "TM2013",
            "a nested tensor of the strided layout has no sizes, and cannot be traced",
            source=user_place(),
            notes=[("help", "use layout=torch.jagged, or a padded tensor with a mask")],
        )


def _address(tensor: torch.Tensor) -> int:
    """Returns the address of the first element; 0 for a tensor of a class of its own, which may have none."""
    return tensor.data_ptr() if type(tensor) in _PLAIN and tensor.layout == torch.strided else 0


def memory_of(tensor: torch.Tensor) -> int | None:
    """Returns the identity of the tensor's storage; None for a tensor without storage."""
    if tensor.layout != torch.strided:
        return None
    storage = tensor.untyped_storage()
    return storage._cdata if storage.nbytes() else None
