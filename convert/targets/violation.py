"""A violation of a target's rule by a written model, such as a limit of a Caffe dialect."""

from __future__ import annotations

from typing import NamedTuple


class Violation(NamedTuple):
    """A violated rule: the layer (may be empty), the problem, and the remedy.

    ``confirmed`` is false where no document confirms the rule; for a profile, no tool. ``effect`` is what a
    profile states of such an operator: "elsewhere", "wrong" or "refused".
    """

    rule: str
    message: str
    help: str = ""
    layer: str = ""
    line: int = 0
    confirmed: bool = True
    effect: str = ""

    def __str__(self) -> str:
        where = f"layer {self.layer}: " if self.layer else ""
        return f"{self.rule}: {where}{self.message}"

    def to_json(self) -> dict[str, object]:
        return {
            "rule": self.rule,
            "layer": self.layer,
            "line": self.line,
            "message": self.message,
            "help": self.help,
            "confirmed": self.confirmed,
            **({"effect": self.effect} if self.effect else {}),
        }
