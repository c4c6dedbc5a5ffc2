"""Types say something: few parameters are declared with ``Any``, and mypy checks the rest strictly."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib.resources import files

from tests.source_tree import FILES, ROOT, parsed

# The share of parameters in convert/ whose annotation has an ``Any``. It may only go down. Adapters do not
# count: as symbolics, they are plain functions of ``g`` and the arguments of a call.
MOST = 0.102
ANY = ("Any", "Args", "Kwargs", "AnyCallable")  # and the names of types that consist of it


def parameters(tree: ast.AST) -> Iterator[ast.arg]:
    """All parameters but self and cls, as a method has them."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            given = node.args
            found = [*given.posonlyargs, *given.args, *given.kwonlyargs]
            found += [each for each in (given.vararg, given.kwarg) if each is not None]
            yield from (each for each in found if each.annotation or each.arg not in ("self", "cls"))


def is_any(parameter: ast.arg) -> bool:
    """Whether nothing is declared, or something with an ``Any`` in it, as ``dict[str, Any]``."""
    if parameter.annotation is None:
        return True
    return any(isinstance(node, ast.Name) and node.id in ANY for node in ast.walk(parameter.annotation))


def test_few_parameters_are_any() -> None:
    sources = [
        path for path in FILES if path.is_relative_to(ROOT / "convert") and "adapters" not in path.parts
    ]
    found = [parameter for path in sources for parameter in parameters(parsed(path))]
    share = sum(map(is_any, found)) / len(found)
    assert share <= MOST, "declare what a parameter is: Any or object where it is only passed on"
    assert share > MOST - 0.01, "there are fewer now: lower MOST"


def test_parameters_are_counted() -> None:
    tree = ast.parse("def f(self, a: Any, *b: int, c: dict[str, Any], d: object, **e): ...")
    assert [each.arg for each in parameters(tree)] == ["a", "c", "d", "b", "e"]
    assert [each.arg for each in parameters(tree) if is_any(each)] == ["a", "c", "e"]


def test_the_package_is_typed() -> None:
    assert files("tmconvert").joinpath("py.typed").is_file()
