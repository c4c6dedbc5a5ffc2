"""Passes as operations on a model, text forms, and passes of users."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest

import tmconvert
from tests.cli.runner import model, run
from tmconvert.errors import LoadError, TmconvertError, UsageError, VerificationError
from tmconvert.ir import CallFunction, InternalGraph, TracedModule
from tmconvert.passes.rewriting import PassRecord, RewritePass
from tmconvert.transform.named_passes import MEGENGINE, SHIPPED, temporary_passes

RESNET = model("resnet18")


@pytest.fixture(autouse=True)
def _restored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    with temporary_passes():
        yield


@pytest.fixture(scope="module")
def resnet() -> TracedModule:
    return tmconvert.load(RESNET)


@pytest.fixture(scope="module")
def recorded() -> tuple[np.ndarray, np.ndarray]:
    with np.load(RESNET.with_suffix(".npz")) as arrays:
        return arrays["in0"], arrays["out0"]


def functions(tm: TracedModule) -> list[str]:
    assert tm.graph is not None
    return [expr.function for expr in tm.graph if isinstance(expr, CallFunction)]


Case = tuple[np.ndarray, np.ndarray]


def test_a_normalized_model_is_one_that_runs_saves_and_converts(resnet: TracedModule, recorded: Case) -> None:
    x, out = recorded
    made = tmconvert.normalize(resnet)
    assert {name.partition("::")[0] for name in functions(made)} == {"aten"}
    np.testing.assert_allclose(made(x), out, atol=1e-5)
    made.save("o.tm")
    assert tmconvert.to_onnx("o.tm", "o.onnx").verification is not None


@pytest.mark.parametrize("name", [*MEGENGINE, *SHIPPED])
def test_each_pass_keeps_what_the_model_computes(name: str, resnet: TracedModule, recorded: Case) -> None:
    x, out = recorded
    np.testing.assert_allclose(tmconvert.optimize(resnet, name)(x), out, atol=2e-5)


def head(x: object) -> object:
    import torch

    return torch.relu(torch.nn.functional.conv2d(x, torch.ones(4, 3, 1, 1)) * 1.7) / 8  # type: ignore[arg-type]


def test_megengines_names_do_what_they_do_there(recorded: Case) -> None:
    import torch

    tm = tmconvert.trace(head, torch.ones(1, 3, 4, 4))
    assert functions(tmconvert.optimize(tm, "BackwardFoldScale")) == ["aten::conv2d", "aten::relu"]
    chain = tmconvert.trace(lambda x: 1 / ((2 + (x + 1)) * 4 * 0.25), torch.ones(2) * 3)
    made = tmconvert.optimize(chain, ["FuseAddMul"])
    assert functions(made) == ["aten::add", "aten::reciprocal"]
    np.testing.assert_allclose(made(np.ones(2, np.float32)), [0.25, 0.25])
    assert "aten::batch_norm" not in functions(tmconvert.optimize(RESNET))


def test_unknown_passes_are_named_with_the_nearest(resnet: TracedModule) -> None:
    for name in ("FuseConvBN", "fuseconv_bn"):
        with pytest.raises(UsageError, match=r"TM6051.*did you mean '[Ff]use_?[Cc]onv_?[Bb]n'"):
            tmconvert.optimize(resnet, [name])


# ---- text


def test_the_text_of_a_model_reads_back(resnet: TracedModule, recorded: Case) -> None:
    x, out = recorded
    text = tmconvert.normalize(resnet).graph.to_text()
    again = tmconvert.parse_graph(text, resnet)
    assert isinstance(again, TracedModule) and again.graph.to_text() == text
    np.testing.assert_allclose(again(x), out, atol=1e-5)
    changed = tmconvert.parse_graph(text.replace("aten::relu(", "aten::sigmoid("), resnet)
    assert "aten::relu" not in functions(changed)
    assert tmconvert.to_onnx(changed, "o.onnx").verification is not None


def test_a_text_without_weights_is_a_model(tmp_path: Path) -> None:
    relu = "  %w = aten::relu(%x) : f32[2,3]\n"
    reshape = "  %y = aten::reshape(%w) {shape=[2, 3, 1]} : f32[2,3,1]\n"
    relu = "  %w = aten::relu(%x) : f32[2,3]\n"
    reshape = "  %y = aten::reshape(%w) {shape=[2, 3, 1]} : f32[2,3,1]\n"
    text = "graph g(%x: f32[2,3]) -> (%y) {\n" + relu + reshape + "}\n"
    model = tmconvert.parse_graph(text)
    assert [str(expr.source) for expr in model.graph] == ["text:2", "text:3"]
    x = np.arange(-3, 3, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(model(x), np.maximum(x, 0)[..., None])
    assert tmconvert.to_onnx(model, tmp_path / "o.onnx").verified
    with pytest.raises(LoadError, match="TM1101"):
        tmconvert.parse_graph(text.replace("relu(", "relu["))


def test_a_line_that_is_added_to_a_text_needs_no_location(resnet: TracedModule) -> None:
    lines = tmconvert.normalize(resnet).graph.to_text().splitlines()
    number, line = next((number, line) for number, line in enumerate(lines) if "= aten::relu(" in line)
    name, type_ = line.split()[0], line.partition(" : ")[2].partition(" ")[0]
    lines.insert(number + 1, f"  %added = aten::sigmoid({name}) : {type_}")
    model = tmconvert.parse_graph("\n".join(lines), resnet)
    added = model.graph.get_node_by_name("added").as_unique().expr
    assert str(added.source) == f"text:{number + 2}"


def test_text_with_types_that_do_not_fit_is_refused(resnet: TracedModule) -> None:
    text = tmconvert.normalize(resnet).graph.to_text()
    with pytest.raises(TmconvertError, match="TM3015"):
        tmconvert.parse_graph(text.replace("f32[1,10]", "f32[1,11]"), resnet)


def test_graphs_in_the_words_of_a_source_have_none(resnet: TracedModule) -> None:
    with pytest.raises(UsageError, match="TM6005"):
        resnet.graph.to_text()


# ---- passes of users


def drop_relu(graph: InternalGraph) -> None:
    for call in list(graph):
        if isinstance(call, CallFunction) and call.function == "aten::relu":
            graph.replace_uses(call.output, call.args[0])
            graph.remove(call)


class ReluToClamp(RewritePass[bool]):
    name = "relu_to_clamp"

    def match(self, graph: InternalGraph, call: CallFunction) -> bool | None:
        return True if call.function == "aten::relu" else None

    def check(self, graph: InternalGraph, call: CallFunction, match: bool) -> str | None:
        return "the test keeps it"

    def rewrite(self, graph: InternalGraph, call: CallFunction, match: bool) -> str:
        raise AssertionError


def test_a_registered_pass_is_run_by_its_name(resnet: TracedModule) -> None:
    assert tmconvert.register_pass("DropRelu", after="FuseConvBn")(drop_relu) is drop_relu
    made = tmconvert.optimize(resnet, ["DropRelu"])
    assert "aten::relu" not in functions(made) and "aten::batch_norm" not in functions(made)
    report = tmconvert.to_onnx(resnet, "o.onnx", passes=["DropRelu"], verify=False)
    names = [record.name for record in report.passes]
    assert names.index("DropRelu") == names.index("fuse_conv_bn") + 1
    assert "Relu" not in {node.op_type for node in onnx.load("o.onnx").graph.node}


@pytest.mark.parametrize("target", ["onnx", "tflite", "caffe"])
def test_the_file_is_still_compared_with_the_source(target: str, resnet: TracedModule) -> None:
    convert = getattr(tmconvert, f"to_{target}")
    suffix = {"onnx": "o.onnx", "tflite": "o.tflite", "caffe": "o.prototxt"}[target]
    with pytest.raises(VerificationError, match="TM4001"):
        convert(resnet, suffix, passes=[drop_relu])
    assert list(Path().iterdir()) == []
    assert convert(resnet, suffix, passes=["FuseAddMul"]).verification is not None


def test_a_pass_that_fails_or_breaks_the_graph_is_named(resnet: TracedModule) -> None:
    def fails(graph: InternalGraph) -> None:
        raise ZeroDivisionError("by design")

    def breaks(graph: InternalGraph) -> None:
        graph.outputs[0].shape = (3,)  # type: ignore[attr-defined]

    with pytest.raises(
        UsageError, match=r"TM6052.*pass fails failed: ZeroDivisionError: by design"
    ) as caught:
        tmconvert.to_onnx(resnet, "o.onnx", passes=[fails])
    assert caught.value.source is not None and caught.value.source.file == __file__
    with pytest.raises(UsageError, match=r"TM6053.*pass breaks left a graph that is not valid"):
        tmconvert.optimize(resnet, [breaks])
    assert list(Path().iterdir()) == []


def test_changes_and_refusals_are_recorded(resnet: TracedModule) -> None:
    def report(graph: InternalGraph, record: PassRecord) -> None:
        record.refuse(graph.last, "the test keeps it")

    found = tmconvert.to_onnx(resnet, "o.onnx", passes=[report, ReluToClamp])
    records = {record.name: record for record in found.passes}
    assert str(records["report"].refused[0]).startswith("`fc_out` stays")
    assert len(records["relu_to_clamp"].refused) > 1


def test_names_and_orders_that_cannot_be(resnet: TracedModule) -> None:
    for name, after in (("FuseConvBn", ()), ("fuse_conv_bn", ()), ("Mine", "Nonsense")):
        with pytest.raises(UsageError, match="TM6051"):
            tmconvert.register_pass(name, drop_relu, after=after)
    tmconvert.register_pass("Late", drop_relu, after="SinkReshapes")
    with pytest.raises(UsageError, match=r"TM6051.*Late must come after sink_reshapes"):
        tmconvert.to_onnx(resnet, "o.onnx", passes=["Late"])
    with pytest.raises(UsageError, match="TM6051"):
        tmconvert.optimize(resnet, [3])


PLUGIN = """
import tmconvert

@tmconvert.register_pass("Keep")
def keep(graph, record):
    record.refuse(graph.last, "the plugin keeps it")
"""


def test_the_command_line_takes_passes_of_plugins() -> None:
    Path("own.py").write_text(PLUGIN)
    outcome = run("onnx", RESNET, "o.onnx", "--plugin", "own.py", "--pass", "Keep", "-v")
    assert outcome.status == 0 and "the plugin keeps it" in outcome.stderr
    outcome = run("optimize", RESNET, "o.tm", "--plugin", "own.py", "--pass", "Keep", "-v")
    assert outcome.status == 0 and "the plugin keeps it" in outcome.stderr
    outcome = run("optimize", RESNET, "o.tm", "--pass", "Keep")
    assert outcome.status == 2 and "TM6051" in outcome.stderr  # registered for that command alone


def test_the_command_optimizes() -> None:
    outcome = run("optimize", RESNET, "o.tm", "--pass", "FuseConvBn", "--json")
    assert outcome.status == 0
    assert outcome.json["passes"][0]["name"] == "fuse_conv_bn" and outcome.json["passes"][0]["changes"] == 20
    assert "aten::batch_norm" not in functions(tmconvert.load("o.tm"))
    assert run("onnx", "o.tm", "o.onnx").status == 0
    assert run("optimize", RESNET, "o.tm").stdout.startswith("o.tm  (")
    assert run("optimize", RESNET, "o.onnx").status == 2
