"""Writes arrays to an .npz file; an error leaves no incomplete file."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from os import PathLike

import numpy as np

from tmconvert.output.atomic import atomic_outputs

_OLDEST = (1980, 1, 1, 0, 0, 0)  # equal arrays make equal files


def write_arrays(arrays: Mapping[str, np.ndarray], path: str | PathLike[str]) -> None:
    """Writes ``arrays`` by their names, as ``numpy.savez`` does. Raises WriteError TM5001."""
    with atomic_outputs(path) as (output,), zipfile.ZipFile(output, "w") as archive:
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy", _OLDEST), "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)
