"""Weights of TFLite files in fewer bits: what is stored, and that the runtime computes with it."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tmconvert
from tests.cli.runner import run
from tmconvert.errors import UsageError, VerificationError
from tmconvert.lowering.block_scales import ScaleRule
from tmconvert.lowering.rounded_constants import Narrowed, Rounded
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value
from tmconvert.lowering.type_rules import Rules
from tmconvert.targets.tflite import compress_weights as module
from tmconvert.targets.tflite.compress_weights import compress_weights
from tmconvert.targets.tflite.quantize_weights import restored
from tmconvert.targets.tflite.runtime import LiteRtRuntime
from tmconvert.targets.tflite.verify.weights import check_weights
from tmconvert.targets.tflite.writer import write_tflite

DATA = Path(__file__).parents[2] / "data"
F32 = np.dtype(np.float32)
CONV = {"padding": "VALID", "stride_w": 1, "stride_h": 1}
UP = {"padding": "SAME", "stride_w": 2, "stride_h": 2}


def constant(name: str, *shape: int, dtype: type = np.float32) -> Value:
    """Normal numbers whose channels differ in size, along every axis."""
    data = np.random.default_rng(len(shape)).standard_normal(shape)
    for axis in range(len(shape)):
        data *= np.linspace(0.5, 2, shape[axis]).reshape([-1, *[1] * (len(shape) - axis - 1)])
    return Value(name, np.dtype(dtype), shape, data.astype(dtype))


def net(type: str, x: tuple[int, ...], y: tuple[int, ...], *others: Value, first: int = 0, **attributes):
    """One operator that takes ``x`` at ``first``, behind or before constants."""
    image, result = Value("x", F32, x), Value("y", F32, y)
    inputs = list(others)
    inputs.insert(first, image)
    operator = Operator(type, inputs, [result], attributes, "op")
    return TargetGraph("tflite", 23, "net", [image], [result], [operator], ["x"], ["y"])


ZEROS = Value("b", F32, (40,), np.zeros(40, np.float32))
SHAPE = Value("s", np.dtype(np.int32), (4,), np.array([1, 10, 12, 40], np.int32))
# the net, the axis of the weight's channels
NETS = {
    "conv": (net("CONV_2D", (1, 7, 8, 5), (1, 5, 6, 40), constant("w", 40, 3, 3, 5), ZEROS, **CONV), 0),
    "depthwise": (
        net(
            *("DEPTHWISE_CONV_2D", (1, 7, 8, 40), (1, 2, 3, 40), constant("w", 1, 6, 6, 40), ZEROS),
            **CONV,
            depth_multiplier=1,
        ),
        3,
    ),
    "linear": (net("FULLY_CONNECTED", (3, 50), (3, 40), constant("w", 40, 50), ZEROS), 0),
    "odd_linear": (net("FULLY_CONNECTED", (3, 51), (3, 40), constant("w", 40, 51), ZEROS), 0),
    "transposed": (
        net(
            "TRANSPOSE_CONV", (1, 5, 6, 7), (1, 10, 12, 40), SHAPE, constant("w", 40, 3, 3, 7), first=2, **UP
        ),
        0,
    ),
    "matmul": (net("BATCH_MATMUL", (2, 3, 30), (2, 3, 40), constant("w", 2, 30, 40)), 2),
    "matmul_adj_y": (net("BATCH_MATMUL", (2, 3, 30), (2, 3, 40), constant("w", 2, 40, 30), adj_y=True), 1),
}


def output(graph: TargetGraph, path: Path, *, delegates: bool) -> np.ndarray:
    with path.open("wb") as file:
        write_tflite(graph, file)
    x = np.random.default_rng(9).standard_normal(graph.inputs[0].shape).astype(np.float32)
    return LiteRtRuntime(delegates=delegates).run([path], {"x": x}, ["y"])[0]


@pytest.mark.parametrize("delegates", [True, False])
@pytest.mark.parametrize("kind", ["float16", "int8"])
@pytest.mark.parametrize("name", NETS)
def test_the_runtime_computes_with_the_stored_numbers(name, kind, delegates, tmp_path: Path) -> None:
    graph, axis = NETS[name]
    made = compress_weights(graph, kind)
    (weight,) = [value for value in graph.constants() if value.name == "w"]
    (stored,) = [value for value in made.graph.constants() if value.name == f"w_{kind}"]
    assert stored.dtype == kind
    assert weight.data is not None
    error = np.abs(restored(stored) - weight.data)
    if kind == "int8":
        assert stored.quantization is not None
        assert stored.quantization.axis == axis
        steps = stored.quantization.scale.reshape(
            [-1 if each == axis else 1 for each in range(weight.data.ndim)]
        )
        assert np.all(error <= 0.5001 * steps)
        assert np.all(np.abs(stored.data).max(tuple({*range(weight.data.ndim)} - {axis})) == 127)
    else:
        assert np.all(error <= 2.0**-11 * np.abs(weight.data))
    assert 0 < made.after < made.before == weight.data.nbytes
    written = output(made.graph, tmp_path / "a.tflite", delegates=delegates)
    exact = output(made.restored, tmp_path / "b.tflite", delegates=delegates)
    plain = output(graph, tmp_path / "c.tflite", delegates=delegates)
    largest = np.abs(exact).max()
    types = [operator.type for operator in made.graph.operators]
    if kind == "float16" or name == "depthwise":
        assert types == ["DEQUANTIZE", graph.operators[0].type]
        assert not made.rounded
    else:
        assert types == [graph.operators[0].type]
        rounded = output(made.rounded[0], tmp_path / "d.tflite", delegates=delegates)
        assert 1e-4 * largest < np.abs(rounded - exact).max() < 2e-2 * largest
        exact = rounded
    np.testing.assert_allclose(written, exact, rtol=0, atol=2e-6 * largest)
    assert 1e-5 * largest < np.abs(plain - exact).max() < 3e-2 * largest


def two_layers(**more: Value) -> TargetGraph:
    """One weight for two layers, and small or odd constants."""
    weight = constant("w", 40, 40)
    x, y, z, out = (Value(name, F32, (3, 40)) for name in ("x", "y", "z", "out"))
    bias = constant("bias", 40)
    operators = [
        Operator("FULLY_CONNECTED", [x, weight, bias], [y], {}, "one"),
        Operator("FULLY_CONNECTED", [y, weight, bias], [z], {}, "two"),
        Operator("ADD", [z, more.get("shift", bias)], [out], {}, "add"),
    ]
    return TargetGraph("tflite", 23, "net", [x], [out], operators, ["x"], ["y"])


def test_a_shared_weight_is_stored_and_restored_once() -> None:
    shared = compress_weights(two_layers(), "int8")
    assert [operator.type for operator in shared.graph.operators] == [
        *("FULLY_CONNECTED", "FULLY_CONNECTED", "ADD")
    ]
    older = two_layers()
    older.version = 14  # its FULLY_CONNECTED takes no scales for each channel
    made = compress_weights(older, "int8")
    assert [operator.type for operator in made.graph.operators] == [
        *("DEQUANTIZE", "FULLY_CONNECTED", "FULLY_CONNECTED", "ADD")
    ]
    for graph in (shared.graph, made.graph):
        assert sorted(value.name for value in graph.constants()) == ["bias", "w_int8"]
    assert not made.rounded
    assert made.before == 40 * 40 * 4
    assert made.after == 40 * 40 + 40 * 4


@pytest.mark.parametrize("delegates", [True, False])
@pytest.mark.parametrize("scales", ["max", "mse"])
@pytest.mark.parametrize(
    ("kind", "name", "block"),
    [
        ("int4", "blocks", 32),
        ("int4", "linear", 0),
        ("int4", "odd_linear", 0),
        ("int4", "conv", 0),
        ("int4", "grouped", 0),
        ("int2", "blocks", 0),
        ("int2", "odd_linear", 0),
    ],
)
def test_the_runtime_computes_with_few_bits(
    kind: str, name: str, block: int, scales: ScaleRule, delegates: bool, tmp_path: Path
) -> None:
    others = {
        "blocks": net("FULLY_CONNECTED", (3, 64), (3, 40), constant("w", 40, 64), ZEROS),
        "grouped": net("CONV_2D", (1, 7, 8, 10), (1, 5, 6, 40), constant("w", 40, 3, 3, 5), ZEROS, **CONV),
    }
    graph = others[name] if name in others else NETS[name][0]
    made = compress_weights(graph, kind, scales=scales)
    ((weight, stored),) = made.stored
    assert stored.dtype.name == kind
    assert stored.quantization is not None
    assert weight.data is not None
    assert stored.quantization.block_size == block
    assert stored.quantization.scale.shape == ((40, 2) if block else (40,))
    assert [each.type for each in made.graph.operators] == [graph.operators[0].type]
    path = tmp_path / "a.tflite"
    written = output(made.graph, path, delegates=delegates)
    check_weights(path, made.stored)
    rounded = output(made.rounded[0], tmp_path / "b.tflite", delegates=delegates)
    # LiteRT's own FULLY_CONNECTED of int4 rounds activations to 127 steps on each side of zero
    is_own = name == "linear" and not delegates
    np.testing.assert_allclose(
        written, rounded, rtol=0, atol=(2e-2 if is_own else 2e-6) * np.abs(rounded).max()
    )
    bits = {"int4": 4, "int2": 2}[kind]
    assert made.after == weight.data.size * bits // 8 + stored.quantization.scale.size * (2 if block else 4)
    if scales == "mse":
        (largest,) = [after for _, after in compress_weights(graph, kind).stored]
        errors = [np.square(restored(each) - weight.data).sum() for each in (stored, largest)]
        assert errors[0] < 0.99 * errors[1]


def test_what_stays_in_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SMALL", 100)
    huge = Value("shift", F32, (3, 40), np.full((3, 40), 1e5, np.float32))
    names = [value.name for value in compress_weights(two_layers(shift=huge), "float16").graph.constants()]
    assert names == ["w_float16", "bias", "shift"]
    shift = constant("shift", 3, 40)
    names = [value.name for value in compress_weights(two_layers(shift=shift), "int8").graph.constants()]
    assert names == ["w_int8", "bias", "shift"]


def test_channels_of_zeros(tmp_path: Path) -> None:
    weight = constant("w", 40, 50)
    assert weight.data is not None
    weight.data[7] = 0
    made = compress_weights(net("FULLY_CONNECTED", (3, 50), (3, 40), weight, ZEROS), "int8")
    assert np.all(output(made.graph, tmp_path / "a.tflite", delegates=True)[:, 7] == 0)


@pytest.mark.slow
@pytest.mark.parametrize("weights", ["float16", "int8"])
def test_a_model_is_verified_and_the_cost_told(weights: str, tmp_path: Path) -> None:
    first, second = tmp_path / "a.tflite", tmp_path / "b.tflite"
    plain = tmconvert.to_tflite(DATA / "mobilenet_v2.tm", tmp_path / "plain.tflite")
    report = tmconvert.to_tflite(DATA / "mobilenet_v2.tm", first, weights=weights)
    assert report.verification is not None
    (comparison,) = report.verification.comparisons
    if weights == "float16":
        assert comparison.max_error < 1e-5
        assert comparison.tolerance == 1e-4
    else:  # 20 layers whose activations are rounded
        assert 1e-3 < comparison.max_error < comparison.tolerance < 6e-2
    assert tmconvert.verify(DATA / "mobilenet_v2.tm", first).max_error == comparison.max_error
    assert any(note.startswith(f"weights as {weights}: 0.0") for note in report.notes)
    (cost,) = [note for note in report.notes if "from those with float32 weights" in note]
    assert 1e-5 < float(cost.split()[4]) < 5e-2
    assert first.stat().st_size < plain.paths[0].stat().st_size
    tmconvert.to_tflite(DATA / "mobilenet_v2.tm", second, weights=weights, verify=False)
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize(("kind", "factor"), [("float16", 1.001), ("int8", 1.1)])
def test_a_wrong_scale_is_found(kind, factor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = Narrowed if kind == "float16" else Rounded
    right = changed.compute

    def wrong(self: Any, out: np.ndarray) -> None:
        right(self, out)
        if out.dtype == np.float32:
            out *= np.float32(factor)

    monkeypatch.setattr(changed, "compute", wrong)
    with pytest.raises(VerificationError):
        tmconvert.to_tflite(DATA / "mobilenet_v2.tm", tmp_path / "o.tflite", weights=kind)
    assert not list(tmp_path.iterdir())


def table(*shape: int, axis: int = 0) -> TargetGraph:
    """Rows of a table of 60 times 32, whose first row, as that of padding, is zeros."""
    weight = constant("w", 60, 32)
    assert weight.data is not None
    weight.data[0] = 0
    indices, rows = Value("x", np.dtype(np.int32), shape), Value("y", F32, (*shape, 32))
    operator = Operator("GATHER", [weight, indices], [rows], {"axis": axis}, "op")
    return TargetGraph("tflite", 23, "net", [indices], [rows], [operator], ["x"], ["y"])


@pytest.mark.parametrize("kind", ["int4", "int2"])
@pytest.mark.parametrize("shape", [(), (5,), (2, 3)])
def test_rows_of_a_table_are_looked_up(shape: tuple[int, ...], kind: str, tmp_path: Path) -> None:
    made = compress_weights(table(*shape), kind)
    types = ["EMBEDDING_LOOKUP"] if len(shape) == 1 else ["RESHAPE", "EMBEDDING_LOOKUP", "RESHAPE"]
    assert [operator.type for operator in made.graph.operators] == types
    path = tmp_path / "a.tflite"
    with path.open("wb") as file:
        write_tflite(made.graph, file)
    given = np.random.default_rng(3).integers(0, 60, shape).astype(np.int32)
    (rows,) = LiteRtRuntime().run([path], {"x": given}, ["y"])
    ((_, stored),) = made.stored
    np.testing.assert_array_equal(rows, restored(stored)[given])
    check_weights(path, made.stored)


@pytest.mark.parametrize(("runtime", "block"), [(21, 32), (20, 0), (19, 0), (18, None)])
def test_older_runtimes_have_other_forms(runtime: int, block: int | None) -> None:
    graph = net("FULLY_CONNECTED", (3, 64), (3, 40), constant("w", 40, 64), ZEROS)
    graph.version = runtime
    ((_, stored),) = compress_weights(graph, "int4").stored
    assert stored.quantization is not None
    assert (stored.dtype.name, stored.quantization.block_size) == (
        "int8" if block is None else "int4",
        block or 0,
    )


@pytest.mark.parametrize("name", ["depthwise", "transposed", "matmul"])
def test_operators_that_read_no_int4_have_int8(name: str) -> None:
    ((_, stored),) = compress_weights(NETS[name][0], "int4").stored
    assert stored.dtype == np.int8


@pytest.mark.parametrize("shape", [(), (5,), (2, 3)])
def test_rows_of_a_table_are_picked_as_int8(shape: tuple[int, ...], tmp_path: Path) -> None:
    made = compress_weights(table(*shape), "int8")
    assert [operator.type for operator in made.graph.operators] == ["GATHER", "GATHER", "CAST", "MUL"]
    path = tmp_path / "a.tflite"
    with path.open("wb") as file:
        write_tflite(made.graph, file)
    given = np.random.default_rng(3).integers(0, 60, shape).astype(np.int32)
    (rows,) = LiteRtRuntime().run([path], {"x": given}, ["y"])
    (stored,) = [after for _, after in made.stored]
    np.testing.assert_array_equal(rows, restored(stored)[given])
    check_weights(path, made.stored)
    assert made.after == 60 * 32 + 60 * 4


def test_a_weight_that_litert_broadcasts_wrongly_is_restored() -> None:
    made = compress_weights(
        net("BATCH_MATMUL", (2, 3, 4, 30), (2, 3, 4, 40), constant("w", 3, 30, 40)), "int8"
    )
    assert [operator.type for operator in made.graph.operators] == ["DEQUANTIZE", "BATCH_MATMUL"]


def spoilt(kind: str, how: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Writes a file of MobileNet one of whose weights is not what it should be."""
    right = module.compress_weights

    def wrong(graph: TargetGraph, asked: str, rules: Rules, **more: ScaleRule) -> module.Compressed:
        made = right(graph, asked, rules, **more)
        stored = made.stored[0][1]
        assert stored.data is not None
        if how == "sign":
            place = np.unravel_index(np.argmax(np.abs(stored.data)), stored.shape)
            stored.stored = stored.data.copy()
            stored.stored[place] *= -1
        elif stored.quantization is not None:
            stored.quantization.scale[3] *= 2
        else:
            stored.stored = stored.data * np.float16(2)
        return made

    with monkeypatch.context() as patch:
        patch.setattr(module, "compress_weights", wrong)
        tmconvert.to_tflite(DATA / "mobilenet_v2.tm", path, weights=kind, verify=False)


@pytest.mark.parametrize("how", ["sign", "scale"])
@pytest.mark.parametrize("kind", ["float16", "int8", "int4"])
def test_one_wrong_weight_is_refused(kind: str, how: str, tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "o.tflite"
    spoilt(kind, how, path, monkeypatch)
    with pytest.raises(VerificationError, match="differs from that of its source by more than half a step"):
        tmconvert.verify(DATA / "mobilenet_v2.tm", path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["float16", "int8", "int4"])
def test_a_wrong_operator_is_refused(kind: str, tmp_path: Path, monkeypatch) -> None:
    path, right = tmp_path / "o.tflite", module.compress_weights

    def wrong(graph: TargetGraph, asked: str, rules: Rules, **more: ScaleRule) -> module.Compressed:
        made = right(graph, asked, rules, **more)
        biased = [each for each in made.graph.operators if each.type == "CONV_2D"][2]
        bias = biased.inputs[2]
        assert bias is not None
        assert bias.data is not None
        biased.inputs[2] = Value("other", bias.dtype, bias.shape, bias.data + np.float32(1))
        return made

    with monkeypatch.context() as patch:
        patch.setattr(module, "compress_weights", wrong)
        tmconvert.to_tflite(DATA / "mobilenet_v2.tm", path, weights=kind, verify=False)
    with pytest.raises(VerificationError, match="differs by"):
        tmconvert.verify(DATA / "mobilenet_v2.tm", path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["float16", "int8", "int4"])
def test_a_file_of_open_sizes_and_other_edges_is_verified(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "o.tflite"
    name = tmconvert.load(DATA / "mobilenet_v2.tm").graph.inputs[1].name
    report = tmconvert.to_tflite(
        DATA / "mobilenet_v2.tm",
        path,
        weights=kind,
        dynamic_shapes={name: {0: "batch"}},
        rename={name: "image"},
        io_layout="source",
    )
    assert report.verified
    assert report.inputs[0]["shape"][0] == "batch"
    tmconvert.verify(DATA / "mobilenet_v2.tm", path)


@pytest.mark.slow
def test_refusals(tmp_path: Path) -> None:
    out = tmp_path / "o.tflite"
    with pytest.raises(UsageError, match=r"weights of int4 need the runtime 2\.19, not 2\.18"):
        tmconvert.to_tflite(DATA / "mobilenet_v2.tm", out, weights="int4", runtime="2.18")
    with pytest.raises(UsageError, match="weight_scales mse applies to weights of int4"):
        tmconvert.to_tflite(DATA / "mobilenet_v2.tm", out, weights="int8", weight_scales="mse")
    with pytest.raises(UsageError, match=r"weights as int8: this needs version 5 of TFLite's DEQUANTIZE"):
        tmconvert.to_tflite(DATA / "mobilenet_v2.tm", out, weights="int8", runtime="2.6")
    assert run("tflite", DATA / "mobilenet_v2.tm", out, "--weights", "int8", "--runtime", "2.7").status == 0


def test_rules_choose_the_type_of_weights() -> None:
    graph = two_layers()
    first = graph.operators[0].outputs[0].name
    made = compress_weights(graph, "int8", [(first, "float32")])
    assert len(made.stored) == 1  # the other layer has the weight in int8
    both = compress_weights(graph, "int8", [("*", "float16")])
    assert [after.dtype.name for _, after in both.stored] == ["float16"]
    assert not compress_weights(graph, "int8", [("*", "float32")]).stored
    with pytest.raises(UsageError, match="the rule head matches no module and no tensor"):
        compress_weights(graph, "int8", [("head", "float16")])


def test_rules_of_the_command(tmp_path: Path) -> None:
    options = ("--weights", "int8", "--rule", "classifier=float16")
    done = run("tflite", DATA.parents[1] / "samples" / "digits.tm", tmp_path / "a.tflite", *options)
    assert done.status == 0, done.stderr
    assert "weights as int8: " in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("scales", ["max", "mse"])
def test_files_in_blocks_become_onnx_with_the_same_integers(scales: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    four, back = tmp_path / "four.tflite", tmp_path / "back.onnx"
    net = torch.nn.Sequential(torch.nn.Linear(64, 96), torch.nn.ReLU(), torch.nn.Linear(96, 40))
    tmconvert.to_tflite(net, four, example_inputs=(torch.randn(4, 64),), weights="int4", weight_scales=scales)
    report = tmconvert.to_onnx(four, back, opset=21, integer_weights="MatMulNBits")
    assert report.verified
    assert back.stat().st_size < 64 * 96 * 2
    (note,) = [each for each in report.notes if "stored as MatMulNBits" in each]
    assert note.startswith("2 weights")


@pytest.mark.parametrize("kind", ["float16", "int8", "int4"])
def test_no_copy_of_a_weight_is_in_memory(kind: str, tmp_path: Path) -> None:
    bias = Value("b", F32, (2048,), np.zeros(2048, np.float32))
    graph = net("FULLY_CONNECTED", (1, 2048), (1, 2048), constant("w", 2048, 2048), bias)
    tracemalloc.start()
    try:
        made = compress_weights(graph, kind)
        for number, each in enumerate((made.graph, made.restored, *made.rounded)):
            with (tmp_path / f"{number}.tflite").open("wb") as file:
                write_tflite(each, file)
        check_weights(tmp_path / "0.tflite", made.stored)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 13 << 20 < made.before


def test_signatures_share_what_is_stored_in_fewer_bits() -> None:
    graph, known = NETS["linear"][0], dict[object, object]()
    first, second = (compress_weights(graph, "int8", known=known).stored[0][1] for _ in range(2))
    assert first.stored is second.stored and first.quantization is second.quantization
    assert compress_weights(graph, "int8").stored[0][1].stored is not first.stored
