"""Weights of ONNX files in float16, int8 and int4: what is stored, and that ONNX Runtime computes with it."""

from __future__ import annotations

import functools
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from onnx import TensorProto, numpy_helper
from torch import nn

import tmconvert
from tests.cli.runner import run
from tests.frontends.torch.harness import run_onnx
from tmconvert.errors import UsageError, VerificationError
from tmconvert.ir.lazy_constants import Lazy, computed, scaled
from tmconvert.lowering.block_scales import block_scales
from tmconvert.lowering.rounded_constants import Rounded, largest, packed
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value
from tmconvert.lowering.type_rules import TypeRules
from tmconvert.targets.onnx.passes.compress_weights import compress_weights
from tmconvert.targets.onnx.runtime import OnnxRuntime
from tmconvert.targets.onnx.verify.weights import check_weights
from tmconvert.targets.onnx.writer import write_onnx

DIGITS = Path(__file__).parents[3] / "samples" / "digits.tm"
F32 = np.dtype(np.float32)
EXACT = {"session.qdq_matmulnbits_accuracy_level": "1"}  # activations are not rounded
KINDS = {"float16": 17, "int8": 17, "int4": 21}
CODES = {"float16": TensorProto.FLOAT16, "int8": TensorProto.INT8, "int4": TensorProto.INT4}


class Convolutions(nn.Module):
    """Channels for which blocks of 32, of 20 and no blocks are found; groups; an odd number of columns."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.middle = nn.Conv2d(3, 40, 5), nn.Conv2d(40, 64, 3)
        self.depthwise, self.up = nn.Conv2d(64, 64, 4, groups=64), nn.ConvTranspose2d(64, 33, 3)
        self.head = nn.Linear(33, 101)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.middle(torch.relu(self.stem(x))))
        return self.head(self.up(torch.relu(self.depthwise(x))).mean((2, 3)))


class Words(nn.Module):
    """An embedding that is the output layer, too, a transformer block, and recurrent layers."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.block = (
            nn.Embedding(301, 64),
            nn.TransformerEncoderLayer(64, 4, 96, batch_first=True),
        )
        self.lstm = nn.LSTM(64, 33, bidirectional=True, batch_first=True)
        self.gru, self.out = nn.GRU(66, 77, batch_first=True), nn.Linear(77, 64)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.out(self.gru(self.lstm(self.block(self.table(tokens)))[0])[0])
        return x @ self.table.weight.T


NETS = {
    "convolutions": (Convolutions, lambda: torch.randn(2, 3, 13, 14)),
    "words": (Words, lambda: torch.randint(0, 301, (2, 7))),
}


@functools.cache
def net(name: str) -> tuple[nn.Module, torch.Tensor, tmconvert.TracedModule]:
    torch.manual_seed(7)
    make, example = NETS[name]
    module, x = make().eval(), example()
    return module, x, tmconvert.trace(module, x)


def rounded(weight: torch.Tensor, kind: str, channel: int, block: int) -> torch.Tensor:
    """Rounds as the documentation says: per channel, or for int4 in blocks along the other axis."""
    if kind == "float16":
        return weight.half().float()
    limit, extent = (127, 0) if kind == "int8" else (7, weight.shape[block])
    size = {33: 33, 40: 40, 64: 32, 66: 33, 77: 77, 96: 32}.get(extent, 0)  # a divisor near 32
    if size:
        parts = weight.unflatten(block, (extent // size, size))
        scale = parts.abs().amax(block + 1, keepdim=True) / limit
        return ((parts / scale).round() * scale).flatten(block, block + 1)
    others = [axis for axis in range(weight.ndim) if axis != channel]
    scale = weight.abs().amax(others, keepdim=True) / limit
    return (weight / scale).round() * scale


def expected(name: str, kind: str) -> np.ndarray:
    """PyTorch's result with rounded weights."""
    module, x, _ = net(name)
    copy = NETS[name][0]().eval()
    copy.load_state_dict(module.state_dict())
    lstm = dict(copy.named_modules()).get("lstm")
    with torch.no_grad():
        for path, each in copy.named_parameters():
            if each.ndim < 2 or each.numel() < 1024:
                continue
            if lstm is not None and path.startswith("lstm") and kind != "float16":
                _round_directions(lstm, path, each, kind)
                continue
            is_up = path.startswith("up")
            each.copy_(rounded(each, kind, int(is_up), 0 if is_up else 1))
        return copy(x).numpy()


def _round_directions(lstm: nn.Module, path: str, each: torch.Tensor, kind: str) -> None:
    """ONNX has both directions of a layer in one tensor: with scales per channel these are shared."""
    name = path.partition(".")[2].removesuffix("_reverse")
    if path.endswith("_reverse"):
        return
    pair = [getattr(lstm, name), getattr(lstm, f"{name}_reverse")]
    made = rounded(torch.stack([part.detach() for part in pair]), kind, 1, 2)
    for part, data in zip(pair, made, strict=True):
        part.copy_(data)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NETS)
def test_files_compute_with_rounded_weights(name: str, kind: str, tmp_path: Path) -> None:
    _, x, model = net(name)
    path = tmp_path / "out.onnx"
    report = tmconvert.to_onnx(model, path, weights=kind, opset=KINDS[kind])
    assert report.verified
    assert report.max_error is not None and report.max_error < 1e-6
    graph = onnx.load(path).graph
    large = [each for each in graph.initializer if np.prod(each.dims) >= 1024]
    assert {each.data_type for each in large} == {CODES[kind]}
    assert {each.type.tensor_type.elem_type for each in graph.output} == {TensorProto.FLOAT}
    wanted = expected(name, kind)
    most = np.abs(wanted).max()
    np.testing.assert_allclose(run_onnx(path, [x.numpy()], EXACT)[0], wanted, rtol=0, atol=5e-6 * most)
    np.testing.assert_allclose(run_onnx(path, [x.numpy()])[0], wanted, rtol=0, atol=5e-2 * most)
    with torch.no_grad():
        plain = net(name)[0](x).numpy()
    distance = np.abs(wanted - plain).max() / np.abs(plain).max()
    note = next(each for each in report.notes if each.startswith("the outputs differ by"))
    assert f"differ by {distance:.1e}"[:-5] in note
    assert 1e-5 < distance < {"float16": 2e-3, "int8": 3e-2, "int4": 0.5}[kind]


@pytest.mark.parametrize("form", [None, "DequantizeLinear", "MatMulNBits"])
@pytest.mark.parametrize(("kind", "opset"), [("int8", 12), ("int8", 13), ("int4", 21)])
def test_forms(kind: str, opset: int, form: str | None, tmp_path: Path) -> None:
    """By default only products of matrices have a DequantizeLinear, which ONNX Runtime fuses into them."""
    _, x, model = net("words")
    path = tmp_path / "out.onnx"
    report = tmconvert.to_onnx(model, path, weights=kind, opset=opset, integer_weights=form)
    assert report.verified
    types = Counter(node.op_type for node in onnx.load(path).graph.node)
    # five products with matrices: one with blocks of 77, which MatMulNBits does not take; and one Gemm
    dequantized = {None: 5 if kind == "int8" else 4, "MatMulNBits": 5 if kind == "int8" else 0}
    everything = 10 if kind == "int8" else 11  # of int4 there is no Gather
    assert types["DequantizeLinear"] == (dequantized.get(form, everything) if opset >= 13 else 0)
    assert types["MatMulNBits"] == (5 if (kind, form) == ("int4", "MatMulNBits") else 0)
    wanted = expected("words", kind)
    made = run_onnx(path, [x.numpy()], EXACT)[0]
    np.testing.assert_allclose(made, wanted, rtol=0, atol=5e-6 * np.abs(wanted).max())


@pytest.mark.parametrize("form", [None, "DequantizeLinear", "MatMulNBits"])
@pytest.mark.parametrize("kind", ["int8", "int4"])
@pytest.mark.parametrize("io_type", [None, "float32"])
def test_halves_with_weights_in_integers(io_type: Any, kind: Any, form: Any, tmp_path: Path) -> None:
    """Operators that multiply with integers do it in float16; nothing large stays float32."""
    module, x, model = net("words")
    path = tmp_path / "out.onnx"
    report = tmconvert.to_onnx(
        model, path, weights=kind, opset=21, integer_weights=form, float_type="float16", io_type=io_type
    )
    assert report.verified
    graph = onnx.load(path).graph
    large = {each.data_type for each in graph.initializer if np.prod(each.dims) >= 1024}
    assert large <= {TensorProto.UINT8, TensorProto.INT8, TensorProto.INT4}
    assert graph.output[0].type.tensor_type.elem_type == (
        TensorProto.FLOAT if io_type else TensorProto.FLOAT16
    )
    scales = {each.name: each.data_type for each in graph.initializer if each.name.endswith("_scale")}
    assert set(scales.values()) <= {TensorProto.FLOAT16}
    types = Counter(node.op_type for node in graph.node)
    is_in_blocks = (kind, form) == ("int4", "MatMulNBits")
    assert (types["MatMulNBits"], types["GatherBlockQuantized"]) == ((5, 1) if is_in_blocks else (0, 0))
    with torch.no_grad():
        wanted = module(x).numpy()
    made = run_onnx(path, [x.numpy()], EXACT)[0].astype(np.float32)
    assert np.abs(made - wanted).max() < {"int8": 4e-2, "int4": 0.5}[kind] * np.abs(wanted).max()
    assert tmconvert.verify(model, path).max_error < 1e-2  # the file records its options


def test_rules_keep_modules_in_float32_among_halves(tmp_path: Path) -> None:
    _, _, model = net("words")
    path = tmp_path / "out.onnx"
    rules = {"block": "float32", "gru": "int8"}
    halves: dict[str, Any] = {"float_type": "float16", "integer_weights": "MatMulNBits", "opset": 21}
    report = tmconvert.to_onnx(model, path, weights="int4", rules=rules, **halves)
    assert report.verified
    large = [each for each in onnx.load(path).graph.initializer if np.prod(each.dims) >= 1024]
    kinds = Counter(TensorProto.DataType.Name(each.data_type) for each in large)
    assert (kinds["FLOAT"], kinds["INT8"]) == (4, 2)


@pytest.mark.parametrize("form", [None, "DequantizeLinear", "MatMulNBits"])
@pytest.mark.parametrize("name", NETS)
def test_searches_of_scales_lose_less(name: str, form: Any, tmp_path: Path) -> None:
    module, x, model = net(name)
    with torch.no_grad():
        wanted = module(x).numpy()
    errors = {}
    for rule in ("max", "mse", "asymmetric"):
        path = tmp_path / f"{rule}.onnx"
        report = tmconvert.to_onnx(
            model, path, weights="int4", opset=21, integer_weights=form, weight_scales=rule
        )
        assert report.verified
        errors[rule] = np.square(run_onnx(path, [x.numpy()], EXACT)[0] - wanted).mean()
        types = {each.data_type for each in onnx.load(path).graph.initializer}
        assert (TensorProto.UINT4 in types) == (rule == "asymmetric")
    assert errors["mse"] < errors["max"] and errors["asymmetric"] < errors["max"]


@given(
    arrays(np.float32, (3, 5, 32), elements=st.floats(-100, 100, width=32)),
    st.sampled_from(["mse", "asymmetric"]),
    st.sampled_from([np.float32, np.float16]),
)
def test_scales_of_a_search(blocks: np.ndarray, rule: Any, dtype: Any) -> None:
    """No block has a larger sum of squared errors than with the scale of the largest element."""
    errors = []
    for each in ("max", rule):
        scale, zero, low, high = block_scales(blocks, 2, each, np.dtype(dtype))
        assert scale.shape == (3, 5, 1) and np.all(np.isfinite(scale)) and np.all(scale != 0)
        np.testing.assert_array_equal(scale, scale.astype(dtype).astype(np.float32))
        zero = 0 if zero is None else zero.astype(np.float32)
        steps = np.clip(np.rint(blocks / scale) + zero, low, high)
        errors.append(np.square((steps - zero) * scale - blocks).sum(-1))
    assert np.all(errors[1] <= errors[0] * 1.001 + 1e-6 * np.square(blocks).sum(-1))


def test_int4_says_which_opset_has_it(tmp_path: Path) -> None:
    _, _, model = net("convolutions")
    with pytest.raises(UsageError, match="weights of int4 need opset 21, not 20") as caught:
        tmconvert.to_onnx(model, tmp_path / "o.onnx", weights="int4", opset=20)
    assert caught.value.code == "TM6002"
    assert ("help", "use --opset 21 or auto, or --weights int8") in caught.value.notes
    with pytest.raises(UsageError, match="need opset 21, not 17"):
        tmconvert.to_onnx(model, tmp_path / "o.onnx", weights="int8", rules={"head": "int4"})
    assert tmconvert.to_onnx(model, tmp_path / "o.onnx", weights="int4", opset="auto").version == 21


def test_a_shared_weight_is_stored_once(tmp_path: Path) -> None:
    """Rows of the table are selected in int8, and multiplied with it."""

    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.layer = nn.Embedding(64, 64), nn.Linear(64, 64)

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            return self.layer(torch.relu(self.layer(self.table(tokens) @ self.table.weight)))

    path = tmp_path / "out.onnx"
    report = tmconvert.to_onnx(Tied(), path, weights="int8", example_inputs=[torch.randint(0, 64, (2, 7))])
    assert report.verified
    graph = onnx.load(path).graph
    large = [each.data_type for each in graph.initializer if np.prod(each.dims) >= 1024]
    assert large == [TensorProto.INT8] * 2
    types = Counter(node.op_type for node in graph.node)
    assert (types["Gather"], types["MatMul"], types["DequantizeLinear"]) == (2, 3, 2)


def test_rules(tmp_path: Path) -> None:
    """The last rule that matches a module, or a tensor, decides."""
    _, _, model = net("words")
    path = tmp_path / "out.onnx"
    rules = {"*": "float32", "block": "int4", "block.linear1": "float16", "gru": "int8"}
    report = tmconvert.to_onnx(model, path, weights="int8", rules=rules, opset=21)
    assert report.verified
    large = [each for each in onnx.load(path).graph.initializer if np.prod(each.dims) >= 1024]
    kinds = Counter(TensorProto.DataType.Name(each.data_type) for each in large)
    assert kinds == {"FLOAT": 5, "INT4": 3, "FLOAT16": 1, "INT8": 2}
    assert {each.dims[0] for each in large if each.data_type == TensorProto.INT8} == {1}
    assert tmconvert.verify(model, path).max_error < 1e-6  # the file records its rules


def test_wrong_rules(tmp_path: Path) -> None:
    _, _, model = net("convolutions")

    def refusal(**options: Any) -> str:
        with pytest.raises(UsageError) as caught:
            tmconvert.to_onnx(model, tmp_path / "o.onnx", **options)
        return str(caught.value)

    assert "TM6032" in (text := refusal(weights="int8", rules={"heat": "float32"}))
    assert "the rule heat matches no module and no tensor" in text and "similar names: head" in text
    assert "has the unknown type 'int16x8'" in refusal(weights="int8", rules={"head": "int16x8"})
    assert "use float16, float32" in refusal(float_type="float16", rules={"head": "int8"})
    assert "rules apply to types of weights or floats, or to calibration" in refusal(rules={"head": "int8"})


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"weights": "int8", "quantized": True}, "compressed weights are part of quantized: omit weights"),
        ({"weights": "int4", "float_type": "bfloat16"}, "weights are bfloat16, too: omit weights"),
        (
            {"weights": "int8", "weight_scales": "mse"},
            "weight_scales mse applies to weights of int4, not int8",
        ),
        ({"weights": "int8", "qparams": "p.json"}, "qparams applies to a plain float model"),
        ({"weights": "int8", "allow_random": True}, "allow_random applies to a plain float model"),
        ({"io_type": "float32"}, "io_type is 'float32', but applies only with float_type"),
        (
            {"io_type": "float32", "float_type": "float32"},
            "io_type applies to float_type float16 or bfloat16",
        ),
        ({"weights": "int2"}, "weights is 'int2'"),
    ],
)
def test_options_that_exclude_each_other(options: dict[str, Any], text: str, tmp_path: Path) -> None:
    _, _, model = net("convolutions")
    with pytest.raises(UsageError, match=text) as caught:
        tmconvert.to_onnx(model, tmp_path / "o.onnx", **options)
    assert caught.value.code == "TM6002"
    assert not list(tmp_path.iterdir())


def test_the_command(tmp_path: Path) -> None:
    path = tmp_path / "out.onnx"
    options = ("--weights", "int4", "--opset", "auto", "--rule", "classifier=float32", "--rule", "stem=int8")
    done = run("onnx", DIGITS, path, *options)
    assert done.status == 0, done.stderr
    assert "weights as int4: " in done.stderr
    assert run("verify", DIGITS, path).status == 0


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_model_gives_the_same_bytes_inside_and_outside_of_the_file(
    kind: str, tmp_path: Path
) -> None:
    _, _, model = net("convolutions")
    files = [tmp_path / f"{name}.onnx" for name in ("one", "two", "three")]
    for path in files:
        options: dict[str, Any] = {"weights": kind, "opset": KINDS[kind], "verify": False}
        tmconvert.to_onnx(model, path, external_data=path is files[2], **options)
    assert files[0].read_bytes() == files[1].read_bytes()
    one, other = ({each.name: each for each in onnx.load(path).graph.initializer} for path in files[1:])
    for name, tensor in one.items():
        np.testing.assert_array_equal(numpy_helper.to_array(tensor), numpy_helper.to_array(other[name]))


def test_weights_are_rounded_while_they_are_written(tmp_path: Path) -> None:
    """16 MB of weights are not copied: each piece is rounded when it is written."""
    module = nn.Sequential(nn.Linear(1024, 2048), nn.Linear(2048, 1024))
    model = tmconvert.trace(module, torch.zeros(1, 3, 1024))
    tmconvert.to_onnx(model, tmp_path / "first.onnx", weights="int8", verify=False)  # what is imported once
    for kind in KINDS:
        tracemalloc.start()
        tmconvert.to_onnx(model, tmp_path / "o.onnx", weights=kind, opset=21, verify=False)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 7e6, kind  # buffers of 256 KiB of the file, in float32


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("what", ["weight", "scale"])
def test_other_weights_in_the_file_are_refused(what: str, kind: str, tmp_path: Path) -> None:
    _, _, model = net("words")
    path = tmp_path / "out.onnx"
    tmconvert.to_onnx(model, path, weights=kind, opset=21, verify=False)
    file = onnx.load(path)
    chosen = max(file.graph.initializer, key=lambda each: np.prod(each.dims))
    if what == "scale":
        if kind == "float16":
            return
        chosen = next(each for each in file.graph.initializer if each.name.endswith(("_scale", "_factor")))
    array = numpy_helper.to_array(chosen)
    flat = array.reshape(-1).copy()
    flat[3] = -flat[3] if flat[3] else 3
    chosen.CopyFrom(numpy_helper.from_array(flat.reshape(array.shape), chosen.name))
    onnx.save(file, path)
    with pytest.raises(VerificationError, match="differs from that of its source by more than half a step"):
        tmconvert.verify(model, path)


def test_small_odd_and_large_numbers_stay(tmp_path: Path) -> None:
    def stays(data: np.ndarray, kind: str, type: str = "MatMul", **settings: Any) -> bool:
        x, weight, y = Value("x", F32, (3, 40)), Value("w", F32, data.shape, data), Value("y", F32, (3, 30))
        graph = TargetGraph(
            "onnx", 21, "net", [x], [y], [Operator(type, [x, weight], [y], {}, "op")], ["x"], ["y"]
        )
        return not compress_weights(graph, kind, TypeRules((), graph), **settings).stored

    data = np.random.default_rng(1).standard_normal((40, 30)).astype(np.float32)
    assert [stays(data, kind) for kind in KINDS] == [False] * 3
    assert [stays(data, kind, "Add") for kind in KINDS] == [False, True, True]
    assert all(stays(data[:, :25], kind) for kind in KINDS)
    data[3, 5] = 1e5
    assert [stays(data, kind) for kind in KINDS] == [True, False, False]
    for number in (np.inf, -np.inf, np.nan):
        data[3, 5] = number
        assert all(stays(data, kind) for kind in KINDS)
        assert all(stays(data, "int4", scales=rule) for rule in ("mse", "asymmetric"))
    data[3, 5] = 1e6
    assert stays(data, "int4", scale_type=np.dtype(np.float16))


@pytest.mark.parametrize("kind", KINDS)
def test_weights_of_a_branch_are_restored_outside_of_it(kind: str, tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    weight = Value("w", F32, (40, 40), random.standard_normal((40, 40)).astype(np.float32))
    x, choice, y = Value("x", F32, (3, 40)), Value("c", np.dtype(bool), ()), Value("y", F32, (3, 40))
    branches = []
    for name in ("then", "else"):
        result = Value(name, F32, (3, 40))
        product = Operator("MatMul", [x, weight], [result], {}, f"{name}/op")
        branches.append(TargetGraph("onnx", 21, name, [], [result], [product], [], [name]))
    branches[1].operators[0].type = "Gemm"
    operator = Operator("If", [choice], [y], {"then_branch": branches[0], "else_branch": branches[1]}, "if")
    graph = TargetGraph("onnx", 21, "net", [x, choice], [y], [operator], ["x", "c"], ["y"])
    made = compress_weights(graph, kind, TypeRules((), graph))
    assert made.graph.operators[-1].type == "If"
    assert len(made.graph.operators) > 1
    results = []
    for each in (made.graph, made.restored):
        path = tmp_path / "out.onnx"
        with path.open("wb") as file:
            write_onnx(each, file)
        if each is made.graph:
            check_weights(path, made.stored)
        for is_first in (True, False):
            inputs = {"x": np.eye(3, 40, dtype=np.float32), "c": np.array(is_first)}
            results.append(OnnxRuntime().run([path], inputs, ["y"])[0])
    for result in results[1:]:
        np.testing.assert_allclose(results[0], result, rtol=0, atol=1e-6)


# ---- lazy constants


def test_rounded_constants_are_computed_in_pieces_and_views() -> None:
    random = np.random.default_rng(3)
    array = random.standard_normal((6, 8)).astype(np.float32).T
    lazy = scaled(np.tile(array, (1, 4000)), np.arange(1, 9, dtype=np.float32)[:, None])
    assert isinstance(lazy, Lazy)
    wanted = np.tile(array, (1, 4000)) * np.arange(1, 9, dtype=np.float32)[:, None]
    np.testing.assert_array_equal(largest(lazy, [1]), np.abs(wanted).max(1, keepdims=True))
    np.testing.assert_array_equal(largest(lazy, [0, 1]), np.abs(wanted).max(keepdims=True))
    scale = np.broadcast_to(largest(lazy, [1]) / 127, lazy.shape)
    steps = Rounded(lazy, scale, (-127, 127), np.dtype(np.int8))
    np.testing.assert_array_equal(steps.computed(), np.rint(wanted / scale))
    view = steps.viewed(lambda each: each.T[3:5])
    np.testing.assert_array_equal(computed(view), np.rint(wanted / scale).T[3:5])


@pytest.mark.parametrize("shape", [(3, 5, 4), (3, 5, 7), (9,), (8,), (1, 1)])
def test_four_bits_are_packed_in_pairs(shape: tuple[int, ...]) -> None:
    import ml_dtypes

    steps = np.random.default_rng(2).integers(-7, 8, shape).astype(np.float32)
    ones = np.broadcast_to(np.float32(1), shape)
    lazy = Rounded(steps, ones, (-7, 7), np.dtype(ml_dtypes.int4))
    wanted = onnx.helper.make_tensor("w", TensorProto.INT4, shape, steps.astype(int).reshape(-1).tolist())
    stored = np.frombuffer(wanted.raw_data or bytes(wanted.int32_data), np.uint8)
    for array in (lazy, lazy.computed()):
        made = packed(array)
        made = made.computed() if isinstance(made, Lazy) else made
        np.testing.assert_array_equal(made.reshape(-1), stored)
