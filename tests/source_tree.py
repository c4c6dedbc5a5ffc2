"""The source tree as data: its files, and every import in them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
FOLDERS = {"convert": "tmconvert", "symbolics": "tmconvert.symbolics", "cli": "tmconvert.cli"}
FILES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))


@dataclass(frozen=True)
class Import:
    """One imported module, with the place of the statement."""

    path: Path
    line: int
    module: str
    for_types_only: bool

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line} imports {self.module}"

    def is_of(self, *packages: str) -> bool:
        return any(self.module == package or self.module.startswith(f"{package}.") for package in packages)


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


@cache
def nodes(path: Path) -> list[ast.AST]:
    """All nodes of a file: one walk, since walks take most of the time of the tests that read the source."""
    found: list[ast.AST] = [parsed(path)]
    for node in found:
        for child in vars(node).values():
            if isinstance(child, ast.AST):
                found.append(child)
            elif isinstance(child, list):
                found += [each for each in child if isinstance(each, ast.AST)]
    return found


@cache
def module_name(path: Path) -> str:
    folder, *parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join([FOLDERS[folder], *(part for part in parts if part != "__init__")])


MODULES = frozenset(map(module_name, FILES))


def imports(path: Path) -> Iterator[Import]:
    for node, for_types_only in _statements(parsed(path).body, False):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = _from(path, node)
        else:
            continue
        for name in names:
            yield Import(path, node.lineno, name, for_types_only)


def _statements(block: list[Any], for_types_only: bool) -> Iterator[tuple[ast.stmt, bool]]:
    """All statements of a block, inner ones too, and whether only type checkers read them.

    ``ast.walk`` would visit their expressions, too, which are ten times as many.
    """
    for node in block:
        yield node, for_types_only
        is_guard = isinstance(node, ast.If) and getattr(node.test, "id", None) == "TYPE_CHECKING"
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            yield from _statements(getattr(node, field, []), for_types_only or is_guard)


def _from(path: Path, node: ast.ImportFrom) -> list[str]:
    """The modules that a from-import reaches, written out."""
    base = node.module or ""
    if node.level:
        package = module_name(path).split(".")
        if path.name != "__init__.py":
            package.pop()
        package = package[: len(package) - node.level + 1]
        base = ".".join([*package, *filter(None, [node.module])])
    inner = [f"{base}.{alias.name}" for alias in node.names]
    return [name if name in MODULES else base for name in inner]


@cache
def all_imports() -> list[Import]:
    """Every import of the source; not at the import of this module, which each test process collects."""
    return [item for path in FILES for item in imports(path)]
