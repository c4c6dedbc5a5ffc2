"""The report of all calls of a model that a target does not support."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from tmconvert.errors import UnsupportedError
from tmconvert.ir import CallFunction, CallMethod, Expr, ModuleNode

# of messages with the names of such sizes
FOUND = (
    "found_1, found_2, ... are sizes that only the data tells, such as the number of true elements of a mask "
    "or the value of lengths.max(), in the order in which the model computes them"
)
MANY = 4  # ops with one remedy that share a line of a message


class Unsupported(NamedTuple):
    """One expression that the target does not support, with reason and help."""

    expr: Expr
    reason: str
    help: str = ""

    @property
    def op(self) -> str:
        """Returns the op's name in the source or catalogue: a function, module class or ``Tensor.method``."""
        if isinstance(self.expr, CallFunction):
            return self.expr.function
        if not isinstance(self.expr, CallMethod):  # what is no call stops a conversion as an output
            return type(self.expr).__name__
        first = self.expr.args[0]
        return first.class_name if isinstance(first, ModuleNode) else f"Tensor.{self.expr.method}"

    @property
    def scope(self) -> str:
        return self.expr.source.scope if self.expr.source is not None else ""


class UnsupportedGroup(NamedTuple):
    """All unsupported expressions, ``calls`` of them, with the same op and reason."""

    op: str
    reason: str
    help: str
    calls: int
    scopes: tuple[str, ...]
    first: Expr

    def to_json(self) -> dict[str, object]:
        source = self.first.source
        return {
            "op": self.op,
            "count": self.calls,
            "reason": self.reason,
            "help": self.help or None,
            "module_paths": list(self.scopes),
            "first": str(source or "") or None,
        }


def grouped(unsupported: Sequence[Unsupported]) -> list[UnsupportedGroup]:
    """Groups expressions by op and reason, in the order of first appearance."""
    members: dict[tuple[str, str], list[Unsupported]] = {}
    for item in unsupported:
        members.setdefault((item.op, item.reason), []).append(item)
    return [
        UnsupportedGroup(
            op,
            reason,
            items[0].help,
            len(items),
            tuple(dict.fromkeys(item.scope for item in items)),
            items[0].expr,
        )
        for (op, reason), items in members.items()
    ]


def unsupported_error(
    unsupported: Sequence[Unsupported], target: str, sufficient_opset: int | None = None, context: str = ""
) -> UnsupportedError:
    """Returns one error for all: the first group in full, the others in a line each.

    ``sufficient_opset`` is the lowest ONNX opset that supports all of them, ``context`` a note on this
    conversion.
    """
    first, *others = grouped(unsupported)
    notes = [("help", first.help)] if first.help and sufficient_opset is None else []
    if sufficient_opset is not None:
        what = "all of them" if others else "it"
        notes.append(
            ("help", f"opset {sufficient_opset} and later can express {what}: use --opset {sufficient_opset}")
        )
    if first.calls > 1:
        notes.append(("also", f"{first.calls - 1} more of {first.op} in {_paths(first.scopes)}"))
    alike = [group for group in others if group.help and group.help == first.help]
    if len(alike) >= MANY:
        others = [group for group in others if group not in alike]
        ops = dict.fromkeys(group.op for group in alike)
        counts = [f"{op} ({sum(group.calls for group in alike if group.op == op)})" for op in ops]
        notes.append(("also", f"the same help applies to {', '.join(counts)}"))
    notes += [
        ("also", f"{group.op} ({group.calls} in {_paths(group.scopes)}): {group.reason}") for group in others
    ]
    if any(re.search(r"\bfound_\d", group.reason) for group in (first, *others)):
        notes.append(("note", FOUND))
    if context:
        notes.append(("note", context))
    notes.append(("see", f"run `tmconvert check MODEL --target {target}` for the whole list"))
    from tmconvert.ir.text import describe

    error = UnsupportedError(
        "TM2003", first.reason, source=first.first.source, excerpt=describe(first.first), notes=notes
    )
    error.scopes = tuple(dict.fromkeys(item.scope for item in unsupported))
    return error


def _paths(scopes: tuple[str, ...]) -> str:
    shown = [scope or "the top module" for scope in scopes[:3]]
    more = f" and {len(scopes) - 3} more" if len(scopes) > 3 else ""
    return ", ".join(shown) + more
