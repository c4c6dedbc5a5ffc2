"""Sizes as integer expressions of symbols."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tmconvert.ir.broadcasting import broadcast_shapes
from tmconvert.ir.symbolic import signs as signs_module
from tmconvert.ir.symbolic.clamps import maximum, minimum
from tmconvert.ir.symbolic.dims import (
    Dim,
    Positive,
    Symbol,
    dim,
    example,
    is_symbolic,
    of,
    substituted,
    symbols_of,
)
from tmconvert.ir.symbolic.journal import Guard, SizeJournal, retried
from tmconvert.ir.symbolic.rounded import Steps, rounded
from tmconvert.ir.symbolic.signs import box_of_zero, interval_of_zero, limit_of_zero, signs, thresholds
from tmconvert.ir.symbolic.text import is_size_name, parse_size

batch, height, width = dim("batch", 2), dim("height", 224), dim("width", 224)
SYMBOLS = {name: symbol for size in (batch, height, width) for name, symbol in size.symbols.items()}

leaf = st.sampled_from(["batch", "height", "width"]) | st.integers(-9, 9).map(str)


def _joined(children: Any) -> Any:
    plain = st.tuples(children, st.sampled_from("+-*"), children).map(lambda t: f"({t[0]}{t[1]}{t[2]})")
    divided = st.tuples(children, st.sampled_from(["//", "%"]), st.integers(1, 9)).map(
        lambda t: f"({t[0]}{t[1]}{t[2]})"
    )
    by_size = st.tuples(children, st.sampled_from(["batch", "(height*batch)", "(width+1)"])).map(
        lambda t: f"({t[0]}//{t[1]})"
    )
    return plain | divided | by_size


expressions = st.recursive(leaf, _joined, max_leaves=8)
sizes = st.fixed_dictionaries({name: st.integers(2, 60) for name in SYMBOLS})


def _symbolic(text: str) -> Any:
    return eval(text, {"batch": batch, "height": height, "width": width})


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(expressions, sizes)
def test_the_canonical_form_computes_the_same(text: str, values: dict[str, int]) -> None:
    made = _symbolic(text)
    assert substituted(made, values) == eval(text, dict(values))
    assert parse_size(str(made), SYMBOLS) == made


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(expressions, sizes)
def test_what_is_certain_is_true(text: str, values: dict[str, int]) -> None:
    value = substituted(_symbolic(text), values)
    assert ((value > 0) - (value < 0)) in signs(_symbolic(text))


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(expressions, expressions)
def test_equal_expressions_hash_equal(first: str, second: str) -> None:
    a, b = _symbolic(first), _symbolic(second)
    assert (a + b) == (b + a) and hash(a + b) == hash(b + a)
    assert a * b - b * a == 0
    assert a + b - b == a


@pytest.mark.parametrize(
    ("made", "text"),
    [
        ((batch * 12 * 4) // (12 * 4), "batch"),
        ((batch * height * width) // (height * width), "batch"),
        ((batch * 3 * height) // batch, "3*height"),
        ((height - 1) // 2 + 1, "floor((height+1)/2)"),
        (-(-height // 2), "floor((height+1)/2)"),
        ((height // 2) // 2, "floor(height/4)"),
        (((height - 1) // 2 + 1 - 1) // 2 + 1, "floor((height+3)/4)"),
        (4 * height // 2, "2*height"),
        ((2 * height + 3) // 4, "floor((height+1)/2)"),
        (height % 1, "0"),
        (batch * height // (7 * batch), "floor(height/7)"),
        (height // (height + 1), "0"),
        (7 - height, "7-height"),
        (-height, "-height"),
        (batch**2, "batch*batch"),
        (np.int64(3) * batch, "3*batch"),
        (math.prod([2, batch, 3]), "6*batch"),
        (math.floor(batch), "batch"),
    ],
)
def test_printing(made: Any, text: str) -> None:
    assert str(made) == text


def test_comparisons_that_hold_for_all_sizes() -> None:
    with SizeJournal() as journal:
        assert batch > 1 and batch >= 2 and batch != 1 and batch != 0 and bool(batch)
        assert height + 2 > height and height // 2 <= height and height - 1 >= 1
        assert -(-height // 2) * 2 >= height
        assert (height + 1) // 2 >= height // 2
        assert batch * height - batch > 0
        assert height < math.inf and height > -math.inf and not height < 1.5
    assert not journal.guards and not journal.specialized and not journal.coincidences


def test_inequalities_that_the_example_decides_are_noted() -> None:
    with SizeJournal() as journal:
        assert height >= 7 and not height - 300 > 0 and height > 3
        assert height // 32 > 1 and width - batch > 0
    (text,) = journal.summary()
    assert text == "the file is valid for these sizes: height >= 64, height <= 300, width-batch > 0"


def test_an_equality_by_chance_counts_only_where_nothing_else_works() -> None:
    def narrow() -> int:
        if height != 224:
            raise ValueError
        return 1

    with SizeJournal() as journal:
        journal.place = "pool"
        assert height != 224 and height != width
        assert not journal.specialized
        assert retried(narrow, ValueError) == 1
    assert journal.specialized == {"height": 224}
    assert journal.reasons == {"height": "height is specialized to 224: pool requires height == 224"}


@pytest.mark.parametrize("multiple", [2, 8, 32])
def test_a_size_that_must_come_out_even_is_a_multiple(multiple: int) -> None:
    with SizeJournal() as journal:
        journal.place, journal.guided = "cat", True
        assert height // multiple * multiple == height
        assert -(-height // 2) * 2 == height
    even = journal.specialized["height"]
    assert even == dim("height", 224, multiple) and str(even) == "height" and example(even) == 224
    assert journal.reasons["height"] == f"height is a multiple of {multiple}: cat needs equal sizes"
    assert even // multiple * multiple == even and str(even // 2 + 1) == "height/2+1"
    assert str(even // 64) == f"floor((height/{multiple})/{64 // multiple})"
    assert substituted(even // 2, {"height": 448}) == 224
    for size in (even // 2, 3 * even + 1, even // 64, (even // 2 + 1) * batch):
        assert parse_size(str(size), {**SYMBOLS, **even.symbols}) == size


def test_two_symbols_are_bound_to_each_other() -> None:
    with SizeJournal(["height", "width"]) as journal:
        journal.place, journal.guided = "add", True
        assert height == width
    assert journal.specialized == {"width": height}
    assert journal.reasons["width"] == "width is height: add requires them to be equal"


@pytest.mark.parametrize("use", [int, range, float, lambda size: [0] * size, lambda size: size * 0.5])
def test_a_number_freezes(use: Any) -> None:
    with SizeJournal() as journal:
        journal.place = "head"
        use(4 * batch)
    assert journal.specialized == {"batch": 2}
    assert journal.reasons == {"batch": "batch is specialized to 2: head requires a static size"}


def test_broadcasting() -> None:
    assert broadcast_shapes((batch, 1, 3), (4, 1)) == (batch, 4, 3)
    assert broadcast_shapes((2, 1), (3,)) == (2, 3)
    with SizeJournal() as journal:
        with pytest.raises(ValueError, match=r"\(batch,\), \(2,\) do not broadcast"):
            broadcast_shapes((batch,), (2,))
        assert retried(lambda: broadcast_shapes((batch,), (2,)), ValueError)
    assert journal.specialized == {"batch": 2}


def test_trees_of_sizes() -> None:
    shape = (batch, 3, height // 2)
    assert is_symbolic(shape) and not is_symbolic((1, 2))
    assert list(symbols_of(shape)) == ["batch", "height"]
    assert substituted(shape, {"height": 9}) == (batch, 3, 4)
    assert [example(size) for size in shape] == [2, 3, 112]
    assert isinstance(shape[0], Dim)


@pytest.mark.parametrize(
    "text", ["", "batch+", "n", "floor(batch/0)", "(batch", "batch batch", "2**3", "a;b", "(" * 99]
)
def test_texts_that_are_no_size(text: str) -> None:
    with pytest.raises(ValueError):
        parse_size(text, SYMBOLS)


def test_names_of_sizes() -> None:
    assert is_size_name("batch") and is_size_name("_n1")
    assert not any(map(is_size_name, ["", "1n", "a b", "floor", "none", "ä"]))


def test_minimum_and_maximum_are_exact() -> None:
    n, m = dim("n", 5), dim("m", 4)
    first = minimum(n, 10)
    assert str(first) == "min(n,10)" and str(maximum(n - 3, 0)) == "max(n-3,0)"
    assert parse_size(str(first), symbols_of([n])) == first
    for number in (1, 9, 10, 30):
        assert substituted([first], {"n": number}) == [min(number, 10)]
    with SizeJournal() as journal:
        assert 0 <= first <= n and first <= 10 and minimum(n, m) <= m and minimum(n, m) > 0
        assert minimum(n, 10) - n <= 0 and maximum(n, 1) == n
    assert not journal.guards and not journal.specialized


def test_where_clamps_of_several_sizes_are_zero() -> None:
    n, m = dim("n", 5), dim("m", 4)
    total = maximum(n + m - 9, 0)
    for value in (total, 2 * total, total - maximum(m - 9, 0), 3 * maximum(n - 9, 0) - 3 * total):
        assert isinstance(value, Dim)
        limit = limit_of_zero(value)
        assert limit == n + m - 9
        for sizes in ({"n": a, "m": b} for a in range(1, 12) for b in range(1, 12)):
            zero, most = substituted([value, limit], sizes)
            assert (zero == 0) == (most <= 0)
    for value in (total + 1, total - n, total + maximum(m - 9, 0), total - maximum(n - m, 0), n - m):
        assert limit_of_zero(value) is None


def test_the_range_in_which_clamps_of_two_sizes_are_as_in_the_example() -> None:
    height, width = dim("h", 8), dim("w", 10)

    def shown(size: Any) -> Any:  # of a window of this size in the middle of 12, cut off at both ends
        first = (12 - size) // 2
        return minimum(first + size, 12) - maximum(first, 0)

    value = shown(height) * shown(width) - height * width
    assert isinstance(value, Dim)
    box = box_of_zero(value)
    assert box is not None and {(symbol.name, most) for symbol, _, most in box} == {("h", 12), ("w", 12)}
    for sizes in ({"h": a, "w": b} for a in range(1, 13) for b in range(1, 13)):
        assert substituted([value], sizes) == [0]
    assert substituted([value], {"h": 13, "w": 3}) != [0]
    assert box_of_zero(value + 1) is None and box_of_zero(height - width) is None


@pytest.mark.parametrize("columns", [1, 10, 22])
@pytest.mark.parametrize("part", [1, 2, 6])
def test_a_table_cut_to_a_part_of_a_size_has_even_rows_up_to_its_length(part: int, columns: int) -> None:
    width = dim("width", 12)
    uneven = (columns * minimum(width // part, 64)) % (width // part)
    assert isinstance(uneven, Dim)
    found = interval_of_zero(uneven)
    assert found is not None and found[1:] == (part if part > 1 else 2, 65 * part - 1)
    assert thresholds([uneven])["width"] == 64 * part


@pytest.mark.parametrize("length", [64, 8192, 100_000])
def test_a_table_cut_to_a_size_is_as_long_as_that_up_to_its_length(length: int) -> None:
    size = dim("n", 12)
    value = size - minimum(size, length)
    assert isinstance(value, Dim)
    found = interval_of_zero(value)
    assert found is not None and found[1:] == (2, length)


@pytest.mark.parametrize("length", [40, 4096, 4097, 16_000])
def test_clamp_of_a_long_example_has_no_upper_limit(length: int) -> None:
    samples = dim("samples", length)
    value = maximum(samples // 10 - 1, 0) - (samples // 10 - 1)
    assert isinstance(value, Dim)
    box = box_of_zero(value)
    assert box is not None and [(lowest, most) for _, lowest, most in box] == [(10, None)]
    limited = dim("samples", length, lowest=2, most=20_000)
    value = maximum(limited // 10 - 1, 0) - (limited // 10 - 1)
    assert isinstance(value, Dim)
    box = box_of_zero(value)
    assert box is not None and [(lowest, most) for _, lowest, most in box] == [(10, 20_000)]


def test_halves_rounded_up_and_down_are_the_whole() -> None:
    with SizeJournal() as journal:
        height, width = dim("h", 60, 4), dim("w", 52, 4)
        rows, columns = height // 4, width // 4
        even = (rows + rows % 2) // 2, (columns + columns % 2) // 2
        assert (rows + 1) // 2 * ((columns + 1) // 2) == even[0] * even[1]
        assert signs((height + 8) // 16 + height // 16 - height // 8) == {0}
        assert not journal.guards and not journal.specialized


def test_signs_of_nested_clamps_do_not_compare_them_by_their_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each clamp has two cases; comparing two clamps by their signs would square the number of calls."""

    def nested(shift: int) -> Any:
        size = of(Symbol("n", 7)) - shift
        for step in range(6):
            size = of(Positive(size)) * 2 - (step + shift)
        return size

    calls, by_case = list[Any](), signs_module._signs_by_case
    monkeypatch.setattr(signs_module, "_signs_by_case", lambda value: calls.append(value) or by_case(value))
    assert signs_module.signs(nested(3) - nested(4)) == {-1, 0, 1}
    assert len(calls) < 600, len(calls)


def test_a_quotient_by_a_size_that_may_be_0_is_clamped() -> None:
    """A batch of 1 would divide by 0 here; the model itself fails for it."""
    size = dim("n", 8)
    clamped = minimum(10 * size // (size // 2), 19)
    assert isinstance(clamped, Dim) and str(clamped) == "min(floor((10*n)/(floor(n/2))),19)"
    assert [substituted(clamped, {"n": number}) for number in (2, 3, 8)] == [19, 19, 19]
    assert substituted(maximum(10 * size // (size // 2) - 22, 0), {"n": 3}) == 8


def test_formulas_with_shared_parts_are_walked_once() -> None:
    """As a tree, twelve levels have more than a million parts."""
    height, width = dim("height", 40), dim("width", 48)
    for _ in range(12):
        padding = maximum(height % 2, width % 2)
        height, width = (height + padding) // 2, (width + padding) // 2
    assert set(height.symbols) == {"height", "width"}
    calls = []
    height.at(lambda symbol: calls.append(symbol) or 4096)
    assert len(calls) < 1000


def test_remainders_are_shown_as_such() -> None:
    size = dim("n", 6)
    with SizeJournal() as journal:
        journal.take(size % 4 - 2, {0, 1})
        journal.take(size % 3, {0})
        journal.take((size + 1) % 5 - 1, {-1, 1})
    assert journal.summary() == ["the file is valid for these sizes: n % 4 >= 2, n % 3 == 0, (n+1) % 5 != 1"]


@pytest.mark.parametrize(("size", "expected"), [(2, False), (3, True), (9, False)])
def test_a_guard_does_not_hold_where_its_size_has_no_value(size: int, expected: bool) -> None:
    for quotient in (rounded("floor", Steps("truediv", 6.0, dim("n", 3) - 2)), 6 // (dim("n", 3) - 2)):
        guard = Guard(quotient - 2, frozenset({1}))
        assert guard.holds({"n": size}) is expected
