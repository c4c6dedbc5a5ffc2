"""The search for types of layers, on noise that is known."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fnmatch import fnmatchcase

import pytest

import tmconvert.errors
from tmconvert.mixed_precision.layers import Layer
from tmconvert.mixed_precision.search import MOST, Aim, search

LAYERS = [
    Layer((f"{module}_{number}", module), path=f"model.{module}.{number}")
    for module, count in (("spectrum", 23), ("encoder", 11), ("head", 6))
    for number in range(count)
]


def aim(decibels: float) -> Aim:
    return Aim(decibels, f"every output has {decibels:g} dB")


class Noise:
    """Measures with the noise that each layer adds in int8, a part of it in int16x8, and none in float."""

    def __init__(self, noise: Mapping[str, float], of_int16: float | None) -> None:
        self.noise, self.of_int16 = noise, of_int16
        self.measured: list[dict[str, str]] = []

    def __call__(self, rules: Mapping[str, str]) -> float | None:
        self.measured.append(dict(rules))
        total = 1e-12
        for layer in LAYERS:
            kind = chosen(layer, rules)
            if kind == "int16x8" and self.of_int16 is None:
                return None
            own = self.noise.get(layer.names[0], self.noise.get(layer.names[1], 1e-6))
            total += own * {"int8": 1.0, "int16x8": self.of_int16 or 0.0, "float": 0.0}[kind]
        return -10 * math.log10(total)


def chosen(layer: Layer, rules: Mapping[str, str]) -> str:
    found = [kind for pattern, kind in rules.items() if any(fnmatchcase(n, pattern) for n in layer.names)]
    return found[-1] if found else "int8"


def test_nothing_is_changed_where_int8_suffices() -> None:
    measure = Noise({}, 0.0)
    assert search(LAYERS, aim(30), measure) == ({}, pytest.approx(43.98, abs=0.01), 1)


@pytest.mark.parametrize("module", ["spectrum", "encoder", "head"])
@pytest.mark.parametrize("of_int16", [None, 0.5, 1e-6])
def test_a_module_with_much_noise_is_found(module: str, of_int16: float | None) -> None:
    measure = Noise({module: 0.1}, of_int16)
    found = search(LAYERS, aim(30), measure)
    assert found.rules == {module: "int16x8" if of_int16 == 1e-6 else "float"}
    assert found.value >= 30
    assert found.conversions == len(measure.measured) <= MOST


def test_single_layers_are_found_among_others() -> None:
    wrong = {"spectrum_3": 0.1, "encoder_7": 0.2, "head_5": 0.4}
    found = search(LAYERS, aim(40), Noise(wrong, None))
    kinds = {layer.names[0]: chosen(layer, found.rules) for layer in LAYERS}
    assert all(kinds[name] == "float" for name in wrong)
    assert sum(kind == "float" for kind in kinds.values()) <= 8


def test_a_ratio_that_no_rules_reach_is_an_error() -> None:
    measure = Noise({layer.names[0]: 0.1 for layer in LAYERS}, 1.0)
    text = r"TM6032.*has 30 dB, in 30 conversions; the best had \d+\.\d dB"
    with pytest.raises(tmconvert.errors.UsageError, match=text) as error:
        search(LAYERS, aim(30), measure)
    assert "also: the best: --rule" in str(error.value)
    assert len(measure.measured) == MOST


def test_the_model_of_one_layer() -> None:
    with pytest.raises(tmconvert.errors.UsageError, match="the best had"):
        search(LAYERS[:1], aim(150), Noise({}, None))


@pytest.mark.parametrize(("count", "last"), [(60, 1), (120, 4), (200, 10)])
def test_a_choice_is_found_where_few_layers_may_be_in_int8(count: int, last: int) -> None:
    layers = [Layer((f"layer_{number}",), path=f"layer.{number}") for number in range(count)]

    def measure(rules: Mapping[str, str]) -> float | None:
        kinds = [chosen(layer, rules) for layer in layers]
        return 40.0 if all(kind == "float" for kind in kinds[:-last]) else 10.0

    found = search(layers, aim(30), measure)
    assert [chosen(layer, found.rules) for layer in layers][-1] == "int8"
    assert found.conversions <= MOST


def test_rules_for_all_layers_leave_nothing_to_find() -> None:
    with pytest.raises(tmconvert.errors.UsageError, match="those that were given, for all layers, have"):
        search([], aim(30), lambda rules: 20.0)
