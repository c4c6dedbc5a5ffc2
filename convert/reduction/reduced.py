"""Reduces a model and writes the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tmconvert.errors import UsageError
from tmconvert.frontends.torch.written_calls import MODULE, Edits
from tmconvert.output.atomic import staged_outputs
from tmconvert.reduction.graph_candidates import GraphCandidates
from tmconvert.reduction.onnx_candidates import OnnxFileCandidates
from tmconvert.reduction.program_candidates import ProgramCandidates, shown_command
from tmconvert.reduction.search import smallest_failing
from tmconvert.reduction.trials import USAGE, Candidate, Failure, Trials
from tmconvert.symbolics.op import Op

_MOST_READERS = 6  # nodes that a program has besides those that fail
_SMALLER = (2, 4, 8)  # sizes to try in place of larger ones
Candidates = OnnxFileCandidates | GraphCandidates | ProgramCandidates


class Reduced(NamedTuple):
    """The result: nodes ``before`` and ``after``, how both fail, and whether weights were needed.

    ``report`` is the text that ``--for-report`` writes.
    """

    path: Path
    before: int
    after: int
    failure: Failure
    trials: int
    has_weights: bool
    report: str = ""

    def lines(self) -> list[str]:
        """Returns the text of the command."""
        weights = "it needs weights of the model" if self.has_weights else "its weights are made up"
        return [
            f"{self.path}  ({self.after} of {self.before} nodes, {self.trials} runs; {weights})",
            f"  fails with {self.failure}",
        ]

    def to_json(self) -> dict[str, object]:
        return {**self._asdict(), "path": str(self.path), "failure": self.failure.to_json()}


def check_suffix(path: Path, suffix: str) -> None:
    """Raises UsageError TM6002 for a path that candidates with this suffix cannot have."""
    known = {".onnx": (".onnx",), ".py": (".py",)}.get(suffix, (".py", ".tm"))
    if path.suffix not in known:
        raise UsageError("TM6002", f"{path} must end with {' or '.join(known)}")


class Reduction:
    """Searches the smallest of ``candidates`` for which ``trials`` fail as for ``original``, by default the
    copy of the whole model.

    Raises UsageError TM6002 without a failure.

    >>> Reduction(candidates, trials, folder).run(path, catalogue()).after  # doctest: +SKIP
    1
    """

    def __init__(
        self, candidates: Candidates, trials: Trials, folder: Path, original: Failure | None = None
    ) -> None:
        self.candidates, self.trials, self.folder = candidates, trials, folder
        whole = candidates.write(range(candidates.count), folder)
        if whole is None:
            raise UsageError("TM6002", "types of the model's inputs are not known")
        failure = trials.failure(whole, folder)
        if failure is not None and failure.status == USAGE and trials.is_ours:
            notes = [("it prints", trials.message.strip())]
            raise UsageError("TM6002", "the command fails before it reads a model", notes=notes)
        if failure is None or (original is not None and not original.is_like(failure)):
            what = "" if failure is None else f" in the same way: {failure}, not {original}"
            raise UsageError("TM6002", f"the command does not fail for a copy of the model{what}")
        self.failure = failure

    def fails(self, kept: Sequence[int]) -> bool:
        candidate = self.candidates.write(kept, self.folder)
        return candidate is not None and self.failure.is_like(self.trials.failure(candidate, self.folder))

    def run(self, path: Path, catalogue: Mapping[str, Op], makes_report: bool = False) -> Reduced:
        """Writes the result to ``path``; the caller's model keeps its weights."""
        try:
            return self._run(path, catalogue, makes_report)
        finally:
            if not isinstance(self.candidates, ProgramCandidates):
                self.candidates.drop_weights(False)

    def _run(self, path: Path, catalogue: Mapping[str, Op], makes_report: bool) -> Reduced:
        candidates = self.candidates
        kept = smallest_failing(candidates.count, self.fails, candidates.named(self.failure))
        if not isinstance(candidates, ProgramCandidates):
            candidates.drop_weights()
            if not self.fails(kept):
                candidates.drop_weights(False)
        self._simplify(kept)
        self._shrink(kept)
        candidate = candidates.write(kept, self.folder)
        assert candidate is not None
        data = self._program(kept, path, catalogue)
        if data is None:
            data = (self.folder / f"{MODULE}{candidates.suffix}").read_bytes()
            self.trials.failure(candidate, self.folder)
        with staged_outputs(path) as (output,):
            output.file.write(data)
            output.commit()
        found = Reduced(
            path, candidates.count, len(kept), self.failure, self.trials.count, candidates.has_weights
        )
        return found._replace(report=self._report(candidate, path)) if makes_report else found

    def _simplify(self, kept: list[int]) -> None:
        """Leaves out the arguments that the failure does not need: all at once, else one by one."""
        edits = self.candidates.edits
        choices = self.candidates.attributes(kept)
        if choices and not self._try(kept, lambda: edits.dropped.update(choices)):
            for each in choices:
                self._try(kept, lambda each=each: edits.dropped.add(each))  # type: ignore[misc]

    def _shrink(self, kept: list[int]) -> None:
        """Replaces sizes by smaller ones: all at once, else one by one from the largest."""
        edits = self.candidates.edits
        large = [size for size in self.candidates.sizes(kept) if size > _SMALLER[0]]
        if not large or self._try(kept, lambda: edits.sizes.update(dict.fromkeys(large, _SMALLER[0]))):
            return
        for size in large:
            for smaller in (each for each in _SMALLER if each < size):
                if self._try(kept, lambda pair=(size, smaller): edits.sizes.update([pair])):  # type: ignore[misc]
                    break

    def _try(self, kept: list[int], change: Callable[[], None]) -> bool:
        """Changes the edits, and takes that back where the model no longer fails in the same way."""
        edits = self.candidates.edits
        before = Edits(dict(edits.sizes), set(edits.dropped))
        change()
        if (edits.sizes, edits.dropped) == (before.sizes, before.dropped) or self.fails(kept):
            return True
        edits.sizes.clear()
        edits.sizes.update(before.sizes)
        edits.dropped.intersection_update(before.dropped)
        return False

    def _program(self, kept: Sequence[int], path: Path, catalogue: Mapping[str, Op]) -> bytes | None:
        """Returns the program for a graph, if requested. Raises UsageError TM6002 if there is none."""
        candidates = self.candidates
        if path.suffix != ".py" or not isinstance(candidates, GraphCandidates):
            return None
        from tmconvert.reduction.program import FACTORY, inputs_of, program_of

        chosen: list[int] | None = list(kept)
        for _ in range(_MOST_READERS):
            if chosen is None:
                break
            module = candidates.module_of(chosen)
            text = program_of(module, catalogue, self.trials.command)
            if text is not None:
                (self.folder / f"{MODULE}.py").write_text(text, encoding="utf-8")
                made = Candidate(FACTORY, inputs_of(module))
                if not self.trials.is_ours or self.failure.is_like(self.trials.failure(made, self.folder)):
                    return text.encode()
            chosen = candidates.with_reader(chosen)  # of a result that a module cannot return, for example
        raise UsageError(
            "TM6002",
            f"the nodes that fail, {len(kept)} of {candidates.count}, do not fail as a program in PyTorch",
            notes=[("help", f"write a container: {path.with_suffix('.tm')}")],
        )

    def _report(self, candidate: Candidate, path: Path) -> str:
        """Returns the fields of the form for issues, in Markdown."""
        from tmconvert.inspection.environment import environment

        command = shown_command(self.trials.command, candidate)
        said = self.trials.message.replace(f"{self.folder}/", "").strip()
        program = path.read_text(encoding="utf-8") if path.suffix == ".py" else f"(attach {path.name})"
        parts = (
            ("What you ran", "shell", command),
            ("What it printed", "text", said),
            ("What you expected", "", ""),
            ("Output of `tmconvert doctor`", "text", "\n".join(environment().lines())),
            ("The model", "python" if path.suffix == ".py" else "text", program.strip()),
        )
        return "\n".join(
            f"### {title}\n\n" + (f"```{language}\n{text}\n```\n" if language else "\n")
            for title, language, text in parts
        )
