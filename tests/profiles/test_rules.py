"""Each rule of each profile refuses a file that breaks it, by name."""

from __future__ import annotations

from pathlib import Path

import pytest

import tmconvert
from tests.profiles.random_operators import breaking, unknown_operator
from tmconvert.profiles.profile import ProfileRule
from tmconvert.profiles.registry import profile_named, profile_names


def target_of(rule: ProfileRule) -> str:
    """TFLite's operators have names in capitals."""
    return "tflite" if all(each.isupper() for each in rule.operators) else "onnx"


def rules_for(name: str, target: str) -> list[ProfileRule]:
    return [
        rule
        for rule in profile_named(name).rules
        if rule.limit.quantity != "computed.open sizes"  # which random operators do not have
        and (not rule.operators or target_of(rule) == target)
    ]


# each rule, or ten files where there are fewer
BAD_FILES = [
    (name, target, number)
    for name in profile_names()
    for target in profile_named(name).targets
    for number in range(max(10, len(rules_for(name, target))))
]


@pytest.mark.parametrize(("name", "target", "number"), BAD_FILES)
def test_a_file_that_breaks_a_rule_is_refused_by_its_name(
    name: str, target: str, number: int, tmp_path: Path
) -> None:
    profile = profile_named(name)
    rules, path = rules_for(name, target), tmp_path / f"bad.{target}"
    rule, seed = rules[number % len(rules)], number // len(rules)
    assert breaking(rule, profile, target, path, seed), f"no random operator breaks {rule.name}"
    found = tmconvert.lint(path, profile=name)
    assert rule.name in [each.rule for each in found]
    assert all(each.layer and each.effect for each in found)


@pytest.mark.parametrize("name", profile_names())
def test_an_operator_that_a_profile_lacks_is_refused(name: str, tmp_path: Path) -> None:
    profile = profile_named(name)
    for target in profile.targets:
        path = tmp_path / f"bad.{target}"
        assert unknown_operator(profile, target, path)
        assert f"{name}-operator" in [each.rule for each in tmconvert.lint(path, profile=name)]


@pytest.mark.parametrize("name", profile_names())
def test_each_fact_has_a_source_and_each_rule_a_remedy(name: str) -> None:
    profile = profile_named(name)
    assert all(each.document for each in profile.sources.values())
    assert all(rule.help for rule in profile.rules)
    assert profile.known
