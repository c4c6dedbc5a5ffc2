"""Upgrades the format of older MegEngine releases to the newest one."""

from __future__ import annotations

from collections import deque
from typing import Any

from tmconvert.frontends.megengine.pickle.budget import text
from tmconvert.frontends.megengine.pickle.stand_ins import Instance


def version_of(root: Instance) -> str:
    """Returns the release that wrote a TracedModule, such as "1.13.0"; files of 1.6 do not have it."""
    info = root.state.get("dump_info")
    version = info.get("version") if isinstance(info, dict) else None
    return text(version, "the release that wrote the file") or "1.6"


def upgrade(root: Instance) -> None:
    """Rewrites the states of a file, in place, to the form of the newest release.

    The argument lists of calls stay as they were recorded: ``older.py`` has the functions as each
    release had them.
    """
    if not version_of(root).startswith("1.6"):
        return
    for instance in _instances(root):
        step = _STEPS_1_6.get(instance.short_name)
        if step is not None:
            step(instance.state)


def _rename_opdef(state: dict[str, Any]) -> None:
    """Renames ``opdef``, where 1.6 kept the attributes of a raw operator, with the class under ``type``."""
    if "opdef" in state and "opdef_state" not in state:
        attributes = dict(state.pop("opdef"))
        attributes["opdef_type"] = attributes.pop("type")
        attributes.pop("version", None)
        state["opdef_state"] = attributes


def _rename_prefix(state: dict[str, object]) -> None:
    """Renames the attributes in which 1.6 kept the path of a graph or node."""
    for old, new in (("_prefix_name", "_qualname"), ("_orig_name", "_qualname")):
        if old in state:
            state.setdefault(new, state.pop(old))


_STEPS_1_6 = {
    "Apply": _rename_opdef,
    "InternalGraph": _rename_prefix,
    "TensorNode": _rename_prefix,
    "ModuleNode": _rename_prefix,
}


def _instances(root: Instance) -> list[Instance]:
    """Yields every record reachable from ``root`` once."""
    seen: set[int] = {id(root)}
    found: list[Instance] = []
    waiting: deque[Any] = deque([root])
    while waiting:
        value = waiting.popleft()
        if isinstance(value, Instance):
            found.append(value)
            children: list[Any] = list(value.state.values())
        elif isinstance(value, dict):
            children = [*value.keys(), *value.values()]
        elif isinstance(value, (list, tuple, set, frozenset)):
            children = list(value)
        else:
            continue
        for child in children:
            if id(child) not in seen:
                seen.add(id(child))
                waiting.append(child)
    return found
