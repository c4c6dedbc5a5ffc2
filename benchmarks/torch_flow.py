"""One entry of the tables ``torch_flows/*.models``: a model, and how people export it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from rows import sections

Example = tuple[torch.nn.Module, tuple[Any, ...], dict[str, Any]]
Axes = Mapping[str, Mapping[int, str]]

# three other sizes by name; a flow may have its own
OTHER_SIZES: dict[str, tuple[int, int, int]] = {
    "batch": (1, 3, 5),
    "sequence": (3, 12, 20),
    "target": (2, 9, 13),
    "past": (3, 12, 8),
    "frames": (30, 64, 75),
    "samples": (6000, 9600, 16000),
    "height": (160, 96, 256),
    "width": (128, 192, 320),
    "nodes": (7, 20, 33),
    "edges": (12, 40, 64),
    "points": (64, 200, 300),
    "time": (1, 5, 2),
}


@dataclass(frozen=True)
class Flow:
    """How a model is exported.

    ``make`` returns the module and its arguments; an import that fails there means an absent package.
    ``axes`` names the sizes that PyTorch keeps open, by the path of the input (``past.0.key``) and the
    axis; a size may be a sum (``past+sequence``). ``lengths`` names the size that each element of an input
    has, by the path of the input. ``sizes`` overrides OTHER_SIZES. ``freeze`` traces with
    ``freeze_control_flow``, where exporters do so; other inputs are then made by ``other``, or by
    shuffling. ``random`` allows operators that draw numbers, for models whose noise is scaled to zero.
    ``tolerance`` is on max|a-b| / max|b|.
    """

    make: Callable[[], Example]
    axes: Axes = field(default_factory=dict)
    sizes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    freeze: bool = False
    random: bool = False
    other: Callable[[Any], Any] | None = None
    tolerance: float = 1e-3
    lengths: Mapping[str, str] = field(default_factory=dict)

    def __call__(self) -> Example:
        return self.make()

    def other_sizes(self) -> list[dict[str, int]]:
        """Returns three sets of sizes, by name."""
        known = {**OTHER_SIZES, **self.sizes}
        return [{name: sizes[number] for name, sizes in known.items()} for number in range(3)]


def flows_of(path: Path) -> dict[str, Flow]:
    """Returns the flows of a file ``*.models``, by name.

    A row is a name and an expression. Other lines are code that runs before. ``SIZES`` has the rows of
    ``torch_flow_sizes.json`` for this file, by name.
    """
    sizes = json.loads(Path(__file__).with_name("torch_flow_sizes.json").read_text())
    names: dict[str, Any] = {"SIZES": _with_tuples(sizes.get(path.stem, {}))}
    lines = sections(path)[""]
    exec("\n".join(line for line in lines if " | " not in line), names)
    return {name: eval(text, names) for name, _, text in (line.partition(" | ") for line in lines) if text}


def _with_tuples(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_tuples(each) for key, each in value.items()}
    return tuple(map(_with_tuples, value)) if isinstance(value, list) else value


def size_of(text: str, sizes: Mapping[str, int]) -> int:
    """Returns the value of a size: a name, or an expression of names such as ``past+sequence``."""
    return int(eval(text, {"__builtins__": {}}, dict(sizes)))
