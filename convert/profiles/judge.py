"""Judges operators by a profile: one engine for files, for lowered graphs and for single operators."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tmconvert.errors import UsageError
from tmconvert.profiles.files import FileOperations
from tmconvert.profiles.operation import Operation
from tmconvert.profiles.profile import Effect, FactSource, OperatorGroup, Profile, shown_values
from tmconvert.targets.violation import Violation

HELP_OPERATOR = "leave it to the processor, or write the model with operators that the profile lists"
HELP_TYPE = "give it tensors of these types: a quantized file for NPUs, one in float for GPUs"
HELP_RANK = "reshape its operands to fewer axes"
_MOST = 3  # places that a line names
_EFFECTS = {"elsewhere": "runs", "refused": "loads", "wrong": "computes rightly"}


def violations(profile: Profile, operations: Iterable[Operation]) -> list[Violation]:
    """Returns what the profile does not allow, operator by operator.

    The rules of the list of operators are called NAME-operator, NAME-type and NAME-rank.
    """
    return [found for operation in operations for found in broken_rules(profile, operation)]


def file_violations(profile: Profile, file: FileOperations) -> list[Violation]:
    """Returns what the profile forbids in a file. Raises UsageError TM6002 for other targets' files."""
    check_target(profile, file)
    return violations(profile, [*file.main, *file.inner])


def check_target(profile: Profile, file: FileOperations) -> None:
    """Raises UsageError TM6002 for a file of a target that the profile does not read."""
    if file.target not in profile.targets:
        takes = " and ".join(profile.targets)
        raise UsageError(
            "TM6002", f"the profile {profile.name} is for files of {takes}, not of {file.target}"
        )


def broken_rules(profile: Profile, operation: Operation) -> Iterator[Violation]:
    """Yields the violations of one operator; none for an operator that runs as it is."""
    if not profile.has(operation.type):
        message = f"{profile.title} has no {operation.type}"
        yield _found(profile, "operator", operation, message, HELP_OPERATOR, _list_source(profile))
        return
    yield from _beyond_groups(profile, operation)
    for rule in profile.rules:
        values = rule.breaks(operation)
        if values:
            message = (
                f"{_quantity(rule.limit.quantity)} of {operation.type} is {shown_values(values)}, but "
                f"{profile.title} {_EFFECTS[rule.effect]} {rule.limit.text()}"
            )
            yield Violation(
                rule.name,
                message,
                rule.help,
                operation.place,
                confirmed=bool(rule.source.confirmed),
                effect=rule.effect,
            )


def worst(found: Sequence[Violation]) -> Effect | None:
    """Returns the gravest effect of violations: refused, else wrong, else elsewhere."""
    effects = {each.effect for each in found}
    order: tuple[Effect, ...] = ("refused", "wrong", "elsewhere")
    return next((each for each in order if each in effects), None)


def lines_by_rule(found: Sequence[Violation]) -> list[str]:
    """Returns a line for each rule, with locations and the remedy."""
    by_rule: dict[str, list[Violation]] = {}
    for each in found:
        by_rule.setdefault(each.rule, []).append(each)
    lines = []
    for rule, group in by_rule.items():
        places = ", ".join(dict.fromkeys(each.layer for each in group[:_MOST]))
        more = f", ... ({len(group)} in all)" if len(group) > _MOST else ""
        lines.append(f"{rule}: {group[0].message} (at {places}{more}); {group[0].help}")
    return lines


def _beyond_groups(profile: Profile, operation: Operation) -> Iterator[Violation]:
    """Limits of types and ranks, where no group of the operator allows all of them."""
    groups = profile.groups_of(operation.type)
    if not groups or any(_score(group, operation) == 2 for group in groups):
        return
    group = max(groups, key=lambda each: _score(each, operation))
    if wrong := _wrong_types(group, operation):
        text = " or ".join(sorted(group.types or ()))
        message = f"the type of {operation.type} is {shown_values(wrong)}, but {profile.title} runs {text}"
        yield _found(profile, "type", operation, message, HELP_TYPE, group.source)
    if wrong_ranks := _wrong_ranks(group, operation):
        low, high = group.ranks or (0, 0)
        what = f"the rank of {operation.type} is {shown_values(wrong_ranks)}"
        message = f"{what}, but {profile.title} runs {low} to {high}"
        yield _found(profile, "rank", operation, message, HELP_RANK, group.source)


def _score(group: OperatorGroup, operation: Operation) -> int:
    return (not _wrong_types(group, operation)) + (not _wrong_ranks(group, operation))


def _wrong_types(group: OperatorGroup, operation: Operation) -> list[str]:
    if group.types is None:
        return []
    return [each.dtype for each in operation.computed if each.dtype not in group.types and each.dtype != "?"]


def _wrong_ranks(group: OperatorGroup, operation: Operation) -> list[int]:
    if group.ranks is None:
        return []
    low, high = group.ranks
    ranks = [len(each.shape) for each in operation.computed if each.shape is not None]
    return [each for each in ranks if not low <= each <= high]


def _list_source(profile: Profile) -> FactSource:
    return profile.operators[0].source if profile.operators else FactSource("")


def _found(
    profile: Profile, kind: str, operation: Operation, message: str, help: str, source: FactSource
) -> Violation:
    return Violation(
        f"{profile.name}-{kind}",
        message,
        help,
        operation.place,
        confirmed=bool(source.confirmed),
        effect=profile.left_over,
    )


def _quantity(name: str) -> str:
    """Returns a quantity as a phrase: "axis" for ``attribute.axis``, "the rank of input 0"."""
    first, *rest = name.split(".")
    if first == "attribute":
        return rest[0]
    if not rest:
        return name
    if rest[0].lstrip("-").isdigit():
        first, rest = f"{first} {rest[0]}", rest[1:]
    what = f"extent {rest[1]}" if rest[0] == "extent" else rest[0].replace("_", " ")
    return f"the {what} of {first}"
