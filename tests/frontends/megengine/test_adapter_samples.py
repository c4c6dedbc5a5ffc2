"""Every adapter computes what MegEngine 1.13 computed, on arrays and as a graph; else it refuses."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.frontends.megengine.adapter_samples import (
    FAMILIES,
    SAMPLES,
    Call,
    Grid,
    Int8,
    Known,
    calls_of,
    parameter,
)
from tmconvert.frontends.megengine.adapters import FUNCTIONS, METHODS, MODULES
from tmconvert.frontends.megengine.pickle.stand_ins import Tensor
from tmconvert.frontends.megengine.quantization import qparams_of_dtype, real
from tmconvert.frontends.megengine.vocabulary import VOCABULARY
from tmconvert.ir import (
    CallFunction,
    CallMethod,
    Expr,
    InternalGraph,
    ModuleNode,
    QParams,
    TensorNode,
    TracedModule,
)
from tmconvert.ir.emitter import EagerEmitter, Emitter, GraphEmitter
from tmconvert.ir.symbolic.data_dependent import data_symbols
from tmconvert.ir.symbolic.journal import SizeJournal
from tmconvert.ir.tree import leaves
from tmconvert.ir.verifier import verify_graph
from tmconvert.symbolics.registry import catalogue
from tmconvert.verification.reference import Reference

MADE = Path(__file__).parents[2] / "data/made/adapters"
PACKED = {family: np.load(MADE / f"{family}.npz") for family in FAMILIES}
RELATIVE = {"float32": 2e-5, "float16": 2e-3}


def unpacked() -> dict[str, list[np.ndarray]]:
    """MegEngine's results by the key of the sample."""
    results: dict[str, list[np.ndarray]] = {}
    for packed in PACKED.values():
        values, start = packed["values"], 0
        for key, dtype, shape in json.loads(str(packed["index"])):
            end = start + int(np.prod(shape))
            results.setdefault(key, []).append(values[start:end].astype(dtype).reshape(shape))
            start = end
    return results


TRUTH = unpacked()
MODULE_STATES = {
    key: state for packed in PACKED.values() for key, state in json.loads(str(packed["modules"])).items()
}
CALLS = [sample for family in FAMILIES for sample in calls_of(family)]


def mapped(leaf: Callable[[Any], Any], tree: Any) -> Any:
    """``tree`` with ``leaf`` applied to its tensors, those in slices, too."""
    if isinstance(tree, (list, tuple)):
        return type(tree)(mapped(leaf, item) for item in tree)
    if isinstance(tree, dict):
        return {key: mapped(leaf, item) for key, item in tree.items()}
    if isinstance(tree, slice):
        return slice(*mapped(leaf, (tree.start, tree.stop, tree.step)))
    return leaf(tree) if isinstance(tree, (np.ndarray, Known, Grid, Int8)) else tree


def applied(g: Emitter, row: str, args: tuple[Any, ...], kwargs: dict[str, Any], owner: Any = None) -> Any:
    """What the adapter of ``row`` returns; ``owner`` is the module that is called, if one is."""
    folder, _, name = row.rpartition(".")
    expr: Expr = CallFunction(row, args, kwargs)
    if name == "_apply_fakequant_with_observer":
        args = (owner, *args, *map(owner.children.get, ("act_fake_quant", "act_observer")))
    elif owner is not None:
        expr, args = CallMethod("__call__", (ModuleNode("m", owner.class_name), *args)), (owner, *args)
    elif folder == "Tensor":
        expr = CallMethod(name, args, kwargs)
    return VOCABULARY.apply(g, expr, args, kwargs)


def grid_of(leaf: Grid | Int8) -> QParams:
    is_wide = getattr(leaf, "dtype", "qint8") == "qint32"
    dtype, low, high = ("int32", -(2**31), 2**31 - 1) if is_wide else ("int8", -128, 127)
    return QParams(dtype, (float(np.float32(leaf.scale)),), (0,), low, high, symmetric=True)


def value_of(leaf: Any) -> Any:
    if isinstance(leaf, Int8):
        return grid_of(leaf)
    if isinstance(leaf, Grid):
        return EagerEmitter(catalogue()).quantized(leaf.array, grid_of(leaf))
    return leaf.array if isinstance(leaf, Known) else leaf


def eagerly(row: str, each: Call, owner: Any = None) -> list[np.ndarray]:
    args, kwargs = mapped(value_of, (each.args, each.kwargs))
    return results_of(applied(EagerEmitter(catalogue()), row, args, kwargs, owner))


def results_of(tree: Any) -> list[Any]:
    """The tensors of a result, in order."""
    return [leaf for leaf in leaves(tree) if leaf is not None]


def as_graph(row: str, each: Call, owner: Any = None) -> list[np.ndarray]:
    """The results of the graph that the adapter builds."""
    graph, feeds = built(row, each, owner)
    results = Reference(graph, catalogue()).run(feeds)
    for node, array in zip(graph.outputs, results, strict=True):
        shape = tuple(
            actual if data_symbols(size) else size
            for size, actual in zip(node.shape, array.shape, strict=True)
        )
        assert (node.dtype, shape) == (array.dtype, array.shape), "the graph declares another type"
    return results


def built(row: str, each: Call, owner: Any = None) -> tuple[InternalGraph, list[np.ndarray]]:
    """The graph that the adapter builds, verified, and its inputs."""
    graph = InternalGraph("net")
    emitter = GraphEmitter(graph, catalogue(), made_by="test")
    feeds: list[np.ndarray] = []

    def node(leaf: Any) -> TensorNode:
        if isinstance(leaf, Known):
            return emitter.constant(leaf.array)
        if isinstance(leaf, Int8):
            return grid_of(leaf)
        feeds.append(value_of(leaf))
        qparams = getattr(feeds[-1], "qparams", None)
        return graph.add_input(
            TensorNode(f"x{len(feeds)}", leaf.array.shape, leaf.array.dtype, qparams=qparams)
            if isinstance(leaf, Grid)
            else TensorNode(f"x{len(feeds)}", leaf.shape, leaf.dtype)
        )

    args, kwargs = mapped(node, (each.args, each.kwargs))
    with SizeJournal():
        result = applied(emitter, row, args, kwargs, owner)
        graph.set_result(tuple(results_of(result)))
        verify_graph(graph, catalogue())
    return graph, feeds


def dtype_of(record: dict[str, Any]) -> np.dtype:
    """A dtype as make_adapters.py writes it, with what MegEngine notes on those of quantized tensors."""
    noted = record.get("mgb_dtype")
    if noted is None:
        return np.dtype(record["storage"])
    return np.dtype(record["storage"], metadata={"mgb_dtype": {"zero_point": None, **noted}})


def module_of(key: str) -> TracedModule | None:
    """The module of a sample, with the attributes that MegEngine gave it."""
    modules: dict[str, TracedModule] = {}
    for path, state in MODULE_STATES.get(key, {}).items():
        module = modules[path] = TracedModule(path, state["class"], vocabulary=VOCABULARY)
        module.attributes = {name: ast.literal_eval(text) for name, text in state["attributes"].items()}
        if module.attributes.get("output_dtype") is not None:
            module.attributes["output_dtype"] = qparams_of_dtype(dtype_of(module.attributes["output_dtype"]))
        prefix = f"{path}." if path else ""
        module.tensors = {name: parameter(prefix + name, shape) for name, shape in state["tensors"].items()}
        for name, value in state.get("values", {}).items():
            dtype = dtype_of(value["dtype"])
            module.tensors[name] = real(Tensor(np.array(value["data"], dtype), dtype, True))
        if path:
            owner, _, name = path.rpartition(".")
            modules[owner].children[name] = module
    return modules.get("")


def test_every_adapter_has_samples() -> None:
    rows = {*FUNCTIONS, *(f"Tensor.{name}" for name in METHODS), *MODULES}
    rows -= {"Tensor.__new__"}  # of a class, not of a tensor: tests/data/made/new_tensors.tm
    assert sorted(rows - set(SAMPLES)) == [], "add them to tests/frontends/megengine/adapter_samples/"
    assert sorted(set(SAMPLES) - rows) == []


def test_every_sample_has_a_truth() -> None:
    assert [key for _, key, _ in CALLS if key not in TRUTH] == [], "run tools/megengine_data/make_adapters.py"


def rounding(row: str, each: Call, owner: Any) -> float:
    """What rounding to the grid of the result may cost where MegEngine cannot go without."""
    scales = [leaf.scale for leaf in (*each.args, *each.kwargs.values()) if isinstance(leaf, Int8)]
    if owner is not None and ".quantized." in row and owner.attributes.get("output_dtype") is not None:
        scales = list(owner.attributes["output_dtype"].scale)
    return 0.505 * scales[0] if scales else 0.0


@pytest.mark.parametrize("row", SAMPLES)
def test_samples(row: str) -> None:
    """All sample calls of a function, method or module, on arrays and as a graph."""
    failed: dict[str, Exception] = {}
    for number, each in enumerate(SAMPLES[row]):
        for way in (eagerly, as_graph):
            try:
                assert_matches(row, f"{row}.{number}", each, way)
            except Exception as error:
                failed[f"{row}.{number} {way.__name__}"] = error
    if failed:
        lines = [f"{key}: {type(error).__name__}: {error}" for key, error in failed.items()]
        raise AssertionError("\n".join(lines)) from next(iter(failed.values()))


def assert_matches(row: str, key: str, each: Call, way: Callable[..., list[np.ndarray]]) -> None:
    """Fails unless one call gives the types and values of MegEngine."""
    owner = module_of(key)
    actual, expected = way(row, each, owner), TRUTH[key]
    step = 0.0
    if way is as_graph:  # which has the annotations and rounds nothing
        expected = TRUTH.get(f"{key}/float", expected)
        step = rounding(row, each, owner)
    assert [(array.dtype, array.shape) for array in actual] == [
        (array.dtype, array.shape) for array in expected
    ]
    for ours, theirs in zip(actual, expected, strict=True):
        tolerance = RELATIVE.get(theirs.dtype.name, 0)
        scale = float(np.abs(theirs).max(initial=0, where=np.isfinite(theirs)))
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance * min(scale, 1) + step)
