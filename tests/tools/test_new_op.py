"""tools/new_op.py writes files that parse, and never over others."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.source_tree import ROOT
from tools import new_op


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for folder in ("symbolics/ops/elementwise", "tests/symbolics/ops/samples", "tests/frontends/torch"):
        (tmp_path / folder).mkdir(parents=True)
    for name in (new_op.LIST, "symbolics/ops/elementwise/__init__.py"):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("squareplus", "x"),
        ("mylib::mixture", "x,other,weight"),
        ("mylib::unit", "x,dim:integer"),
        ("mylib::blur", "x,y,sigma:number,axes:integers"),
    ],
)
def test_the_files_parse_and_are_formatted(name: str, args: str, root: Path) -> None:
    assert new_op.main([name, "--args", args], root) == 0
    short = name.rpartition("::")[2]
    op = root / f"symbolics/ops/elementwise/{short}.py"
    functions = [node for node in ast.walk(ast.parse(op.read_text())) if isinstance(node, ast.FunctionDef)]
    assert [each.name for each in functions] == [
        f"{short}_ref",
        f"{short}_onnx7",
        f"{short}_calls" if ":" in args else f"{short}_formula",
    ]
    assert [arg.arg for arg in functions[1].args.args] == [
        "g",
        *(each.partition(":")[0] for each in args.split(",")),
    ]
    assert json.loads((root / new_op.LIST).read_text())[f"elementwise.{short}"] == name
    for check in (["check"], ["format", "--check"]):
        config = ["--config", str(ROOT / "pyproject.toml")]
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *check, *config, "--no-cache", "."],
            cwd=root,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["softplus"], "names an op that exists"),
        (["Square-Plus"], "small letters, digits and underscores"),
        (["squareplus", "--args", "self"], "the first tensor is called x"),
        (["squareplus", "--args", "x,dim:int"], "'int' is not a kind of attributes: integer, integers"),
    ],
)
def test_what_is_refused(
    arguments: list[str], message: str, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (root / new_op.LIST).read_text()
    with pytest.raises(SystemExit):
        new_op.main(arguments, root)
    assert message in capsys.readouterr().err
    assert (root / new_op.LIST).read_text() == before


def test_files_are_not_written_over(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = root / "tests/symbolics/ops/samples/squareplus.py"
    path.write_text("mine")
    with pytest.raises(SystemExit):
        new_op.main(["squareplus"], root)
    assert "tests/symbolics/ops/samples/squareplus.py exists" in capsys.readouterr().err
    assert path.read_text() == "mine"
