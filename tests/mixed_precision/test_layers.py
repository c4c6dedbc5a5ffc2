"""Rules for a choice of types are few, and give each layer its type."""

from __future__ import annotations

from fnmatch import fnmatchcase

from hypothesis import given
from hypothesis import strategies as st

from tmconvert.mixed_precision.layers import Layer, merged, short_rules

PARTS = st.sampled_from(("a", "b", "conv", "conv2", "x[0]", "*", "?"))
NAMES = st.lists(PARTS, min_size=1, max_size=4).map("_".join)
KINDS = st.sampled_from((None, "int16x8", "float"))


@given(st.lists(st.tuples(NAMES, KINDS), max_size=30, unique_by=lambda pair: pair[0]))
def test_each_layer_gets_its_type(chosen: list[tuple[str, str | None]]) -> None:
    types = {Layer((name, "model")): kind for name, kind in chosen}
    rules = short_rules(types)
    assert rules is not None
    for layer, kind in types.items():
        matches = [
            rule for pattern, rule in rules.items() if any(fnmatchcase(n, pattern) for n in layer.names)
        ]
        assert (matches[-1] if matches else None) == kind
    assert len(rules) <= sum(kind is not None for kind in types.values())


def test_a_module_or_a_prefix_names_many_layers() -> None:
    one = {Layer((f"conv_{number}", "body")): "float" for number in range(5)}
    assert short_rules({**one, Layer(("head_conv", "head")): None}) == {"body": "float"}
    two = {Layer((f"conv_{number}",)): "int16x8" for number in range(5)}
    assert short_rules({**two, Layer(("head_conv",)): None}) == {"conv_*": "int16x8"}
    assert short_rules(one) == {"*": "float"}


def test_a_name_that_a_clamp_of_another_layer_has_is_no_rule() -> None:
    types = {Layer(("conv", "body")): "float", Layer(("other",), ("body",)): None}
    assert short_rules(types) == {"conv": "float"}


def test_an_input_is_in_int16_where_it_was_to_be_in_float() -> None:
    types = {Layer(("x",), is_input=True): "float", Layer(("y",)): "float", Layer(("z",)): None}
    assert short_rules(types) == {"x": "int16x8", "y": "float"}


def test_layers_that_no_rule_tells_apart() -> None:
    one, other, third = Layer(("g",), ("r",)), Layer(("g",), ("q",)), Layer(("h",))
    assert short_rules({one: "float", other: None}) is None
    assert short_rules({one: "float", other: None, third: "float"}) is None
    assert short_rules({one: "float", other: "float", third: None}) == {"g": "float"}
    assert merged([one, third, other]) == [Layer(("g",), ("q", "r")), third]


def test_an_input_with_the_name_of_a_module() -> None:
    given = Layer(("input",), path="input", is_input=True)
    linear, out = Layer(("input", "linear_out"), path="input"), Layer(("out", "out_out"), path="out")
    assert merged([given, linear, out]) == [Layer(("input",), ("linear_out",), "input"), out]


@given(st.lists(st.lists(NAMES, min_size=1, max_size=3).map(lambda each: Layer(tuple(each))), max_size=12))
def test_rules_for_layers_of_any_names_end(layers: list[Layer]) -> None:
    groups = merged(layers)
    for kind_of in (
        lambda place: "float" if place % 2 else None,
        lambda place: "int16x8" if place % 3 else "float",
    ):
        types = {layer: kind_of(place) for place, layer in enumerate(groups)}
        rules = short_rules(types)
        for layer, kind in types.items() if rules is not None else ():
            matches = [
                rule for pattern, rule in rules.items() if any(fnmatchcase(n, pattern) for n in layer.names)
            ]
            assert (matches[-1] if matches else None) == kind
