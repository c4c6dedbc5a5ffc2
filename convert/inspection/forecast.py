"""A forecast by a profile: which operators of a file run on the device, in how many parts, what crosses."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from tmconvert.conversion.format_numbers import counted, size
from tmconvert.profiles.files import operations_of_file
from tmconvert.profiles.judge import check_target, violations, worst
from tmconvert.profiles.operation import Operation, Tensor
from tmconvert.profiles.profile import Profile
from tmconvert.targets.violation import Violation

_MOST_RULES = 8  # that the text lists


@dataclass(frozen=True)
class Step:
    """An operator and its violations of the profile; ``part`` is the number, from 0, of the run of operators
    on one side that it belongs to.
    """

    operation: Operation
    found: Sequence[Violation]
    part: int = 0

    @property
    def runs_there(self) -> bool:
        return worst(self.found) in (None, "wrong")


@dataclass(frozen=True)
class Forecast:
    """The prediction of a profile for a file.

    ``parts`` counts the runs of operators on the device, ``crossing`` the bytes of tensors that one side
    computes and the other one takes.
    """

    profile: Profile
    steps: Sequence[Step]
    parts: int
    crossing: int

    @property
    def is_loaded(self) -> bool:
        """Whether no operator keeps the file from being loaded."""
        return all(worst(step.found) != "refused" for step in self.steps)

    @property
    def there(self) -> Counter[str]:
        return Counter(step.operation.type for step in self.steps if step.runs_there)

    @property
    def elsewhere(self) -> Counter[str]:
        return Counter(step.operation.type for step in self.steps if not step.runs_there)

    def rules(self) -> list[tuple[str, list[Violation]]]:
        """Returns the violations by rule, the rule with the most operators first."""
        found = sorted((each for step in self.steps for each in step.found), key=lambda each: each.rule)
        groups = [(rule, list(group)) for rule, group in groupby(found, key=lambda each: each.rule)]
        return sorted(groups, key=lambda item: -len(item[1]))

    def to_json(self) -> dict[str, Any]:
        return {
            "profile": self.profile.name,
            "confirmed": self.profile.is_confirmed,
            "loaded": self.is_loaded,
            "there": dict(self.there),
            "elsewhere": dict(self.elsewhere),
            "parts": self.parts,
            "crossing_bytes": self.crossing,
            "operators": [
                {
                    "name": step.operation.place,
                    "type": step.operation.type,
                    "there": step.runs_there,
                    "part": step.part,
                    "rules": [each.rule for each in step.found],
                }
                for step in self.steps
            ],
            "rules": {rule: {"count": len(group), "help": group[0].help} for rule, group in self.rules()},
        }

    def lines(self) -> Iterator[str]:
        """Returns the section of ``tmconvert inspect --profile``."""
        doubt = "" if self.profile.is_confirmed else " (no tool confirms the profile)"
        there, elsewhere = self.there, self.elsewhere
        yield f"forecast for {self.profile.title}{doubt}"
        if not self.is_loaded:
            yield "  the file is not loaded there"
        of_all = f"{there.total()} of {counted(len(self.steps), 'operator')}"
        yield f"  {of_all} there, in {counted(self.parts, 'part')}"
        if elsewhere:
            names = ", ".join(f"{count} {name}" for name, count in elsewhere.most_common())
            yield f"  on the processor: {names}"
            yield f"  {size(self.crossing)} cross between them"
        for rule, group in self.rules()[:_MOST_RULES]:
            wrong = ", computed wrongly" if group[0].effect == "wrong" else ""
            yield f"  {rule} ({counted(len(group), 'operator')}{wrong}): {group[0].help}"


def forecast_file(path: Path, profile: Profile) -> Forecast:
    """Returns the forecast for a written file. Raises UsageError TM6002 for one of another target."""
    file = operations_of_file(path)
    check_target(profile, file)
    steps = [Step(each, violations(profile, [each])) for each in file.main]
    return Forecast(profile, *_partitioned(steps))


def _partitioned(steps: list[Step]) -> tuple[list[Step], int, int]:
    """Numbers the parts as runtimes do: all operators of one side whose operands are there, then those of the
    other side, and so on. Returns the steps, the parts on the device, and the bytes that cross.
    """
    made = {id(each): step for step in steps for each in step.operation.outputs}
    part_of: dict[int, int] = {}
    side, part, waiting = bool(steps and steps[0].runs_there), 0, steps
    while waiting:
        left = []
        for step in waiting:
            before = [made[id(each)] for each in step.operation.given if id(each) in made]
            if step.runs_there == side and all(id(each) in part_of for each in before):
                part_of[id(step)] = part
            else:
                left.append(step)
        if len(left) == len(waiting) and part:
            part_of.update((id(step), part) for step in left)  # of a file whose operators are not in order
            break
        waiting, side, part = left, not side, part + 1
    numbered = [Step(step.operation, step.found, part_of[id(step)]) for step in steps]
    crossing = {
        (id(tensor), step.runs_there): _bytes(tensor)
        for step in steps
        for tensor in step.operation.given
        if id(tensor) in made and made[id(tensor)].runs_there != step.runs_there
    }
    return numbered, len({step.part for step in numbered if step.runs_there}), sum(crossing.values())


def _bytes(tensor: Tensor) -> int:
    if tensor.shape is None:
        return 0
    try:
        width = np.dtype(tensor.dtype).itemsize
    except TypeError:
        width = 1
    return math.prod(each or 1 for each in tensor.shape) * width
