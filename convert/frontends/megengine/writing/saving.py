"""``TracedModule.save(path, format="megengine")``."""

from __future__ import annotations

from os import PathLike

from tmconvert.frontends.megengine.writing.module_records import ModuleRecords
from tmconvert.frontends.megengine.writing.pickle_writer import PickleWriter
from tmconvert.ir import TracedModule
from tmconvert.output.atomic import atomic_output


def save_megengine(module: TracedModule, path: str | PathLike[str]) -> None:
    """Writes a model of MegEngine's calls to a pickle that MegEngine 1.13 loads, atomically.

    The same model gives the same bytes. Raises: WriteError TM5001; TM5005 for calls and values that MegEngine
    does not have.
    """
    record = ModuleRecords(module).record()
    with atomic_output(path) as file:
        PickleWriter(file).write(record)
