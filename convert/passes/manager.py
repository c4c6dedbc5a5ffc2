"""Runs a list of passes: order checked, invariants verified, dumps and times on request."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from tmconvert.errors import GraphError, InternalError, UsageError, WriteError
from tmconvert.ir import Expr, InternalGraph
from tmconvert.ir.emitter import OpDefinition
from tmconvert.ir.subgraphs import each_nested
from tmconvert.ir.symbolic.journal import current_journal
from tmconvert.ir.verifier import Checked, verify_graph
from tmconvert.passes.rewriting import PassRecord

CHECK_EACH = "TMCONVERT_CHECK_PASSES"  # in the environment: the graph is verified after each pass


class Pass(Protocol):
    """One pass. ``run`` records its changes; it has already run on the subgraphs of calls.

    ``after`` names passes that must have run before. ``ensures(graph)``, if a pass has it, raises GraphError
    when the result does not satisfy the postcondition of the pass. ``inside``, if a pass has it, is the pass
    that runs on subgraphs of calls instead.
    """

    name: str

    def run(self, graph: InternalGraph) -> PassRecord: ...


class PassOptions(NamedTuple):
    """Options for dumps, timing and logs of the passes, and passes in addition to those of the target.

    ``dump_after`` names passes (or "all") whose result is written to ``dump_folder`` as
    ``03-fuse_conv_bn.ir``; ``stop_after`` ends the pipeline after the pass of that name. Without a folder
    a conversion takes ``OUTPUT.passes``. ``requested`` are names of passes, or users' functions.
    """

    dump_after: tuple[str, ...] = ()
    dump_folder: str | None = None
    stop_after: str | None = None
    requested: tuple[Any, ...] = ()

    def next_to(self, output: Path) -> PassOptions:
        """Returns the options with a folder for dumps: by default one next to ``output``."""
        return self if self.dump_folder else self._replace(dump_folder=f"{output}.passes")


@dataclass
class PassManager:
    """Runs passes in order.

    ``seconds`` holds (name, time) of each, ``records`` the changes and refusals of each; ``stopped`` states
    whether ``stop_after`` ended the run.
    """

    passes: Sequence[Pass]
    catalogue: Mapping[str, OpDefinition]
    options: PassOptions = field(default_factory=PassOptions)
    seconds: list[tuple[str, float]] = field(default_factory=list)
    records: list[PassRecord] = field(default_factory=list)
    stopped: bool = False

    def __post_init__(self) -> None:
        known = {step.name for step in self.passes}
        wanted = {*self.options.dump_after, *filter(None, [self.options.stop_after])} - {"all"}
        for name in sorted(wanted - known):
            raise UsageError(
                "TM6006", f"unknown pass {name!r}", notes=[("help", f"passes: {', '.join(sorted(known))}")]
            )
        done: set[str] = set()
        for step in self.passes:
            missing = [name for name in getattr(step, "after", ()) if name not in done]
            if missing:
                raise InternalError("TM3007", f"the pass {step.name} must come after {', '.join(missing)}")
            done.add(step.name)

    def run(self, graph: InternalGraph) -> None:
        """Runs all passes on ``graph``, in place.

        The graph is verified after the last pass: its links, and the types of calls that were changed after
        they were made. After each pass of a user the types of all calls are. Where ``CHECK_EACH`` is set, as
        it is in our tests, and where the graph is dumped, the calls that a pass changed are verified after
        it: this names the pass that made a mistake, and takes 5 % of a conversion.
        """
        checked: dict[Expr, Checked] = {}
        for number, step in enumerate(self.passes, start=1):
            started = time.perf_counter()
            self._step(graph, step, number, checked)
            self.seconds.append((step.name, time.perf_counter() - started))
            if {step.name, "all"} & set(self.options.dump_after):
                self._dump(graph, step, number)
            if step.name == self.options.stop_after:
                self.stopped = True
                return

    def _step(self, graph: InternalGraph, step: Pass, number: int, checked: dict[Expr, Checked]) -> None:
        is_last = number == len(self.passes) or step.name == self.options.stop_after
        journal = current_journal()
        place = journal.place
        try:
            record, changed = PassRecord(step.name), list[InternalGraph]()
            self.records.append(record)

            def run(each: InternalGraph) -> None:
                before = each.edits
                record.add((step if each is graph else getattr(step, "inside", step)).run(each))
                changed.extend([each] * (each.edits != before))

            each_nested(graph, run)
            has_changed = bool(changed or record)
            # the code of a user may change what edits do not count
            if getattr(step, "is_users", False) or (is_last and self._checks_each()):
                verify_graph(graph, self.catalogue)
            elif is_last or (self._checks_each() and (has_changed or number == 1)):
                verify_graph(graph, self.catalogue, checked)
            ensures = getattr(step, "ensures", None)
            if ensures is not None:
                ensures(graph)
        except (TypeError, ValueError, IndexError):
            if journal.place == place:  # the pass itself has not said at which call it was
                journal.at(f"the pass {step.name}")
            raise
        except GraphError as error:
            before_it = ", ".join(earlier.name for earlier in self.passes[: number - 1]) or "none"
            notes = [("pass", step.name), ("before it", before_it), *error.notes]
            if getattr(step, "is_users", False):
                message = (
                    f"the pass {step.name} left a graph that is not valid: {error.message} ({error.code})"
                )
                raise UsageError(
                    "TM6053", message, source=error.source, excerpt=error.excerpt, notes=notes
                ) from error
            if not self._checks_each():
                help_text = f"{CHECK_EACH}=1 in the environment finds the pass that made the mistake"
                notes.append(("help", help_text))
            raise GraphError(
                error.code, error.message, source=error.source, excerpt=error.excerpt, notes=notes
            ) from error

    def _checks_each(self) -> bool:
        return bool(self.options.dump_after or os.environ.get(CHECK_EACH))

    def _dump(self, graph: InternalGraph, step: Pass, number: int) -> None:
        assert self.options.dump_folder is not None
        path = Path(self.options.dump_folder) / f"{number:02d}-{step.name}.ir"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            from tmconvert.ir.text import graph_to_text

            path.write_text(graph_to_text(graph), encoding="utf-8")
        except OSError as error:
            raise WriteError("TM5001", f"cannot write {path}: {error.strerror}") from error
