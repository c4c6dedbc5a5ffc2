"""Detects edits of a model after its example was recorded."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tmconvert.ir.traced_module import TracedModule

_BLOCK = 1 << 18  # bytes; of a larger tensor so much at its start, middle and end


class State:
    """The parts of a model that its results depend on: modules, edit counts of graphs, and tensors.

    Objects are compared by identity, and kept alive, so that identities stay unique. Writable tensors are
    compared by a checksum, too; that of large tensors covers samples of their elements.
    """

    def __init__(self, module: TracedModule, like: State | None = None) -> None:
        """The checksums of tensors in ``like``, the current state of another model, are taken from it."""
        self._held = list(_held(module, {} if like is None else like._checksums()))

    def _checksums(self) -> dict[int, int]:
        return {id(value): mark for _, value, mark in self._held if isinstance(value, np.ndarray)}

    def is_that_of(self, module: TracedModule) -> bool:
        held = list(_held(module, {}))
        return len(held) == len(self._held) and all(
            name == other_name and value is other and mark == other_mark
            for (name, value, mark), (other_name, other, other_mark) in zip(held, self._held, strict=True)
        )


def _held(module: TracedModule, checksums: Mapping[int, int]) -> Iterator[tuple[str, Any, int]]:
    for path, each in module.modules():
        yield path, each, 0
        for structure, graph in each.graphs.items():
            yield structure, graph, graph.edits
        for name, tensor in each.tensors.items():
            known = checksums.get(id(tensor))
            yield name, tensor, _checksum(tensor) if known is None else known
        for name, value in each.attributes.items():
            yield name, value, 0


def _checksum(tensor: Any) -> int:
    if not isinstance(tensor, np.ndarray) or not tensor.flags.writeable:
        return 0
    if not tensor.flags.c_contiguous:
        return _sum(np.frombuffer(tensor.tobytes(), np.uint8)) if tensor.nbytes <= 4 * _BLOCK else 0
    data = tensor.reshape(-1).view(np.uint8)
    if data.size <= 4 * _BLOCK:
        return _sum(data)
    middle = data.size // 16 * 8
    return hash(tuple(map(_sum, (data[:_BLOCK], data[middle : middle + _BLOCK], data[-_BLOCK:]))))


def _sum(data: np.ndarray) -> int:
    """Returns the sum of the words, each times an odd number, modulo 2**64: a change of one word changes it.

    It takes half the time of a CRC.
    """
    words = data[: data.size // 8 * 8].view(np.uint64)
    return int(np.dot(words, _weights()[: words.size])) ^ zlib.crc32(data[words.size * 8 :].tobytes())


@cache
def _weights() -> np.ndarray:
    return np.arange(1, _BLOCK, 2, dtype=np.uint64)
