"""The comparison of recordings: matching items, common prefixes and tails."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from tmconvert.errors.source import Source  # noqa: E402
from tmconvert.frontends.torch.tracing.control_flow.alignment import (  # noqa: E402
    Correspondence,
    Demands,
    common_prefix,
    fit,
    match,
    tails,
)
from tmconvert.frontends.torch.tracing.recording.tape import Record, Scope, Value  # noqa: E402


class Recording:
    """Builds the items of a scope, as a run would record them."""

    def __init__(self) -> None:
        self.scope = Scope("", "Model")
        self.x = self.value()

    def value(self, shape=(2, 3), **options):
        return Value(self.scope, "out", shape, "float32", **options)

    def call(self, name, *args, shape=(2, 3)):
        result = self.value(shape)
        self.scope.items.append(Record(name, True, args, {}, result, Source("")))
        return result


def longest(ones, twos, demands):
    """Returns the longest common tail all of whose joins fit."""
    return [tail for tail in tails(ones, twos, demands) if all(fit(*pair) for pair in tail.joins)][-1]


def aligned(one: Recording, two: Recording, results):
    known = Correspondence([(one.x, two.x)])
    prefix = common_prefix(one.scope.items, two.scope.items, known)
    rest = one.scope.items[prefix:], two.scope.items[prefix:]
    return prefix, longest(*rest, Demands(known, [results]))


def test_calls_before_and_after_a_difference_are_common():
    one, two = Recording(), Recording()
    results = []
    for recording, name in ((one, "relu"), (two, "tanh")):
        y = recording.call(name, recording.call("exp", recording.x))
        results.append(recording.call("add", recording.call("neg", y), recording.x))
    prefix, tail = aligned(one, two, tuple(results))
    assert (prefix, tail.length) == (1, 2)
    assert tail.joins == [(one.scope.items[1].result, two.scope.items[1].result)]


def test_a_side_without_calls_joins_what_was_before():
    one, two = Recording(), Recording()
    results = one.call("neg", one.call("relu", one.x)), two.call("neg", two.x)
    prefix, tail = aligned(one, two, results)
    assert (prefix, tail.length) == (0, 1)
    assert tail.joins == [(one.scope.items[0].result, two.x)]


def test_the_tail_ends_where_types_differ_or_uses_cross():
    one, two = Recording(), Recording()
    shorter = one.call("narrow", one.x, shape=(2, 2)), two.call("narrow2", two.x, shape=(2, 3))
    ends = one.call("sum", shorter[0], shape=(2,)), two.call("sum", shorter[1], shape=(2,))
    results = one.call("neg", ends[0], shape=(2,)), two.call("neg", ends[1], shape=(2,))
    assert aligned(one, two, results)[1].length == 1

    one, two = Recording(), Recording()
    a, b = one.call("exp", one.x), one.call("exp", one.x)
    c, d = two.call("exp", two.x), two.call("exp", two.x)
    known = Correspondence([(one.x, two.x)])
    results = one.call("sub", a, b), two.call("sub", d, c)
    tail = longest(one.scope.items, two.scope.items, Demands(known, [results]))
    assert (tail.length, tail.joins) == (1, [(a, d), (b, c)])


def test_constants_match_by_type_value_and_sign():
    recording = Recording()
    items = recording.scope.items
    for number in (1, 1.0, 0.0, -0.0, float("nan"), float("nan"), True):
        recording.call("leaky_relu", recording.x, number)
    equal = {(i, j) for i, a in enumerate(items) for j, b in enumerate(items) if i < j and match(a, b)}
    assert equal == {(4, 5)}


def test_numbers_in_the_place_of_tensors_are_a_pair():
    recording = Recording()
    items = recording.scope.items
    for number in (1.0, 2.0, 2):
        recording.call("add", recording.x, number)
    found = match(items[0], items[1])
    assert [value.captured.item() for value in found.used[1]] == [1.0, 2.0]
    assert match(items[0], items[2]) is None


def test_equal_tensors_are_one_constant_and_different_ones_a_pair():
    recording = Recording()
    tensors = torch.ones(2), torch.ones(2), torch.zeros(2)
    values = [recording.value(captured=tensor) for tensor in tensors]
    for value in values:
        recording.call("add", recording.x, value)
    first, same, other = recording.scope.items
    assert match(first, same).used == [(recording.x, recording.x)]
    assert match(first, other).used[1] == (values[0], values[2])


def test_module_calls_match_with_all_that_is_inside():
    def scope(name="exp", path="layer"):
        recording = Recording()
        recording.scope.path, recording.scope.args = path, (recording.x,)
        recording.scope.result = recording.call("neg", recording.call(name, recording.x))
        return recording.scope

    one, two = scope(), scope()
    found = match(one, two)
    assert found.used == [(one.args[0], two.args[0])] * 2
    assert len(found.made) == 2
    assert match(one, scope("tanh")) is None
    assert match(one, scope(path="other")) is None
