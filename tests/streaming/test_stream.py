"""Step files compute what their offline models do, in the runtimes of the targets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from torch import nn

import tmconvert
from tmconvert.cli import main
from tmconvert.errors import TmconvertError
from tmconvert.inspection.run_file import NHWC_TO_NCHW, FileRunner

from .nets import NETS, Recurrent, Unet

# all chunks of 1 to 16 frames that the strides allow for nets of each kind of layer, a few for the others
EACH_CHUNK = ("wavenet", "attention ahead", "seanet", "lstm", "pools", "istft denoiser")
ROWS = [
    (name, chunk, suffix)
    for suffix in ("onnx", "tflite")
    for name, row in NETS.items()
    for chunk in (range(row[3][0], 17, row[3][0]) if name in EACH_CHUNK else row[3])
]


def traced(module: nn.Module, *shapes: tuple[int, ...], **options: Any) -> tmconvert.TracedModule:
    torch.manual_seed(1)
    for each in module.modules():
        if isinstance(each, (nn.BatchNorm1d, nn.BatchNorm2d)):
            nn.init.normal_(each.running_mean)  # type: ignore[arg-type]
            nn.init.normal_(each.bias)
    return tmconvert.trace(module.eval(), *(torch.randn(shape) for shape in shapes), **options)


@pytest.mark.parametrize(("name", "chunk", "suffix"), ROWS)
def test_joined_steps_are_the_offline_model(name: str, chunk: int, suffix: str, tmp_path: Path) -> None:
    make, shapes, time, chunks, delay = NETS[name]
    torch.manual_seed(0)
    model = traced(make(), *shapes)
    names = [node.name for node in model.graph.inputs[1:]]
    time = [each.replace("input0", names[0]) for each in time]
    report = tmconvert.stream(model, tmp_path / f"step.{suffix}", time=time, chunk=chunk)
    assert report.max_error < 1e-5 and report.chunk == chunk
    if chunk == chunks[0]:
        assert next(iter(report.outputs.values()))[2] == delay


@pytest.mark.parametrize("suffix", ["onnx", "tflite", "tm"])
@pytest.mark.parametrize("name", NETS)
def test_one_file_takes_chunks_of_any_size(name: str, suffix: str, tmp_path: Path) -> None:
    """The proof divides streams into random chunks, from the fewest frames to 16 times as many."""
    make, shapes, time, chunks, delay = NETS[name]
    torch.manual_seed(0)
    model = traced(make(), *shapes)
    first = model.graph.inputs[1].name
    time = [each.replace("input0", first) for each in time]
    report = tmconvert.stream(model, tmp_path / f"step.{suffix}", time=time, chunk="open")
    assert report.is_open and report.max_error < 1e-5 and chunks[0] % report.chunk == 0
    assert next(iter(report.outputs.values()))[2] == delay


@pytest.mark.parametrize("suffix", ["onnx", "tflite"])
@pytest.mark.parametrize("name", NETS)
def test_chunks_of_any_size_take_turns(name: str, suffix: str, tmp_path: Path) -> None:
    """Random splits of a stream into chunks of 1 to 16 frames, each with the step file of its size."""
    make, shapes, time, chunks, _ = NETS[name]
    torch.manual_seed(0)
    model = traced(make(), *shapes)
    names = [node.name for node in model.graph.inputs[1:]]
    time = [each.replace("input0", names[0]) for each in time]
    least = chunks[0]
    sizes = np.random.default_rng(0).choice(np.arange(least, 17, least), 3) if least < 16 else [16]
    reports = {
        int(size): tmconvert.stream(model, tmp_path / f"step{size}.{suffix}", time=time, chunk=int(size))
        for size in {*sizes}
    }
    assert len({str(each.states) for each in reports.values()}) == 1
    made = joined(reports, dict(zip(names, model.example.inputs, strict=True)))
    for array, expected in zip(made.values(), model.example.outputs, strict=True):
        assert_near(array, expected)


def joined(reports: dict[int, Any], arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Returns the outputs of a stream whose chunks are steps of different files."""
    random, least, report = np.random.default_rng(1), min(reports), next(iter(reports.values()))
    runners = {size: FileRunner(each.paths[0]) for size, each in reports.items()}
    first = next(iter(report.inputs))
    total = arrays[first].shape[report.inputs[first][0]]
    state = {
        name: np.zeros(shape, np.int32 if name == "position" else np.float32)
        for name, shape in report.states.items()
    }
    parts: dict[str, list[np.ndarray]] = {name: [] for name in report.outputs}
    done = 0
    while done < total + 40 * least:
        size = int(random.choice([*runners]))
        fed = dict(arrays)
        for name, (axis, frames) in reports[size].inputs.items():
            start = done * frames // size
            padded = np.concatenate([arrays[name], np.zeros_like(arrays[name]).repeat(40, axis)], axis)
            fed[name] = padded.take(range(start, start + frames), axis)
        done += size
        if report.needs_end:
            fed["end"] = np.asarray([total if done >= total else 0], np.int32)
        made = runners[size].run({**fed, **state})
        state = {name: made[f"{name}_next"] for name in state}
        for name, found in parts.items():
            found.append(_in_layout(made[name], runners[size], name))
    found = {}
    for name, (axis, _, delay) in report.outputs.items():
        whole = np.concatenate(parts[name], axis)
        found[name] = whole.take(range(delay, whole.shape[axis]), axis)
    return found


def assert_near(array: np.ndarray, expected: np.ndarray) -> None:
    """The first frames of ``array`` are those that are expected."""
    common = tuple(slice(min(pair)) for pair in zip(array.shape, expected.shape, strict=True))
    assert common == tuple(map(slice, expected.shape))
    assert np.abs(array[common] - expected).max() <= 1e-5 * max(np.abs(expected).max(), 1e-3)


@pytest.mark.parametrize("name", ["tcn", "conformer", "gru", "crn", "unet"])
@pytest.mark.parametrize("chunk", [None, "open"])
def test_states_may_be_variables(name: str, chunk: Any, tmp_path: Path) -> None:
    """A new interpreter starts a stream; three of them are compared with the model."""
    make, shapes, time, _, delay = NETS[name]
    torch.manual_seed(0)
    model = traced(make(), *shapes)
    time = [each.replace("input0", model.graph.inputs[1].name) for each in time]
    path = tmp_path / "step.tflite"
    report = tmconvert.stream(model, path, time=time, chunk=chunk, state_as="variables")
    assert report.has_variables and report.max_error < 1e-5
    assert {each.name for each in FileRunner(path).inputs} <= {*report.inputs, "end"}
    assert next(iter(report.outputs.values()))[2] == delay
    with pytest.raises(TmconvertError, match="only TFLite files have variables"):
        tmconvert.stream(model, tmp_path / "step.onnx", time=time, state_as="variables")


class Encoder(nn.Module):
    """Attention as a transformer encoder, as ``MultiheadAttention`` and in products, without a bound."""

    def __init__(self, mask: torch.Tensor | None) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0)
        self.attention, self.qkv = nn.MultiheadAttention(8, 2, batch_first=True), nn.Linear(8, 24)
        self.mask = mask

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.layer(x, src_mask=self.mask)
        x = x + self.attention(x, x, x, attn_mask=self.mask)[0]
        q, k, v = (each.unflatten(-1, (2, 4)).transpose(1, 2) for each in self.qkv(x).chunk(3, -1))
        scores = q @ k.transpose(-1, -2) / 2
        scores = scores if self.mask is None else scores + self.mask
        return x + (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)


@pytest.mark.parametrize("suffix", ["onnx", "tflite"])
def test_attention_is_limited_to_a_context(suffix: str, tmp_path: Path) -> None:
    """The steps of a model without a bound are those of PyTorch with a mask."""
    distance = torch.arange(24)[:, None] - torch.arange(24)
    torch.manual_seed(0)
    free = Encoder(None)
    bounded = Encoder(torch.zeros(24, 24).masked_fill((distance < 0) | (distance > 4), float("-inf")))
    bounded.load_state_dict(free.state_dict())
    model = traced(free, (1, 24, 8))
    path = tmp_path / f"step.{suffix}"
    with pytest.raises(TmconvertError, match="--context N"):
        tmconvert.stream(model, path, time={"x": 1})
    report = tmconvert.stream(model, path, time={"x": 1}, chunk=3, context=4)
    (made,) = joined({3: report}, {"x": model.example.inputs[0]}).values()
    expected = bounded.eval()(torch.from_numpy(model.example.inputs[0])).detach().numpy()
    assert report.delay == 0
    assert_near(made, expected)


def _in_layout(array: np.ndarray, runner: FileRunner, name: str) -> np.ndarray:
    """Returns an output in the layout of the model."""
    layout = next(each.layout for each in runner.outputs if each.name == name)
    return array.transpose(NHWC_TO_NCHW) if layout == "NHWC" and array.ndim == 4 else array


@pytest.mark.parametrize(
    ("module", "channels", "needs_end"), [(Unet(), 1, True), (Recurrent(nn.GRU), 3, False)]
)
def test_open_lengths_are_compared_too(
    module: nn.Module, channels: int, needs_end: bool, tmp_path: Path
) -> None:
    model = traced(module, (1, channels, 44), dynamic_shapes={"x": {2: "frames"}})
    report = tmconvert.stream(model, tmp_path / "step.onnx")
    assert len(report.lengths) > 1 and report.needs_end == needs_end


class Calls(nn.Module):
    """One call that no step can compute, or that the trace fixes to its length."""

    def __init__(self, call: Any) -> None:
        super().__init__()
        self.call, self.norm = call, nn.GroupNorm(1, 4)

    def forward(self, x: torch.Tensor) -> Any:
        return self.call(self, torch.relu(x))


REFUSED: list[tuple[Any, str]] = [
    (lambda m, x: x.mean(-1, keepdim=True) + x, "aten::mean works along the axis of time"),
    (lambda m, x: x.softmax(2), "aten::softmax works along the axis of time"),
    (lambda m, x: m.norm(x), "aten::group_norm normalizes over the axis of time"),
    (lambda m, x: x.flip(2), "aten::flip works along the axis of time"),
    (lambda m, x: x + torch.arange(12.0) ** 2, "other values for each of its frames"),
    (lambda m, x: x @ x.transpose(1, 2) @ x, "multiplies frames of the stream with each other"),
    (lambda m, x: nn.functional.pad(x, (2, 0), "circular"), "depend on other frames"),
    (lambda m, x: x.sort(2)[0], "aten::sort works along the axis of time"),
    (lambda m, x: x[:, :, -1], "aten::select works along the axis of time"),
    (lambda m, x: torch.fft.rfft(x, dim=2).real, "tm::fft works along the axis of time"),
    (lambda m, x: x.reshape(1, -1), "merges the axis of time"),
    (
        lambda m, x: nn.functional.scaled_dot_product_attention(*[x.transpose(1, 2)] * 3, is_causal=True),
        "all frames before each frame",
    ),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_what_needs_the_whole_stream_is_refused_at_its_line(call: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(TmconvertError, match=message) as caught:
        tmconvert.stream(traced(Calls(call), (1, 4, 12)), tmp_path / "step.onnx")
    assert caught.value.code == "TM2025" and "test_stream.py:" in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_a_wrong_step_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tmconvert.streaming.builder import StepBuilder

    monkeypatch.setattr(StepBuilder, "cleaned", lambda self, x, left, right, value=0.0: x)
    with pytest.raises(TmconvertError, match="from frame 0 on"):
        tmconvert.stream(traced(Unet(), (1, 1, 24)), tmp_path / "step.onnx")
    assert not list(tmp_path.iterdir())


def test_the_command_states_delays_and_states(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    traced(Recurrent(nn.GRU), (1, 3, 24)).save("net.tm")
    made = CliRunner().invoke(main, ["stream", "net.tm", "-o", "step.tm", "--time", "x:2", "--chunk", "4"])
    assert made.exit_code == 0, made.output
    assert "4 frames along axis 1, 2 frames late" in made.output and "state_0 -> state_0_next" in made.output
    step = tmconvert.load("step.tm")
    assert [node.name for node in step.graph.inputs[1:]][:2] == ["x", "state_0"]
    for options, what in (
        (["--chunk", "3", "--time", "x"], "INPUT:AXIS"),
        (["--time", "y:2"], "no input 'y'"),
    ):
        assert what in CliRunner().invoke(main, ["stream", "net.tm", "-o", "step.tm", *options]).output


def test_quantized_sources_are_refused_by_name(tmp_path: Path) -> None:
    model = traced(nn.Conv1d(4, 2, 3), (1, 4, 24))
    data = {model.graph.inputs[1].name: np.random.default_rng(0).standard_normal((2, 4, 24)).astype("f")}
    tmconvert.to_onnx(model, tmp_path / "int8.onnx", quantized=True, calibration=data)
    with pytest.raises(TmconvertError, match=r"TM2025.*of a quantized model") as caught:
        tmconvert.stream(tmp_path / "int8.onnx", tmp_path / "step.onnx")
    assert "the float model" in str(caught.value)
