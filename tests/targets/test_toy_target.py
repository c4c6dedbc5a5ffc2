"""A target that a package of its own adds: it converts and verifies, and no module of ours knows it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tmconvert
from tmconvert.conversion.io_overrides import NO_OVERRIDES
from tmconvert.conversion.lowering import survey
from tmconvert.conversion.pipeline import convert
from tmconvert.conversion.request import ConversionRequest
from tmconvert.errors import LoadError, UnsupportedError, UsageError, VerificationError
from tmconvert.output.metadata import OPTIONS
from tmconvert.passes.unsupported import grouped
from tmconvert.symbolics import registry as symbolic_registry
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
    with pytest.raises(UnsupportedError, match="no Toy symbolic for aten::max_pool2d"):
        convert(ConversionRequest(module, (tmp_path / "m.toy",), TargetOptions("toy", 1)), ops)


def test_a_name_is_taken_once(ops: Mapping[str, Op]) -> None:
    with pytest.raises(UsageError, match="the target 'toy' is already registered"):
        registry.register_target(ToyTarget())


def test_the_toy_is_small() -> None:
    source = Path(toy_target.__file__).read_text(encoding="utf-8")
    assert source.count("\n") < 150


@pytest.fixture
def registered(ops: Mapping[str, Op]) -> Iterator[None]:
    """The toy's symbolics in the catalogue that the public functions use."""
    with tmconvert.temporary_symbolics():
        names = ("aten::conv2d", "aten::relu", "aten::linear", "aten::reshape", "aten::add")
        symbolic_registry._registry.set_registered({name: ops[name] for name in names})
        yield


def test_its_options_are_keywords_and_metadata(registered: None, tmp_path: Path) -> None:
    path = tmp_path / "m.toy"
    report = tmconvert.to_target(DATA / f"{MODEL}.tm", "toy", path, paint="blue", edition=1)
    assert report.verified and "m.toy  (Toy 1, 2 operators, 224 parameters)\n" in str(report)
    assert json.loads(json.loads(path.read_text())["metadata"][OPTIONS])["paint"] == "blue"
    assert tmconvert.verify(DATA / f"{MODEL}.tm", path).max_error < 1e-5


def test_its_files_are_inspected_run_and_drawn(registered: None, tmp_path: Path) -> None:
    path = tmp_path / "m.toy"
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Unflatten(1, (2, 2)))
    tmconvert.to_target(tmconvert.trace(model, torch.ones(1, 3)), "toy", path)
    found = tmconvert.inspect(path)
    assert (found.format, found.operators) == ("Toy", {"operators": {"linear": 1, "reshape": 1}})
    (y,) = tmconvert.run(path, [np.ones((1, 3), np.float32)]).values()
    np.testing.assert_allclose(y, model(torch.ones(1, 3)).detach(), atol=1e-6)
    tmconvert.view(path, tmp_path / "m.html")
    assert '"reshape"' in (tmp_path / "m.html").read_text(encoding="utf-8")
    with pytest.raises(LoadError, match="Toy files cannot be timed"):
        ToyTarget().prepared_run(path, 1, {})
    with pytest.raises(UsageError, match="there is no program for Toy files in python"):
        found.usage("python")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"color": "red"}, "conversions to toy have no option 'color'"),
        ({"paint": "green"}, "paint is 'green'"),
        ({"paint": 3}, r"paint must be str, got int \(3\)"),
        ({"edition": "x"}, r"edition must be int, got str \('x'\)"),
        ({"edition": 2}, "there is no version 2 of toy files"),
        ({"verify": 1}, r"verify must be True or False, got int \(1\)"),
    ],
)
def test_wrong_options_are_refused(
    registered: None, options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=message):
        tmconvert.to_target(DATA / f"{MODEL}.tm", "toy", tmp_path / "m.toy", **options)
    assert not any(tmp_path.iterdir())


def test_a_missing_symbolic_names_the_version_that_has_it(ops: Mapping[str, Op]) -> None:
    """Words for versions exist for the built-in targets only."""
    ops["aten::relu"].symbolics["toy"] = {3: lambda g, x: g.op("relu", x)}
    ops["aten::relu"].decomposition = None
    module = tmconvert.load(DATA / f"{MODEL}.tm")
    (group,) = grouped(survey(module, TargetOptions("toy", 1), ops, NO_OVERRIDES))
    assert (group.reason, group.help) == (
        "no Toy symbolic for aten::relu at version 1",
        "use version 3 or later",
    )


def test_a_symbolic_has_the_parameters_of_the_op(ops: Mapping[str, Op]) -> None:
    with pytest.raises(UsageError, match=r"takes \(g, x, y\), but a symbolic of aten::div must take \("):
        ops["aten::div"].symbolic("toy", 1)(lambda g, x, y: g.op("div", x, y))


def test_custom_ops_have_symbolics_for_it(ops: Mapping[str, Op]) -> None:
    with tmconvert.temporary_symbolics():
        tmconvert.register_symbolic("mylib::toy", lambda g, x: g.op("relu", x), target="toy")
        assert "toy" in catalogue()["mylib::toy"].symbolics
        with pytest.raises(UsageError, match="unknown target 'toi'"):
            tmconvert.register_symbolic("mylib::toy", lambda g, x: g.op("relu", x), target="toi")


PACKAGE = """
from tests.targets.toy_target import ToyTarget, symbolics
from tmconvert.symbolics import registry

ops = symbolics(registry.catalogue())
registry._registry.set_registered({name: ops[name] for name in ("aten::conv2d", "aten::relu")})
"""
IN_ONE_PROCESS = """
import dataclasses, json, sys
from tests.cli.runner import run
print(json.dumps([dataclasses.astuple(run(*command)) for command in json.loads(sys.argv[1])]))
"""


@pytest.mark.slow
def test_an_installed_target_has_a_command(tmp_path: Path) -> None:
    info = tmp_path / "toy_package-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-package\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[tmconvert.targets]\ntoy = toy_package:ToyTarget\n")
    (tmp_path / "toy_package.py").write_text(PACKAGE)
    tm = str(DATA / f"{MODEL}.tm")
    commands = {
        ("--help",): "toy        Convert a model to toy.",
        ("toy", "--help-all"): "--paint TYPE",
        ("toy", tm, "m.toy", "--paint", "blue"): "m.toy  (Toy 1, 2 operators",
        ("ops", "--target", "toy", "--search", "aten::relu"): "native from 1",
        ("ops", "--target", "toy", "--search", "max_pool2d"): "no symbolic",
        ("check", tm, "--target", "toy"): "ok",
    }
    done = subprocess.run(
        [sys.executable, "-c", IN_ONE_PROCESS, json.dumps([*commands])],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": f"{tmp_path}:{DATA.parents[1]}"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    outcomes = dict(zip(commands, json.loads(done.stdout), strict=True))
    for command, expected in commands.items():
        status, stdout, stderr = outcomes[command]
        assert status == 0 and expected in stdout, (command, stderr)
    assert "--edition N" in outcomes["toy", "--help-all"][1]
    assert outcomes["check", tm, "--target", "toy"][1].startswith("ok")
