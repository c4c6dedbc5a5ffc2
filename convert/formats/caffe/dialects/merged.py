"""All dialects as one, in which the text of any net can be read.

In a text fields have names and no numbers, so that a number that two dialects give to different fields is
replaced. The caffemodel is not read by this dialect.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tmconvert.formats.caffe.dialects.dialect import Dialect
from tmconvert.formats.caffe.layers import LAYERS
from tmconvert.formats.caffe.old_layers import ENUMS, MESSAGES

NAME = "merged"
_FREE = 1_000_000  # the first number of fields whose own number another dialect uses
_LAYERS = "2 layers:*V1LayerParameter"


def merged(dialects: Sequence[Dialect]) -> Dialect:
    """Returns a dialect with all layers, the fields of these dialects, and layers of the format V1."""
    messages = dict(MESSAGES)
    for name in dict.fromkeys(name for dialect in dialects for name in dialect.messages):
        found = [dialect.messages[name] for dialect in dialects if name in dialect.messages]
        messages[name] = _union([*found, _LAYERS] if name == "NetParameter" else found)
    enums = {name: values for dialect in dialects for name, values in dialect.enums.items()}
    return Dialect(NAME, "Caffe", frozenset(LAYERS), messages, {**enums, **ENUMS}, trains=True)


def _union(all_fields: Iterable[str]) -> str:
    """Returns the fields of several forms of a message; a float is preferred to an integer."""
    found: dict[str, tuple[str, str]] = {}
    for text in (text.strip() for fields in all_fields for text in fields.split(",")):
        number, rest = text.split(" ")
        name, _, form = rest.partition(":")
        if name not in found or (form.startswith("float") and "int32" in found[name][1]):
            found[name] = number, form
    taken: set[str] = set()
    made = []
    for index, (name, (number, form)) in enumerate(found.items()):
        own = str(_FREE + index) if number in taken else number
        taken.add(own)
        made.append(f"{own} {name}:{form}")
    return ", ".join(made)
