"""The kinds of packages by name; the module of a kind is imported when it is used."""

from __future__ import annotations

import importlib
from typing import cast

from tmconvert.conversion.options.commands import PACKAGES
from tmconvert.errors import UsageError
from tmconvert.packaging.kind import Kind


def kind_named(name: str) -> Kind:
    """Returns a kind. Raises UsageError TM6002 for an unknown name."""
    if name not in PACKAGES:
        raise UsageError("TM6002", f"unknown kind of package {name!r}: use one of {', '.join(PACKAGES)}")
    module = name.replace("-", "_").replace(".", "_")
    return cast(Kind, importlib.import_module(f"tmconvert.packaging.{module}").KIND)
