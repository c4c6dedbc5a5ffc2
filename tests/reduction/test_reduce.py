"""``tmconvert reduce``: the smallest model that fails in the same way."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from tests.cli.runner import run
from tmconvert import api
from tmconvert.errors import UsageError
from tmconvert.reduction.search import smallest_failing


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@given(
    st.integers(1, 60).flatmap(lambda count: st.tuples(st.just(count), st.sets(st.integers(0, count - 1))))
)
def test_the_search_keeps_what_is_needed(drawn: tuple[int, set[int]]) -> None:
    count, needed = drawn
    found = smallest_failing(count, lambda kept: needed <= set(kept))
    assert found == (sorted(needed) or found[:1])


def chain(*types: str) -> onnx.ModelProto:
    """Alternates matrix products with weights and elementwise operators of these types."""
    random, nodes, constants, tensor = np.random.default_rng(0), [], [], "x"
    for number, type in enumerate(types):
        constants.append(numpy_helper.from_array(random.standard_normal((8, 8)).astype("f"), f"w{number}"))
        nodes.append(helper.make_node("MatMul", [tensor, f"w{number}"], [f"m{number}"]))
        tensor = f"t{number}"
        nodes.append(helper.make_node(type, [f"m{number}"], [tensor]))
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 8]) for name in ("x", tensor)]
    graph = helper.make_graph(nodes, "secret", ends[:1], ends[1:], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_an_onnx_file_that_another_program_refuses() -> None:
    onnx.save(chain("Relu", "Tanh", "Sin", "Cos", "Relu", "Sigmoid"), "net.onnx")
    Path("refuse.py").write_text(
        "import sys, onnx\n"
        "types = [each.op_type for each in onnx.load(sys.argv[1]).graph.node]\n"
        "if 'Sin' in types and 'Cos' in types: raise NotImplementedError('no')\n",
        encoding="utf-8",
    )
    words = [sys.executable, "refuse.py", "{}"]
    outcome = run("reduce", "net.onnx", "-o", "small.onnx", "--", *words)
    assert outcome.status == 0, outcome.stderr
    assert "2 of 12 nodes" in outcome.stdout and "its weights are made up" in outcome.stdout
    assert "fails with NotImplementedError" in outcome.stdout
    assert [each.op_type for each in onnx.load("small.onnx").graph.node] == ["Sin", "Cos"]
    onnx.save(chain("Relu"), "right.onnx")
    with pytest.raises(UsageError, match=r"TM6002.*does not fail"):
        api.reduce("right.onnx", "small.onnx", command=words)


def test_weights_that_the_failure_needs_are_kept() -> None:
    onnx.save(chain("Relu", "Tanh"), "net.onnx")
    weights = numpy_helper.to_array(onnx.load("net.onnx").graph.initializer[1])
    Path("refuse.py").write_text(
        "import sys, onnx\nfrom onnx import numpy_helper\n"
        "held = [numpy_helper.to_array(each) for each in onnx.load(sys.argv[1]).graph.initializer]\n"
        f"sys.exit(any(abs(float(each.sum()) - {float(weights.sum())}) < 1e-6 for each in held))\n",
        encoding="utf-8",
    )
    found = api.reduce("net.onnx", "small.onnx", command=[sys.executable, "refuse.py", "{}"])
    assert (found.after, found.has_weights) == (1, True)


@pytest.mark.torch
def test_a_pytorch_model_becomes_a_program_that_fails() -> None:
    torch = pytest.importorskip("torch")

    class Net(torch.nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.Sequential(*(torch.nn.Linear(8, 8) for _ in range(4)))

        def forward(self, x):  # type: ignore[no-untyped-def]
            return self.layers(torch.linalg.eigvals(self.layers(x)).real)

    api.trace(Net(), torch.ones(8, 8)).save("net.tm")
    found = api.reduce("net.tm", "small.py")
    text = Path("small.py").read_text(encoding="utf-8")
    assert (found.failure.code, found.after) == ("TM2003", 1)
    assert len(text.splitlines()) <= 15 and "linalg" in text and not re.search(r"\d\.\d", text)
    with pytest.raises(UsageError, match=r"TM6002.*\.py or \.tm"):
        api.reduce("net.tm", "small.onnx")
    module = api.load("net.tm")
    weights = {path: dict(each.tensors) for path, each in module.modules()}
    found = api.reduce(module, "small.tm")
    for path, each in module.modules():
        assert all(each.tensors[name] is value for name, value in weights[path].items())
    small = api.load("small.tm")
    assert found.failure.code == "TM2003" and small.graph is not None
    assert not any(each.tensors for _, each in small.modules())


def test_sizes_attributes_and_names_go_where_the_failure_does_not_need_them() -> None:
    weights = np.random.default_rng(0).standard_normal((24, 24, 5, 5)).astype("f")
    names = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("mine", "yours")]
    names[0].type.tensor_type.shape.CopyFrom(
        helper.make_tensor_value_info("", TensorProto.FLOAT, [1, 24, 40, 40]).type.tensor_type.shape
    )
    nodes = [
        helper.make_node("Conv", ["mine", "weights"], ["ours"], "private", strides=[2, 2], dilations=[1, 1]),
        helper.make_node("Relu", ["ours"], ["yours"]),
    ]
    graph = helper.make_graph(
        nodes, "secret", names[:1], names[1:], [numpy_helper.from_array(weights, "weights")]
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), "net.onnx")
    Path("refuse.py").write_text(
        "import sys, onnx\n"
        "nodes = onnx.load(sys.argv[1]).graph.node\n"
        "if any(held.name == 'strides' for each in nodes for held in each.attribute): raise ValueError\n",
        encoding="utf-8",
    )
    words = [sys.executable, "refuse.py", "{}"]
    api.reduce("net.onnx", "small.onnx", command=words)
    small = onnx.load("small.onnx")
    assert not {"secret", "mine", "ours", "weights", "private"} & set(re.findall(r"\w+", str(small)))
    assert [each.name for each in small.graph.node[0].attribute] == ["strides"]
    assert numpy_helper.to_array(small.graph.initializer[0]).size < 300
    api.reduce("net.onnx", "named.onnx", command=words, keep_names=True)
    assert "weights" in str(onnx.load("named.onnx"))


@pytest.mark.torch
def test_a_module_that_cannot_be_traced_becomes_a_program_and_a_report(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("torch")
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("untraceable.py").write_text(
        "import torch\n"
        "class Private(torch.nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.layers = torch.nn.ModuleList(torch.nn.Conv1d(12, 12, 3) for _ in range(3))\n"
        "    def forward(self, x):\n"
        "        for layer in self.layers:\n"
        "            x = layer(x).relu()\n"
        "        return x * x.detach().numpy().max()\n",
        encoding="utf-8",
    )
    words = ["reduce", "untraceable:Private", "-o", "small.py", "--input", "float32[1,12,20]", "--for-report"]
    outcome = run(*words)
    assert outcome.status == 0, outcome.stderr
    assert "fails with TM2011" in outcome.stdout
    text, report = (Path(f"small.{each}").read_text(encoding="utf-8") for each in ("py", "md"))
    assert len(text.splitlines()) <= 15 and ".numpy()" in text and "Conv" not in text
    fields = ("What you ran", "What it printed", "tmconvert doctor", "The model", "TM2011", text.strip())
    assert all(each in report for each in fields) and "Private" not in report
    onnx.save(chain("Relu"), "net.onnx")
    with pytest.raises(UsageError, match=r"TM6002.*before it reads a model"):
        api.reduce("net.onnx", "small.onnx", command=["tmconvert", "--unknown", "{}"])
