"""Sizes of activations, and the most that is alive at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple


class Step(NamedTuple):
    """An operator: the names that it reads and those that it computes."""

    reads: Sequence[str]
    makes: Sequence[str]


class ActivationSizes(NamedTuple):
    """``total`` are the bytes of all activations, ``peak`` the most bytes that are alive at once, ``largest``
    those of the largest activation.
    """

    total: int
    peak: int
    largest: int


def activation_sizes(
    steps: Sequence[Step], sizes: Mapping[str, int], inputs: Iterable[str], outputs: Iterable[str]
) -> ActivationSizes:
    """Returns the sizes of activations, for the order of ``steps``.

    ``sizes`` are bytes by name; names without a size, such as those of constants, count as 0. An activation
    is alive from its operator (inputs from the start) to its last reader, outputs to the end. A runtime needs
    at least ``peak``; gaps between tensors and buffers of kernels are extra.
    """
    last = {name: number for number, step in enumerate(steps) for name in step.reads}
    last.update(
        {name: number for number, step in enumerate(steps) for name in step.makes if name not in last}
    )
    last.update(dict.fromkeys(outputs, len(steps)))
    alive = {name: sizes.get(name, 0) for name in inputs}
    known = dict(alive)
    now = peak = sum(alive.values())
    ending: dict[int, list[str]] = {}
    for name, number in last.items():
        ending.setdefault(number, []).append(name)
    for number, step in enumerate(steps):
        for name in step.makes:
            if name not in alive:
                alive[name] = known[name] = sizes.get(name, 0)
                now += alive[name]
        peak = max(peak, now)
        for name in ending.get(number, ()):
            now -= alive.pop(name, 0)
    return ActivationSizes(sum(known.values()), peak, max(known.values(), default=0))
