"""Reads the metadata that tmconvert writes into an ONNX file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tmconvert.errors import LoadError
from tmconvert.formats.onnx.model import read_model


def onnx_options(path: Path) -> Mapping[str, Any]:
    """Returns the options of the conversion that wrote the file; empty where it has none.

    So it is for a damaged file, of which the runtime says what is wrong with it.
    """
    try:
        entries = {entry.key: entry.value for entry in read_model(str(path)).metadata_props}
        found = json.loads(entries.get("tmconvert.options", "{}"))
    except (LoadError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
