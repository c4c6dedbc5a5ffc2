"""Recognizes the text of a Caffe net."""

from __future__ import annotations

import re

# The first fields of a net; texts of other messages, and programs, begin differently.
_FIELD = re.compile(
    r"""(?: \s | \#[^\n]*\n )*
        (?: (?:name|input) \s* : \s* ["']
          | (?:layers?|input_shape|state) \s* :? \s* [{<]
          | (?:input_dim|force_backward|debug_info) \s* : )""",
    re.VERBOSE,
)
_LAYER = re.compile(r"(?:^|\s)(?:layers?\s*:?\s*[{<]|input\s*:)")


def is_prototxt(head: bytes) -> bool:
    """Whether a file that begins with ``head`` is the text of a Caffe net."""
    text = head.decode("utf-8", "replace").removeprefix("\ufeff")
    return "\0" not in text and bool(_FIELD.match(text)) and bool(_LAYER.search(text))
