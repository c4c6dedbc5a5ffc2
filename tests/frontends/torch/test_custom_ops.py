"""Ops of the user's: docs/custom-ops.md as it stands, and what it does not show."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch

import tmconvert
from tests.cli.runner import run as run_command
from tests.custom_ops import defined_op, run
from tmconvert.errors import UnsupportedError, UsageError
from tmconvert.frontends.torch import customization
from tmconvert.frontends.torch.tracing.recording import op_traits
from tmconvert.ir import TensorType
from tmconvert.symbolics import registry

from .harness import run_onnx

FOLLOWED: set[str] = set()
X = torch.linspace(-3, 3, 12).reshape(1, 3, 2, 2)


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    with tmconvert.temporary_symbolics():
        yield


@cache
def net() -> Any:
    return defined_op()["Net"]()


@cache
def traced() -> Any:
    return tmconvert.trace(net(), X)


def convert(target: str, tmp_path: Path, **options: Any) -> Any:
    return getattr(tmconvert, f"to_{target}")(traced(), tmp_path / f"model.{target}", **options)


# ---- the page


def test_without_a_meaning_the_op_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match=r"torch\.ops\.mylib\.swish.* is not supported") as refused:
        convert("onnx", tmp_path)
    assert "register_symbolic" in str(refused.value)


@pytest.mark.parametrize("target", ["onnx", "tflite", "caffe"])
def test_in_other_ops(target: str, tmp_path: Path) -> None:
    run("A decomposition, for every target")
    assert convert(target, tmp_path).max_error < 1e-5
    with torch.no_grad():
        np.testing.assert_allclose(traced()(X.numpy()), net()(X), rtol=1e-5)


@pytest.mark.parametrize(("title", "target"), [("ONNX", "onnx"), ("TFLite", "tflite"), ("Caffe", "caffe")])
def test_a_symbolic_for_each_target(title: str, target: str, tmp_path: Path) -> None:
    run(title)
    assert convert(target, tmp_path).max_error < 1e-5  # against PyTorch's own outputs, without a kernel
    others = {"onnx", "tflite", "caffe"} - {target}
    for other in others:
        with pytest.raises(UnsupportedError, match=f"target='{other}'"):
            convert(other, tmp_path)


def test_an_operator_of_another_domain(tmp_path: Path) -> None:
    run("ONNX", 1)
    report = convert("onnx", tmp_path)
    assert not report.verified
    assert report.notes[-1] == "not verified: ONNX Runtime has no operator com.example::Swish"
    model = onnx.load(tmp_path / "model.onnx")
    (node,) = model.graph.node
    assert (node.domain, node.op_type, node.attribute[0].f) == ("com.example", "Swish", 1.5)
    assert [(each.domain, each.version) for each in model.opset_import] == [("", 17), ("com.example", 1)]


def test_types_and_values(tmp_path: Path) -> None:
    run("Types and values")
    shapes = {"x": {0: "batch"}}
    report = tmconvert.to_onnx(
        net(), tmp_path / "model.onnx", example_inputs=[X.repeat(2, 1, 1, 1)], dynamic_shapes=shapes
    )
    assert report.verified
    assert report.outputs[0]["shape"] == ["batch", 3, 2, 2]
    other = X.repeat(5, 1, 1, 1) / 2
    with torch.no_grad():
        expected = net()(other).numpy()
    np.testing.assert_allclose(run_onnx(tmp_path / "model.onnx", [other.numpy()])[0], expected, rtol=1e-5)
    np.testing.assert_allclose(traced()(X.numpy()), net()(X), rtol=1e-5)
    given = np.ones((1, 3, 2, 2), np.float32)
    assert tmconvert.verify(traced(), _written(tmp_path), [given]).max_error < 1e-5


def _written(tmp_path: Path) -> Path:
    convert("onnx", tmp_path)
    return tmp_path / "model.onnx"


def test_another_symbolic_for_an_op_of_ours(tmp_path: Path) -> None:
    run("Replace the lowering of a built-in op")
    model = tmconvert.trace(torch.nn.GELU(), X)
    assert tmconvert.to_onnx(model, tmp_path / "model.onnx", opset=20).max_error < 1e-5
    assert onnx.load(tmp_path / "model.onnx").graph.node[0].domain == "com.microsoft"


def test_registrations_can_be_forgotten() -> None:
    run("Plugins")
    assert "mylib::twice" not in [each.op for each in tmconvert.supported_ops("onnx")]


# ---- what the page does not show


def test_a_plugin_of_the_command_line(tmp_path: Path) -> None:
    traced().save(tmp_path / "model.tm")
    plugin = tmp_path / "plugin.py"
    plugin.write_text(
        "import tmconvert\n"
        "@tmconvert.register_symbolic('mylib::swish', target='onnx')\n"
        "def swish(g, x, beta=1.0):\n"
        "    return g.op('Mul', x, g.op('Sigmoid', g.op('Mul', x, g.const(beta))))\n"
    )
    command = ("onnx", tmp_path / "model.tm", tmp_path / "model.onnx")
    assert run_command(*command).status == 1
    done = run_command(*command, "--plugin", plugin)
    assert done.status == 0, done.stderr
    assert "verified in ONNX Runtime" in done.stderr
    listed = run_command("ops", "--plugin", plugin, "--search", "mylib", "--json").json["ops"]
    assert [op["signature"] for op in listed] == ["mylib::swish(x, beta=1.0)"]
    assert run_command("ops", "--search", "mylib", "--json").json["ops"] == []  # it is gone


def test_more_results_of_one_op_and_lists(tmp_path: Path) -> None:
    library = torch.library.Library("mylib_lists", "DEF")
    library.define("minmax(Tensor[] xs, *, int scale=1) -> (Tensor, Tensor)")
    library.impl(
        "minmax",
        lambda xs, scale=1: (torch.minimum(*xs) * scale, torch.maximum(*xs) * scale),
        "CompositeExplicitAutograd",
    )

    def types(xs: Any, scale: int = 1) -> list[TensorType]:
        return [xs[0], xs[0]]

    @tmconvert.register_symbolic("mylib_lists::minmax", target="onnx", result=types)
    def minmax(g: Any, xs: Any, scale: int = 1) -> Any:
        return [g.op("Mul", g.op(name, *xs), g.const(scale)) for name in ("Min", "Max")]

    def function(x: Any, y: Any) -> Any:
        return torch.ops.mylib_lists.minmax([x, y], scale=3)

    model = tmconvert.trace(function, X, -X)
    assert tmconvert.to_onnx(model, tmp_path / "model.onnx").max_error < 1e-6


def test_sizes_that_nothing_tells_are_fixed(tmp_path: Path) -> None:
    """They cannot stay open, which is an error that names the cure, unless a number is chosen."""
    run("ONNX")
    options = {"example_inputs": [X.repeat(2, 1, 1, 1)], "dynamic_shapes": {"x": {0: "batch"}}}
    with pytest.raises(UnsupportedError, match=r"size batch cannot stay dynamic.* result= of") as caught:
        tmconvert.to_onnx(net(), tmp_path / "model.onnx", **options)
    assert caught.value.code == "TM2031"
    report = tmconvert.to_onnx(net(), tmp_path / "model.onnx", fix={"batch": 2}, **options)
    assert report.outputs[0]["shape"] == [2, 3, 2, 2]


def test_inputs_that_nothing_computes_the_outputs_of(tmp_path: Path) -> None:
    run("ONNX")
    given = [np.ones((1, 3, 2, 2), np.float32)]
    report = convert("onnx", tmp_path, example_inputs=given)
    assert "mylib::swish has no reference kernel" in report.notes[-1]
    with pytest.raises(UnsupportedError, match="no reference kernel"):
        traced()(*given)


# ---- mistakes


def scaled(g: Any, x: Any, beta: float = 1.0) -> Any:
    return g.op("Mul", x, g.const(beta))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "onix"}, "unknown target 'onix'"),
        ({"target": "onnx", "result": "y"}, "result is 'y', but must be one of x, beta"),
        ({"target": "onnx", "reference": lambda x: x}, r"takes \(x\), but must take \(x, beta\)"),
        ({"target": "onnx", "function": lambda *args: None}, r"takes \*args"),
        ({"target": "onnx", "function": lambda: None}, "takes no arguments"),
    ],
)
def test_what_cannot_be_registered(options: dict[str, Any], message: str) -> None:
    function = options.pop("function", scaled)
    with pytest.raises(UsageError, match=message):
        tmconvert.register_symbolic("mylib::swish", function, **options)


def test_all_functions_of_an_op_have_the_same_parameters() -> None:
    tmconvert.register_symbolic("mylib::swish", scaled, target="onnx")
    with pytest.raises(UsageError, match=r"takes \(x, b\), but must take \(x, beta\)"):
        tmconvert.register_symbolic("mylib::swish", lambda g, x, b=1.0: x, target="tflite")


def test_a_symbolic_that_fails_is_reported_with_its_line(tmp_path: Path) -> None:
    def broken(g: Any, x: Any, beta: float = 1.0) -> Any:
        return 1 / 0

    tmconvert.register_symbolic("mylib::swish", broken, target="onnx")
    with pytest.raises(UsageError, match="broken, registered for mylib::swish, failed") as error:
        convert("onnx", tmp_path)
    place = error.value.source
    assert place is not None
    assert (place.file, place.line) == (__file__, broken.__code__.co_firstlineno + 1)


@pytest.mark.parametrize("wrong", [None, 3, []])
def test_a_symbolic_must_return_the_results(wrong: Any, tmp_path: Path) -> None:
    tmconvert.register_symbolic("mylib::swish", lambda g, x, beta=1.0: wrong, target="onnx")
    with pytest.raises(UsageError, match=r"not 1 result of g\.op"):
        convert("onnx", tmp_path)


@pytest.mark.parametrize(
    ("text", "status", "message"),
    [
        ("x = 1\nraise ValueError('no')\n", 2, "failed: ValueError: no"),
        ("def f(:\n", 2, "is not valid Python"),
        (
            "from tmconvert import *\nregister_symbolic('a::b', lambda g: g, target='z')",
            2,
            "unknown target 'z'",
        ),
    ],
)
def test_a_plugin_that_fails_names_its_line(text: str, status: int, message: str, tmp_path: Path) -> None:
    plugin = tmp_path / "plugin.py"
    plugin.write_text(text)
    outcome = run_command("ops", "--plugin", plugin)
    assert outcome.status == status
    assert message in outcome.stderr
    assert f"{plugin}:{2 if 'def' not in text else 1}" in outcome.stderr
    assert run_command("ops", "--plugin", tmp_path / "none.py").status == 2


def test_a_custom_operator_of_tflite(tmp_path: Path) -> None:
    from flatbuffers import flexbuffers
    from tflite import Model

    @tmconvert.register_symbolic("mylib::swish", target="tflite")
    def swish(g: Any, x: Any, beta: float = 1.0) -> Any:
        return g.op("com.example::Swish", x, beta=beta, sizes=[1, 2])

    report = convert("tflite", tmp_path)
    assert report.notes[-1] == "not verified: LiteRT has no operator com.example::Swish"
    model = Model.GetRootAsModel((tmp_path / "model.tflite").read_bytes(), 0)
    assert (model.OperatorCodes(0).CustomCode(), model.OperatorCodes(0).BuiltinCode()) == (b"Swish", 32)
    options = model.Subgraphs(0).Operators(0).CustomOptionsAsNumpy().tobytes()
    assert flexbuffers.Loads(options) == {"beta": 1.5, "sizes": [1, 2]}


def install(monkeypatch: pytest.MonkeyPatch, folder: Path, code: str) -> None:
    """A package ``mylib`` whose entry point is a function with this body."""
    package, info = folder / "mylib_ops.py", folder / "mylib-1.0.dist-info"
    package.write_text(f"import tmconvert\n\n\ndef register():\n    {code}\n")
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mylib\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[tmconvert.symbolics]\nmylib = mylib_ops:register\n")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "mylib_ops", raising=False)
    monkeypatch.setattr(registry, "_registry", registry._Registry())


def test_installed_packages_register_theirs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code = 'tmconvert.register_symbolic("mylib::installed", lambda g, x: x, target="onnx")'
    install(monkeypatch, tmp_path, code)
    assert "mylib::installed" in [each.op for each in tmconvert.supported_ops("onnx")]


def test_an_installed_package_that_fails_is_named_each_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    install(monkeypatch, tmp_path, "1 / 0")
    for _ in range(2):
        with pytest.raises(UsageError, match="mylib_ops:register of mylib, which registers"):
            tmconvert.supported_ops("onnx")


# ---- the body of the op itself


@pytest.fixture
def followed(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (customization, op_traits):
        monkeypatch.setattr(module, "FOLLOWED_OPS", FOLLOWED)
    FOLLOWED.clear()


@pytest.mark.usefixtures("followed")
def test_the_body_on_the_page(tmp_path: Path) -> None:
    namespace = defined_op()
    run("Its own Python body", swish=namespace["swish"])
    report = tmconvert.to_onnx(namespace["Net"](), tmp_path / "model.onnx", example_inputs=[X])
    assert report.max_error < 1e-5


@pytest.mark.usefixtures("followed")
def test_tracing_goes_through_the_body(tmp_path: Path) -> None:
    @tmconvert.trace_through
    @torch.library.custom_op("tmtest::scaled_into", mutates_args=("out",))
    def scaled_into(x: torch.Tensor, out: torch.Tensor, factor: float = 1.0) -> None:
        out.copy_(x * factor + x.shape[1])

    @tmconvert.trace_through
    @torch.library.custom_op("tmtest::doubled", mutates_args=())
    def doubled(x: torch.Tensor) -> torch.Tensor:
        made = torch.empty_like(x)
        scaled_into(x, made, 2.0)
        return made

    def model(x: torch.Tensor) -> torch.Tensor:
        return doubled(x).relu() + torch.ops.tmtest.doubled(x.mT).mT

    path = tmp_path / "model.onnx"
    tmconvert.to_onnx(model, path, example_inputs=[torch.randn(3, 4)], dynamic_shapes={"x": {1: "n"}})
    x = torch.randn(3, 7)
    np.testing.assert_allclose(run_onnx(path, [x.numpy()])[0], model(x).numpy(), rtol=1e-5)


@pytest.mark.parametrize("wrong", ["mylib::swish", torch.relu, None])
def test_only_custom_ops_have_a_body(wrong: object) -> None:
    with pytest.raises(UsageError, match=r"requires an op of torch\.library\.custom_op") as refused:
        tmconvert.trace_through(wrong)
    assert refused.value.code == "TM6021"


def test_the_line_that_an_error_prints_registers_the_op(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError) as caught:
        convert("onnx", tmp_path)
    assert "@tmconvert.register_symbolic('mylib::swish')" in str(caught.value)

    def swish(g: Any, x: Any, beta: float = 1.0) -> Any:
        scaled = g.call("aten::mul", x, g.constant(beta, g.type(x).dtype))
        return g.call("aten::mul", x, g.call("aten::sigmoid", scaled))

    tmconvert.register_symbolic("torch.ops.mylib.swish.default", swish, result="x")
    assert convert("onnx", tmp_path).max_error < 1e-5
