"""Which axes of a traced model's inputs may have other sizes than in the trace.

``traced`` is the ``dynamic_shapes`` of a TracedModule: the names of its open sizes, by input and axis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tmconvert.errors import UsageError


def open_axes(traced: Mapping[str, Mapping[int, str]], name: str, rank: int) -> dict[int, str]:
    """The axes of an input that were left open in the trace, counted from the front, with their symbols."""
    return {axis % rank: symbol for axis, symbol in traced.get(name, {}).items()} if rank else {}


def check_sizes(
    traced: Mapping[str, Mapping[int, str]], name: str, recorded: Sequence[int], shape: Sequence[int]
) -> None:
    """Raises UsageError TM6014 where an axis that was not left open has another size than in the trace."""
    if len(shape) != len(recorded):
        message = f"the input {name!r} has {len(recorded)} axes, as it was traced with, not {len(shape)}"
        raise UsageError("TM6014", message)
    free = open_axes(traced, name, len(recorded))
    for axis, (size, was) in enumerate(zip(shape, recorded, strict=True)):
        if size != was and axis not in free:
            raise not_open(name, axis, recorded)


def sizes_by_name(
    traced: Mapping[str, Mapping[int, str]], shapes: Mapping[str, Sequence[int]]
) -> dict[str, int]:
    """The sizes that symbols have in these shapes. Raises UsageError TM6014 where one has two."""
    found: dict[str, tuple[int, str]] = {}
    for name, shape in shapes.items():
        for axis, symbol in open_axes(traced, name, len(shape)).items():
            size, place = found.setdefault(symbol, (shape[axis], f"axis {axis} of {name}"))
            if size != shape[axis]:
                message = f"{symbol} is {size} as {place} and {shape[axis]} as axis {axis} of {name}"
                raise UsageError("TM6014", message)
    return {symbol: size for symbol, (size, _) in found.items()}


def not_open(name: str, axis: int, recorded: Sequence[int]) -> UsageError:
    return UsageError(
        "TM6014",
        f"axis {axis} of {name} is {recorded[axis]} in the trace: "
        "the model was traced without leaving it open",
        notes=[
            (
                "help",
                f"trace it with dynamic_shapes (--dynamic {name}:{axis}=size), which checks that the model "
                "works at other sizes, or with example inputs of this size",
            )
        ],
    )
