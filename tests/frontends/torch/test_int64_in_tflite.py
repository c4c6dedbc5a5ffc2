"""int64 that becomes int32 in TFLite files, and what must not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import tmconvert  # noqa: E402
from tests.cli.runner import run  # noqa: E402
from tmconvert.errors import VerificationError  # noqa: E402
from tmconvert.targets.tflite.runtime import LiteRtRuntime  # noqa: E402

TABLE = torch.linspace(-1, 1, 400).reshape(50, 8)
IDS = torch.tensor([[3, 1, 0, 7], [1, 1, 20, 40]])
X = torch.tensor([[0.5, 2.0, -1.0], [3.0, 0.0, 1.0]])
MOST, LEAST = 2**31 - 1, -(2**31)
EXTREMES = torch.tensor([[0, 5, MOST, LEAST]])


def embedded(index: Any) -> Any:
    return torch.nn.functional.embedding(index, TABLE)


class Calls(torch.nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


def roberta_positions(ids: Any) -> Any:
    mask = ids.ne(1).int()
    return torch.cumsum(mask, dim=1).type_as(mask).long() * mask + 1


# the function, its inputs, and the types of the file's inputs and outputs
CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...], str, str]] = {
    "an index": (embedded, (IDS,), "int32", "float32"),
    "an index that comes out": (lambda i: (embedded(i), i), (IDS,), "int32", "float32 int32"),
    "a remainder": (lambda i: embedded(i % 50), (IDS * 2**40,), "int64", "float32"),
    "a part, and a sum": (lambda i: embedded(i[:, 1:3] + 2), (IDS,), "int32", "float32"),
    "a mask": (lambda i, m: embedded(i) * (1 - m.float())[..., None], (IDS, IDS), "int32 int32", "float32"),
    "positions": (lambda i: embedded(roberta_positions(i)), (IDS,), "int32", "float32"),
    "a sum that comes out": (lambda i: i.sum(-1) - 1, (EXTREMES,), "int64", "int64"),
    "moved": (lambda i: i.flip(0), (EXTREMES,), "int64", "int64"),
    "compared": (lambda i: i > 3, (EXTREMES,), "int32", "bool"),
    "compared with what int32 has not": (lambda i: (i < 2**40) & (i > 0), (EXTREMES,), "int32", "bool"),
    "a product beyond int32": (lambda i: i * 3 > 2**31, (EXTREMES,), "int32", "bool"),
    "a difference beyond int32": (lambda i: (i - 1).float(), (EXTREMES,), "int32", "float32"),
    "a sum beyond int32": (lambda i: i.sum(-1).float(), (EXTREMES.repeat(1, 3),), "int32", "float32"),
    "the opposite of the least": (lambda i: (-i).abs() > 0, (EXTREMES,), "int32", "bool"),
    "argmax": (lambda x: x.argmax(-1), (X,), "float32", "int32"),
    "argmax twice": (lambda x: (x.argmax(-1), x.argmax(-1)), (X,), "float32", "int32 int32"),
    "argmax and a product": (lambda x: x.argmax(-1) * 2**30, (X,), "float32", "int64"),
    "argmax and positions": (lambda x: x.argmax(-1) + torch.arange(2), (X,), "float32", "int32"),
    "top k": (lambda x: x.topk(2), (X,), "float32", "float32 int32"),
    "one hot": (lambda i: torch.nn.functional.one_hot(i, 50), (IDS,), "int32", "int32"),
    "gather": (lambda x, i: x.gather(1, i), (X, torch.tensor([[0, 2], [1, 1]])), "float32 int32", "float32"),
    "from the end": (lambda x, i: x[:, i], (X, torch.tensor([-1, 0])), "float32 int32", "float32"),
    "of a float": (lambda x: (x * 1e10).long(), (X,), "float32", "int64"),
    "a constant": (lambda x: (x, torch.tensor([2**40, 1])), (X,), "float32", "float32 int64"),
    "chosen": (lambda i: embedded(torch.where(i > 9, i, i * 0)), (IDS,), "int32", "float32"),
}


def converted(name: str, path: Path, **options: Any) -> Any:
    function, inputs, _, _ = CASES[name]
    return tmconvert.to_tflite(Calls(function).eval(), path, example_inputs=inputs, **options)


@pytest.mark.parametrize("name", CASES)
def test_types_and_numbers(name: str, tmp_path: Path) -> None:
    _, inputs, taken, given = CASES[name]
    report = converted(name, tmp_path / "o.tflite")
    assert report.verified
    assert report.max_error is not None
    assert report.max_error < 1e-6
    assert " ".join(each["dtype"] for each in report.inputs) == taken
    assert " ".join(each["dtype"] for each in report.outputs) == given
    wide = sum(each.dtype == torch.int64 for each in inputs)
    assert any("int64 as int32: input" in note for note in report.notes) == (wide > taken.count("int64"))


@pytest.mark.parametrize("name", ["an index that comes out", "argmax", "a part, and a sum"])
def test_as_wide_as_the_source_where_asked(name: str, tmp_path: Path) -> None:
    report = converted(name, tmp_path / "o.tflite", keep_int64=True)
    assert not report.notes
    dtypes = [each["dtype"] for each in (*report.inputs, *report.outputs)]
    assert "int64" in dtypes
    assert "int32" not in dtypes


def test_the_note_and_the_option(tmp_path: Path) -> None:
    model = tmp_path / "m.tm"
    module = tmconvert.trace(Calls(lambda i: (embedded(i + 1), i)).eval(), IDS)
    module.save(model)
    outcome = run("tflite", model, tmp_path / "a.tflite")
    assert "int64 as int32: input" in outcome.stderr + outcome.stdout
    kept = run("tflite", model, tmp_path / "b.tflite", "--keep-int64")
    assert kept.status == outcome.status == 0
    assert "int64 as int32" not in kept.stderr + kept.stdout
    for file in ("a.tflite", "b.tflite"):
        tmconvert.verify(model, tmp_path / file)


def test_numbers_that_the_file_does_not_take(tmp_path: Path) -> None:
    path = tmp_path / "o.tflite"
    output = converted("compared", path).outputs[0]["name"]
    with pytest.raises(VerificationError, match="values that exceed int32"):
        LiteRtRuntime().run([path], {"args": np.array([[2**31, 0, 0, 0]])}, [output])


def test_open_sizes(tmp_path: Path) -> None:
    function = Calls(lambda ids: embedded(roberta_positions(ids)))
    report = tmconvert.to_tflite(
        function.eval(),
        tmp_path / "o.tflite",
        example_inputs=(IDS,),
        dynamic_shapes={"args": {1: "length"}},
    )
    assert report.verified
    assert (report.inputs[0]["dtype"], report.inputs[0]["shape"]) == ("int32", [2, "length"])


def test_loops_keep_what_they_carry(tmp_path: Path) -> None:
    """The graphs of a WHILE take int64 as they did; a CAST stands before it."""

    def function(ids: Any, x: Any) -> Any:
        def step(carry: Any, row: Any) -> Any:
            return carry + 1, row * carry

        from torch._higher_order_ops.scan import scan

        last, rows = scan(step, ids.sum() * 0 + x.argmax(), x)
        return last, rows

    report = tmconvert.to_tflite(
        Calls(function).eval(), tmp_path / "o.tflite", example_inputs=(IDS, torch.ones(20, 3))
    )
    assert report.verified
