"""Loads plugins: files and installed packages that register symbolics."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from tmconvert.errors import TmconvertError, UsageError
from tmconvert.errors.source import Source
from tmconvert.symbolics.custom import raised_at
from tmconvert.symbolics.entry_points import installed

GROUP = "tmconvert.symbolics"


def load_plugin(path: str | PathLike[str]) -> None:
    """Runs a Python file, which calls ``tmconvert.register_symbolic``. Raises UsageError TM6020."""
    file = Path(path)
    if not file.is_file():
        raise _failed(f"the plugin {file} does not exist", Source(str(file)))
    import runpy

    try:
        runpy.run_path(str(file), run_name=file.stem)
    except TmconvertError as error:
        raise UsageError(
            error.code, error.message, source=error.source or raised_at(error), notes=error.notes
        ) from error
    except SyntaxError as error:
        place = Source(str(file), error.lineno)
        raise _failed(f"the plugin {file} is not valid Python: {error.msg}", place) from error
    except (Exception, SystemExit) as error:
        reason = f"{type(error).__name__}: {error}"
        raise _failed(f"the plugin {file} failed: {reason}", raised_at(error)) from error


def load_installed(group: str = GROUP, registered: str = "symbolics") -> None:
    """Loads the entry points of installed packages in a group, by default ``tmconvert.symbolics``.

    An entry point names a module, which registers as it is imported, or a function, which is called.
    ``registered`` is what it registers, for messages. Raises UsageError TM6020.
    """
    for entry in installed(group):
        try:
            loaded = entry.load()
            if callable(loaded):
                loaded()
        except (Exception, SystemExit) as error:
            package = entry.dist.name if entry.dist is not None else "an installed package"
            raise _failed(
                f"loading {entry.value} of {package}, which registers {registered}, failed: "
                f"{type(error).__name__}: {error}",
                raised_at(error),
            ) from error


def _failed(message: str, place: Source) -> UsageError:
    return UsageError("TM6020", message, source=place)
