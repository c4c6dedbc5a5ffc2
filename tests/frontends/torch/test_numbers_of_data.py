"""Sizes that the code of a module reads from tensors, which differ from run to run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
onnxruntime = pytest.importorskip("onnxruntime")

import torch.nn.functional as F  # noqa: E402

import tmconvert  # noqa: E402
from tests.frontends.torch.harness import check  # noqa: E402
from tmconvert.errors import UnsupportedError  # noqa: E402

ROWS = torch.arange(24.0).reshape(6, 4) / 7 - 1
GROUPS, OTHERS = torch.tensor([0, 0, 1, 1, 2, 2]), torch.tensor([0, 1, 1, 1, 1, 3])
LENGTHS, SHORTER = torch.tensor([3, 5]), torch.tensor([2, 4])
SIGNAL = torch.arange(36.0).reshape(2, 3, 6) / 9 - 2
IMAGE = torch.arange(48.0).reshape(1, 3, 4, 4) / 9


def pooled(x: torch.Tensor, batch: torch.Tensor) -> torch.Tensor:
    groups = int(batch.max()) + 1
    return torch.zeros(groups, x.shape[1]).index_add_(0, batch, x)


def scattered(x: torch.Tensor, batch: torch.Tensor) -> torch.Tensor:
    groups = int(batch.max().item() + 1)
    return x.new_zeros(groups, 4).scatter_add_(0, batch.view(-1, 1).expand_as(x), x)


def counted(lengths: torch.Tensor) -> torch.Tensor:
    most = lengths.max()
    return torch.arange(most).expand(lengths.shape[0], most) >= lengths.unsqueeze(1)


def conformer_mask(lengths: torch.Tensor) -> torch.Tensor:
    batch, most = lengths.shape[0], int(torch.max(lengths).item())
    steps = torch.arange(most, device=lengths.device, dtype=lengths.dtype).expand(batch, most)
    return steps >= lengths.unsqueeze(1)


def zeros_of_data(x: torch.Tensor, batch: torch.Tensor) -> torch.Tensor:
    return torch.zeros(batch.max() + 1, 3) + x.sum()


def parts(x: torch.Tensor, ends: torch.Tensor) -> list[torch.Tensor]:
    lengths = (ends[1:] - ends[:-1]).tolist()
    return [part.mean(0) for part in torch.split(x, lengths)]


def resized(x: torch.Tensor, size: torch.Tensor) -> torch.Tensor:
    height, width = size[0]
    return F.interpolate(x, size=(int(height), int(width)), mode="bilinear")


def resized_list(x: torch.Tensor, size: torch.Tensor) -> torch.Tensor:
    height, width = size[0].tolist()
    return F.interpolate(x, size=(height, width), mode="bilinear")


def sliced(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    return x[:, :, : n.item()].sum((2, 3))


def padded(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    return F.pad(x, (0, 0, 0, int(n)))


def durations(x: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    most = torch.clamp_min(counts.sum(), 1).long()
    steps = torch.arange(most.max())
    paths = (steps.unsqueeze(0) < counts.cumsum(-1).view(-1, 1)).to(x.dtype)
    paths = paths - F.pad(paths, (0, 0, 1, 0))[:-1]
    return F.conv1d(x @ paths, torch.ones(2, 3, 3), padding=1)


def repeated(x: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    return F.conv1d(x.repeat_interleave(counts, 2), torch.ones(2, 3, 3), padding=1)


def grids(x: torch.Tensor, sizes: torch.Tensor) -> torch.Tensor:
    rows = [torch.arange(h).unsqueeze(1).expand(-1, w).flatten().repeat(t) for t, h, w in sizes]
    return torch.cat(rows, 0)


def masked_twice(x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    for _ in range(2):  # the second mask is computed from a size that the first one may have changed
        ends = lengths + (x.shape[1] - torch.max(lengths).int())
        most = int(torch.max(ends).item())
        x = x.masked_fill(torch.arange(most).expand(len(ends), most) >= ends.unsqueeze(1), -1.0)
    return x


COUNTS, MORE = torch.tensor([1, 2, 1, 3, 1, 1]), torch.tensor([1, 1, 1, 4, 1, 2])
CASES: dict[Callable[..., Any], tuple[tuple[Any, ...], tuple[Any, ...]]] = {
    pooled: ((ROWS, GROUPS), (ROWS, OTHERS)),
    scattered: ((ROWS, GROUPS), (ROWS, OTHERS)),
    counted: ((LENGTHS,), (SHORTER,)),
    conformer_mask: ((LENGTHS,), (SHORTER,)),
    masked_twice: ((SIGNAL[:, 0], LENGTHS), (SIGNAL[:, 1], SHORTER)),
    zeros_of_data: ((ROWS, GROUPS), (ROWS, OTHERS)),
    parts: ((ROWS, torch.tensor([0, 2, 6])), (ROWS, torch.tensor([0, 5, 6]))),
    resized: ((IMAGE, torch.tensor([[5, 6]])), (IMAGE, torch.tensor([[3, 8]]))),
    resized_list: ((IMAGE, torch.tensor([[5, 6]])), (IMAGE, torch.tensor([[3, 8]]))),
    sliced: ((IMAGE, torch.tensor(3)), (IMAGE, torch.tensor(2))),
    padded: ((ROWS, torch.tensor(3)), (ROWS, torch.tensor(5))),
    durations: ((SIGNAL, COUNTS), (SIGNAL, MORE)),
    repeated: ((SIGNAL, COUNTS), (SIGNAL, MORE)),
    grids: ((ROWS, torch.tensor([[1, 2, 2], [1, 4, 2]])), (ROWS, torch.tensor([[2, 2, 2], [1, 1, 2]]))),
}


@pytest.mark.parametrize("function", CASES, ids=lambda function: function.__name__)
def test_a_size_of_the_data_is_computed_in_the_file(function: Callable[..., Any]) -> None:
    inputs, second = CASES[function]
    check(function, *inputs, second=second, tflite=True)


def decided(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    if n.item() == 3:
        return x.sin()
    return x * 2 if int(n) > 4 else x.cos()


def until_the_end_token(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    tokens = []
    for _ in range(6):
        x = torch.tanh(x @ w)
        tokens.append(x.argmax())
        if tokens[-1].item() == 2:
            break
    return torch.stack(tokens)


@pytest.mark.parametrize("number", (3, 4, 9))
def test_comparisons_of_integers_are_decisions(number: int) -> None:
    check(decided, ROWS, torch.tensor(4), second=(ROWS, torch.tensor(number)), tflite=True)


@pytest.mark.slow
def test_an_end_token_ends_the_loop() -> None:
    torch.manual_seed(0)
    w, starts = torch.randn(5, 5), torch.randn(8, 5)
    lengths = {len(until_the_end_token(x, w)): x for x in starts}
    assert lengths.keys() >= {2, 6}
    for x in lengths[2], lengths[6]:
        check(until_the_end_token, lengths[4], w, second=(x, w), opsets=(17,))


def test_the_file_is_verified_at_the_example(tmp_path: Path) -> None:
    report = tmconvert.to_onnx(pooled, tmp_path / "m.onnx", example_inputs=(ROWS, GROUPS))
    assert report.verified
    report = tmconvert.to_onnx(counted, tmp_path / "m.onnx", example_inputs=(LENGTHS,))
    assert report.verified  # the output depends on the input by its size


def looped(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    for _ in range(n.item()):
        x = x * 2
    return x


def looped_by_int(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    for _ in range(int(n)):
        x = x * 2
    return x


def chosen(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    return x * [1.0, 2.0, 3.0, 4.0][n.item()]


def both(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    count = n.item()
    for _ in range(count):
        x = x * 2
    return x[:count]


@pytest.mark.parametrize("function", [looped, looped_by_int, chosen, both], ids=lambda each: each.__name__)
def test_numbers_that_python_counts_with_are_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(UnsupportedError, match="TM2011") as caught:
        tmconvert.trace(function, ROWS, torch.tensor(2))
    assert "test_numbers_of_data.py" in str(caught.value)
    traced = tmconvert.trace(function, ROWS, torch.tensor(2), freeze_control_flow=True)
    assert "decided by the example" in traced.notes[0]


def test_int_stays_that_of_python_in_the_file() -> None:
    tmconvert.trace(pooled, ROWS, GROUPS)
    assert "int" not in globals()
    assert isinstance(3, int)


def test_messages_say_what_names_of_sizes_are(tmp_path: Path) -> None:
    def joined(x: torch.Tensor, size: torch.Tensor) -> torch.Tensor:
        height, width = size.tolist()
        return x[: height * width].reshape(height, width, -1)

    with pytest.raises(UnsupportedError, match="found_1") as caught:
        tmconvert.to_onnx(joined, tmp_path / "m.onnx", example_inputs=(ROWS, torch.tensor([2, 3])))
    assert "sizes that only the data tells" in str(caught.value)


def padded_rows(x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    mask = torch.arange(int(lengths.max())) >= lengths.unsqueeze(1)
    if mask.shape != x.shape:
        raise ValueError("the longest row is as long as the axis")
    return x.masked_fill(mask, 0.5) * 2


@pytest.mark.slow
def test_lengths_follow_an_open_size(tmp_path: Path) -> None:
    axes = {"x": {0: "batch", 1: "sequence"}, "lengths": {0: "batch"}}
    given = {"example_inputs": (ROWS, torch.tensor([4, 4, 2, 4, 1, 4])), "dynamic_shapes": axes}
    report = tmconvert.to_onnx(padded_rows, tmp_path / "m.onnx", accept_range=True, **given)
    assert not [note for note in report.notes if "is specialized" in note]
    x, lengths = torch.arange(21.0).reshape(3, 7), torch.tensor([7, 2, 5])
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
    found = session.run(None, {"x": x.numpy(), "lengths": lengths.numpy()})[0]
    assert (found == padded_rows(x, lengths).numpy()).all()
