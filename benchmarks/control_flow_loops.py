"""Programs with Python loops, one a row, which may be continued.

``control_flow.py --loops`` runs them at many sizes and on other data.

A row of ``control_flow_loops.models`` has a name and statements. One that ends with a colon indents those
after it, ``.`` ends its block, and the last is returned. ``OVER_SIZES`` take one float32 [n, 4, 3], where n
is open, and ``ON_DATA`` one float32 [5, 4]; these end on data. ``BEYOND`` has factors of round t of n, which
differ beyond the example. ``names`` returns the modules that they call.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import torch
from torch import nn

from benchmarks.rows import sections

ROWS = sections(Path(__file__).with_suffix(".models"))


class Step(nn.Module):
    """A recurrent cell, and a head in each round."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.head = nn.GRUCell(3, 5), nn.Linear(5, 2)

    def forward(self, x):
        h, outs = x.new_zeros(4, 5), []
        for t in range(x.shape[0]):
            h = self.cell(x[t], h)
            outs.append(self.head(h))
        return torch.cat(
            [torch.stack(outs), torch.stack(outs), h[None, :, :1].expand(len(outs), 4, 1)], -1
        ), h


def names() -> dict[str, object]:
    """Returns the modules and tables that the rows use."""
    torch.manual_seed(1)
    cells = {"cell": (3, 5), "cell2": (5, 5), "cell4": (4, 4)}
    heads = {"head": (5, 2), "head3": (3, 3), "head7": (4, 7), "head11": (5, 11), "linear": (4, 4)}
    return {
        **{name: nn.GRUCell(*sizes) for name, sizes in cells.items()},
        **{name: nn.Linear(*sizes) for name, sizes in heads.items()},
        "lstm": nn.LSTMCell(3, 5),
        "table3": nn.Embedding(64, 3),
        "words": nn.Embedding(7, 4),
        "step": Step(),
        "SQUARES": torch.arange(10.0) ** 2,
        "FACTORS": [0.5] * 13 + [0.7] + [0.5] * 60,
    }


def programs(rows: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yields the name and the text of each program."""
    for row in rows:
        name, _, body = row.partition(" | ")
        *statements, result = [each.strip() for each in body.split(";")]
        lines, depth = ["def forward(x):"], 1
        for each in statements:
            if each == ".":
                depth -= 1
                continue
            lines.append("    " * depth + each)
            depth += each.endswith(":")
        yield name, "\n".join([*lines, f"    return {result}", ""])


def over_sizes() -> Iterator[tuple[str, str]]:
    yield from programs(ROWS["OVER_SIZES"])
    loop = "s, n = torch.zeros(4, 3), len(x); for t in range(n):; s = s * 0.99 + x[t] * ({}); .; s"
    pairs = (row.split(" | ") for row in ROWS["BEYOND"])
    yield from programs(f"{name} | {loop.format(factor)}" for name, factor in pairs)
