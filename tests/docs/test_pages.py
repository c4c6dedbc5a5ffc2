"""The pages: generated ones are current, links and paths lead to files, paragraphs are short."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.runner import run
from tests.docs.pages import PAGES, ROOT, TOP, prose
from tests.test_words import PHRASES, RETIRED
from tmconvert.cli import COMMANDS
from tmconvert.cli.batch.configuration import tomllib
from tools import generate_docs

ALL = [*TOP, *PAGES]
FOLDERS = ("convert", "symbolics", "cli", "tests", "tools", "benchmarks", "docs", "samples")
LINES, WIDTH = 6, 100
NEW = "squareplus"  # files that a reader makes
# pages made of the source's texts, which tests/test_words.py reads there
OF_SOURCE = {*generate_docs.pages(), "docs/torch-ops.md", "docs/onnx-operators.md"} - {"ARCHITECTURE.md"}
MADE = {*OF_SOURCE, "docs/processors.md", "docs/quantized-models.md", "docs/megengine-models.md"}
# retired words in their ordinary sense, by page
ORDINARY = {"verification": {"boundary"}}


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", generate_docs.pages())
def test_a_generated_page_is_current(page: str) -> None:
    assert generate_docs.is_current(page), f"{page} is not current: run python tools/generate_docs.py"


@pytest.mark.parametrize("page", ALL, ids=name)
def test_links_lead_to_files(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", prose(page))
    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", ALL, ids=name)
def test_paths_of_the_source_exist(page: Path) -> None:
    named = re.findall(rf"`((?:{'|'.join(FOLDERS)})/[\w./-]+)`", prose(page))
    assert [path for path in named if not (ROOT / path).exists() and NEW not in path] == []


@pytest.mark.parametrize("page", [page for page in ALL if page.parent.name == "design"], ids=name)
def test_names_of_files_are_current(page: Path) -> None:
    """Pages of ideas name files without their folder."""
    files = ["/" + path.as_posix() for path in ROOT.glob("[a-z]*/**/*.py")]
    named = re.findall(r"`([\w/]+\.py)`", prose(page))
    assert [each for each in named if not any(path.endswith("/" + each) for path in files)] == []


def paragraphs(page: Path) -> Iterator[str]:
    """Paragraphs and items of lists."""
    for text in re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) |#|\|)", prose(page)):
        if not text.strip().startswith(("|", "#", "<!--")) and not text.startswith("    "):
            yield " ".join(text.split())


@pytest.mark.parametrize("page", [page for page in ALL if name(page) not in MADE], ids=name)
def test_paragraphs_are_short(page: Path) -> None:
    long = [text[:60] for text in paragraphs(page) if len(textwrap.wrap(text, WIDTH)) > LINES]
    assert long == []


def test_architecture_is_one_page() -> None:
    assert len((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").splitlines()) < 90


def test_every_page_is_in_the_navigation() -> None:
    listed = set(re.findall(r": ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    assert listed == {str(page.relative_to(ROOT / "docs")) for page in PAGES}


def test_the_page_on_installation_lists_all_extras() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    page = (ROOT / "docs/install.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == set(declared)


@pytest.mark.parametrize("page", [page for page in ALL if name(page) not in OF_SOURCE], ids=name)
def test_no_retired_words(page: Path) -> None:
    text = re.sub(r"`[^`]*`", "", prose(page))
    found = {
        match.group().lower()
        for pattern in [*RETIRED, *PHRASES]
        for match in re.finditer(rf"\b({pattern})\b", text, re.IGNORECASE)
    }
    assert found - ORDINARY.get(page.stem, set()) == set()


def test_agents_are_told_the_flags_that_help_shows() -> None:
    text = (ROOT / "SKILL.md").read_text(encoding="utf-8")
    sections = re.split(r"^### ", text.partition("## Error codes")[0], flags=re.MULTILINE)[1:]
    found = {section.partition("\n")[0]: re.findall(r"`(--[\w-]+)`", section) for section in sections}
    assert list(found) == list(COMMANDS)
    for name, flags in found.items():
        short = run(name, "--help").stdout
        shown = run(name, "--help-all").stdout if "--help-all" in short else short
        assert [flag for flag in flags if flag not in shown] == []
