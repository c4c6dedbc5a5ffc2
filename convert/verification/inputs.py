"""Generates inputs for verification."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tmconvert.ir import CallFunction, Constant, InternalGraph, TensorNode
from tmconvert.ir.symbolic.dims import example, example_count
from tmconvert.ir.types import Arrays
from tmconvert.symbolics.op import Op
from tmconvert.symbolics.registry import has_trait
from tmconvert.symbolics.traits import (
    Casts,
    DividesBySecond,
    IndexedRows,
    IndicesBelow,
    SameElements,
    SelectsElements,
    View,
)
from tmconvert.verification.compare import example_inputs

Catalogue = Mapping[str, Op]
# arguments that are indices, and the attributes that tell how many values they may have
_INDICES = frozenset(("index", "indices"))
_LARGE, _LARGEST = 8.0, 1e4  # times the usual magnitude; what is above is not made larger


def drawn_inputs(graph: InternalGraph, catalogue: Catalogue, seed: int = 0) -> list[np.ndarray]:
    """Returns random arrays: floats standard normal, integers 0 or 1, or valid indices where they are used as
    such.

    Of another ``seed`` than 0 floats are negative.
    """
    nodes = [node for node in graph.inputs if isinstance(node, TensorNode)]
    arrays = example_inputs([node.type for node in nodes], seed)
    random = np.random.default_rng([seed, 1])
    for number, (node, array) in enumerate(zip(nodes, arrays, strict=True)):
        if array.dtype.kind == "f" and seed:
            arrays[number] = -np.abs(array)
        limit = min(_limits_of_input(node, catalogue), default=0)
        if limit > 1:
            is_integer = array.dtype.kind in "iu"
            most = min(limit - 1, int(np.iinfo(array.dtype).max)) if is_integer else limit - 1
            drawn = random.integers(
                0, most, array.shape, array.dtype if is_integer else np.int64, endpoint=True
            )
            arrays[number] = drawn.astype(array.dtype)
        elif array.dtype.kind in "iu" and _divides(node):
            arrays[number] = array + array.dtype.type(1)  # runtimes refuse a division of integers by 0
    return arrays


def within_ranges(graph: InternalGraph, given: Arrays = ()) -> list[np.ndarray]:
    """Returns random inputs, uniform over the quantized range where an input has one, else ``given`` ones.

    By default those are standard normal.
    """
    nodes, random = [node for node in graph.inputs if isinstance(node, TensorNode)], np.random.default_rng(0)
    arrays = list(given) or example_inputs([node.type for node in nodes])
    for number, (node, array) in enumerate(zip(nodes, arrays, strict=True)):
        qparams = node.qparams
        if qparams is not None and len(qparams.scale) == 1:
            zero, scale = qparams.zero_point[0], qparams.scale[0]
            low, high = ((end - zero) * scale for end in (qparams.quant_min, qparams.quant_max))
            arrays[number] = random.uniform(low, high, array.shape).astype(array.dtype)
    return arrays


def extreme_inputs(given: Arrays, graph: InternalGraph, catalogue: Catalogue) -> list[np.ndarray]:
    """Returns inputs that reach what usual ones do not.

    Floats are of large magnitude and both signs, so that clamps act at both ends; integers of up to 16 bits
    are of the whole range of their type; others are next to the constants that they are compared with; bools
    are the opposite. Indices are valid.
    """
    nodes = [node for node in graph.inputs if isinstance(node, TensorNode)]
    random, arrays = np.random.default_rng(3), drawn_inputs(graph, catalogue, 3)
    for number, (node, array) in enumerate(zip(nodes, given, strict=True)):
        if not array.size or any(_limits_of_input(node, catalogue)):
            continue
        dtype = array.dtype
        if dtype.kind == "f":
            with np.errstate(invalid="ignore", over="ignore"):  # of infinities, and of squares beyond float64
                spread = float(np.std(array.astype(np.float64)))
            scale = _LARGE * (max(spread, 1.0) if spread < _LARGEST else 1.0)
            arrays[number] = (random.standard_normal(array.shape) * scale).astype(dtype)
        elif dtype.kind == "b":
            arrays[number] = ~array
        else:
            arrays[number] = _integers(node, array, random)
    return arrays


def _integers(node: object, array: np.ndarray, random: np.random.Generator) -> np.ndarray:
    range_, met = np.iinfo(array.dtype), {int(each) for each in array.reshape(-1)[:64]}
    if array.dtype.itemsize <= 2:
        made = random.integers(range_.min, range_.max, array.shape, array.dtype, endpoint=True)
    else:
        near = {each + step for each in _compared(node) for step in (-1, 0, 1)}
        valid = sorted(each for each in met | near if range_.min <= each <= range_.max)
        made = random.choice(np.array(valid, array.dtype), array.shape)
    return np.where(made == 0, made.dtype.type(1), made) if _divides(node) else made


def _compared(node: object) -> Iterator[int]:
    """Yields the integers with which elements of an input are compared."""
    for each in _with_same_elements(node):
        for user in each.users:
            if isinstance(user, CallFunction) and _compares(user):
                for other in user.args:
                    if isinstance(other, TensorNode) and isinstance(other.expr, Constant):
                        values = np.asarray(other.expr.value).reshape(-1)[:16]
                        yield from (int(value) for value in values if np.isfinite(value))


def _compares(call: CallFunction) -> bool:
    return len(call.args) == 2 and len(call.outputs) == 1 and call.output.type.dtype == bool


def all_indices(graph: InternalGraph, catalogue: Catalogue, most: int) -> Iterator[list[np.ndarray]]:
    """Returns up to ``most`` sets of inputs, which together contain each valid value of integer inputs."""
    nodes = [node for node in graph.inputs if isinstance(node, TensorNode)]
    limits = [min(_limits_of_input(node, catalogue), default=0) for node in nodes]
    counts = [example_count(node.type.shape) for node in nodes]
    pairs = list(zip(limits, counts, strict=True))
    needed = max((-(-limit // count) for limit, count in pairs if count), default=0)
    for number in range(min(needed, most)):
        arrays = drawn_inputs(graph, catalogue, number + 2)
        for place, (limit, count) in enumerate(pairs):
            if limit:
                row = (np.arange(count) + number * count) % limit
                arrays[place] = row.reshape(arrays[place].shape).astype(arrays[place].dtype)
        yield arrays


def inputs_like(given: Arrays, graph: InternalGraph, catalogue: Catalogue) -> list[np.ndarray]:
    """Returns variations of the given inputs: floats permuted and negated, or random if they are constant;
    new random indices; other integers and bools resampled.
    """
    types = [node.type for node in graph.inputs if isinstance(node, TensorNode)]
    normal = example_inputs(types, 1)
    random, arrays = np.random.default_rng(1), drawn_inputs(graph, catalogue, 1)
    for number, (node, array) in enumerate(zip(graph.inputs, given, strict=True)):
        is_index = any(_limits_of_input(node, catalogue))
        if not array.size:
            arrays[number] = array
        elif array.dtype.kind != "f" and not is_index:
            arrays[number] = random.choice(array.reshape(-1), array.shape)
        elif is_index:
            continue
        elif (array == array.reshape(-1)[:1]).all():
            arrays[number] = normal[number]
        else:
            arrays[number] = -np.abs(random.permutation(array.reshape(-1)).reshape(array.shape))
    return arrays


def _limits_of_input(node: Any, catalogue: Catalogue) -> Iterator[int]:
    """Returns the sizes of the axes that an input indexes: as an integer, or as a float that is cast to one,
    as Caffe's indices are.
    """
    if node.type.dtype.kind in "iu":
        yield from _limits(node, catalogue)
    elif node.type.dtype.kind == "f":
        for user in node.users:
            for made in user.outputs:
                if isinstance(made, TensorNode) and made.type.dtype.kind == "i" and _is_cast(user, catalogue):
                    yield from _limits(made, catalogue)


def _is_cast(expr: object, catalogue: Catalogue) -> bool:
    return isinstance(expr, CallFunction) and catalogue[expr.function].has(Casts)


def _limits(node: Any, catalogue: Catalogue) -> Iterator[int]:
    """Returns the sizes of the axes that an integer tensor, or a tensor derived from it, indexes."""
    waiting, seen = [node], {node}
    while waiting:
        node = waiting.pop()
        for user in node.users:
            if not isinstance(user, CallFunction):
                continue
            limit = _limit(user, node, catalogue)
            if limit is not None:
                yield limit
                continue
            for made in user.outputs:
                if isinstance(made, TensorNode) and made.type.dtype.kind in "iu" and made not in seen:
                    seen.add(made)
                    waiting.append(made)


def _divides(node: object) -> bool:
    """Whether elements of an input of integers are divisors of integers."""
    return any(
        isinstance(user, CallFunction) and has_trait(user, DividesBySecond) and user.args[1] is each
        for each in _with_same_elements(node)
        for user in each.users
    )


def _with_same_elements(node: Any) -> Iterator[Any]:
    """Yields a tensor and those that have its elements."""
    waiting, seen = [node], {node}
    while waiting:
        node = waiting.pop()
        yield node
        for user in node.users:
            is_kept = isinstance(user, CallFunction) and has_trait(user, View, SameElements, SelectsElements)
            if is_kept:
                made = {each for each in user.outputs if isinstance(each, TensorNode)} - seen
                seen |= made
                waiting += made


def _limit(call: CallFunction, node: object, catalogue: Catalogue) -> int | None:
    """Returns the number of values that ``node`` may have as operand of a call; None if not an index."""
    op = catalogue[call.function]
    below = op.trait(IndicesBelow)
    if below is not None:
        return example(call.kwargs[below.extent])
    if call.function == "aten::eq":
        return _classes(next((each for each in call.args if each is not node), None))
    given = op.by_name(call.args, call.kwargs)
    source = call.args[0] if call.args else None
    place = next((name for name in _INDICES if name in given and _holds(given[name], node)), None)
    if place is None or not isinstance(source, TensorNode) or source is node:
        return None
    shape = tuple(map(example, source.type.shape))
    if op.has(IndexedRows):
        return shape[0]
    if isinstance(given[place], (list, tuple)):
        return shape[list(given[place]).index(node)]
    axis = given.get("dim")
    return shape[axis] if shape and axis is not None else int(np.prod(shape))


def _classes(compared: object) -> int | None:
    """Returns the number of values 0, 1, ... that a constant has, as of indices that are compared with each
    of them to be encoded as vectors.
    """
    if not isinstance(compared, TensorNode) or not isinstance(compared.expr, Constant):
        return None
    values = np.unique(np.asarray(compared.expr.value))
    is_range = values.size > 1 and np.array_equal(values, np.arange(values.size))
    return int(values.size) if is_range else None


def _holds(argument: object, node: object) -> bool:
    return argument is node or (isinstance(argument, (list, tuple)) and node in argument)
