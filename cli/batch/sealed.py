"""Seals entries of records with a key of this user's, so that only what was written here is believed."""

from __future__ import annotations

import contextlib
import functools
import hmac
import json
import os
import secrets
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tmconvert.formats.mapped_file import open_regular

_BYTES = 32
_SEAL = "seal"


def key_file() -> Path:
    """Returns the file of the key, in the folder that the system has for the state of programs."""
    state = os.environ.get("XDG_STATE_HOME") or os.environ.get("LOCALAPPDATA") or "~/.local/state"
    return Path(state).expanduser() / "tmconvert" / "record.key"


def with_seal(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Returns an entry as it is stored, with its seal; without one where no key can be kept."""
    key, stored = _key(str(key_file())), json.loads(json.dumps(entry))
    return stored if key is None else {**stored, _SEAL: _seal(key, stored)}


def is_ours(entry: Mapping[str, Any]) -> bool:
    """Whether an entry has the seal that ``with_seal`` gives it on this computer."""
    key, seal = _key(str(key_file())), entry.get(_SEAL)
    if key is None or not isinstance(seal, str):
        return False
    rest = {name: value for name, value in entry.items() if name != _SEAL}
    return hmac.compare_digest(seal.encode(), _seal(key, rest).encode())


def _seal(key: bytes, entry: Mapping[str, Any]) -> str:
    return hmac.new(key, json.dumps(entry, sort_keys=True).encode(), "sha256").hexdigest()


@functools.cache
def _key(path: str) -> bytes | None:
    """Returns the key, made if there is none; None where it can be neither read nor kept."""
    with contextlib.suppress(OSError, RuntimeError, ValueError):
        if not Path(path).exists():
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError):  # of another process
                _write(path, secrets.token_bytes(_BYTES))
        with open_regular(path) as file:
            others = os.fstat(file.fileno()).st_mode & (stat.S_IWGRP | stat.S_IWOTH | stat.S_IROTH)
            key = file.read(_BYTES + 1)
        if len(key) == _BYTES and (os.name == "nt" or not others):
            return key
    return None


def _write(path: str, key: bytes) -> None:
    staged = f"{path}.{os.getpid()}"
    descriptor = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(descriptor, key)
        os.close(descriptor)
        os.link(staged, path)  # whole, or not at all
    finally:
        Path(staged).unlink()
