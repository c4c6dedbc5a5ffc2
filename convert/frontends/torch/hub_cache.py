"""Finds models of Hugging Face by name in the cache of its programs. Nothing is downloaded.

The cache holds ``models--ORG--NAME/snapshots/REVISION/`` for each model, and the revision of a branch in
``refs/BRANCH``.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from tmconvert.frontends.torch.pretrained import CONFIG

_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?", re.ASCII)
_BRANCH = "main"
MOST_BYTES = 256  # of the name of a revision


def cached_folder(name: str, file: str = CONFIG) -> Path | None:
    """Returns the folder of a model in the cache, by a name such as ``org/name``; None if it is not there.

    ``file`` is one that the folder has.
    """
    if not _NAME.fullmatch(name):
        return None
    snapshots = cache() / f"models--{name.replace('/', '--')}" / "snapshots"
    try:
        revision = _revision(snapshots.parent / "refs" / _BRANCH)
        found = [snapshots / revision] if revision else sorted(snapshots.iterdir())
        folders = [each for each in found if (each / file).is_file()]
    except OSError:
        return None
    return folders[0] if len(folders) == 1 else None


def is_hub_name(name: str) -> bool:
    """Whether a text that is not a path has the form ``org/name``."""
    return bool(_NAME.fullmatch(name)) and "/" in name and not Path(name).parent.exists()


def cache() -> Path:
    """Returns the folder of the cache, as the environment sets it."""
    if "HF_HUB_CACHE" in os.environ:
        return Path(os.environ["HF_HUB_CACHE"]).expanduser()
    if "HF_HOME" in os.environ:
        return Path(os.environ["HF_HOME"]).expanduser() / "hub"
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "huggingface" / "hub"


def _revision(path: Path) -> str:
    """Returns the revision of a branch; empty for a cache without branches."""
    if not path.is_file() or path.stat().st_size > MOST_BYTES:
        return ""
    text = path.read_text("ascii", "replace").strip()
    return text if re.fullmatch(r"\w+", text, re.ASCII) else ""
