#!/usr/bin/env python3
"""Measures `tmconvert.simplify` on ONNX's node cases and on ONNX files, compared with onnxsim and onnxslim.

    python benchmarks/simplify.py                       the node cases of the installed onnx
    python benchmarks/simplify.py FOLDER                the ONNX files of a folder
    python benchmarks/simplify.py FOLDER --others       also by onnxsim and onnxslim, if they are installed

A node case has inputs; files get random ones. "wrong" are results whose outputs differ from those of the
original in ONNX Runtime, without its optimizations. The numbers of nodes are those without constants.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

import tmconvert

Inputs = Sequence[Any] | None


def node_cases(pattern: str) -> Iterator[tuple[str, onnx.ModelProto, Inputs]]:
    """Yields ONNX's node cases: name, model and inputs."""
    from onnx.backend.test.loader import load_model_tests

    for case in load_model_tests(kind="node"):
        if pattern not in case.name:
            continue
        folder = Path(case.model_dir) if case.model_dir else None
        model = case.model if folder is None else onnx.load(folder / "model.onnx")
        sets = case.data_sets or [([], [])]
        inputs = list(sets[0][0])
        if folder is not None:
            inputs = [_stored(path, kind) for path, kind in _files(folder, model)]
        yield case.name, model, inputs


def _files(folder: Path, model: onnx.ModelProto) -> list[tuple[Path, str]]:
    names = sorted((folder / "test_data_set_0").glob("input_*.pb"), key=lambda each: int(each.stem[6:]))
    return [
        (path, each.type.WhichOneof("value")) for path, each in zip(names, model.graph.input, strict=False)
    ]


def _stored(path: Path, kind: str) -> Any:
    content = path.read_bytes()
    if kind == "sequence_type":
        return numpy_helper.to_list(onnx.SequenceProto.FromString(content))
    if kind == "optional_type":
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(content))
    return numpy_helper.to_array(onnx.TensorProto.FromString(content))


def files(folder: Path, pattern: str) -> Iterator[tuple[str, onnx.ModelProto, Inputs]]:
    """Yields the ONNX files of a folder, for random inputs."""
    for path in sorted(folder.rglob("*.onnx")):
        if pattern in path.name:
            yield path.stem, onnx.load(path), None


def run(model: onnx.ModelProto, inputs: Inputs) -> list[Any]:
    """Returns the outputs in ONNX Runtime without optimizations."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    given = random_inputs(session) if inputs is None else inputs
    return session.run(None, dict(zip((each.name for each in session.get_inputs()), given, strict=False)))


def random_inputs(session: onnxruntime.InferenceSession) -> list[np.ndarray]:
    random, arrays = np.random.default_rng(0), []
    kinds = {"tensor(float)": "float32", "tensor(float16)": "float16", "tensor(double)": "float64"}
    for each in session.get_inputs():
        shape = [
            size if isinstance(size, int) and size > 0 else (1 if axis == 0 else 64)
            for axis, size in enumerate(each.shape)
        ]
        if each.type in kinds:
            arrays.append(random.standard_normal(shape).astype(kinds[each.type]))
        else:
            dtype = {"tensor(int64)": "int64", "tensor(int32)": "int32", "tensor(bool)": "bool"}.get(
                each.type, "uint8"
            )
            arrays.append(random.integers(0, 2, shape).astype(dtype))
    return arrays


def agrees(one: Any, other: Any) -> bool:
    if isinstance(one, list):
        return len(one) == len(other) and all(map(agrees, one, other))
    if one is None or other is None or np.asarray(one).dtype.kind in "OUS":
        return bool(np.all(one == other))
    one, other = np.asarray(one), np.asarray(other)
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if one.dtype.kind != "f":
        return bool(np.array_equal(one, other))
    scale = float(np.max(np.abs(other[np.isfinite(other)]), initial=0)) or 1.0
    coarse = 1e-2 if one.dtype == np.float16 else 1e-4
    return bool(np.allclose(one, other, rtol=0, atol=coarse * scale, equal_nan=True))


def count(graph: onnx.GraphProto) -> int:
    inner = (each.g for node in graph.node for each in node.attribute if each.HasField("g"))
    return sum(node.op_type != "Constant" for node in graph.node) + sum(map(count, inner))


def tools(others: bool) -> dict[str, Callable[[onnx.ModelProto], tuple[onnx.ModelProto, str]]]:
    def ours(model: onnx.ModelProto) -> tuple[onnx.ModelProto, str]:
        report = tmconvert.simplify(model)
        stayed = [note for note in report.notes if "unchanged" in note or "stayed" in note]
        return report.model, " ".join(stayed)

    found: dict[str, Any] = {"tmconvert": ours}
    if others:
        import onnxsim
        import onnxslim

        found["onnxsim"] = lambda model: (onnxsim.simplify(model)[0], "")
        found["onnxslim"] = lambda model: (onnxslim.slim(model), "")
    return found


def measured(
    model: onnx.ModelProto, inputs: Inputs, tool: Callable[..., Any], expected: Any
) -> dict[str, Any]:
    """Returns what a tool made of a model."""
    copy, started = onnx.ModelProto.FromString(model.SerializeToString()), time.process_time()
    try:
        made, note = tool(copy)
    except BaseException as error:  # other tools end the process
        return {"state": "refused", "why": f"{type(error).__name__}: {str(error)[:150]}"}
    found = {"seconds": time.process_time() - started, "nodes": count(made.graph), "why": note}
    if expected is None:
        return {**found, "state": "not run"}
    try:
        right = agrees(run(made, inputs), expected)
    except Exception as error:
        return {**found, "state": "wrong", "why": str(error)[:200]}
    return {**found, "state": "right" if right else "wrong"}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--others", action="store_true", help="measure onnxsim and onnxslim, too")
    parser.add_argument("-k", default="", help="part of the names of cases or files")
    parser.add_argument("--json", type=Path, help="a file for all results")
    given = parser.parse_args()
    results: dict[str, Any] = {}
    source = node_cases(given.k) if given.folder is None else files(given.folder, given.k)
    for name, model, inputs in source:
        try:
            expected = run(model, inputs)
        except Exception:  # ONNX Runtime does not have all operators
            expected = None
        row = {tool: measured(model, inputs, make, expected) for tool, make in tools(given.others).items()}
        results[name] = {"nodes": count(model.graph), **row}
        if given.folder is not None or any(each["state"] in ("wrong", "refused") for each in row.values()):
            print(
                name,
                count(model.graph),
                {tool: (each.get("nodes"), each["state"], each.get("why")) for tool, each in row.items()},
                flush=True,
            )
    for tool in tools(given.others):
        rows = [each[tool] for each in results.values()]
        seconds, nodes = (sum(each.get(key, 0) for each in rows) for key in ("seconds", "nodes"))
        print(f"{tool}: {dict(Counter(each['state'] for each in rows))}, {seconds:.1f} s, {nodes} nodes")
    if given.json:
        given.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
