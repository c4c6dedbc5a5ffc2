"""TFLite files with sizes that the data tells: nothing is found, one, some, all, in one interpreter."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from torch import nn
from torch.nn import functional as F

import tmconvert

from .harness import arrays

SQUARE, IMAGES, WIDE, DEEP = (
    torch.randn(shape) for shape in ((8, 8), (4, 2, 3, 3), (2, 1, 3, 3), (4, 4, 3, 3))
)
KINDS = (OpResolverType.AUTO, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)


def kept(x: torch.Tensor) -> torch.Tensor:
    """Rows of 8."""
    return x[x[:, 0] > 0]


def values(x: torch.Tensor) -> torch.Tensor:
    return x[x > 0]


def images(x: torch.Tensor) -> torch.Tensor:
    """Images of two channels, 4 by 4."""
    return F.pad(kept(x), (0, 24)).reshape(-1, 2, 4, 4)


def of_some(x: torch.Tensor) -> Any:
    """Of what was found."""
    rows = kept(x)
    again = rows[rows[:, 1] > 0]
    return again, again[again[:, 2] > 0], rows[rows[:, 1].argsort()], rows.gather(1, rows.argsort(1))


def put_among_some(x: torch.Tensor) -> Any:
    rows = kept(x) * 1
    chosen = torch.where(rows[:, 1] > 0)[0]
    first, second, third = rows.clone(), rows.clone(), torch.zeros(len(rows), 3)
    first[chosen] = first[chosen] * 2
    second[rows > 0] = second[rows > 0] * 3
    third[chosen] = rows[chosen, :3]
    return first, second, third, third[:, 0].scatter_reduce(0, chosen, rows[chosen, 1], "amax")


def attended(x: torch.Tensor) -> Any:
    rows = kept(x)[None]
    return F.scaled_dot_product_attention(x[None], rows, rows), F.scaled_dot_product_attention(
        rows, rows, rows
    )


FUNCTIONS: dict[str, Callable[[torch.Tensor], Any]] = {
    "places": lambda x: (torch.nonzero(x > 0), torch.where(x > 0), torch.argwhere(x.relu())),
    "chosen": lambda x: (kept(x), values(x), x.masked_select(x > 0), x[x[:, 0] > 0, 1]),
    "unique": lambda x: torch.unique(values(x).round(), return_inverse=True, return_counts=True),
    "unique truth": lambda x: torch.unique(values(x) > 1, return_counts=True),
    "runs": lambda x: torch.unique_consecutive(values(x).round(), return_inverse=True, return_counts=True),
    "chosen again": of_some,
    "padded to all": lambda x: F.pad(kept(x), (1, 0, 0, len(x) - len(kept(x))), value=0.5),
    "padded or cut to three": lambda x: F.pad(kept(x), (0, 0, 3 - len(kept(x)), 0)) + 1,
    "put": lambda x: (
        x.index_copy(0, torch.where(x[:, 0] > 0)[0], kept(x) * 2),
        x.mT.contiguous().index_copy(1, torch.where(x[:, 0] > 0)[0], kept(x).mT * 2),
        x.index_put((x > 0,), x[x > 0] * 2),
        x.masked_scatter(x > 0, x.exp()),
    ),
    "put among some": put_among_some,
    "joined": lambda x: [
        torch.zeros(40).scatter_reduce(0, torch.where(x.flatten() > 0)[0], values(x), reduce)
        for reduce in ("sum", "amax", "prod", "mean")
    ],
    "reduced": lambda x: (kept(x).sum(0), kept(x).prod(0), kept(x).amax(1), kept(x).mean(1), values(x).sum()),
    "any": lambda x: ((kept(x) > 1).any(0), (kept(x) > 1).all(0), kept(x).isnan().any()),
    "softmax": lambda x: (kept(x).softmax(0), kept(x).log_softmax(0), kept(x).softmax(1)),
    "rows by a matrix": lambda x: (
        kept(x) @ SQUARE,
        kept(x) @ x.mT,
        SQUARE @ kept(x).mT,
        kept(x) @ SQUARE[0],
    ),
    "among themselves": lambda x: (lambda y: (y @ y.mT, y.mT @ y, y[:, :, None] @ y[:, None]))(kept(x)),
    "linear": lambda x: F.linear(F.linear(kept(x), SQUARE, SQUARE[0]).relu(), SQUARE),
    "attention": attended,
    "convolutions": lambda x: (
        F.conv2d(F.conv2d(images(x), IMAGES, padding=1).relu(), DEEP, stride=2, padding=1),
        F.conv2d(images(x), WIDE, padding=1, groups=2) + images(x),
    ),
    "pooling": lambda x: (
        F.max_pool2d(images(x), 3, 2, 1),
        F.avg_pool2d(images(x), 2),
        F.adaptive_avg_pool2d(images(x), 1),
    ),
    "masks": lambda x: F.interpolate(
        F.conv_transpose2d(F.conv2d(images(x), IMAGES, padding=1), DEEP[:, :2], stride=2), scale_factor=2.0
    ),
    "how many": lambda x: x + kept(x).shape[0],
    "sorted": lambda x: (values(x).sort()[0], values(x).topk(min(4, values(x).size(0)))[0]),
}


def inputs() -> dict[str, torch.Tensor]:
    some = torch.randn(5, 8)
    none = -some.abs() - 0.1
    one, row = none.clone(), none.clone()
    one[2, 0], row[2] = 1.6, -none[2]
    return {"some": some, "none": none, "one": one, "row": row, "all": -none}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str, tmp_path: Path) -> None:
    function, path, given = FUNCTIONS[name], tmp_path / "net.tflite", inputs()
    with torch.no_grad():
        model = tmconvert.trace(lambda x: function(x), given["some"])
        expected = {key: arrays(function(x)) for key, x in given.items()}
    report = tmconvert.to_tflite(model, path, io_layout="source", verify=False)
    for kind in KINDS:
        for order in (("none",), ("some", "none", "all"), ("one", "row", "none")):
            interpreter = Interpreter(str(path), experimental_op_resolver_type=kind)
            interpreter.allocate_tensors()
            for key in order:
                for _ in range(2):
                    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], given[key].numpy())
                    interpreter.invoke()
                made = interpreter.get_output_details()
                assert len(made) == len(report.outputs) == len(expected[key])
                for described, wanted in zip(made, expected[key], strict=True):
                    assert tuple(described["shape"]) == wanted.shape
                    if wanted.size:
                        actual = interpreter.get_tensor(described["index"])
                        np.testing.assert_allclose(actual, wanted, rtol=1e-4, atol=1e-5)


def test_nothing_is_written_for_sizes_that_are_known(tmp_path: Path) -> None:
    """Numbers, and open sizes, are never 0."""
    path = tmp_path / "net.tflite"
    net = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.MaxPool2d(2), nn.Flatten(2), nn.Softmax(2)).eval()
    model = tmconvert.trace(net, torch.randn(2, 3, 8, 8), dynamic_shapes={"input": {0: "batch"}})
    tmconvert.to_tflite(model, path)
    operators = {each["op_name"] for each in Interpreter(str(path))._get_ops_details()}
    assert not operators & {"PAD", "PADV2", "SLICE"}
