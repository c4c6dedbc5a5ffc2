"""Frontends of one function or one vocabulary, for plugins that need no class of their own."""

from __future__ import annotations

from collections.abc import Callable

from tmconvert.errors import UsageError
from tmconvert.frontends.frontend import Frontend, LoadRequest
from tmconvert.frontends.registry import check_model, known_frontends, register_frontend
from tmconvert.frontends.shared.vocabulary import AdapterVocabulary
from tmconvert.ir import TracedModule


class _Reader(Frontend):
    name = ""
    title = "a plugin"

    def __init__(self, recognizes: Callable[[bytes], bool], load: Callable[[str], TracedModule]) -> None:
        self._recognizes, self._load = recognizes, load

    def recognizes(self, head: bytes) -> bool:
        return self._recognizes(head)

    def load(self, path: str, request: LoadRequest) -> TracedModule:
        module = self._load(path)
        check_model(module, self._load)
        return module


class _Words(Frontend):
    name = ""
    title = "a plugin"

    def __init__(self, vocabulary: AdapterVocabulary) -> None:
        self._vocabulary = vocabulary

    def vocabulary(self, identifier: str) -> AdapterVocabulary | None:
        return self._vocabulary if identifier == self._vocabulary.identifier else None


def register_vocabulary(vocabulary: AdapterVocabulary) -> None:
    """Registers a frontend that has a vocabulary alone, so that containers with its models can be read.

    Raises UsageError TM6021 for an identifier that is registered.

    >>> register_vocabulary(TinyVocabulary())  # doctest: +SKIP
    """
    if any(each.vocabulary(vocabulary.identifier) is not None for each in known_frontends()):
        raise UsageError("TM6021", f"the vocabulary {vocabulary.identifier!r} is already registered")
    register_frontend(_Words(vocabulary))


def register_reader(recognizes: Callable[[bytes], bool], load: Callable[[str], TracedModule]) -> None:
    """Registers a frontend that reads a kind of file, so that ``tmconvert.load`` and all commands read it.

    ``recognizes`` gets the first 4096 bytes of a file, ``load`` the path of a file that it recognizes.
    Built-in kinds come first.

    >>> register_reader(lambda head: head.startswith(b"TINY"), load_tiny)  # doctest: +SKIP
    """
    register_frontend(_Reader(recognizes, load))
