"""The records of ONNX's operators: of the standard, consistent, and the only lists of operators."""

from __future__ import annotations

import ast
from pathlib import Path

import onnx
import pytest

from tmconvert.targets.onnx.operators import SPECS, spec

ROOT = Path(__file__).parents[3]
FOLDERS = ("convert/targets/onnx", "convert/lowering", "convert/passes", "convert/verification")
# files with several names in one literal, and what for
ALLOWED = {
    "convert/targets/onnx/size_operators.py": "the operators that it writes",
    "convert/targets/onnx/verify/qdq.py": "the pair itself",
}
STANDARD = {schema.name for schema in onnx.defs.get_all_schemas_with_history() if not schema.domain}


def test_no_list_of_operators_beside_the_records() -> None:
    """What several operators have in common is a field of their records."""
    found = set()
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                is_list = isinstance(node, (ast.Tuple, ast.List, ast.Set))
                members = node.elts if is_list else node.keys if isinstance(node, ast.Dict) else []  # type: ignore[attr-defined]
                names = [each.value for each in members if isinstance(each, ast.Constant)]
                if len(STANDARD.intersection(name for name in names if isinstance(name, str))) > 1:
                    found.add(name)
    assert found - {"convert/targets/onnx/operators.py"} == set(ALLOWED)


@pytest.mark.parametrize("name", SPECS)
def test_record_is_consistent(name: str) -> None:
    known = spec(name)
    assert name == known.name and (known.domain or name in STANDARD)
    assert not (known.selects and known.saturates)
    assert not known.is_between_pairs or known.keeps_qparams
    assert not known.clamps_at_zero or known.clamps
    if known.inputs_since:
        versions = [
            each
            for each in onnx.defs.get_all_schemas_with_history()
            if each.name == name and not each.domain and each.since_version <= known.inputs_since
        ]
        *_, before, after = sorted(versions, key=lambda each: each.since_version)
        assert after.since_version == known.inputs_since
        assert len(after.inputs) > len(before.inputs)


def test_operators_without_record() -> None:
    assert "Softmax" not in SPECS
    assert not spec("Softmax").selects and spec("Softmax").weights is None
