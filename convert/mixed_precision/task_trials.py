"""Scores temporary files with fewer bits on the data of a task, against the file in float."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path

import numpy as np

from tmconvert.calibration.settings import CalibrationRequest
from tmconvert.calibration.unfit import unfit
from tmconvert.conversion.format_numbers import counted
from tmconvert.conversion.pipeline import encode_model
from tmconvert.conversion.request import ConversionRequest, ScoreBound
from tmconvert.inspection.compared_models import FileSide
from tmconvert.inspection.score import TASKS, score_file
from tmconvert.inspection.task_score import Score
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value
from tmconvert.lowering.type_rules import TypeRules
from tmconvert.mixed_precision.layers import Layer, merged
from tmconvert.mixed_precision.search import KINDS
from tmconvert.mixed_precision.trials import Trials, calibrated_layers
from tmconvert.symbolics.op import Ops

_LEAST = 1024  # elements of a weight that is stored in fewer bits
# types for weights, from the type of all on
_MORE_BITS: Mapping[str, tuple[str, ...]] = {"int2": ("int8", "float32"), "int4": ("int8", "float32")}


class TaskTrials(Trials):
    """Scores files on the data of a bound. ``wanted`` is the worst score, which ``name`` describes.

    Raises the errors of the conversion and of ``tmconvert.score``.
    """

    def __init__(self, request: ConversionRequest, catalogue: Ops, score_bound: ScoreBound) -> None:
        super().__init__(request, catalogue)
        self.task = TASKS[score_bound.task]
        scales = request.calibration.settings
        self.options = {
            "task": score_bound.task,
            "tokenizer": score_bound.tokenizer or _folder_of_tokenizer(request),
            "window": 512,
            "sampling_rate": 16000,
            **{name: getattr(scales, name) for name in ("mean", "std", "resize")},
        }
        self.data = Path(score_bound.data)
        in_float = self._in_float()
        reference = self._with_sign(self.value_with(in_float))
        if not math.isfinite(reference):
            raise unfit(f"the model in float has no {self.task.metric}", "use other data")
        bound = (
            reference - score_bound.margin if self.task.is_better_above else reference + score_bound.margin
        )
        self.wanted = self._with_sign(bound)
        self.name = f"the {self.task.metric} is {bound:.4f} or better"
        self.about = (
            f"{counted(self.samples, self.task.unit)}; {self.text(self._with_sign(reference))} in float"
        )
        self.kinds: tuple[str, ...] = KINDS
        weights = request.options.weights
        if weights is None:
            _, self.layers = calibrated_layers(request, catalogue)
        else:
            self.kinds = _MORE_BITS.get(weights, ("float32",))
            self.layers = weight_layers(encode_model(in_float, catalogue).graph, request.options.rules)

    def _in_float(self) -> ConversionRequest:
        """Returns the request without fewer bits."""
        options = self.request.options._replace(
            integers=None, weights=None, rules=(), integer_weights="float32", float_type=None
        )
        return replace(self.request, options=options, calibration=CalibrationRequest())

    def value_of(self, path: Path) -> float:
        score: Score = score_file(FileSide(path, self.catalogue), self.data, self.options)
        self.samples = score.samples
        return self._with_sign(score.value)

    def _with_sign(self, value: float) -> float:
        """Returns a score such that more is better, or the score of such a number."""
        return value if self.task.is_better_above else -value

    def text(self, value: float) -> str:
        return f"{self.task.metric} {self._with_sign(value):.4f}"


def weight_layers(graph: TargetGraph, rules: tuple[tuple[str, str], ...]) -> list[Layer]:
    """Returns the operators with large weights, in order, without those that have a rule already."""
    chosen, readers = TypeRules(rules, graph), dict[Value, list[Operator]]()
    for operator in graph.all_operators():
        for value in operator.inputs:
            if value is not None and value.is_constant and _is_large(value):
                readers.setdefault(value, []).append(operator)
    found = []
    for operators in readers.values():
        if not chosen.type_of(operators, ""):
            names = [set(chosen.names_of(each)) for each in operators]
            common = set.intersection(*names) or set.union(*names)
            source = operators[0].source
            found.append(Layer(tuple(sorted(common)), path=source.scope if source else ""))
    return merged(found)


def _is_large(value: Value) -> bool:
    sizes = [size for size in value.shape if isinstance(size, int)]
    return value.dtype == np.float32 and int(np.prod(sizes, dtype=np.int64)) >= _LEAST


def _folder_of_tokenizer(request: ConversionRequest) -> str | None:
    """Returns the folder of a tokenizer next to the file or its source; None without one."""
    places = [request.paths[0]]
    if isinstance(request.model, (str, PathLike)):
        places += [Path(request.model), Path(request.model) / "x"]
    for folder in (parent for place in places for parent in place.parents[:2]):
        if any((folder / name).is_file() for name in ("tokenizer.json", "vocab.json")):
            return str(folder)
    return None
