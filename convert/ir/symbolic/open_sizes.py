"""Dynamic axes of a traced model's inputs.

``traced`` is the ``dynamic_shapes`` of a TracedModule: the names of its open sizes, by input and axis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tmconvert.errors import UsageError


def open_axes(traced: Mapping[str, Mapping[int, str]], name: str, rank: int) -> dict[int, str]:
    """Returns the dynamic axes of an input, as non-negative indices, with their symbols."""
    return {axis % rank: symbol for axis, symbol in traced.get(name, {}).items()} if rank else {}


def check_sizes(
    traced: Mapping[str, Mapping[int, str]], name: str, recorded: Sequence[int], shape: Sequence[int]
) -> None:
    """Raises UsageError TM6014 where a static axis has another size than in the trace."""
    if len(shape) != len(recorded):
        message = f"the input {name!r} must have {len(recorded)} axes, as in the trace, got {len(shape)}"
        raise UsageError("TM6014", message)
    free = open_axes(traced, name, len(recorded))
    for axis, (size, was) in enumerate(zip(shape, recorded, strict=True)):
        if size != was and axis not in free:
            raise not_open(name, axis, recorded)


def sizes_by_name(
    traced: Mapping[str, Mapping[int, str]], shapes: Mapping[str, Sequence[int]]
) -> dict[str, int]:
    """Returns the sizes of symbols in these shapes. Raises UsageError TM6014 for contradictory ones."""
    found: dict[str, tuple[int, str]] = {}
    for name, shape in shapes.items():
        for axis, symbol in open_axes(traced, name, len(shape)).items():
            size, place = found.setdefault(symbol, (shape[axis], f"axis {axis} of {name}"))
            if size != shape[axis]:
                message = f"{symbol} is {size} as {place}, but {shape[axis]} as axis {axis} of {name}"
                raise UsageError("TM6014", message)
    return {symbol: size for symbol, (size, _) in found.items()}


def not_open(name: str, axis: int, recorded: Sequence[int]) -> UsageError:
    return UsageError(
        "TM6014",
        f"axis {axis} of {name} is {recorded[axis]} in the trace, which did not make it dynamic",
        notes=[
            (
                "help",
                f"trace the model with dynamic_shapes (--dynamic {name}:{axis}=size), which validates "
                "other sizes, or with example inputs of this size",
            )
        ],
    )
