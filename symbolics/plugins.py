"""Loads plugins: files and installed packages that register symbolics."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import NamedTuple

from tmconvert.errors import TmconvertError, UsageError
from tmconvert.errors.source import Source
from tmconvert.symbolics.entry_points import installed

GROUP = "tmconvert.symbolics"
# what has been loaded in this process: paths of files, and names of packages
_files: set[str] = set()
_packages: set[str] = set()


def load_plugin(path: str | PathLike[str]) -> None:
    """Runs a Python file, which calls ``tmconvert.register_symbolic``. Raises UsageError TM6020."""
    file = Path(path)
    if not file.is_file():
        raise _failed(f"the plugin {file} does not exist", Source(str(file)))
    import runpy

    _files.add(str(file))
    try:
        runpy.run_path(str(file), run_name=file.stem)
    except TmconvertError as error:
        raise UsageError(
            error.code, error.message, source=error.source or _raised_at(error), notes=error.notes
        ) from error
    except SyntaxError as error:
        place = Source(str(file), error.lineno)
        raise _failed(f"the plugin {file} is not valid Python: {error.msg}", place) from error
    except (Exception, SystemExit) as error:
        reason = f"{type(error).__name__}: {error}"
        raise _failed(f"the plugin {file} failed: {reason}", _raised_at(error)) from error


def load_installed(group: str = GROUP, registered: str = "symbolics") -> None:
    """Loads the entry points of installed packages in a group, by default ``tmconvert.symbolics``.

    An entry point names a module, which registers as it is imported, or a function, which is called.
    ``registered`` is what it registers, for messages. Raises UsageError TM6020.
    """
    for entry in installed(group):
        _packages.add(entry.module.partition(".")[0])
        try:
            loaded = entry.load()
            if callable(loaded):
                loaded()
        except (Exception, SystemExit) as error:
            package = entry.dist.name if entry.dist is not None else "an installed package"
            raise _failed(
                f"loading {entry.value} of {package}, which registers {registered}, failed: "
                f"{type(error).__name__}: {error}",
                _raised_at(error),
            ) from error


def loaded_files() -> tuple[str, ...]:
    """Returns the paths of the plugins that were loaded as files."""
    return tuple(sorted(_files))


class PluginFrame(NamedTuple):
    """A line of a plugin in a traceback; ``is_innermost`` where it calls no function of tmconvert."""

    plugin: str
    place: Source
    is_innermost: bool


def plugin_frame(error: BaseException) -> PluginFrame | None:
    """Returns the innermost line of a plugin in the traceback of an error; None if no plugin takes part."""
    found, trace = None, error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        package = str(trace.tb_frame.f_globals.get("__name__")).partition(".")[0]
        if file in _files or package in _packages:
            plugin = file if file in _files else package
            found = PluginFrame(plugin, Source(file, trace.tb_lineno), True)
        elif package == "tmconvert" and found is not None:
            found = found._replace(is_innermost=False)
        trace = trace.tb_next
    return found


def _raised_at(error: BaseException) -> Source:
    from tmconvert.symbolics.custom import raised_at

    return raised_at(error)


def _failed(message: str, place: Source) -> UsageError:
    return UsageError("TM6020", message, source=place)
