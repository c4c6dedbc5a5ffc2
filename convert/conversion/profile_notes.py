"""Lists the operators of a written graph that its profile does not run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmconvert.errors import UnsupportedError
from tmconvert.profiles.judge import lines_by_rule, violations
from tmconvert.profiles.operation import as_quantized, operations_of
from tmconvert.profiles.registry import profile_named

if TYPE_CHECKING:
    from tmconvert.lowering.target_graph import TargetGraph
    from tmconvert.targets.violation import Violation


def graph_violations(graph: TargetGraph, name: str) -> list[Violation]:
    """Returns what the profile does not run in a lowered graph.

    A graph in float is judged as a quantized one where the profile runs no operator in float.
    """
    profile, operations = profile_named(name), operations_of(graph)
    types = [group.types for group in profile.operators]
    if types and all(each is not None and "float32" not in each for each in types):
        operations = [as_quantized(each) for each in operations]
    return violations(profile, operations)


def check_profile(graph: TargetGraph, name: str) -> list[str]:
    """Returns a note for each rule by which an operator runs elsewhere.

    Raises UnsupportedError TM2024 where the profile does not load the file, or computes an operator wrongly.
    """
    profile = profile_named(name)
    found = violations(profile, operations_of(graph))
    broken = [each for each in found if each.effect != "elsewhere"]
    sources = {
        operator.outputs[0].name: operator.source for operator in graph.all_operators() if operator.outputs
    }
    if broken:
        first = broken[0]
        what = "computes an operator wrongly" if first.effect == "wrong" else "does not run the file"
        raise UnsupportedError(
            "TM2024",
            f"{profile.title} {what}: {first}",
            source=sources.get(first.layer),
            notes=[
                ("help", first.help),
                *(("also", line) for line in lines_by_rule(broken[1:])),
                ("see", f"`tmconvert check MODEL --profile {name}` lists all of them"),
            ],
        )
    return [f"{profile.title}: {line}" for line in lines_by_rule(found)]


def known_defects(graph: TargetGraph, name: str) -> list[str]:
    """Returns a note for each rule by which operators of a graph are computed wrongly."""
    profile = profile_named(name)
    found = [each for each in violations(profile, operations_of(graph)) if each.effect == "wrong"]
    return [f"{profile.title}: {line}" for line in lines_by_rule(found)]
