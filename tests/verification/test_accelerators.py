"""Files on accelerators: what conversions and ``verify`` make of outcomes, and processes that end."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tmconvert
from tests.cli.runner import run
from tests.source_tree import ROOT
from tmconvert.errors import UsageError, VerificationError
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value
from tmconvert.targets.tflite.writer import write_tflite
from tmconvert.verification.accelerators import registry
from tmconvert.verification.accelerators.accelerator import Accelerator, Outcome
from tmconvert.verification.accelerators.check import difference_of, known_defects

torch = pytest.importorskip("torch")
pytest.importorskip("ai_edge_litert")


class Fake(Accelerator):
    """Computes what the processor does, with ``change`` applied to it, or has another outcome."""

    name, about, targets, how_to_get = "fake", "a fake", ("tflite",), "write one"
    outcome: Outcome | None = None
    is_there = True

    def change(self, array: np.ndarray) -> np.ndarray:
        return array

    def is_available(self) -> bool:
        return self.is_there

    def run(self, path: Path, inputs: Mapping[str, np.ndarray], outputs: Sequence[str]) -> Outcome:
        from tmconvert.targets.registry import runtime_for

        runtime = runtime_for("tflite", path)
        assert runtime is not None
        return self.outcome or Outcome([self.change(each) for each in runtime.run([path], inputs, outputs)])


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Fake:
    monkeypatch.setattr(registry, "_KNOWN", {})
    made = Fake()
    registry.register_accelerator(made)
    return made


def convert(path: Path, **options: Any) -> Any:
    x = torch.randn(2, 3)
    return tmconvert.to_tflite(torch.nn.Linear(3, 4), path, example_inputs=[x], **options)


@pytest.mark.parametrize(
    ("outcome", "note"),
    [
        (None, "fake runs the whole file, and agrees with the processor"),
        (
            Outcome(refused="no", elsewhere=("WHILE (no)",), is_whole=False),
            "fake refuses the file: WHILE (no)",
        ),
        (Outcome(refused="too large"), "fake refuses the file: too large"),
    ],
)
def test_a_note_says_what_an_accelerator_did(
    fake: Fake, tmp_path: Path, outcome: Outcome | None, note: str
) -> None:
    fake.outcome = outcome
    assert note in convert(tmp_path / "net.tflite", verify_on=["fake"]).notes


def test_integer_files_get_integers(fake: Fake, tmp_path: Path) -> None:
    sample = ROOT / "samples" / "digits_qat.tm"
    report = tmconvert.to_tflite(sample, tmp_path / "q.tflite", quantized=True, verify_on=["fake"])
    assert "fake runs the whole file, and agrees with the processor" in report.notes


def test_inputs_in_int64_have_the_type_of_the_file(fake: Fake, tmp_path: Path) -> None:
    seen = []
    fake.run = lambda path, inputs, outputs: (  # type: ignore[method-assign]
        seen.extend(inputs.values()) or Fake.run(fake, path, inputs, outputs)
    )
    net, number = torch.nn.Embedding(5, 3), torch.tensor([[1, 4]])
    tmconvert.to_tflite(net, tmp_path / "m.tflite", example_inputs=[number], verify_on=["fake"])
    assert [each.dtype for each in seen] == [np.int32]


def test_operators_that_ran_elsewhere_are_named(fake: Fake, tmp_path: Path) -> None:
    convert(tmp_path / "net.tflite")
    x = np.ones((2, 3), np.float32)
    expected = tmconvert.run(tmp_path / "net.tflite", [x])
    many = tuple(f"OP_{number}" for number in range(8))
    fake.outcome = Outcome(list(expected.values()), elsewhere=many, is_whole=False)
    found = tmconvert.verify(tmp_path / "net.tflite", inputs=[x], on=["fake"])
    names = ", ".join(many[:6])
    assert found.accelerators == (
        f"fake agrees with the processor; on the processor ran: {names}, ... (8 in all)",
    )


@pytest.mark.parametrize(
    ("change", "size"), [(lambda y: y + 1, ""), (lambda y: y * np.nan, "inf"), (lambda y: y[:1], "inf")]
)
def test_no_file_is_written_where_an_accelerator_is_wrong(
    fake: Fake, tmp_path: Path, change: Any, size: str
) -> None:
    fake.change = change  # type: ignore[method-assign]
    with pytest.raises(VerificationError, match=rf"fake computes the output \w+ wrongly.*{size}") as caught:
        convert(tmp_path / "net.tflite", verify_on=["fake"])
    assert caught.value.code == "TM4007"
    assert "--verify-on fake" in caught.value.notes[0][1]
    assert not list(tmp_path.iterdir())


def test_compare_names_the_first_layer_that_differs_on_an_accelerator(fake: Fake, tmp_path: Path) -> None:
    module = torch.nn.Sequential(
        torch.nn.Linear(3, 4), torch.nn.Sigmoid(), torch.nn.Linear(4, 2), torch.nn.Tanh()
    )
    path = tmp_path / "net.tflite"
    tmconvert.to_tflite(module, path, example_inputs=[torch.randn(2, 3)])
    assert tmconvert.compare(path, path, on=["fake"]).ok
    # one layer is wrong: what it computes is the only tensor of this shape in the range of a sigmoid
    fake.change = lambda y: y * 1.1 if y.shape == (2, 4) and 0 < y.min() < y.max() < 1 else y  # type: ignore[method-assign]
    found = tmconvert.compare(path, path, on=["fake"])
    assert found.first is not None and "sigmoid" in found.first.name
    assert "on fake" in str(found)
    fake.outcome = Outcome(refused="no")
    with pytest.raises(VerificationError, match=r"fake does not run .*: no"):
        tmconvert.compare(path, path, on=["fake"])
    with pytest.raises(UsageError, match="a written file as the second model"):
        tmconvert.compare(path, module, on=["fake"], example_inputs=[torch.randn(2, 3)])


def test_an_abort_is_an_error_of_the_file(fake: Fake, tmp_path: Path) -> None:
    convert(tmp_path / "net.tflite")
    fake.outcome = Outcome(ended="its process ended with SIGABRT")
    result = run("verify", tmp_path / "net.tflite", "--on", "fake")
    assert result.status == 1
    assert "TM4007" in result.stderr
    assert "SIGABRT" in result.stderr
    assert "without --on fake" in result.stderr


def test_names_are_checked_before_the_conversion(fake: Fake, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no accelerator 'fakes': did you mean 'fake'"):
        convert(tmp_path / "net.tflite", verify_on=["fakes"])
    with pytest.raises(UsageError, match="webgpu runs files of onnx, not of tflite"):
        convert(tmp_path / "net.tflite", verify_on=["webgpu"])
    with pytest.raises(UsageError, match="omit verify=False"):
        convert(tmp_path / "net.tflite", verify_on=["fake"], verify=False)
    fake.is_there = False
    with pytest.raises(VerificationError, match="fake is not available") as caught:
        convert(tmp_path / "net.tflite", verify_on=["fake"])
    assert caught.value.code == "TM4003"
    assert run("verify", tmp_path / "net.tflite").status == 2


def test_steps_count_for_small_integers_and_indices_are_exact() -> None:
    one = np.array([1], np.int8)
    assert difference_of(one, one + np.int8(1)) == (1, 1)
    many = np.zeros(2000, np.int8)
    few, more = many.copy(), many.copy()
    few[:2] = more[:3] = 9
    assert difference_of(few, many) == (0, 1)
    assert difference_of(more, many) == (9, 1)
    assert difference_of(one > 0, one < 0) == (1, 0.5)
    gap, limit = difference_of(np.array([1]), np.array([2]))
    assert gap > limit
    nan = np.array([np.nan, 1])
    assert difference_of(nan, nan)[0] == 0
    assert difference_of(np.array([1.0, np.nan]), nan)[0] == np.inf


@pytest.mark.parametrize(
    ("script", "end"),
    [
        ("echo oh no >&2; kill -ABRT $$", "its process ended with SIGABRT: oh no"),
        ("exec sleep 60", r"it did not finish within 0\.5 s"),
    ],
)
def test_a_process_that_ends_or_hangs_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, end: str
) -> None:
    convert(tmp_path / "net.tflite")
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)
    monkeypatch.setenv("TMCONVERT_LITERT_GPU_PYTHON", str(python))
    known = registry.known_accelerators()["litert-gpu"]
    monkeypatch.setenv("TMCONVERT_RUNTIME_SECONDS", "0.5")
    outcome = known.run(tmp_path / "net.tflite", {"input": np.ones((2, 3), np.float32)}, ["y"])
    assert re.search(end, outcome.ended)


def rules_of(accelerator: str, path: Path) -> list[str]:
    return [each.partition(":")[0] for each in known_defects(accelerator, path)]


def test_known_defects_are_found_by_shapes(tmp_path: Path) -> None:
    """Conversions write other forms, so that these are files of other converters."""
    for size, found in ((6, ["litert-gpu-top-k"]), (8, [])):
        x, y, rest = (Value(name, np.dtype("float32"), (3, size)) for name in ("x", "y", "rest"))
        count = np.array(size, np.int32)
        rest.dtype = count.dtype
        top = Operator("TOPK_V2", [x, Value("k", count.dtype, (), count)], [y, rest], {}, "top")
        graph = TargetGraph("tflite", 23, "one", [x], [y], [top], ["x"], ["y"])
        path = tmp_path / f"{size}.tflite"
        with path.open("wb") as file:
            write_tflite(graph, file)
        assert rules_of("litert-gpu", path) == found
        assert rules_of("openvino", path) == []


@pytest.mark.parametrize(("runtime", "is_found"), [("2.18", True), ("2.23", False)])
def test_casts_of_quantized_integers_are_known(tmp_path: Path, runtime: str, is_found: bool) -> None:
    """The file of 2.23, with QUANTIZE, agrees on LiteRT's GPU; the other one differs by 107 steps."""
    path = tmp_path / "net.tflite"
    tmconvert.to_tflite(ROOT / "samples/digits_qat.tm", path, quantized=True, runtime=runtime)
    for accelerator in ("litert-gpu", "openvino"):
        assert rules_of(accelerator, path) == [f"{accelerator}-quantized-cast"] * is_found


needs_gpu = pytest.mark.skipif(
    "VK_ICD_FILENAMES" not in os.environ, reason='no Vulkan driver: eval "$(tools/software_gpu FOLDER)"'
)


@needs_gpu
def test_the_gpu_of_litert_runs_a_layer_and_is_caught_where_it_is_wrong(tmp_path: Path) -> None:
    report = convert(tmp_path / "net.tflite", verify_on=["litert-gpu"])
    assert "litert-gpu runs the whole file, and agrees with the processor" in report.notes
    x, y = Value("x", np.dtype("float32"), (1, 3, 4, 8)), Value("y", np.dtype("float32"), (1, 3, 4, 8))
    steep = Operator("LEAKY_RELU", [x], [y], {"alpha": 1.5}, "steep")
    graph = TargetGraph("tflite", 23, "steep", [x], [y], [steep])
    graph.input_names, graph.output_names = ["x"], ["y"]
    with (tmp_path / "steep.tflite").open("wb") as file:
        write_tflite(graph, file)
    with pytest.raises(VerificationError, match="litert-gpu computes the output y wrongly: it differs"):
        tmconvert.verify(tmp_path / "steep.tflite", on=["litert-gpu"])


@needs_gpu
def test_the_gpu_of_litert_names_the_operators_that_it_refuses(tmp_path: Path) -> None:
    class Erased(torch.nn.Module):
        def forward(self, x: Any, at: Any) -> Any:
            return torch.relu(x).index_fill(0, at, 2.0)

    arguments = [torch.randn(4, 8), torch.tensor([1, 2])]
    report = tmconvert.to_tflite(
        Erased(), tmp_path / "a.tflite", example_inputs=arguments, verify_on=["litert-gpu"]
    )
    assert any("on the processor ran" in note or "refuses" in note for note in report.notes)
