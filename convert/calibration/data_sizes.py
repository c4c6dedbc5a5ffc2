"""Sizes of calibration data, at which a model with open sizes is measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tmconvert.conversion.io_overrides import BoundModel
from tmconvert.errors import UsageError
from tmconvert.ir.symbolic.dims import Dim, Size, of, symbols_of
from tmconvert.ir.symbolic.open_sizes import NamedAxis, solved_sizes


def sizes_of_data(opened: BoundModel, shapes: Sequence[Sequence[int]]) -> dict[str, int]:
    """Returns the open sizes at which a model takes arrays of ``shapes``, one an input, in order.

    The first axis counts samples where its size is open: it is that of the example if that divides the number
    of samples, else 1. Empty where the arrays fit the example, or no sizes make them fit.
    """
    wanted = list(opened.shapes.values())
    if len(wanted) != len(shapes) or not opened.symbols:
        return {}
    axes, rows = list[NamedAxis](), dict[str, list[int]]()
    for name, shape, array in zip(opened.shapes, wanted, shapes, strict=True):
        whole = (1, *array) if len(array) == len(shape) - 1 else tuple(array)
        if len(whole) != len(shape):
            return {}
        for axis, (size, extent) in enumerate(zip(shape, whole, strict=True)):
            if isinstance(size, Dim) and axis:
                axes.append(NamedAxis(name, axis, str(size), extent))
            elif isinstance(size, Dim):
                rows.setdefault(str(size), []).append(extent)
            elif size != extent and axis:
                return {}
    try:
        found, unknown = solved_sizes(axes)
    except UsageError:  # one size has two values
        return {}
    if unknown or any(number < 1 for number in found.values()):
        return {}
    found |= _batches(rows, found, opened)
    example = opened.example()
    return found if any(example.get(name) != number for name, number in found.items()) else {}


def _batches(
    rows: Mapping[str, Sequence[int]], found: Mapping[str, int], opened: BoundModel
) -> dict[str, int]:
    """Returns the sizes of first axes that no other axis determines."""
    example, made = opened.example(), dict[str, int]()
    for size, counts in rows.items():
        if size in example and size not in found:
            batch = example[size]
            made[size] = batch if all(count and count % batch == 0 for count in counts) else 1
    return made


def at_sizes(opened: BoundModel, sizes: Mapping[str, int]) -> BoundModel:
    """Returns the model with these sizes as those of the example."""
    symbols = {
        name: replace(symbol, example=sizes.get(name, symbol.example * symbol.unit) // symbol.unit)
        for name, symbol in symbols_of(list(opened.shapes.values())).items()
    }

    def move(size: Size) -> Size:
        return size.at(lambda symbol: of(symbols[symbol.name])) if isinstance(size, Dim) else size

    shapes = {name: tuple(map(move, shape)) for name, shape in opened.shapes.items()}
    return opened._replace(shapes=shapes)


def sizes_note(sizes: Mapping[str, int]) -> str:
    """Returns ``h=320, w=320``."""
    return ", ".join(f"{name}={size}" for name, size in sizes.items())
