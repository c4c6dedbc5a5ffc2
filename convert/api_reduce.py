"""The public function that reduces a model that fails; ``tmconvert.api`` has the others."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from tmconvert.conversion.options.arguments import entry_point
from tmconvert.conversion.prepared_model import loaded
from tmconvert.errors import UsageError
from tmconvert.symbolics.registry import catalogue

if TYPE_CHECKING:
    from tmconvert.conversion.request import Model
    from tmconvert.reduction.reduced import Candidates, Reduced


@entry_point
def reduce(
    model: Model,
    path: str | PathLike[str],
    *,
    command: Sequence[str] = ("tmconvert", "onnx", "{}", "{}.out.onnx"),
    time_limit: float = 60.0,
) -> Reduced:
    """Reduces a model for which a command fails to the smallest one that fails in the same way.

    Nodes are left out as long as the command fails with the same code at the same operators, each time in a
    process of its own; then weights are replaced by made-up ones, where it fails without them, too.

    Args:
        model: A TracedModule, or the path of a model of any kind. The candidates of an ONNX file are ONNX
            files, those of others containers (.tm).
        path: The file to write: .onnx for an ONNX file; .py for others, a PyTorch class with a factory, or
            .tm.
        command: The program and its arguments, in which ``{}`` stands for the path of a candidate.
        time_limit: Seconds for one run; a run without end counts as a failure of its own.

    Returns:
        ``path``, the numbers of nodes ``before`` and ``after``, ``failure``, the number of ``trials``, and
        ``has_weights``, whether weights of the model are still needed.

    Raises:
        LoadError: The model cannot be read.
        UsageError: TM6002 if the command does not fail, or not in the same way for a copy of the model.
        WriteError: The file cannot be written.

    Example:
        >>> tmconvert.reduce("net.onnx", "small.onnx").after  # doctest: +SKIP
        1
    """
    from tmconvert.reduction.reduced import check_suffix, reduce_model
    from tmconvert.reduction.trials import Trials

    trials = Trials(command, time_limit)
    with TemporaryDirectory(prefix="tmconvert-") as folder:
        candidates = _candidates(model)
        check_suffix(Path(path), candidates.suffix)
        return reduce_model(candidates, trials, Path(path), Path(folder), catalogue())


def _candidates(model: Model) -> Candidates:
    from tmconvert.targets.recognize import written_target

    target = written_target(model)
    if isinstance(model, (str, PathLike)) and target is not None and target.name == "onnx":
        from tmconvert.formats.onnx.candidates import OnnxCandidates

        return OnnxCandidates(Path(model))
    from tmconvert.reduction.graph_candidates import GraphCandidates

    module = loaded(model)
    if module.graph is None:
        raise UsageError("TM6002", "the model has no graph that could be reduced")
    return GraphCandidates(module)
