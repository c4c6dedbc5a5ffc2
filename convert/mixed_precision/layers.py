"""The layers of a model that rules can name, and short rules for a choice of their types."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from glob import escape
from typing import NamedTuple

from tmconvert.calibration.placement import fused_calls, kinds, names_of_call
from tmconvert.calibration.preparation import Calibration
from tmconvert.calibration.settings import Settings
from tmconvert.ir import Input


class Layer(NamedTuple):
    """The calls that compute a tensor which calibration measures: one, and the clamps that are fused into it.

    ``names`` are those by which a rule matches all of these calls: the result of the first one and the paths
    of its modules. ``names_of_clamps`` match the clamps only. ``path`` is where the layer is
    in the model. An input is a layer, too.
    """

    names: tuple[str, ...]
    names_of_clamps: tuple[str, ...] = ()
    path: str = ""
    is_input: bool = False


def layers_of(work: Calibration, settings: Settings) -> list[Layer]:
    """Returns the layers of a model in the order of its graph, without those that have a rule already."""
    of_user = kinds(work.graph, [(pattern, "int8") for pattern in settings.rules], "float")
    found = []
    for node in work.nodes:
        if node.expr is not None and of_user(node.expr) == "float":
            *clamps, first = fused_calls(work.graph, node.expr)
            fused = {name for call in clamps for name in names_of_call(call)}
            names = _distinct(names_of_call(first))
            path = (first.source and first.source.scope) or node.name
            found.append(Layer(names, _distinct(fused - {*names}), path, isinstance(first, Input)))
    return merged(found)


def merged(layers: Sequence[Layer]) -> list[Layer]:
    """Merges layers that no rule tells apart, as all names of one are names of the other, too.

    They are two clamps of one result, or a module with the name of an input.
    """
    places: dict[str, set[int]] = {}
    for place, layer in enumerate(layers):
        for name in (*layer.names, *layer.names_of_clamps):
            places.setdefault(name, set()).add(place)
    found = list(layers)
    of_group = list(range(len(layers)))
    for place, layer in enumerate(layers):
        for other in set.intersection(*(places[name] for name in layer.names)) - {place}:
            one, two = sorted((of_group[place], of_group[other]))
            common = [name for name in found[one].names if name in found[two].names]
            if one != two and common:
                found[one] = _union(found[one], found[two], common)
                of_group = [one if each == two else each for each in of_group]
    return [found[place] for place in dict.fromkeys(of_group)]


def _union(one: Layer, other: Layer, common: Sequence[str]) -> Layer:
    every = (*one.names, *one.names_of_clamps, *other.names, *other.names_of_clamps)
    others = _distinct(set(every) - set(common))
    return Layer(tuple(common), others, one.path, one.is_input and other.is_input)


def _distinct(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(names)))


def short_rules(types: Mapping[Layer, str | None]) -> dict[str, str] | None:
    """Returns rules that give each layer its type; None is the type of layers without a rule.

    The result is None where a layer has no name that others do not have.

    A rule names as many layers as it can: by the path of a module, by how their names begin, or alone.
    Inputs are in int16x8 where they were to be in float, since layers in integers may use them.

    Example:
        >>> conv, pool = Layer(("a", "a_conv")), Layer(("a", "a_pool"))
        >>> short_rules({conv: "float", pool: "float", Layer(("b",)): None})
        {'a': 'float'}
    """
    types = {
        layer: "int16x8" if layer.is_input and kind == "float" else kind for layer, kind in types.items()
    }
    rules: dict[str, str] = {}
    for kind in dict.fromkeys(filter(None, types.values())):
        wanted = {layer for layer, chosen in types.items() if chosen == kind}
        patterns = _patterns(wanted, types.keys() - wanted)
        if patterns is None:
            return None
        rules |= dict.fromkeys(patterns, kind)
    return rules


def _patterns(wanted: set[Layer], others: set[Layer]) -> list[str] | None:
    """Returns few patterns that match all wanted layers, and no other one; None where there are none."""
    if not others:
        return ["*"]
    refused = {pattern for layer in others for pattern in _matching(layer.names + layer.names_of_clamps)}
    covers: dict[str, set[Layer]] = {}
    for layer in wanted:
        for pattern in _matching(layer.names) - refused:
            covers.setdefault(pattern, set()).add(layer)
    left, found = set(wanted), []
    if left - set().union(*covers.values()):
        return None
    while left:
        best = min(covers, key=lambda pattern: (-len(covers[pattern] & left), len(pattern), pattern))
        found.append(best)
        left -= covers[best]
    return found


def _matching(names: Iterable[str]) -> set[str]:
    """Returns the patterns that match names: the names, and their beginnings up to a separator."""
    found = set(map(escape, names))
    for name in names:
        found |= {escape(name[: match.end()]) + "*" for match in re.finditer(r"[_./:]", name)}
    return found
