"""``tmconvert diff``: each planted edit is named, and none is invented."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.cli.runner import model, run
from tmconvert import api
from tmconvert.errors import UsageError

Edit = Callable[[onnx.ModelProto], object]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def net(blocks: int = 4) -> onnx.ModelProto:
    """Blocks of Conv, Relu, Conv, Add, Relu, and a head."""
    random = np.random.default_rng(0)
    nodes, constants, tensor = [], [], "x"

    def conv(name: str, source: str) -> str:
        weights = (random.standard_normal((4, 4, 3, 3)) / 6).astype(np.float32)
        constants.append(numpy_helper.from_array(weights, f"{name}_w"))
        nodes.append(helper.make_node("Conv", [source, f"{name}_w"], [name], name, pads=[1, 1, 1, 1]))
        return name

    def call(type: str, name: str, *sources: str, **attributes: object) -> str:
        nodes.append(helper.make_node(type, list(sources), [name], name, **attributes))
        return name

    for number in range(blocks):
        inner = conv(f"conv_b{number}", call("Relu", f"relu_a{number}", conv(f"conv_a{number}", tensor)))
        tensor = call("Relu", f"relu_b{number}", call("Add", f"add{number}", inner, tensor))
    pooled = call("GlobalAveragePool", "pool", tensor)
    call("Softmax", "y", call("Flatten", "flat", pooled, axis=1), axis=1)
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (("x", [1, 4, 8, 8]), ("y", [1, 4]))
    ]
    graph = helper.make_graph(nodes, "net", ends[:1], ends[1:], constants)
    return onnx.shape_inference.infer_shapes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    )


def node(found: onnx.ModelProto, name: str) -> onnx.NodeProto:
    return next(each for each in found.graph.node if each.output[0] == name)


def insert(found: onnx.ModelProto, type: str, name: str, before: str) -> None:
    """Puts a node between the first operand of a node and that node."""
    reader = node(found, before)
    made = helper.make_node(type, [reader.input[0]], [name], name)
    reader.input[0] = name
    found.graph.node.insert(list(found.graph.node).index(reader), made)


def remove(found: onnx.ModelProto, name: str) -> None:
    gone = node(found, name)
    for each in found.graph.node:
        each.input[:] = [gone.input[0] if name == old else old for old in each.input]
    found.graph.node.remove(gone)


def rename(found: onnx.ModelProto, change: Callable[[str], str]) -> None:
    for each in found.graph.node:
        each.name = change(each.name)
        each.input[:] = map(change, each.input)
        each.output[:] = map(change, each.output)
    for value in (*found.graph.initializer, *found.graph.value_info):
        value.name = change(value.name)


def scale_weights(found: onnx.ModelProto, name: str) -> None:
    held = next(each for each in found.graph.initializer if each.name == name)
    held.CopyFrom(numpy_helper.from_array(2 * numpy_helper.to_array(held), name))


def swap_blocks(found: onnx.ModelProto) -> None:
    """Sorts the nodes in another valid order: the graph is the same."""
    nodes = list(found.graph.node)
    at = [number for number, each in enumerate(nodes) if each.op_type == "Add"]
    moved = nodes.pop(at[-1] - 1)
    nodes.insert(at[-1] - 1, moved)
    del found.graph.node[:]
    found.graph.node.extend(nodes)


def set_type(found: onnx.ModelProto, name: str, type: str) -> None:
    node(found, name).op_type = type


def set_attribute(found: onnx.ModelProto, name: str, key: str, value: object) -> None:
    held = node(found, name)
    kept = [each for each in held.attribute if each.name != key]
    del held.attribute[:]
    held.attribute.extend([*kept, helper.make_attribute(key, value)])


def set_operand(found: onnx.ModelProto, name: str, position: int, value: str) -> None:
    node(found, name).input[position] = value


PLANTED: dict[str, tuple[Edit, dict[str, list[str]]]] = {
    "nothing": (lambda found: None, {}),
    "order": (swap_blocks, {}),
    "operator": (lambda f: set_type(f, "relu_a1", "Sigmoid"), {"replaced": ["relu_a1"]}),
    "last operator": (lambda f: set_type(f, "y", "LogSoftmax"), {"replaced": ["y"]}),
    "attribute": (lambda f: set_attribute(f, "flat", "axis", 2), {"attribute": ["flat"]}),
    "new attribute": (
        lambda f: set_attribute(f, "conv_a2", "auto_pad", "VALID"),
        {"attribute": ["conv_a2"]},
    ),
    "stated default": (lambda f: set_attribute(f, "conv_a2", "group", 1), {}),
    "weights": (lambda f: scale_weights(f, "conv_b2_w"), {"weights": ["conv_b2"]}),
    "all weights": (
        lambda f: [scale_weights(f, each.name) for each in f.graph.initializer],
        {"weights": [f"conv_{half}{number}" for half in "ab" for number in range(4)]},
    ),
    "inserted": (lambda f: insert(f, "Sigmoid", "new", "conv_a2"), {"added": ["new"]}),
    "inserted, of a type that is there": (lambda f: insert(f, "Relu", "new", "conv_a2"), {"added": ["new"]}),
    "removed": (lambda f: remove(f, "relu_b1"), {"removed": ["relu_b1"]}),
    "two edits": (
        lambda f: (remove(f, "relu_a0"), set_type(f, "relu_b3", "Elu")),
        {"removed": ["relu_a0"], "replaced": ["relu_b3"]},
    ),
    "rewired": (lambda f: set_operand(f, "add2", 1, "relu_b0"), {"moved": ["add2"]}),
    "names": (
        lambda f: rename(f, lambda name: name if name in "xy" else f"m.{name}"),
        {"renamed": ["add", "conv", "flat", "pool", "relu"]},
    ),
    "names in other order": (
        lambda f: rename(f, lambda name: name.translate(str.maketrans("0123", "1230"))),
        {"renamed": ["add", "conv", "relu"]},
    ),
}


@pytest.mark.parametrize("edit", PLANTED)
def test_planted_edits(edit: str) -> None:
    change, expected = PLANTED[edit]
    onnx.save(net(), "a.onnx")
    changed = net()
    change(changed)
    onnx.save(changed, "b.onnx")
    found = api.diff("a.onnx", "b.onnx")
    names: dict[str, list[str]] = {}
    for each in found.changes:
        name = each.first or each.second
        if each.kind == "renamed":
            name = name.rstrip("0123").partition("_")[0]
        if name not in names.setdefault(each.kind, []):
            names[each.kind].append(name)
    assert {kind: sorted(each) for kind, each in names.items()} == expected
    assert found.is_equal == (not expected)


def test_precision_opset_and_quantization_of_written_files() -> None:
    conv, x = model("op_s_conv_bn_relu"), np.random.default_rng(0).standard_normal((2, 3, 32, 32))
    api.to_onnx(conv, "a.onnx", opset=17)
    api.to_onnx(conv, "b.onnx", opset=18)
    assert api.diff("a.onnx", "b.onnx").properties == {"version": ("opset 17", "opset 18")}
    api.to_onnx(conv, "h.onnx", float_type="float16")
    kinds = {each.kind for each in api.diff("a.onnx", "h.onnx").changes}
    assert {"type", "weights"} <= kinds <= {"type", "weights"}
    api.to_tflite(conv, "a.tflite")
    api.to_tflite(conv, "i.tflite", quantized=True, calibration={"x": x.astype(np.float32)})
    found = api.diff("a.tflite", "i.tflite")
    assert found.of_kind("quantization") and not found.of_kind("removed", "added", "moved")
    assert not api.diff(conv, "a.tflite", compare_outputs=True).of_kind("replaced", "moved")


def test_limits_text_markdown_json_and_page() -> None:
    onnx.save(net(), "a.onnx")
    changed = net()
    scale_weights(changed, "conv_b2_w")
    set_type(changed, "relu_a1", "Sigmoid")
    onnx.save(changed, "b.onnx")
    limits = ["--fail-on", "operators|changed-outputs", "--fail-on", "size+5%", "--fail-on", "parameters+0%"]
    outcome = run("diff", "a.onnx", "b.onnx", *limits, "--page", "diff.html")
    assert outcome.status == 1
    assert "replaced: 1\n  Relu (relu_a1) -> Sigmoid (relu_a1)" in outcome.stdout
    assert "first layer that differs: relu_a1" in outcome.stdout
    assert outcome.stdout.count("does not hold") == 2
    assert '"removed"' in Path("diff.html").read_text(encoding="utf-8")
    document = run("diff", "a.onnx", "b.onnx", "--json").json
    assert document["counts"] == {"replaced": 1, "weights": 1} and document["ok"]
    assert "<summary>weights: 1</summary>" in run("diff", "a.onnx", "b.onnx", "--markdown").stdout
    with pytest.raises(UsageError, match=r"TM6002.*unknown condition 'size'"):
        api.diff("a.onnx", "b.onnx", fail_on=["size"])


def test_scales_that_print_alike_are_shown_with_more_digits() -> None:
    """The channel is the first one that differs."""
    from types import SimpleNamespace as Tensor

    from tmconvert.difference.changes import _quantization
    from tmconvert.frontends.shared.view_graph import qparams_record

    def change(*scales: list[float]) -> str:
        records = (qparams_record("int8", each, [0] * len(each), 0) for each in scales)
        (found,) = _quantization(*(Tensor(name="w", qparams=each) for each in records))
        return str(found.text)

    assert change([0.5] * 70, [0.5] * 69 + [0.25]).endswith("channel 0 of 70) in a later channel")
    assert change([0.5, 0.012345678], [0.5, 0.012345681]) == (
        "w: int8 (scale 0.012345678, zero point 0, channel 1 of 2)"
        " -> int8 (scale 0.012345681, zero point 0, channel 1 of 2)"
    )
