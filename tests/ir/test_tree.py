"""Leaves of nested values, in order."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tmconvert.ir import Node
from tmconvert.ir.tree import leaves, leaves_of, map_leaves, map_objects


class Pair(NamedTuple):
    first: Any
    second: Any


PLAIN = st.one_of(st.integers(), st.floats(allow_nan=False), st.booleans(), st.text(max_size=2), st.none())
LEAVES = st.one_of(PLAIN, st.builds(Node, st.just("x")), st.binary(max_size=2))
TREES = st.recursive(
    LEAVES,
    lambda part: st.one_of(
        st.lists(part, max_size=4),
        st.lists(part, max_size=4).map(tuple),
        st.dictionaries(st.text(max_size=2), part, max_size=3),
        st.builds(slice, part, part, part),
        st.builds(Pair, part, part),
    ),
    max_leaves=20,
)


@given(TREES)
def test_leaves_of_a_class_are_those_among_all(tree: Any) -> None:
    for kind in (Node, bytes):
        expected = [leaf for leaf in leaves(tree) if isinstance(leaf, kind)]
        found = leaves_of(kind, tree)
        assert len(found) == len(expected)
        assert all(one is other for one, other in zip(found, expected, strict=True))


@pytest.mark.slow
@given(st.dictionaries(st.text(max_size=2), TREES, max_size=3))
def test_objects_are_mapped_as_leaves_are(trees: dict[str, Any]) -> None:
    def function(leaf: object) -> object:
        return leaf.name if isinstance(leaf, Node) else leaf

    made = map_objects(function, trees)
    assert made == map_leaves(function, trees)
    assert all(made[name] is not tree for name, tree in trees.items() if isinstance(tree, list))
