"""Frontends that other packages and plugins add: readers of their files, and their vocabularies.

An installed package names its module in the entry-point group ``tmconvert.frontends``. The module is imported
when a file or container is met that no built-in frontend knows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import NamedTuple

from tmconvert.errors import UsageError
from tmconvert.errors.source import Source
from tmconvert.errors.values import type_and_value
from tmconvert.frontends.shared.vocabulary import AdapterVocabulary
from tmconvert.ir import TracedModule
from tmconvert.symbolics.plugins import load_installed

GROUP = "tmconvert.frontends"


class Reader(NamedTuple):
    """Reads one kind of file: ``recognizes`` gets its first 4096 bytes, ``load`` its path."""

    recognizes: Callable[[bytes], bool]
    load: Callable[[str], TracedModule]


_vocabularies: dict[str, AdapterVocabulary] = {}
_readers: list[Reader] = []


def register_vocabulary(vocabulary: AdapterVocabulary) -> None:
    """Registers the vocabulary of another package's frontend, so that containers with its models can be read.

    Raises UsageError TM6021 for an identifier that is registered.

    >>> register_vocabulary(TinyVocabulary())
    """
    if vocabulary.identifier in _vocabularies:
        raise UsageError("TM6021", f"the vocabulary {vocabulary.identifier!r} is already registered")
    _vocabularies[vocabulary.identifier] = vocabulary


def register_reader(recognizes: Callable[[bytes], bool], load: Callable[[str], TracedModule]) -> None:
    """Registers a kind of file, so that ``tmconvert.load`` and all commands read it.

    ``recognizes`` gets the first 4096 bytes of a file, ``load`` the path of a file that it recognizes.
    Built-in kinds come first.

    >>> register_reader(lambda head: head.startswith(b"TINY"), load_tiny)
    """
    _readers.append(Reader(recognizes, load))


def read_by(reader: Reader, path: str) -> TracedModule:
    """Reads a file. Raises UsageError TM6020 for a reader that returns something else than a model."""
    module = reader.load(path)
    if isinstance(module, TracedModule):
        return module
    code = getattr(reader.load, "__code__", None)
    name = getattr(reader.load, "__name__", "load")
    raise UsageError(
        "TM6020",
        f"the reader {name} of a plugin returned {type_and_value(module)}, not a TracedModule",
        source=Source("") if code is None else Source(code.co_filename, code.co_firstlineno),
    )


def registered_vocabulary(identifier: str) -> AdapterVocabulary | None:
    """Returns the vocabulary that another package registered under this identifier."""
    _load_packages()
    return _vocabularies.get(identifier)


def registered_reader(head: bytes) -> Reader | None:
    """Returns the reader of another package for a file that begins with ``head``, if any."""
    _load_packages()
    return next((each for each in _readers if each.recognizes(head)), None)


@contextmanager
def temporary_frontends() -> Iterator[None]:
    """Context manager that undoes registrations at its end."""
    _load_packages()
    vocabularies, readers = dict(_vocabularies), list(_readers)
    try:
        yield
    finally:
        _vocabularies.clear()
        _vocabularies.update(vocabularies)
        _readers[:] = readers


@cache
def _load_packages() -> None:
    load_installed(GROUP, "a frontend")
