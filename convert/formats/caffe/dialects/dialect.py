"""A dialect of Caffe as data, from which schemas are built and with which files are checked.

The data is in ``data/*.toml``; see ``bvlc.toml`` for the form of messages and enums.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tmconvert.formats.caffe.dialects.rule import Rule
from tmconvert.formats.caffe.layers import BVLC, LAYERS, TRAINING

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class Dialect:
    """Layers, messages and rules of one reader of Caffe files.

    ``layers`` are the types of layers, whose records are in ``formats/caffe/layers``; ``messages`` and
    ``enums`` are in the form of ``bvlc.toml``. ``unconfirmed`` names the fields whose numbers no public
    document confirms: they are written as text, where numbers play no part, and left out of the caffemodel.
    """

    name: str
    title: str
    layers: frozenset[str]
    messages: Mapping[str, str]
    enums: Mapping[str, str]
    rules: tuple[Rule, ...] = ()
    unconfirmed: frozenset[str] = field(default_factory=frozenset)

    # Parameters that nets may have, and that we do not write: {"Pooling": {"global_pooling"}}.
    avoided: Mapping[str, frozenset[str]] = field(default_factory=dict)
    trains: bool = False
    # A blob that no layer reads is an output of the net, and one that a layer reads is none.
    outputs_are_unread: bool = False
    # The result of an InnerProduct has two more axes, of one element, in the reader.
    products_keep_axes: bool = False

    def knows(self, layer_type: str) -> bool:
        return layer_type in self.layers or (self.trains and layer_type in TRAINING)

    def has(self, layer_type: str, parameter: str = "") -> bool:
        """Whether there is such a layer to write, optionally with this parameter."""
        if layer_type not in self.layers or not parameter:
            return layer_type in self.layers
        if parameter in self.avoided.get(layer_type, ()):
            return False
        group = LAYERS[layer_type].parameters
        if group is None:
            return False
        return parameter in _by_name(self.messages[_by_name(self.messages["LayerParameter"])[group]])

    def reads(self, layer_type: str, parameter: str) -> bool:
        """Whether the rules let nets set this parameter of layers of the type."""
        return not any(parameter in rule.fields and layer_type in rule.layers for rule in self.rules)

    def allows(self, layer_type: str, quantity: str, number: float) -> bool:
        """Whether the rules allow this value in layers of the type."""
        return all(
            rule.allows(number)
            for rule in self.rules
            if rule.quantity == quantity and (not rule.layers or layer_type in rule.layers)
        )


def read(name: str, base: Dialect | None = None) -> Dialect:
    """Reads ``data/NAME.toml``: what a dialect adds to another, and the layers that it does not have.

    ``fields`` are added to the messages of the base. A field replaces one with the same number or name.
    """
    table = tomllib.loads((_DATA / f"{name}.toml").read_text(encoding="utf-8"))
    messages = {**(base.messages if base else {}), **table.get("messages", {})}
    for message, added in table.get("fields", {}).items():
        messages[message] = _merged(messages[message], added)
    return Dialect(
        name,
        table["title"],
        (BVLC - {*table.get("without", ())}) | {*table.get("layers", ())},
        messages,
        {**(base.enums if base else {}), **table.get("enums", {})},
        tuple(_rule(fields) for fields in table.get("rules", ())),
        frozenset(table.get("unconfirmed", ())),
        {layer: frozenset(names) for layer, names in table.get("avoided", {}).items()},
        outputs_are_unread=table.get("outputs_are_unread", False),
        products_keep_axes=table.get("products_keep_axes", False),
    )


def _rule(fields: dict[str, Any]) -> Rule:
    values: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()
    }
    return Rule(**values)


def _merged(fields: str, added: str) -> str:
    taken = {mark for text in added.split(",") for mark in _marks(text)}
    kept = [text.strip() for text in fields.split(",") if not taken & _marks(text)]
    return ", ".join([*kept, added])


def _marks(text: str) -> set[str]:
    """The number and the name of a field such as ``18 dilation:*uint32``."""
    number, rest = text.split()
    return {number, rest.partition(":")[0]}


def _by_name(fields: str) -> dict[str, str]:
    """The types of ``fields``, ``{"dilation": "*uint32"}``."""
    return {name: kind for name, _, kind in (text.split()[1].partition(":") for text in fields.split(","))}
