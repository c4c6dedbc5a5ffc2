"""Objects of MegEngine's classes as records, which the pickle writer spells in opcodes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tmconvert.ir.inert import GlobalRef

MODULE = GlobalRef("megengine.module.module", "Module")
TRACED_MODULE = GlobalRef("megengine.traced_module.traced_module", "TracedModule")
NONE_TYPE = GlobalRef("builtins", "NoneType")
ELLIPSIS_TYPE = GlobalRef("builtins", "ellipsis")


@dataclass(eq=False, slots=True)
class Record:
    """An object: ``cls.__new__(cls, *arguments)``, or ``cls(*arguments)`` if it is ``called``; then its
    state, unless that is None.

    The state may refer to the record itself, the arguments may not.
    """

    cls: GlobalRef
    arguments: tuple[Any, ...] = ()
    state: Any = field(default=None)
    called: bool = False


def ordered_dict() -> Record:
    """Returns an empty OrderedDict."""
    return Record(GlobalRef("collections", "OrderedDict"), called=True)


def default_dict() -> Record:
    """Returns an empty ``defaultdict(list)``."""
    return Record(GlobalRef("collections", "defaultdict"), (GlobalRef("builtins", "list"),), called=True)


def class_reference(qualified_name: str) -> GlobalRef:
    """Splits a qualified name into its module and the name inside of it, which begins at the first class.

    >>> class_reference("megengine.module.qat.module.QATModule.with_act")
    GlobalRef(module='megengine.module.qat.module', name='QATModule.with_act')
    """
    parts = qualified_name.split(".")
    last = len(parts) - 1
    first_class = next((i for i, part in enumerate(parts) if part.lstrip("_")[:1].isupper()), last)
    start = min(first_class, last)
    return GlobalRef(".".join(parts[:start]), ".".join(parts[start:]))
