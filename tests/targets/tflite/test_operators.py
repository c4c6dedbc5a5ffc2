"""The records of TFLite's operators: consistent, and the only place that knows operators by name."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tmconvert.formats.tflite.schema import ENUMS
from tmconvert.targets.tflite.operators import SPECS, spec

ROOT = Path(__file__).parents[3]
# The folders without the records. A name in them is that of an operator that is written, or that one
# rewriting looks for: how many names each file has, and what for.
FOLDERS = ("convert/targets/tflite", "convert/verification", "convert/calibration", "convert/qparams")
ALLOWED = {
    "alternatives/broadcasts.py": (5, "writes broadcasts as copies"),
    "alternatives/form_writer.py": (5, "writes views around other forms"),
    "alternatives/functions.py": (31, "rewrites functions that a profile lacks"),
    "alternatives/gathers.py": (10, "rewrites gathers and their negative indices"),
    "alternatives/ranks.py": (5, "rewrites operators of ranks that a profile lacks"),
    "alternatives/reductions.py": (9, "rewrites means and products of many axes"),
    "alternatives/resizes.py": (3, "resizes by products of integers"),
    "alternatives/rewrite.py": (3, "merges a RESHAPE before another"),
    "alternatives/tables.py": (20, "writes lookup tables as other operators"),
    "alternatives/windows.py": (6, "rewrites windows that a profile lacks"),
    "builder.py": (6, "writes a RESHAPE or CAST before or after any operator, and copies of constants"),
    "compress_weights.py": (7, "rewrites a GATHER of rows; writes DEQUANTIZE; the channels of BATCH_MATMUL"),
    "dynamic_range.py": (13, "writes what rounds activations; the axes of FULLY_CONNECTED and BATCH_MATMUL"),
    "integer/averages.py": (9, "rewrites averages as products"),
    "integer/blocks.py": (4, "rewrites SPACE_TO_DEPTH and its inverse as views and TRANSPOSE"),
    "integer/clamps.py": (5, "removes clamps that rounding makes redundant, and writes one as two"),
    "integer/gates.py": (8, "rewrites hard gates as products"),
    "integer/encode.py": (7, "writes what looks up"),
    "integer/legalize.py": (12, "rewrites what a runtime lacks"),
    "integer/products.py": (5, "rewrites a DIV by constants and a NEG as a MUL; fuses an ADD"),
    "integer/resizes.py": (4, "rewrites RESIZE_BILINEAR as matrix products"),
    "integer/resolve.py": (1, "a PADV2 by the lowest number is for maxima"),
    "integer/tensors.py": (9, "writes what quantizes, requantizes and clamps"),
    "pad_empty_dims.py": (3, "writes what pads, and the SLICE behind"),
    "passes/drop_reshapes.py": (3, "removes a RESHAPE before another"),
    "passes/forms_for_gpus.py": (15, "rewrites what LiteRT's GPU computes wrongly"),
    "passes/fuse_scales.py": (3, "rewrites MUL and ADD as DEPTHWISE_CONV_2D"),
    "passes/group_statistics.py": (1, "needs groups of CONV_2D"),
    "passes/merge_slices.py": (4, "rewrites a SLICE or STRIDED_SLICE of another one"),
    "passes/narrow_integers.py": (8, "writes and removes CAST; FLOOR_MOD of an input keeps it int64"),
    "passes/split_slices.py": (2, "rewrites SLICEs as a SPLIT"),
    "target.py": (10, "ops that are decomposed for a profile without their operator"),
    "verify/kernel_error.py": (2, "calls of aten ops that are LOGISTIC and TANH"),
    "size_operators.py": (5, "writes what computes dynamic sizes; the sizes of RESHAPE and SLICE"),
    "quantize_weights.py": (3, "rewrites a GATHER of a table; the channels of BATCH_MATMUL"),
    "state_variables.py": (5, "writes variables in place of inputs and outputs"),
}


def sources() -> Iterator[tuple[str, ast.Module]]:
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = path.relative_to(ROOT / folder).as_posix()
            if not name.startswith("operators/"):
                name = name if folder == FOLDERS[0] else path.relative_to(ROOT).as_posix()
                yield name, ast.parse(path.read_text(encoding="utf-8"))


def names_in(tree: ast.AST) -> list[str]:
    """The names of operators among the literals."""
    literals = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    return [value for value in literals if isinstance(value, str) and value in SPECS]


@pytest.mark.slow
def test_operators_are_known_by_name_in_their_records_alone() -> None:
    found = {name: len(names) for name, tree in sources() if (names := names_in(tree))}
    assert found == {name: count for name, (count, _) in ALLOWED.items()}


@pytest.mark.slow
def test_no_set_of_operators() -> None:
    """What several operators have in common is a field of their records."""
    found = []
    for name, tree in sources():
        for node in ast.walk(tree):
            is_set = isinstance(node, (ast.Tuple, ast.List, ast.Set))
            members = node.elts if is_set else node.keys if isinstance(node, ast.Dict) else []  # type: ignore[attr-defined]
            names = [each.value for each in members if isinstance(each, ast.Constant) and each.value in SPECS]
            if len(names) > 1:
                found.append((name, names))
    assert found == []


def test_each_record_is_reached_by_its_name() -> None:
    counts = Counter(each.code for each in SPECS.values() if each.code is not None)
    assert [code for code, count in counts.items() if count > 1] == []
    assert all(name == each.name for name, each in SPECS.items())
    assert spec("users::operator").integer is None and spec("users::operator").data == (0,)


@pytest.mark.parametrize("name", SPECS)
def test_record_is_consistent(name: str) -> None:
    known = spec(name)
    assert (known.code is None) == (not known.releases)
    releases, newest = known.releases.split(), max((version for version, _ in known.versions), default=1)
    assert known.code is None or len(releases) >= newest - (name in ("LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM"))
    assert not known.keeps_all or known.moves_one
    assert not known.adds_zeros or known.moves
    assert not known.index_is_checked or known.index is not None
    assert known.needed_ranges is None or known.result_range is not None
    assert known.activation is None or name in ENUMS["activation"]
    if known.fuses_activation:
        assert known.option_fields["fused_activation_function"].kind == "activation"
    if known.dynamic_range is not None and known.dynamic_range.says_asymmetric:
        assert known.option_fields["asymmetric_quantize_inputs"].kind == "bool"
    kernel = known.integer
    assert kernel is None or (known.weights is not None) == (kernel.relation == "weights")
    if known.weights is not None:
        assert known.data == (known.weights.x,)
    if kernel is not None:
        assert set(kernel.fixed) == (set(kernel.types) if kernel.relation == "fixed" else set())
        assert set(kernel.slack) <= set(kernel.types)
        assert kernel.parts is None or kernel.is_within
        assert not kernel.is_within or not known.moves
