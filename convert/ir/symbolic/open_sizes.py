"""Dynamic axes of a traced model's inputs.

``traced`` is the ``dynamic_shapes`` of a TracedModule: the names of its dynamic sizes, or expressions of
names such as ``past+sequence``, by input and axis.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from tmconvert.errors import UnsupportedError, UsageError
from tmconvert.ir.symbolic.dims import Dim, substituted


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


class NamedAxis(NamedTuple):
    """An axis of an input with ``extent`` elements, called ``size``: a name, or an expression of names."""

    input: str
    axis: int
    size: str
    extent: int

    def __str__(self) -> str:
        return f"axis {self.axis} of {self.input}"


def sizes_by_name(
    traced: Mapping[str, Mapping[int, str]], shapes: Mapping[str, Sequence[int]]
) -> dict[str, int]:
    """Returns the sizes of symbols in these shapes. Raises UsageError TM6014 for contradictory ones."""
    axes = [
        NamedAxis(name, axis, size, shape[axis])
        for name, shape in shapes.items()
        for axis, size in open_axes(traced, name, len(shape)).items()
    ]
    return solved_sizes(axes)[0]


def solved_sizes(axes: Iterable[NamedAxis], help: str = "") -> tuple[dict[str, int], list[NamedAxis]]:
    """Returns the sizes by name, and the axes from which no size can be computed.

    From ``past+sequence`` one size is computed if the other is known. Raises UsageError TM6014 for
    contradictory sizes, with this ``help``.
    """
    axes = list(axes)
    if not axes:
        return {}, []
    found: dict[str, tuple[int, NamedAxis]] = {}
    from tmconvert.ir.symbolic.text import is_size_name, size_of

    waiting = sorted(axes, key=lambda each: not is_size_name(each.size))
    count = -1
    while count != len(waiting):
        count, left = len(waiting), []
        for axis in waiting:
            numbers = {name: size for name, (size, _) in found.items()}
            rest = size_of(axis.size, numbers) - axis.extent
            if not isinstance(rest, Dim):
                if rest != 0:
                    raise _contradiction(axis, found, help)
                continue
            name, *others = rest.symbols
            number = None if others else _root(rest, name)
            if number is None:
                left.append(axis)
            else:
                found[name] = number, axis
        waiting = left
    return {name: size for name, (size, _) in found.items()}, waiting


def example_sizes(axes: Iterable[NamedAxis], help: str = "") -> dict[str, int]:
    """Returns the sizes of an example by name, in order of their first axes.

    Raises UsageError TM6014, with this ``help``, for contradictory sizes, and where a size does not follow.
    """
    axes = list(axes)
    if not axes:
        return {}
    found, unknown = solved_sizes(axes, help)
    from tmconvert.ir.symbolic.text import names_in

    for axis in unknown:
        raise UsageError(
            "TM6014",
            f"{axis.size} is {axis.extent} as {axis}, from which the sizes "
            f"{', '.join(names_in(axis.size))} do not follow",
            notes=[
                ("help", "name an axis after each size, or use sums and multiples of sizes that have one")
            ],
        )
    return {name: found[name] for axis in axes for name in names_in(axis.size)}


def fixed_axes(
    wanted: Mapping[str, Mapping[int, str]],
    shapes: Mapping[str, Sequence[Any]],  # numbers, or sizes that have names
    fix: Mapping[str, int],
) -> tuple[dict[str, dict[int, str]], dict[str, tuple[Any, ...]]]:
    """Returns the dynamic axes, and the shapes of inputs, where some sizes have these numbers.

    Raises UsageError TM6014 for a name that no axis has.
    """
    from tmconvert.ir.symbolic.text import names_in, size_of

    named = [
        NamedAxis(name, axis, size, shapes[name][axis])
        for name, axes in wanted.items()
        for axis, size in axes.items()
    ]
    known = list(dict.fromkeys(name for axis in named for name in names_in(axis.size)))
    for name in fix:
        if name not in known:
            help = f"the dynamic sizes are {', '.join(known)}" if known else "the inputs have static sizes"
            raise UsageError("TM6014", f"no dynamic size is called {name!r}", notes=[("help", help)])
    examples = {**solved_sizes(named)[0], **fix}
    axes: dict[str, dict[int, str]] = {name: {} for name in wanted}
    made = {name: list(shape) for name, shape in shapes.items()}
    for each in named:
        size = size_of(each.size, fix)
        if isinstance(size, Dim):
            axes[each.input][each.axis] = str(size)
        if set(names_in(each.size)) & fix.keys():
            made[each.input][each.axis] = int(size_of(each.size, examples))
    return axes, {name: tuple(shape) for name, shape in made.items()}


def not_dynamic(reasons: Mapping[str, str], examples: Mapping[str, int]) -> UnsupportedError:
    """Returns the error for dynamic sizes that the file cannot have, by name, each with the reason."""
    names: dict[str, list[str]] = {}
    for name, why in reasons.items():
        names.setdefault(why, []).append(name)
    (first, *others) = (
        f"the size{'s' * (len(each) > 1)} {', '.join(each)} cannot stay dynamic: {why}"
        for why, each in names.items()
    )
    flags = " ".join(f"--fix {name}={examples[name]}" for name in reasons)
    numbers = ", ".join(f"{name!r}: {examples[name]}" for name in reasons)
    return UnsupportedError(
        "TM2031",
        first,
        notes=[
            *[("also", other) for other in others],
            ("help", f"give it a number with {flags} (fix={{{numbers}}}), or another one"),
        ],
    )


def _root(size: Dim, name: str) -> int | None:
    """Returns the number of elements with which a linear expression is zero, if there is one."""
    start, end = (substituted([size], {name: number})[0] for number in (0, 1))
    rise = end - start
    number = -start // rise if rise else -1
    is_root = number >= 0 and substituted([size], {name: number})[0] == 0
    return number if is_root else None


def _contradiction(axis: NamedAxis, found: Mapping[str, tuple[int, NamedAxis]], help: str) -> UsageError:
    from tmconvert.ir.symbolic.text import names_in

    named = [f"{name} is {found[name][0]} as {found[name][1]}" for name in names_in(axis.size)]
    return UsageError(
        "TM6014",
        f"{' and '.join(named)}, but {axis.size} is {axis.extent} as {axis}"
        if axis.size not in found
        else f"{named[0]}, but {axis.extent} as {axis}",
        notes=[("help", help)] if help else [],
    )


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
