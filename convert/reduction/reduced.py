"""Reduces a model and writes the result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tmconvert.errors import UsageError
from tmconvert.formats.onnx.candidates import OnnxCandidates
from tmconvert.output.atomic import staged_outputs
from tmconvert.reduction.graph_candidates import GraphCandidates
from tmconvert.reduction.search import smallest_failing
from tmconvert.reduction.trials import Failure, Trials
from tmconvert.symbolics.op import Op

_MOST_READERS = 6  # nodes that a program has besides those that fail
Candidates = OnnxCandidates | GraphCandidates


class Reduced(NamedTuple):
    """The result: nodes ``before`` and ``after``, how both fail, and whether weights were needed."""

    path: Path
    before: int
    after: int
    failure: Failure
    trials: int
    has_weights: bool

    def lines(self) -> list[str]:
        """Returns the text of the command."""
        weights = "it needs weights of the model" if self.has_weights else "its weights are made up"
        return [
            f"{self.path}  ({self.after} of {self.before} nodes, {self.trials} runs; {weights})",
            f"  fails with {self.failure}",
        ]

    def to_json(self) -> dict[str, object]:
        failure = {**self.failure._asdict(), "ops": sorted(self.failure.ops)}
        return {**self._asdict(), "path": str(self.path), "failure": failure}


def check_suffix(path: Path, suffix: str) -> None:
    """Raises UsageError TM6002 for a file of another kind than the candidates."""
    known = (".onnx",) if suffix == ".onnx" else (".py", ".tm")
    if path.suffix not in known:
        raise UsageError("TM6002", f"{path} must end with {' or '.join(known)}")


def reduce_model(
    candidates: Candidates, trials: Trials, path: Path, folder: Path, catalogue: Mapping[str, Op]
) -> Reduced:
    """Returns the result, and writes it to ``path``. Raises UsageError TM6002 without a failure."""
    trial = folder / f"reduced{candidates.suffix}"
    everything = range(candidates.count)
    if not candidates.write(everything, trial):
        raise UsageError("TM6002", "types of the model's inputs are not known")
    failure = trials.failure(trial)
    if failure is None:
        raise UsageError("TM6002", "the command does not fail for a copy of the model")

    def fails(kept: Sequence[int]) -> bool:
        return candidates.write(kept, trial) and failure.is_like(trials.failure(trial))

    kept = smallest_failing(candidates.count, fails)
    candidates.drop_weights()
    if not fails(kept):
        candidates.drop_weights(False)
        assert candidates.write(kept, trial)
    data = _program(candidates, kept, trials, path, folder, failure, catalogue) or trial.read_bytes()
    with staged_outputs(path) as (output,):
        output.file.write(data)
        output.commit()
    return Reduced(path, candidates.count, len(kept), failure, trials.count, candidates.has_weights)


def _program(
    candidates: Candidates,
    kept: Sequence[int],
    trials: Trials,
    path: Path,
    folder: Path,
    failure: Failure,
    catalogue: Mapping[str, Op],
) -> bytes | None:
    """Returns the program in PyTorch, if that is requested. Raises UsageError TM6002 if there is none."""
    if path.suffix != ".py" or isinstance(candidates, OnnxCandidates):
        return None
    from tmconvert.reduction.program import FACTORY, inputs_of, program_of

    chosen: list[int] | None = list(kept)
    for _ in range(_MOST_READERS):
        if chosen is None:
            break
        module = candidates.module_of(chosen)
        text = program_of(module, catalogue, trials.command)
        if text is not None:
            (folder / "reduced.py").write_text(text, encoding="utf-8")
            is_ours = trials.command[0] == "tmconvert"
            if not is_ours or failure.is_like(trials.failure(FACTORY, *inputs_of(module), folder=folder)):
                return text.encode()
        chosen = candidates.with_reader(chosen)  # of a result that a module cannot return, for example
    raise UsageError(
        "TM6002",
        f"the nodes that fail, {len(kept)} of {candidates.count}, do not fail as a program in PyTorch",
        notes=[("help", f"write a container: {path.with_suffix('.tm')}")],
    )
