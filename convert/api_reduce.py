"""The public function that reduces a model that fails; ``tmconvert.api`` has the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from tmconvert.conversion.options.arguments import entry_point
from tmconvert.conversion.prepared_model import loaded
from tmconvert.errors import UsageError
from tmconvert.frontends.torch.entry import is_factory
from tmconvert.frontends.torch.request import Tracing
from tmconvert.symbolics.registry import catalogue

if TYPE_CHECKING:
    from tmconvert.conversion.request import Model
    from tmconvert.reduction.reduced import Reduced, Reduction
    from tmconvert.reduction.trials import Trials


@entry_point
def reduce(
    model: Model,
    path: str | PathLike[str],
    *,
    command: Sequence[str] = ("tmconvert", "onnx", "{}", "{}.out.onnx"),
    time_limit: float = 60.0,
    example_inputs: Any = None,
    example_kwargs: Mapping[str, Any] | None = None,
    keep_names: bool = False,
    for_report: bool = False,
) -> Reduced:
    """Reduces a model for which a command fails to the smallest one that fails in the same way.

    Nodes are left out as long as the command fails with the same code at the same operators, each time in a
    process of its own; then weights are replaced by made-up ones, arguments are left out, and sizes shrink.
    The file of a conversion that is verified and wrong is a failure, too.

    Args:
        model: A TracedModule, the path of a model of any kind, or a factory ``package.module:make`` of a
            PyTorch module, which is run and not traced: what fails while it is traced is reduced, too. The
            candidates of an ONNX file are ONNX files, those of PyTorch programs, those of others containers.
        path: The file to write: .onnx for an ONNX file; .py for PyTorch, a class that calls what fails; for
            others .py, where PyTorch can express it, or .tm.
        command: The program and its arguments, in which ``{}`` stands for the path of a candidate.
        time_limit: Seconds for one run; a run without end counts as a failure of its own.
        example_inputs: Inputs of a factory, arrays or tensors; by default those that it returns.
        example_kwargs: Inputs of a factory by the names of the arguments of ``forward``.
        keep_names: Keep the names of tensors in an ONNX file.
        for_report: Also return what the form for issues needs, ``doctor`` included, as ``report``.

    Returns:
        ``path``, the numbers of nodes ``before`` and ``after``, ``failure``, the number of ``trials``,
        ``has_weights``, whether weights of the model are still needed, and ``report``.

    Raises:
        LoadError: The model cannot be read.
        UsageError: TM6002 if the command does not fail, or not in the same way for a copy of the model.
        WriteError: The file cannot be written.

    Example:
        >>> tmconvert.reduce("net.onnx", "small.onnx").after  # doctest: +SKIP
        1
    """
    from tmconvert.reduction.trials import Trials

    trials, path = Trials(command, time_limit), Path(path)
    tracing = Tracing.of(example_inputs, example_kwargs, None, False, False)
    with TemporaryDirectory(prefix="tmconvert-") as folder:
        try:
            return _reduction(model, path, trials, tracing, keep_names, Path(folder)).run(
                path, catalogue(), for_report
            )
        finally:
            trials.close()


def _reduction(
    model: Model, path: Path, trials: Trials, tracing: Tracing, keeps_names: bool, folder: Path
) -> Reduction:
    """Returns the search among the candidates of a model."""
    from tmconvert.reduction.program_candidates import ProgramCandidates, program_of_graph
    from tmconvert.reduction.reduced import Reduction, check_suffix
    from tmconvert.reduction.trials import Candidate
    from tmconvert.targets.recognize import written_target

    if isinstance(model, (str, PathLike)) and is_factory(model):
        check_suffix(path, ".py")
        from tmconvert.frontends.torch.tracing.programs.eager_calls import program_of_factory

        original = trials.failure(Candidate(str(model), _saved(tracing, folder)))
        if original is None:
            raise UsageError("TM6002", f"the command does not fail for {model}")
        program = program_of_factory(str(model), tracing)
        return Reduction(ProgramCandidates(program, trials.command), trials, folder, original)
    target = written_target(model)
    if isinstance(model, (str, PathLike)) and target is not None and target.name == "onnx":
        check_suffix(path, ".onnx")
        from tmconvert.reduction.onnx_candidates import OnnxFileCandidates

        return Reduction(OnnxFileCandidates(Path(model), keeps_names), trials, folder)
    check_suffix(path, ".tm")
    from tmconvert.reduction.graph_candidates import GraphCandidates

    module = loaded(model)
    if module.graph is None:
        raise UsageError("TM6002", "the model has no graph that could be reduced")
    reduction = Reduction(GraphCandidates(module), trials, folder)
    calls = program_of_graph(module) if path.suffix == ".py" else None
    if calls is not None:
        with suppress(UsageError):  # the calls do not fail in the same way: those of the container do
            return Reduction(ProgramCandidates(calls, trials.command), trials, folder, reduction.failure)
    return reduction


def _saved(tracing: Tracing, folder: Path) -> list[str]:
    """Returns the paths of files with inputs, for ``--input``."""
    inputs = [("", each) for each in tracing.args] + [
        (f"{name}=", each) for name, each in tracing.kwargs.items()
    ]
    for number, (_, array) in enumerate(inputs):
        np.save(folder / f"input{number}.npy", np.asarray(array))
    return [f"{name}{folder}/input{number}.npy" for number, (name, _) in enumerate(inputs)]
