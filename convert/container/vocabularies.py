"""The vocabularies that a container names."""

from __future__ import annotations

from tmconvert.container.faults import unknown_vocabulary
from tmconvert.container.values import text
from tmconvert.frontends.registry import vocabulary_named
from tmconvert.ir.traced_module import Vocabulary


def vocabulary_called(identifier: object) -> Vocabulary:
    """Returns the vocabulary of an identifier. Raises LoadError TM1012 for an unknown one."""
    name = text(identifier, "the vocabulary")
    vocabulary = vocabulary_named(name)
    if vocabulary is None:
        raise unknown_vocabulary(name)
    return vocabulary
