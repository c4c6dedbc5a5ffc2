"""The layers of a model that rules can name, and short rules for a choice of their types."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from glob import escape
from typing import NamedTuple

from tmconvert.calibration.placement import called, fused_calls, kinds
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
            fused = {name for call in clamps for name in called(call)}
            names = _distinct(called(first))
            path = (first.source and first.source.scope) or node.name
            found.append(Layer(names, _distinct(fused - {*names}), path, isinstance(first, Input)))
    return list(dict.fromkeys(found))


def _distinct(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(names)))


def short_rules(types: Mapping[Layer, str | None]) -> dict[str, str]:
    """Returns rules that give each layer its type; None is the type of layers without a rule.

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
        for pattern in _patterns(wanted, types.keys() - wanted):
            rules[pattern] = kind
    return rules


def _patterns(wanted: set[Layer], others: set[Layer]) -> Iterator[str]:
    """Returns few patterns that match all wanted layers, and no other one."""
    if not others:
        yield "*"
        return
    refused = {pattern for layer in others for pattern in _matching(layer.names + layer.names_of_clamps)}
    covers: dict[str, set[Layer]] = {}
    for layer in wanted:
        for pattern in _matching(layer.names) - refused:
            covers.setdefault(pattern, set()).add(layer)
    left = set(wanted)
    while left:
        best = min(covers, key=lambda pattern: (-len(covers[pattern] & left), len(pattern), pattern))
        yield best
        left -= covers[best]


def _matching(names: Iterable[str]) -> set[str]:
    """Returns the patterns that match names: the names, and their beginnings up to a separator."""
    found = set(map(escape, names))
    for name in names:
        found |= {escape(name[: match.end()]) + "*" for match in re.finditer(r"[_./:]", name)}
    return found
