"""Passes that users write: functions of a graph, classes with ``run``, rewrite rules."""

from __future__ import annotations

import inspect
from typing import Any

from tmconvert.errors import TmconvertError, UsageError
from tmconvert.errors.values import type_and_value
from tmconvert.ir import InternalGraph
from tmconvert.passes.rewriting import PassEvent, PassRecord
from tmconvert.symbolics.custom import raised_at


class UserPass:
    """Runs a user's pass: a function of a graph and perhaps its record, an object with ``run``, or a class.

    ``run`` may return a PassRecord. Raises UsageError TM6052 where the user's code raises.
    """

    is_users = True

    def __init__(self, name: str, pass_: Any, after: tuple[str, ...] = ()) -> None:
        self.name = str(name)
        self.after = after
        self.makes = pass_ if isinstance(pass_, type) else None
        self.works = None if isinstance(pass_, type) else getattr(pass_, "run", pass_)
        if not (callable(self.works) or (self.makes is not None and callable(getattr(pass_, "run", None)))):
            raise UsageError(
                "TM6051",
                f"the pass {self.name} must be a function of a graph, or have a method run, got "
                f"{type_and_value(pass_)}",
            )

    def run(self, graph: InternalGraph) -> PassRecord:
        record, before = PassRecord(self.name), graph.edits
        try:
            work = self.works or self.makes().run  # type: ignore[misc]
            made = work(graph, record) if _takes_record(work) else work(graph)
        except TmconvertError as error:
            raise UsageError(
                "TM6052", f"the pass {self.name} failed: {error.message}", source=raised_at(error)
            ) from error
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            raise UsageError(
                "TM6052", f"the pass {self.name} failed: {reason}", source=raised_at(error)
            ) from error
        if isinstance(made, PassRecord):
            made.name = self.name
            record = made
        if graph.edits != before and not record:
            record.done.append(PassEvent(graph.name or "graph", "was changed"))
        return record


def _takes_record(work: Any) -> bool:
    try:
        parameters = inspect.signature(work).parameters.values()
    except (TypeError, ValueError):
        return False
    plain = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    return len(plain) > 1
