"""Writes the arrays of a run to a file of the kind that its name states, or to stdout."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tmconvert.errors import UsageError

if TYPE_CHECKING:
    import numpy as np

KINDS = (".npz", ".npy", ".json")


def check_kind(path: Path) -> None:
    """Raises UsageError TM6002 for a name of another kind than those that are written; one without a suffix
    becomes an .npz file.
    """
    if path.suffix and path.suffix.lower() not in KINDS:
        arrays, text = (path.with_suffix(suffix).name for suffix in (".npz", ".json"))
        help = f"name it {arrays} for arrays, or {text} for text"
        raise UsageError(
            "TM6002", f"outputs of a run are not written as {path.suffix} files", notes=[("help", help)]
        )


def write_file(values: Mapping[str, np.ndarray], path: Path) -> None:
    """Writes an .npz, .npy or .json file. Raises UsageError TM6002 for an .npy file of several arrays,
    WriteError TM5001.
    """
    import json

    import numpy as np

    from tmconvert.output.array_archive import write_arrays
    from tmconvert.output.atomic import atomic_output

    suffix = path.suffix.lower()
    if suffix == ".json":
        with atomic_output(path) as file:
            file.write(json.dumps({"arrays": described(values, with_values=True)}, indent=1).encode() + b"\n")
    elif suffix != ".npy":
        write_arrays(values, path)
    elif len(values) == 1:
        with atomic_output(path) as file:
            np.lib.format.write_array(file, next(iter(values.values())), allow_pickle=False)
    else:
        help = f"name it {path.with_suffix('.npz').name}"
        raise UsageError(
            "TM6002", f"an .npy file holds one array, and there are {len(values)}", notes=[("help", help)]
        )


def described(values: Mapping[str, np.ndarray], *, with_values: bool) -> list[dict[str, Any]]:
    """Describes arrays for JSON, which has no numbers for infinity and NaN: they become null."""
    return [
        {
            "name": name,
            "dtype": array.dtype.name,
            "shape": list(array.shape),
            **({"values": _finite(array)} if with_values else {}),
        }
        for name, array in values.items()
    ]


def write_to_stdout(values: Mapping[str, np.ndarray]) -> None:
    """Writes an .npz archive to stdout."""
    import io

    import numpy as np

    content = io.BytesIO()
    np.savez(content, **values)  # type: ignore[arg-type]
    sys.stdout.buffer.write(content.getvalue())
    sys.stdout.buffer.flush()


def _finite(array: np.ndarray) -> Any:
    import numpy as np

    made = array.astype(object)
    made[~np.isfinite(array)] = None
    return made.tolist()
