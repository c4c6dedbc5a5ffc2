"""The functions of other tools, called as their own documentation calls them."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

from tmconvert.compat import mgeconvert, onnxsim, onnxslim, torch_onnx
from tmconvert.errors import UsageError

SAMPLES = Path(__file__).parents[2] / "samples"
X = torch.randn(2, 3, 8, 8)


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU())

    def forward(self, image: Any, scale: Any = None) -> Any:
        found = self.layers(image).mean((2, 3))
        return found if scale is None else found * scale


NET = Net().eval()


class Exportable(torch.onnx.ExportableModule):
    def __init__(self) -> None:
        super().__init__()
        self.net = NET

    def forward(self, x: Any) -> Any:
        return self.net(x)

    def example_arguments(self) -> Any:
        return (X,), None

    def input_names(self) -> Any:
        return ("pixels",)

    def output_names(self) -> Any:
        return ("scores",)

    def dynamic_shapes(self) -> Any:
        return ({0: "n"},)


def outputs_of(model: Any, **inputs: torch.Tensor) -> list[Any]:
    content = model if isinstance(model, (str, bytes)) else model.SerializeToString()
    session = onnxruntime.InferenceSession(content)
    return session.run(None, {name: each.numpy() for name, each in inputs.items()})


@pytest.fixture(scope="module")
def proto() -> onnx.ModelProto:
    program = torch_onnx.export(NET, (X,), dynamic_shapes=({0: "n"},), opset_version=18)
    assert program is not None
    model = program.model_proto
    model.graph.node.append(onnx.helper.make_node("Identity", [model.graph.output[0].name], ["copied"]))
    model.graph.output[0].name = "copied"
    return model


@pytest.mark.parametrize("dynamo", [True, False])
def test_export_with_names_and_axes(dynamo: bool, tmp_path: Path) -> None:
    axes = {"input": {0: "batch_size"}, "output": {0: "batch_size"}}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch_onnx.export(
            NET,
            X,
            tmp_path / "net.onnx",
            export_params=True,
            opset_version=13,
            do_constant_folding=True,
            input_names=["input"],
            output_names=["output"],
            dynamic_axes=axes,
            dynamo=dynamo,
            external_data=False,
        )
    made = onnx.load(tmp_path / "net.onnx")
    assert made.opset_import[0].version == 13
    assert [each.name for each in (*made.graph.input, *made.graph.output)] == ["input", "output"]
    (found,) = outputs_of(made, input=X[:1])
    np.testing.assert_allclose(found, NET(X[:1]).detach(), rtol=1e-4, atol=1e-5)


def test_export_to_a_program_a_stream_and_with_keywords() -> None:
    program = torch_onnx.export(NET, (X,), kwargs={"scale": X[0, 0, 0, :4]}, dynamo=True)
    assert program is not None
    (found,) = program(X, X[0, 0, 0, :4])
    torch.testing.assert_close(found, NET(X, X[0, 0, 0, :4]), rtol=1e-4, atol=1e-5)
    stream, saved = io.BytesIO(), io.BytesIO()
    program.save(saved)
    assert saved.getvalue() == program.model_proto.SerializeToString()
    last = {"scale": X[0, 0, 0, :4]}
    assert torch_onnx.export(NET, (X, last), stream, dynamo=False, dynamic_axes={"image": [0]}) is None
    (old,) = outputs_of(stream.getvalue(), image=X[:1], scale=last["scale"])
    np.testing.assert_allclose(old, NET(X[:1], **last).detach(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("model", [Exportable(), torch.export.export(NET, (X,))], ids=["module", "program"])
def test_export_of_models_with_their_own_inputs(model: Any) -> None:
    program = torch_onnx.export(model)
    assert program is not None
    assert program.report.verified
    if isinstance(model, Exportable):
        graph = program.model_proto.graph
        assert [each.name for each in (*graph.input, *graph.output)] == ["pixels", "scores"]
        assert graph.input[0].type.tensor_type.shape.dim[0].dim_param == "n"


@pytest.mark.parametrize("tool", ["onnxsim", "onnxslim"])
def test_simplifiers(tool: str, proto: onnx.ModelProto, tmp_path: Path) -> None:
    onnx.save(proto, tmp_path / "in.onnx")
    if tool == "onnxsim":
        simple, check = onnxsim.simplify(proto, check_n=1, overwrite_input_shapes={"image": [4, 3, 8, 8]})
        assert check
        onnxsim.simplify(str(tmp_path / "in.onnx"), output_path=tmp_path / "out.onnx")
    else:
        simple = onnxslim.slim(proto, input_shapes=["image:4,3,8,8"])
        assert onnxslim.slim(str(tmp_path / "in.onnx"), str(tmp_path / "out.onnx")) is None
    assert "Identity" not in {node.op_type for node in simple.graph.node}
    assert [dim.dim_value for dim in simple.graph.input[0].type.tensor_type.shape.dim] == [4, 3, 8, 8]
    for one, other in zip(
        outputs_of(str(tmp_path / "out.onnx"), image=X), outputs_of(proto, image=X), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("backend", ["nnie", "snpe", "trt"])
def test_mgeconvert_backends_are_dialects(backend: str, tmp_path: Path) -> None:
    model, made = str(SAMPLES / "digits.tm"), str(tmp_path / "out")
    mgeconvert.tracedmodule_to_caffe(model, f"{made}.prototxt", f"{made}.caffemodel", convert_backend=backend)
    assert f'"caffe": "{backend}"' in Path(f"{made}.prototxt").read_text().splitlines()[0]


def test_mgeconvert(tmp_path: Path) -> None:
    model, made = str(SAMPLES / "digits_qat.tm"), str(tmp_path / "out")
    mgeconvert.tracedmodule_to_onnx(
        str(SAMPLES / "digits.tm"), f"{made}.onnx", opset=12, quantize_file_path=None
    )
    assert onnx.load(f"{made}.onnx").opset_import[0].version == 12
    mgeconvert.tracedmodule_to_tflite(model, f"{made}.tflite", require_quantize=True)
    parameters = tmp_path / "quant_params.json"
    mgeconvert.tracedmodule_to_caffe(
        model, f"{made}.prototxt", f"{made}.caffemodel", quantize_file_path=str(parameters)
    )
    assert parameters.stat().st_size > 100
    assert {each.suffix for each in tmp_path.iterdir()} >= {".onnx", ".tflite", ".caffemodel"}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda p: onnxsim.simplify(p, skip_constant_folding=True),
            "simplify: skip_constant_folding",
        ),
        (lambda p: onnxslim.slim(p, skip_fusion_patterns=["FusionGemm"]), "skip_fusion_patterns has no mean"),
        (lambda p: torch_onnx.export(NET, (X,), optimize=False), "optimize has no meaning here"),
        (lambda p: torch_onnx.export(NET, (X,), keep_initializers_as_inputs=True), "cannot be followed"),
        (lambda p: torch_onnx.export(NET, (X,), export_params=False), "export_params"),
        (lambda p: onnxsim.simplify(p, mutable_initializer=True), "mutable_initializer of onnxsim"),
        (lambda p: onnxsim.simplify(p, 0, False), "perform_optimization of onnxsim.simplify cannot be"),
        (lambda p: onnxslim.slim(p, colour="red"), "has no keyword 'colour'"),
        (lambda p: torch_onnx.export(NET, (X,), input_names=["a", "b"]), "2 input_names were given"),
    ],
)
def test_keywords_say_what_they_mean(call: Any, message: str, proto: onnx.ModelProto) -> None:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        try:
            call(proto)
        except UsageError as error:
            assert message in str(error)
        else:
            assert any(message in str(each.message) for each in found)
