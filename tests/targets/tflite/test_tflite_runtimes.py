"""What a runtime of TFLite has: each operator version on both sides of the release that brought it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tmconvert
from tests.cli.runner import run
from tests.symbolics.ops.harness import prepared
from tmconvert.errors import UnsupportedError, UsageError
from tmconvert.symbolics.registry import catalogue
from tmconvert.targets.options import DEFAULT_TFLITE_RUNTIME, TFLITE_RUNTIME
from tmconvert.targets.registry import lower, target_version
from tmconvert.targets.tflite.operators import SPECS, spec
from tmconvert.targets.tflite.runtimes import runtime_refusal

DATA = Path(__file__).parents[2] / "data"


@pytest.mark.parametrize("type", sorted(name for name, each in SPECS.items() if each.releases))
def test_each_version_begins_with_its_release(type: str) -> None:
    for version, release in enumerate(spec(type).releases.split(), start=1):
        if release == "-":
            assert runtime_refusal(type, version, TFLITE_RUNTIME)
            continue
        major, minor = map(int, release.split(".")[:2])
        assert runtime_refusal(type, version, TFLITE_RUNTIME) is None
        if major == 2:
            assert runtime_refusal(type, version, minor) is None
        if major == 2 and minor > 0:
            reason, help = runtime_refusal(type, version, minor - 1) or ("", "")
            assert (
                f"version {version} of TFLite's {type}, which the runtime 2.{minor - 1} does not support"
                in reason
            )
            assert help.endswith(f"--runtime {release}")


def test_versions_that_no_runtime_has_yet() -> None:
    assert runtime_refusal("LSTM", 5, TFLITE_RUNTIME) == (
        "no runtime supports version 5 of TFLite's LSTM yet",
        "",
    )
    assert runtime_refusal("users::operator", 1, 0) is None


def x(*shape: int, dtype: str = "float32") -> np.ndarray:
    return np.ones(shape, dtype)


# Op, arguments, attributes, the operator and version that it takes, the runtime that has it.
CASES = [
    ("aten::where", [x(2, dtype="bool"), x(2), x(2)], {}, "SELECT_V2", 1, 2),
    ("aten::bitwise_xor", [x(2, dtype="int32")] * 2, {}, "BITWISE_XOR", 1, 13),
    ("aten::permute", [x(1, 2, 3, 4, 5, 6)], {"dims": [5, 4, 3, 2, 1, 0]}, "TRANSPOSE", 6, 12),
    ("aten::permute", [x(1, 2, 3, 4, 5)], {"dims": [4, 3, 2, 1, 0]}, "TRANSPOSE", 4, 3),
    ("aten::mul", [x(2, dtype="int16")] * 2, {}, "MUL", 7, 13),
    ("aten::mul", [x(2, dtype="int64")] * 2, {}, "MUL", 5, 6),
]


@pytest.mark.parametrize(("op", "args", "attributes", "type", "version", "runtime"), CASES)
def test_lowering_ends_where_the_runtime_does(op, args, attributes, type, version, runtime) -> None:
    def unsupported(at: int):
        graph = prepared("tflite", at, op, args, attributes)
        return lower(graph, catalogue(), "tflite", at).unsupported

    assert not unsupported(runtime)
    (found,) = unsupported(runtime - 1)
    assert found.expr.function == op
    assert f"version {version} of TFLite's {type}" in found.reason
    assert f"2.{runtime - 1} does not support" in found.reason
    assert f"--runtime 2.{runtime}" in found.help


def test_other_ways_for_old_runtimes() -> None:
    def types(op: str, runtime: int, **attributes: object) -> set[str]:
        graph = prepared("tflite", runtime, op, [x(2, 3)], attributes)
        lowering = lower(graph, catalogue(), "tflite", runtime)
        assert not lowering.unsupported
        return {operator.type for operator in lowering.graph.operators}

    assert types("aten::gelu", 8) == {"GELU"}
    assert "GELU" not in types("aten::gelu", 7)
    assert types("aten::clamp", 10, min=0, max=1) == {"RELU_0_TO_1"}
    assert types("aten::clamp", 9, min=0, max=1) == {"MAXIMUM", "MINIMUM"}


@pytest.mark.slow
def test_the_interface(tmp_path: Path) -> None:
    model, out = DATA / "op_trig_compare.tm", tmp_path / "o.tflite"
    with pytest.raises(
        UnsupportedError, match=r"version 1 of TFLite.s SELECT_V2, which the runtime 2\.1 does not support"
    ):
        tmconvert.to_tflite(model, out, runtime="2.1")
    assert not out.exists()
    report = tmconvert.to_tflite(model, out, runtime="2.2")
    assert (report.version, report.verified) == ("2.2", True)
    assert tmconvert.to_tflite(model, out).version == f"2.{DEFAULT_TFLITE_RUNTIME}"


@pytest.mark.slow
def test_the_command_line(tmp_path: Path) -> None:
    model = DATA / "op_trig_compare.tm"
    outcome = run("check", model, "--target", "tflite", "--runtime", "2.1")
    assert outcome.status == 1
    assert "cannot be converted to TFLite 2.1\n" in outcome.stdout
    assert "the runtime 2.2 and later support it: --runtime 2.2" in outcome.stdout
    assert run("check", model, "--target", "tflite", "--runtime", "2.2").status == 0
    assert run("check", model, "--target", "onnx", "--runtime", "2.2").status == 2
    outcome = run("tflite", model, tmp_path / "o.tflite", "--runtime", "2.1")
    assert (outcome.status, list(tmp_path.iterdir())) == (1, [])
    row = run("ops", "--target", "tflite", "--runtime", "2.7", "--search", "aten::gelu", "--json").json
    assert row["targets"] == {"tflite": "2.7"}
    assert row["ops"][0]["tflite"]["support"] == "decomposed"


@pytest.mark.parametrize("wrong", ["2", "3.1", "2.24", "2.x", 2.1, 18, True])
def test_runtimes_that_are_not_there(wrong: object) -> None:
    with pytest.raises(UsageError, match="unknown TFLite runtime"):
        target_version("tflite", wrong)  # type: ignore[arg-type]


def test_patch_levels_count_for_their_release() -> None:
    assert target_version("tflite", "2.14.1") == 14
    assert target_version("tflite", None) == DEFAULT_TFLITE_RUNTIME
