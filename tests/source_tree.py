"""The source tree as data: its files, and every import in them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

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


def module_name(path: Path) -> str:
    folder, *parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join([FOLDERS[folder], *(part for part in parts if part != "__init__")])


MODULES = frozenset(map(module_name, FILES))


def imports(path: Path) -> Iterator[Import]:
    tree = parsed(path)
    guarded = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = _from(path, node)
        else:
            continue
        for name in names:
            yield Import(path, node.lineno, name, id(node) in guarded)


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


ALL = [item for path in FILES for item in imports(path)]
