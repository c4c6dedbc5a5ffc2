"""Reads a MegEngine ``.tm`` file without running any of its code.

A ``.tm`` is a Python pickle, that is, a program. ``read_pickle`` interprets its opcodes itself and
builds only the stand-ins of ``stand_ins.py``; ``allow_list.py`` says which names a file may mention.

Every problem is a LoadError:

    TM1001  the file cannot be read
    TM1002  it is not a pickle of protocol 2 to 5
    TM1003  the pickle is damaged or truncated
    TM1004  the pickle names or calls something that no model needs
    TM1005  the pickle holds something else than a TracedModule
    TM1006  the pickle would cost time or memory out of proportion to its size
"""

from __future__ import annotations

import numpy as np

from tmconvert.errors import LoadError
from tmconvert.errors.source import Source
from tmconvert.formats.mapped_file import map_file
from tmconvert.frontends.megengine.pickle.fault import NOT_A_MODULE, PickleFault
from tmconvert.frontends.megengine.pickle.opcodes import run
from tmconvert.frontends.megengine.pickle.pickle_machine import Machine
from tmconvert.frontends.megengine.pickle.stand_ins import Instance, Tensor
from tmconvert.frontends.megengine.recognize import is_pickle

NOT_A_PICKLE = "TM1002"

TRACED_MODULE = "megengine.traced_module.traced_module.TracedModule"
SHOWN_KEYS = 5


def read_file(path: str) -> Instance:
    """Reads the TracedModule of a file, whose arrays are mapped. Raises LoadError TM1001 to TM1006."""
    return read_pickle(map_file(path), path)


def read_pickle(data: bytes | memoryview, path: str) -> Instance:
    """Reads the TracedModule in ``data`` as records of ``stand_ins``. ``path`` is for messages only.

    Arrays are views of ``data``, which must not change while they live.
    Raises: LoadError TM1002 to TM1006.
    """
    view = memoryview(data).toreadonly().cast("B")
    source = Source(path)
    if not is_pickle(bytes(view[:2])):
        raise LoadError(
            NOT_A_PICKLE,
            _not_a_pickle(view),
            source=source,
            notes=[("help", "pass a file that megengine.save wrote from a TracedModule")],
        )
    machine = Machine(view)
    try:
        root = run(machine)
    except PickleFault as fault:
        notes = [("help", fault.help)] if fault.help else []
        message = f"{fault.message} (at byte {machine.start})"
        raise LoadError(fault.code, message, source=source, notes=notes) from fault
    if not isinstance(root, Instance) or root.class_name != TRACED_MODULE or not root.state:
        raise LoadError(
            NOT_A_MODULE,
            f"the file holds {_describe(root)}, not a TracedModule",
            source=source,
            notes=[
                ("help", "trace the module with megengine.traced_module.trace_module and save the result")
            ],
        )
    return root


def _not_a_pickle(view: memoryview) -> str:
    if len(view) == 0:
        return "the file is empty"
    if view[0] == 0x80 and len(view) > 1:
        return f"not a pickle of protocol 2 to 5: the file has protocol {view[1]}"
    return f"not a MegEngine model: the file begins with {bytes(view[:8])!r}"


def _describe(root: object) -> str:
    """Describes the root object, with the first keys of a dict."""
    if isinstance(root, Instance):
        empty = "" if root.state else " without state"
        return f"an object of class {root.class_name}{empty}"
    if isinstance(root, dict):
        names = [str(key)[:40] for key in list(root)[:SHOWN_KEYS] if isinstance(key, str)]
        more = ", ..." if len(root) > len(names) else ""
        return f"a dict with the keys {', '.join(names)}{more}" if names else "a dict"
    if isinstance(root, (Tensor, np.ndarray)):
        return f"a single {'tensor' if isinstance(root, Tensor) else 'array'}"
    return "None" if root is None else f"a value of type {type(root).__name__}"
