"""``tmconvert explain``, and that each code has an explanation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.runner import run
from tmconvert.errors.explanations import EXPLANATIONS

ROOT = Path(__file__).parent.parent.parent


def codes_in_the_source() -> set[str]:
    files = [path for folder in ("convert", "symbolics", "cli") for path in (ROOT / folder).rglob("*.py")]
    texts = [path.read_text(encoding="utf-8") for path in files if path.stem != "explanations"]
    return set(re.findall(r"TM\d{4}", "\n".join(texts)))


def test_each_code_has_an_explanation_and_the_reverse() -> None:
    used = codes_in_the_source()
    assert sorted(used - set(EXPLANATIONS)) == []
    assert sorted(set(EXPLANATIONS) - used) == []


def test_codes_are_in_order() -> None:
    assert list(EXPLANATIONS) == sorted(EXPLANATIONS)


@pytest.mark.parametrize("code", EXPLANATIONS)
def test_explanations_are_complete(code: str) -> None:
    each = EXPLANATIONS[code]
    assert each.title[0].islower() or each.title[:2].isupper()
    assert not each.title.endswith(".")
    assert each.cause.endswith(".")
    assert each.example
    assert each.remedy[-1] in ".'" or each.remedy.endswith('"source".')


@pytest.mark.parametrize("spelling", ["TM6007", "tm6007", "6007", "[TM6007]"])
def test_one_code(spelling: str) -> None:
    outcome = run("explain", spelling)
    assert (outcome.status, outcome.stderr) == (0, "")
    assert outcome.stdout == (
        "TM6007: two outputs are the same file\n"
        "\n"
        "  The prototxt and the caffemodel need different file names.\n"
        "\n"
        "example\n"
        "  tmconvert caffe model.tm net.caffemodel\n"
        "\n"
        "remedy\n"
        "  Pass the prototxt first, then the caffemodel.\n"
    )


def test_all_codes() -> None:
    outcome = run("explain")
    assert outcome.status == 0
    header, *lines = outcome.stdout.splitlines()
    assert header.split() == ["code", "meaning"]
    assert lines == [f"{code}  {each.title}" for code, each in EXPLANATIONS.items()]


def test_no_such_code() -> None:
    outcome = run("explain", "TM20O3")
    assert (outcome.status, outcome.stdout) == (2, "")
    assert outcome.stderr.startswith("error[TM6012]: there is no error code 'TM20O3'\n")
    assert "TM2003" in outcome.stderr.partition("near: ")[2]
