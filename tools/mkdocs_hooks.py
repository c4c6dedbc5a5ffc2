"""Hooks of mkdocs (mkdocs.yml): the packages as they are installed, for mkdocstrings to read."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def on_startup(**_: Any) -> None:
    """Makes build/api/tmconvert of links to the folders of the repository."""
    package = ROOT / "build/api/tmconvert"
    shutil.rmtree(package, ignore_errors=True)
    package.mkdir(parents=True)
    for path in [*(ROOT / "convert").iterdir(), ROOT / "symbolics", ROOT / "cli"]:
        (package / path.name).symlink_to(path)
