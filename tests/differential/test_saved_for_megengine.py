"""Models saved with ``format="megengine"`` are loaded by MegEngine and compute what they did before.

Needs MegEngine: set TMCONVERT_MEGENGINE to a Python 3.8 that has it. TMCONVERT_SAVED may name another folder
of models with .npz files beside them; the models of tests/data are taken otherwise.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tmconvert
from tmconvert.frontends.megengine.writing.aten_to_megengine import WORDS
from tmconvert.ir import CallFunction, Constant, TensorNode, TracedModule
from tmconvert.ir.tree import leaves
from tmconvert.symbolics.op import Tensor
from tmconvert.symbolics.registry import catalogue

HERE = Path(__file__).parent
FOLDER = Path(os.environ.get("TMCONVERT_SAVED", HERE.parent / "data"))
PYTHON = os.environ.get("TMCONVERT_MEGENGINE")
# MegEngine computes sums in an order that depends on the alignment of its memory
TOLERANCE = 1e-4
LEFT_OUT = {
    "custom_user_function": "calls a function of a module that is not there",
    "op_sort_gather_onehot": "MegEngine runs two aranges at the same time, and mixes them up",
}


@pytest.mark.megengine
@pytest.mark.skipif(PYTHON is None, reason="needs MegEngine; set TMCONVERT_MEGENGINE to its Python")
def test_models_compute_the_same(tmp_path: Path) -> None:
    assert PYTHON is not None
    models = [path for path in sorted(FOLDER.glob("*.tm")) if _has_arrays(path)]
    for path in models:
        tmconvert.load(path).save(tmp_path / path.name, format="megengine")
        (tmp_path / path.name).with_suffix(".npz").write_bytes(path.with_suffix(".npz").read_bytes())
    subprocess.run(
        [PYTHON, str(HERE / "run_in_megengine.py"), str(tmp_path)], check=True, capture_output=True
    )
    assert {path.stem: found for path in models if (found := _difference(path, tmp_path))} == {}
    assert len(models) >= 40


def _has_arrays(path: Path) -> bool:
    return path.with_suffix(".npz").exists() and path.stem not in LEFT_OUT


def _difference(path: Path, folder: Path) -> str | None:
    error = folder / f"{path.stem}.error"
    if error.exists():
        return error.read_text()
    with np.load(path.with_suffix(".npz")) as golden, np.load(folder / f"{path.stem}.out.npz") as found:
        wanted = [golden[f"out{i}"] for i in range(sum(name.startswith("out") for name in golden.files))]
        made = [found[f"out{i}"] for i in range(len(found.files))]
    if [array.shape for array in made] != [array.shape for array in wanted]:
        return "the outputs have other shapes"
    for i, (ours, theirs) in enumerate(zip(made, wanted, strict=True)):
        distance = np.abs(ours.astype(np.float64) - theirs.astype(np.float64))
        if distance.size and distance.max() > TOLERANCE * max(float(np.abs(theirs).max()), 1e-3):
            return f"output {i} differs by {distance.max():.1e}"
    return None


ATTRIBUTES: dict[str, dict[str, Any]] = {
    "aten::amax": {"dim": [1], "keepdim": True},
    "aten::amin": {"dim": [1, 2], "keepdim": False},
    "aten::cat": {"dim": 1},
    "aten::clamp": {"min": -0.25, "max": 0.5},
    "aten::expand": {"size": [2, 3, 4, 4]},
    "aten::gelu": {"approximate": "none"},
    "aten::leaky_relu": {"negative_slope": 0.1},
    "aten::log_softmax": {"dim": 1},
    "aten::mean": {"dim": None, "keepdim": False},
    "aten::permute": {"dims": [0, 2, 3, 1]},
    "aten::reshape": {"shape": [3, 16]},
    "aten::softmax": {"dim": -1},
    "aten::sum": {"dim": [2, 3], "keepdim": True},
}


@pytest.mark.megengine
@pytest.mark.skipif(PYTHON is None, reason="needs MegEngine; set TMCONVERT_MEGENGINE to its Python")
def test_ops_are_written_as_functions_that_compute_the_same(tmp_path: Path) -> None:
    assert PYTHON is not None
    x = np.random.default_rng(0).uniform(-0.9, 0.9, (1, 3, 4, 4)).astype(np.float32)
    expected = {}
    for op in WORDS:
        stem = op.removeprefix("aten::")
        given = np.abs(x) if stem in ("log", "sqrt", "pow") else x
        expected[stem] = _with_call(op, given, tmp_path / f"{stem}.tm")
        np.savez(tmp_path / f"{stem}.npz", in0=given)
    command = [PYTHON, str(HERE / "run_in_megengine.py"), str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True)
    for stem, array in expected.items():
        error = tmp_path / f"{stem}.error"
        assert not error.exists(), (stem, error.read_text())
        with np.load(tmp_path / f"{stem}.out.npz") as made:
            np.testing.assert_allclose(made["out0"], array, rtol=1e-5, atol=1e-6, err_msg=stem)
            assert made["out0"].dtype == array.dtype


def _with_call(op: str, x: np.ndarray, path: Path) -> np.ndarray:
    """Saves a model that consists of one call of ``op``, and returns what it computes."""
    model = tmconvert.load(HERE.parent / "data/modification/block.tm")
    graph = model.graph
    assert graph is not None
    source = graph.inputs[1]
    other = np.linspace(0.5, 2, x.size, dtype=np.float32).reshape(x.shape)
    known = catalogue()[op]
    is_list = known.args[0].name == "tensors"
    count = sum(isinstance(argument, Tensor) for argument in known.args)
    constant = TensorNode("other", other.shape, other.dtype)
    graph.set_result(source)
    for expr in reversed(list(graph)):
        graph.remove(expr)
    graph.insert(Constant(other, None, result=constant, id=2))
    operands = [[source, constant]] if is_list else [source, constant][:count]
    arrays = [[x, other]] if is_list else [x, other][:count]
    attributes = ATTRIBUTES.get(op, {})
    computed = known.evaluate(arrays, attributes)
    result = TensorNode("made", computed.shape, computed.dtype)
    graph.insert(CallFunction(op, tuple(operands), attributes, result=result, id=3))
    graph.set_result(result)
    model.save(path, format="megengine")
    return np.asarray(computed)


def _negated(model: TracedModule) -> None:
    for relu in model.graph.get_function_by_type("nn.relu").as_list():
        with relu.top_graph.insert_exprs() as g:
            made = g.call("megengine.functional.elemwise.neg", relu.outputs[0]) * 2.0
        relu.top_graph.replace_node({relu.outputs[0]: made})


def _without_relu(model: TracedModule) -> None:
    for relu in model.graph.get_function_by_type("nn.relu").as_list():
        relu.top_graph.replace_node({relu.outputs[0]: relu.inputs[0]})
        relu.top_graph.compile()


def _of_torch(model: TracedModule) -> None:
    graph = model.graph
    (out,) = graph.outputs
    with graph.insert_exprs() as g:
        made = torch.softmax(torch.tanh(out * 2.0), dim=1) / g.constant(3.0)
    graph.reset_outputs({"made": made, "before": out})


def _with_another_input(model: TracedModule) -> None:
    graph = model.graph
    added = graph.add_input_node(shape=(1, 3, 4, 4), name="data")
    (out,) = graph.outputs
    with graph.insert_exprs():
        total = out + added
    graph.reset_outputs(total)
    graph.add_output_node(added)


def _renamed_and_scaled(model: TracedModule) -> None:
    model.graph.outputs[0].name = "result"
    for _, module in model.modules():
        if module.class_name.endswith("Conv2d"):
            module.weight *= np.float32(0.5)


def _flat(model: TracedModule) -> TracedModule:
    return model.flatten()


def _with_another_model(model: TracedModule) -> None:
    graph = model.graph
    (out,) = graph.outputs
    model.add_module("again", tmconvert.load(HERE.parent / "data/modification/nested.tm"))
    with graph.insert_exprs() as g:
        made = g.call_module("again", g.call_module("again", out))
    graph.reset_outputs(made)


EDITS = (
    _with_another_model,
    _negated,
    _without_relu,
    _of_torch,
    _with_another_input,
    _renamed_and_scaled,
    _flat,
)


@pytest.mark.megengine
@pytest.mark.skipif(PYTHON is None, reason="needs MegEngine; set TMCONVERT_MEGENGINE to its Python")
def test_edited_models_compute_the_same(tmp_path: Path) -> None:
    assert PYTHON is not None
    expected = {}
    for name in ("block", "nested"):
        for edit in EDITS:
            model = tmconvert.load(HERE.parent / f"data/modification/{name}.tm")
            model = edit(model) or model
            path = tmp_path / f"{name}{edit.__name__}.tm"
            inputs = [np.linspace(-2, 2, 48, dtype=np.float32).reshape(1, 3, 4, 4) + i for i in range(2)]
            inputs = inputs[: len(model.graph.inputs) - 1]
            np.savez(path.with_suffix(".npz"), **{f"in{i}": array for i, array in enumerate(inputs)})
            model.save(path, format="megengine")
            result = model(*inputs)
            # MegEngine sorts the keys of a dict
            ordered = [result[key] for key in sorted(result)] if isinstance(result, dict) else leaves(result)
            expected[path.stem] = ordered
    command = [PYTHON, str(HERE / "run_in_megengine.py"), str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True)
    for stem, arrays in expected.items():
        error = tmp_path / f"{stem}.error"
        assert not error.exists(), (stem, error.read_text())
        with np.load(tmp_path / f"{stem}.out.npz") as made:
            assert len(made.files) == len(arrays)
            for i, array in enumerate(arrays):
                np.testing.assert_allclose(made[f"out{i}"], array, rtol=1e-4, atol=1e-5, err_msg=stem)


@pytest.mark.megengine
@pytest.mark.skipif(PYTHON is None, reason="needs MegEngine; set TMCONVERT_MEGENGINE to its Python")
def test_megengine_edits_what_was_saved(tmp_path: Path) -> None:
    assert PYTHON is not None
    originals = HERE.parent / "data/modification"
    saved, made = tmp_path / "saved", tmp_path / "made"
    for folder in (saved, made):
        folder.mkdir()
    for path in originals.glob("*.tm"):
        tmconvert.load(path).save(saved / path.name, format="megengine")
    script = HERE.parent / "frontends/megengine/modification_models.py"
    subprocess.run([PYTHON, str(script), str(made), str(saved)], check=True, capture_output=True)
    for path in originals.glob("*.npz"):
        with np.load(path) as wanted, np.load(made / path.name) as found:
            assert wanted.files == found.files
            for name in wanted.files:
                np.testing.assert_allclose(found[name], wanted[name], rtol=1e-5, atol=1e-6, err_msg=name)
