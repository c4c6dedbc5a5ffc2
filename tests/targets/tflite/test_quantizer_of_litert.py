"""The weights of PyPI's litert-quantizer: the same integers and scales, and equal outputs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import tmconvert
from tmconvert.targets.tflite.reader import tflite_constants
from tmconvert.targets.tflite.runtime import LiteRtRuntime

torch = pytest.importorskip("torch")
quantizer = pytest.importorskip("litert_quantizer.quantizer", reason="litert-quantizer is not installed")
recipe = pytest.importorskip("litert_quantizer.recipe")
schema = pytest.importorskip("ai_edge_litert.schema_py_generated")


class Product(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(4, 64, 32) / 8)

    def forward(self, x):
        return x @ self.weight


class Case(NamedTuple):
    """A layer with an example input. ``steps`` are those of its activations by which outputs may differ."""

    layer: Callable[[], torch.nn.Module]
    example: Callable[[], torch.Tensor]
    steps: float = 0.0


CASES = {
    "linear": Case(lambda: torch.nn.Linear(64, 96), lambda: torch.randn(2, 4, 64)),
    "convolution": Case(lambda: torch.nn.Conv2d(16, 32, 3), lambda: torch.randn(1, 16, 12, 12)),
    "convolution of points": Case(lambda: torch.nn.Conv2d(64, 32, 1), lambda: torch.randn(1, 64, 12, 12)),
    "convolution of volumes": Case(lambda: torch.nn.Conv3d(8, 16, 3), lambda: torch.randn(1, 8, 6, 6, 6)),
    "transposed convolution": Case(
        lambda: torch.nn.ConvTranspose2d(16, 32, 3), lambda: torch.randn(1, 16, 9, 9)
    ),
    "embedding": Case(lambda: torch.nn.Embedding(96, 64), lambda: torch.randint(0, 96, (7,))),
    # ours dequantizes the weights, and rounds no activations
    "depthwise convolution": Case(
        lambda: torch.nn.Conv2d(128, 128, 3, groups=128), lambda: torch.randn(1, 128, 12, 12), 0.5
    ),
    # ours rounds activations with a zero point, theirs without
    "batched product": Case(Product, lambda: torch.randn(4, 8, 64), 1.0),
}
INT8 = ({"weights": "int8"}, "dynamic_wi8_afp32")
INT4 = ({"weights": "int4", "runtime": "2.20"}, "dynamic_wi4_afp32")
BLOCKS = ({"weights": "int4"}, "dynamic_wi4b32_afp32")
INT2 = ({"weights": "int2"}, "dynamic_wi2c_afp32")
ROWS = [
    *((name, INT8) for name in CASES),
    *((name, INT4) for name in CASES if name.startswith("convolution") or name in ("linear", "embedding")),
    *((name, BLOCKS) for name in ("linear", "embedding")),
    *((name, INT2) for name in ("linear", "embedding")),
]


@pytest.mark.parametrize(
    ("name", "options", "rules"), [pytest.param(name, *each, id=f"{name}-{each[1]}") for name, each in ROWS]
)
def test_both_store_the_same_integers(name: str, options: dict[str, Any], rules: str, tmp_path: Path) -> None:
    case, (plain, ours, theirs) = CASES[name], (tmp_path / f"{each}.tflite" for each in ("p", "o", "t"))
    torch.manual_seed(0)
    net, example = case.layer().eval(), case.example()
    given = {"example_inputs": (example,), "io_layout": "source"}
    tmconvert.to_tflite(net, plain, **given)
    report = tmconvert.to_tflite(net, ours, **given, **options)
    if name == "embedding":
        look_up_rows(plain)
    work = quantizer.Quantizer(str(plain))
    work.load_quantization_recipe(getattr(recipe, rules)())
    work.quantize().export_model(str(theirs))
    found = [stored(path) for path in (ours, theirs)]
    assert found[0] == found[1] != stored(plain)
    inputs = {report.inputs[0]["name"]: example.numpy().astype(report.inputs[0]["dtype"])}
    outputs = [tmconvert.inspect(path).outputs[0].name for path in (ours, theirs)]
    made = [
        LiteRtRuntime().run([path], inputs, [output])[0]
        for path, output in zip((ours, theirs), outputs, strict=True)
    ]
    if not case.steps:
        np.testing.assert_array_equal(*made)
        return
    (weight,) = (each.detach() for each in net.parameters() if each.ndim > 1)
    summed = [1, 2, 3] if isinstance(net, torch.nn.Conv2d) else [-2]
    step = example.abs().max() / 127 * weight.abs().sum(summed).max()
    np.testing.assert_allclose(*made, rtol=0, atol=case.steps * float(step))
    errors = [np.abs(each - net(example).detach().numpy()).max() for each in made]
    assert errors[0] <= errors[1]


def stored(path: Path) -> set[bytes]:
    """Returns the contents of the constants of a file, and the scales of its weights."""
    arrays = [each.data for values in tflite_constants(path).values() for each in values]
    for tensor in read(path).subgraphs[0].tensors:
        scale = None if tensor.quantization is None else tensor.quantization.scale
        arrays.append(None if scale is None else np.asarray(scale, np.float32))
    return {each.tobytes() for each in arrays if each is not None}


def read(path: Path) -> Any:
    return schema.ModelT.InitFromObj(schema.Model.GetRootAsModel(path.read_bytes(), 0))


def look_up_rows(path: Path) -> None:
    """Writes the GATHER of a file as EMBEDDING_LOOKUP, which the quantizer has a rule for."""
    import flatbuffers

    model = read(path)
    (operator,), (code,) = model.subgraphs[0].operators, model.operatorCodes
    code.builtinCode = code.deprecatedBuiltinCode = schema.BuiltinOperator.EMBEDDING_LOOKUP
    operator.inputs = operator.inputs[::-1]
    operator.builtinOptions, operator.builtinOptionsType = None, 0
    builder = flatbuffers.Builder()
    builder.Finish(model.Pack(builder), b"TFL3")
    path.write_bytes(bytes(builder.Output()))
