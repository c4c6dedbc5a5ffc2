"""The table of ONNX operators in the documentation, from the rows of ``onnx_backend.py``."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import onnx

Row = tuple[str, str, str]
MADE = """<!-- Made by `python benchmarks/onnx_backend.py --json rows.json --operators FILE`. -->

# ONNX operators

The operators of `ai.onnx`, and how many of ONNX's own node tests are right: after `load`, in the reference
kernels; in the ONNX file that we write, in ONNX Runtime; in the TFLite file, in LiteRT, for cases of float32,
int32, int64 and bool. The opsets are those in which an operator changed. Cases with strings, sequences,
random numbers, training and `ai.onnx.ml` are not counted.
"""
SOURCES = {
    "adapter": "adapter",
    "function": "the function that the standard defines",
    "": "not read",
}


def operator_page(
    chosen: Sequence[Any], rows: Sequence[Row], reason_of: Any, versions: Mapping[str, int]
) -> str:
    """Returns the page; ``reason_of`` shortens what is wrong with a case, ``versions`` counts the cases that
    were measured with each version of the source.
    """
    of = {case.name: name for case in chosen if (name := _operator(case))}
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for case, measurement, text in rows:
        if case in of:
            found[of[case]][measurement].append(text)
    lines = [MADE, *_totals(chosen, rows), "", _measured(len(chosen), versions), ""]
    lines += [
        "| operator | opsets | read by | load | ONNX | TFLite | not right |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, opsets in sorted(_opsets().items()):
        own = found.get(name, {})
        cells = [_share(own.get(each, [])) for each in ("load", "onnx", "tflite")]
        reasons = dict.fromkeys(_plain(reason_of(text)) for texts in own.values() for text in texts if text)
        why = _refused(name) or "; ".join(reasons)
        shown = ", ".join(map(str, opsets))
        lines.append(
            f"| {name} | {shown} | {SOURCES[_read_by(name, opsets)]} | {' | '.join(cells)} | {why} |"
        )
    lines += ["", "## com.microsoft", "", ", ".join(f"`{name}`" for name in _microsoft()), ""]
    return "\n".join(lines)


def _measured(count: int, versions: Mapping[str, int]) -> str:
    """Returns a sentence on what was measured when."""
    parts = [f"{number} with the source `{version}`" for version, number in versions.items()]
    return f"Of {count} cases these were measured: {', '.join(parts)}."


def _totals(chosen: Sequence[Any], rows: Sequence[Row]) -> list[str]:
    """Returns a table of all cases by group and measurement."""
    kind = {case.name: case.kind for case in chosen}
    lines = ["| cases | load | ONNX | TFLite | wrong results |", "|---|---|---|---|---|"]
    for name in dict.fromkeys(kind.values()):
        own = [row for row in rows if kind.get(row[0]) == name]
        cells = [_share([text for _, each, text in own if each == m]) for m in ("load", "onnx", "tflite")]
        wrong = sum(text.startswith("wrong") for _, _, text in own)
        lines.append(f"| {name} | {' | '.join(cells)} | {wrong} |")
    return lines


def _share(texts: Sequence[str]) -> str:
    right = sum(not text for text in texts)
    if not texts:
        return "-"
    return f"{right} of {len(texts)}" + (f" ({100 * right / len(texts):.1f} %)" if len(texts) > 100 else "")


def _operator(case: Any) -> str:
    """Returns the operator that a node test is of; empty for other tests."""
    nodes = case.operator_model.graph.node
    names = {node.op_type for node in nodes if node.op_type not in ("Constant", "Identity")} or {"Identity"}
    is_own = all(node.domain in ("", "ai.onnx") for node in nodes)
    return names.pop() if case.kind == "node" and is_own and len(names) == 1 else ""


def _opsets() -> dict[str, list[int]]:
    versions = defaultdict(set)
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "":
            versions[schema.name].add(schema.since_version)
    return {name: sorted(each) for name, each in versions.items()}


def _read_by(name: str, opsets: Sequence[int]) -> str:
    from tmconvert.frontends.onnx.vocabulary import vocabulary_of

    if vocabulary_of(opsets[-1]).knows(f"onnx.{name}", False) or name == "Constant":
        return "adapter"
    schema = onnx.defs.get_schema(name, opsets[-1])
    return "function" if schema.has_function or schema.has_context_dependent_function else ""


def _refused(name: str) -> str:
    from tmconvert.frontends.onnx.refused import reason_of

    return reason_of(f"onnx.{name}") or ""


def _microsoft() -> list[str]:
    from tmconvert.frontends.onnx.adapters import OPERATORS

    prefix = "com.microsoft."
    return sorted(name.removeprefix(prefix) for name in OPERATORS.adapters if name.startswith(prefix))


def _plain(text: str) -> str:
    """Returns a reason without codes and bars, for a cell."""
    short = re.sub(r"^\w+: |error\[\w+\]: ", "", re.sub(r"^\w+Error: ", "", text))
    return short.replace("|", "/").strip()[:110]
