"""TFLite files with several signatures: shared weights, results of each, refused arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tmconvert
from tests.cli.runner import run
from tmconvert.errors import TmconvertError, UsageError, VerificationError
from tmconvert.output.copies import Copies
from tmconvert.targets.tflite.runtime import LiteRtRuntime
from tmconvert.targets.tflite.target import TfliteTarget

torch = pytest.importorskip("torch")


class Decoder(torch.nn.Module):
    """Two ways to use the same weights; one of them has a branch, which becomes subgraphs."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.table, self.layer = torch.nn.Embedding(160, 128), torch.nn.Linear(128, 160)

    def prefill(self, tokens):
        return self.layer(self.table(tokens))

    def decode(self, tokens, scale):
        y = self.layer(self.table(tokens) * scale)
        return torch.tanh(y) if scale.sum() > 0 else y * 2


@pytest.fixture(scope="module")
def models() -> dict[str, Any]:
    net = Decoder().eval()
    tokens = torch.arange(12).reshape(1, 12)
    decode = {"tokens": tokens[:, :1], "scale": torch.ones(1)}
    return {"prefill": (net.prefill, (tokens,)), "decode": (net.decode, decode)}


@pytest.mark.parametrize(
    "options",
    [{}, *(pytest.param({"weights": each}, marks=pytest.mark.slow) for each in ("float16", "int8", "int4"))],
    ids=str,
)
def test_weights_are_stored_once(models: Any, options: dict[str, Any], tmp_path: Path) -> None:
    report = tmconvert.to_tflite(models, tmp_path / "both.tflite", **options)
    assert report.verified and list(report.signatures) == ["prefill", "decode"]
    assert report.parameters == 160 * 128 * 2 + 160
    model, tokens = models["prefill"]
    alone = tmconvert.to_tflite(model, tmp_path / "one.tflite", example_inputs=tokens, **options)
    sizes = [each.paths[0].stat().st_size for each in (report, alone)]
    assert sizes[0] - sizes[1] < 12_000  # of 160 kB or more: scales and tables of the second graph
    for scale in (1.0, -1.0):
        inputs = {"tokens": np.array([[7]], np.int32), "scale": np.array([scale], np.float32)}
        (found,) = LiteRtRuntime(signature="decode").run(
            report.paths, inputs, [report.signatures["decode"].outputs[0]["name"]]
        )
        with torch.no_grad():
            expected = models["decode"][0](*map(torch.from_numpy, inputs.values())).numpy()
        steps = {"float16": 0.02, "int8": 0.02, "int4": 0.25}  # of the largest output
        tolerance = steps.get(options.get("weights"), 1e-6) * np.abs(expected).max()
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)
    again = tmconvert.to_tflite(models, tmp_path / "again.tflite", verify=False, **options)
    assert again.bytes == report.bytes and not again.verified


def test_each_signature_is_compared_with_its_own_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = torch.arange(6.0)
    models = {"one": (lambda x: x + 1, (x,)), "two": (lambda x: x + 2, (x,))}
    assert tmconvert.to_tflite(models, tmp_path / "right.tflite").verified
    write = TfliteTarget.write_signatures

    def write_exchanged(target: TfliteTarget, graphs: Any, file: Any) -> None:
        names = [graph.signature for graph in graphs]
        for graph, name in zip(graphs, reversed(names), strict=True):
            graph.signature = name
        write(target, graphs, file)
        for graph, name in zip(graphs, names, strict=True):
            graph.signature = name

    monkeypatch.setattr(TfliteTarget, "write_signatures", write_exchanged)
    with pytest.raises(VerificationError) as caught:
        tmconvert.to_tflite(models, tmp_path / "wrong.tflite")
    assert caught.value.code == "TM4001" and [each.name for each in tmp_path.iterdir()] == ["right.tflite"]


def test_files_of_models_are_signatures(models: Any, tmp_path: Path) -> None:
    for name, (model, inputs) in models.items():
        args = inputs.values() if isinstance(inputs, dict) else inputs
        tmconvert.trace(model, *args).save(tmp_path / f"{name}.tm")
    given = ("tflite", f"prefill={tmp_path / 'prefill.tm'}", tmp_path / "net.tflite", "--signature")
    found = run(*given, f"decode={tmp_path / 'decode.tm'}", "--json").json
    assert found["verified"] and list(found["signatures"]) == ["prefill", "decode"]
    assert found["parameters"] == 160 * 128 * 2 + 160  # equal contents of two files
    read = tmconvert.to_tflite(tmp_path / "net.tflite", tmp_path / "one.tflite", signature="decode")
    assert read.verified and [each["name"] for each in read.inputs] == ["tokens", "scale"]
    twice = run(*given, f"prefill={tmp_path / 'decode.tm'}")
    assert twice.status == 2 and "two signatures have the name prefill" in twice.stderr


def test_commands_take_a_signature(models: Any, tmp_path: Path) -> None:
    file = tmp_path / "net.tflite"
    report = tmconvert.to_tflite(models, file, verify=False)
    found = run("inspect", file, "--json").json
    assert found["parameters"] == report.parameters and not found["inputs"] and not found["ops"]
    shapes = {name: [each["shape"] for each in part["inputs"]] for name, part in found["signatures"].items()}
    assert shapes == {"prefill": [[1, 12]], "decode": [[1, 1], [1]]}
    assert found["signatures"]["prefill"]["macs"] == 12 * found["signatures"]["decode"]["macs"]
    assert "\nsignature decode\n" in run("inspect", file).stdout
    one = tmconvert.inspect(file, signature="decode")
    assert [each.name for each in one.inputs] == ["tokens", "scale"] and not one.signatures

    inputs = {"tokens": np.array([[7]]), "scale": np.array([-1.0], np.float32)}
    (made,) = tmconvert.run(file, inputs, signature="decode").values()
    with torch.no_grad():
        expected = models["decode"][0](*map(torch.from_numpy, inputs.values())).numpy()
    np.testing.assert_allclose(made, expected, atol=1e-5)
    chosen = (file, "--signature", "decode")
    arrays = run("run", *chosen, "-i", "int32[1,1]", "-i", "float32[1]", "--json").json["arrays"]
    assert [each["shape"] for each in arrays] == [[1, 1, 160]]
    (timed,) = run("bench", *chosen, "--seconds", "0.01", "--json").json["files"]
    assert timed["shapes"] == {"tokens": [1, 1], "scale": [1]}

    for command in ("run", "bench"):
        refused = run(command, file)
        assert refused.status == 1 and "TM1042" in refused.stderr
        assert "prefill, decode" in refused.stderr and "--signature" in refused.stderr
        assert "TM6014" in run(command, file, "--signature", "other").stderr
    watched = run("run", *chosen, "-i", "int32[1,1]", "-i", "float32[1]", "--watch", "linear_out", "--json")
    assert "linear_out" in {each["name"] for each in watched.json["arrays"]}
    assert "one signature" in run("inspect", file, "--usage", "python").stderr


@pytest.mark.parametrize("options", [{}, pytest.param({"weights": "int8"}, marks=pytest.mark.slow)], ids=str)
def test_a_signature_is_verified_with_its_model(models: Any, options: Any, tmp_path: Path) -> None:
    """The signatures differ in shapes only, so that names do not tell them apart."""
    net = models["prefill"][0].__self__
    tokens = torch.arange(12).reshape(1, 12)
    sources = {f"take_{n}": tmconvert.trace(net.prefill, tokens[:, :n]) for n in (4, 12)}
    file = tmp_path / "net.tflite"
    tmconvert.to_tflite(sources, file, verify=False, **options)
    for name, source in sources.items():
        assert tmconvert.verify(source, file, signature=name).tells
        if not options:
            assert tmconvert.verify(source, file).tells
    sources["take_4"].save(tmp_path / "net.tm")
    assert run("verify", tmp_path / "net.tm", file, "--signature", "take_4").status == 0
    assert run("verify", tmp_path / "net.tm", file, "--signature", "other").status in (1, 2)


@pytest.mark.parametrize(
    ("models", "options", "reason"),
    [
        ({}, {}, "there is no signature"),
        ({"": "net.tm"}, {}, "must be a text without NUL"),
        ({1: "net.tm"}, {}, "must be a text without NUL"),
        ({"a": ("net.tm", 1, 2)}, {}, "or a pair"),
        ({"a": "net.tm"}, {"rename": {"x": "y"}}, "rename is .*, but applies to a file with one signature"),
        ({"a": "net.tm"}, {"quantized": True}, "quantized is True"),
        ({"a": "net.tm"}, {"dynamic_shapes": {"x": {0: "n"}}}, "dynamic_shapes is"),
        ({"a": "net.tm"}, {"verify_on": ["litert-gpu"]}, "verify_on is"),
    ],
)
def test_refused_arguments(models: Any, options: dict[str, Any], reason: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=reason) as caught:
        tmconvert.to_tflite(models, tmp_path / "net.tflite", **options)
    assert caught.value.code == "TM6017"


def test_copies_have_equal_bytes() -> None:
    copies, first = Copies(), np.arange(6, dtype=np.float32).reshape(2, 3)
    others = [first + 1, first.astype(np.int32), first.reshape(3, 2), -first * 0, first * 0]
    assert copies.key(first) == copies.key(first.copy())
    assert len({copies.key(each) for each in (first, *others)}) == len(others) + 1


def test_a_signature_is_compared_layer_by_layer(models: Any, tmp_path: Path) -> None:
    """Also with its model, and with a file that has no other signature."""
    file, one = tmp_path / "net.tflite", tmp_path / "one.tflite"
    tmconvert.to_tflite(models, file, verify=False)
    model, inputs = models["decode"]
    traced = tmconvert.trace(model, *(inputs.values() if isinstance(inputs, dict) else inputs))
    tmconvert.to_tflite(traced, one, verify=False)
    for first in (traced, one):
        found = tmconvert.compare(first, file, signature="decode")
        assert found.ok and len(found.layers) > 1
    assert tmconvert.evaluate(traced, file, [traced.example.inputs], signature="decode").ok
    assert {each.layer for each in tmconvert.lint(file, profile="litert-gpu")} >= {"embedding_out"}
    with pytest.raises(TmconvertError) as caught:
        tmconvert.compare(traced, one, signature="decode")
    assert caught.value.code == "TM6016"
