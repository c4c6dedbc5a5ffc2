"""The record by which an option of a command, or keyword of a function, is declared."""

from __future__ import annotations

import re
from typing import Any, Literal, NamedTuple

Group = Literal[
    "input",
    "output",
    "names",
    "verification",
    "shapes",
    "quantization",
    "calibration",
    "tracing",
    "debugging",
]
# group -> heading, in the order of help texts and documents
HEADINGS: dict[Group, str] = {
    "input": "Input",
    "output": "Output",
    "names": "Names and metadata",
    "verification": "Verification",
    "shapes": "Shapes",
    "quantization": "Quantization",
    "calibration": "Calibration",
    "tracing": "Tracing of PyTorch models",
    "debugging": "Debugging",
}
# "count" is how often a flag is given; "names" and "numbers" are lists with commas; values of the last line
# exist in Python only
# fmt: off
Kind = Literal[
    "switch", "count", "integer", "number", "opset", "text", "path", "names", "numbers",
    "entries", "texts", "passes", "layouts", "pairs", "rules",
    "any", "data", "settings", "qparams", "function", "pass options",
]
# fmt: on
# flags that may be repeated: together they are a list, or for "pairs" and "rules" a dict
REPEATED: tuple[Kind, ...] = ("entries", "texts", "passes", "layouts", "pairs", "rules")
_VALUE_NAMES: dict[Kind, str] = {
    "path": "FILE",
    "names": "NAME,...",
    "integer": "N",
    "opset": "N",
    "rules": "PATTERN=TYPE",
}


class Option(NamedTuple):
    """One option: a keyword of Python functions and a flag of the command line.

    ``name`` is the keyword. The flag is the same with hyphens, ``--no-NAME`` for a switch that is on by
    default, or ``flag``. ``help`` describes the flag, ``meaning`` the keyword where that is not the same.
    ``default`` is the keyword's, ``annotation`` its type; ``default_text`` describes the meaning of None.
    ``choices`` are all valid values, ``suggestions`` some, for the completion in shells. ``targets`` are
    those with the option, all when empty; ``needs`` is another option that this one requires. ``part_of`` is
    the keyword that takes the value of this flag together with others. ``only`` restricts an option to one of
    the two interfaces. ``is_version`` marks the option for the version of the target; ``is_required`` a flag
    that must be given; ``is_common`` one that most users need; ``is_written`` one whose value is a path that
    is written.
    """

    name: str
    group: Group
    help: str
    kind: Kind = "text"
    default: Any = None
    default_text: str = ""
    choices: tuple[str, ...] = ()
    suggestions: tuple[str, ...] = ()
    metavar: str = ""
    flag: str = ""
    short_flag: str = ""
    targets: tuple[str, ...] = ()
    needs: str = ""
    part_of: str = ""
    only: Literal["", "python", "command line"] = ""
    is_version: bool = False
    is_required: bool = False
    is_common: bool = False
    is_written: bool = False
    meaning: str = ""
    annotation: str = ""

    @property
    def spelling(self) -> str:
        """The flag: ``--io-layout``, ``--no-verify``."""
        negation = "no-" if self.kind == "switch" and self.default is True else ""
        return self.flag or f"--{negation}{self.name.replace('_', '-')}"

    @property
    def value_name(self) -> str:
        """Returns the placeholder of the value after the flag; empty for a flag without one."""
        if self.kind in ("switch", "count"):
            return ""
        return self.metavar or _VALUE_NAMES.get(self.kind, "TYPE")

    @property
    def is_keyword(self) -> bool:
        """Whether the functions of conversions have a keyword of this name."""
        return self.only != "command line" and not self.part_of

    @property
    def is_flag(self) -> bool:
        """Whether the command line has the option."""
        return self.only != "python"

    def applies_to(self, target: str) -> bool:
        return not self.targets or target in self.targets

    def help_text(self) -> str:
        """Returns the help text, with notes on repetition and the default."""
        repeated = " May be repeated." if self.kind in REPEATED else ""
        about = ["|".join(self.choices)] if self.choices else []
        about += [f"default: {self.default_text}"] if self.default_text else []
        return f"{self.help}{repeated}" + (f"  [{'; '.join(about)}]" if about else "")

    def keyword_text(self) -> str:
        """Returns the meaning of the keyword, for docstrings: flags become keywords, and MODEL the model."""
        if self.meaning:
            return self.meaning
        text = re.sub(
            "`[^`]*`|--([a-z0-9-]+)",  # in backquotes are commands
            lambda found: f"``{found[1].replace('-', '_')}``" if found[1] else found[0],
            self.help,
        )
        choices = ", ".join(f'"{each}"' for each in self.choices)
        choices = f" One of {choices}." if self.choices else ""
        default = f" By default {self.default_text}." if self.default_text and self.default is None else ""
        return f"{text}{choices}{default}".replace("MODEL", "the model")


def switch(name: str, group: Group, help: str, *, default: bool = False, **others: Any) -> Option:
    """An option that is on or off; its flag changes the default."""
    return Option(name, group, help, "switch", default, **others)
