"""A target that a package of its own adds: it converts and verifies, and no module of ours knows it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import tmconvert
from tmconvert.conversion.pipeline import convert
from tmconvert.conversion.request import ConversionRequest
from tmconvert.errors import UnsupportedError, UsageError, VerificationError
from tmconvert.symbolics.op import Op
from tmconvert.symbolics.registry import catalogue
from tmconvert.targets import registry
from tmconvert.targets.options import TargetOptions
from tmconvert.verification.files import verify_file

torch = pytest.importorskip("torch")

from tests.targets import toy_target  # noqa: E402
from tests.targets.toy_target import ToyTarget, symbolics  # noqa: E402

DATA = Path(__file__).parents[1] / "data"
MODEL = "op_s_conv_bn_relu"


@pytest.fixture
def ops(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mapping[str, Op]]:
    monkeypatch.setattr(registry, "_registered", {})
    registry.register_target(ToyTarget())
    yield symbolics(catalogue())


def test_a_model_is_converted_and_verified(ops: Mapping[str, Op], tmp_path: Path) -> None:
    path = tmp_path / "m.toy"
    module = tmconvert.load(DATA / f"{MODEL}.tm")
    report = convert(ConversionRequest(module, (path,), TargetOptions("toy", 1)), ops)
    assert report.verification is not None
    assert report.verified and report.max_error is not None and report.max_error < 1e-5
    assert report.verification.runtime.startswith("PyTorch ")
    assert [each["type"] for each in json.loads(path.read_text())["operators"]] == ["conv2d", "relu"]
    assert verify_file(module, path, None, ops).max_error < 1e-5


def test_a_wrong_file_is_refused(
    ops: Mapping[str, Op], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.toy"
    monkeypatch.setitem(toy_target.OPERATORS, "relu", torch.abs)
    with pytest.raises(VerificationError, match="output r_out differs by") as caught:
        convert(ConversionRequest(DATA / f"{MODEL}.tm", (path,), TargetOptions("toy", 1)), ops)
    assert caught.value.code == "TM4001"
    assert not any(tmp_path.iterdir())


def test_what_the_target_lacks_is_named(ops: Mapping[str, Op], tmp_path: Path) -> None:
    module = tmconvert.load(DATA / "shufflenet_v2.tm")
    with pytest.raises(UnsupportedError, match="no toy symbolic for aten::max_pool2d"):
        convert(ConversionRequest(module, (tmp_path / "m.toy",), TargetOptions("toy", 1)), ops)


def test_a_name_is_taken_once(ops: Mapping[str, Op]) -> None:
    with pytest.raises(UsageError, match="the target 'toy' is already registered"):
        registry.register_target(ToyTarget())


def test_the_toy_is_small() -> None:
    source = Path(toy_target.__file__).read_text(encoding="utf-8")
    assert source.count("\n") < 150
