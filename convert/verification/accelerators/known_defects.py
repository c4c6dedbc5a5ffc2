"""Operators that accelerators are known to compute wrongly, as tables of what was measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from tmconvert.targets.registry import target_named
from tmconvert.targets.written_model import WrittenLayer, WrittenModel

Shapes = Sequence[Sequence[int]]
Stored = Sequence[bool]


class Defect(NamedTuple):
    """``applies`` decides by the shapes of an operator's inputs, and which of these are constants."""

    operators: str
    where: str
    applies: Callable[[Shapes, Stored], bool]


def _ranks_top(shapes: Shapes, stored: Stored) -> bool:
    return bool(shapes[0]) and shapes[0][-1] % 4 != 0


def _splits_channels(shapes: Shapes, stored: Stored) -> bool:
    """Whether a convolution has groups whose channels 4 does not divide."""
    channels, (filters, *_, part) = shapes[0][-1], shapes[1]
    return part < channels and (part % 4 != 0 or (filters * part // channels) % 4 != 0)


def _adds_rows(shapes: Shapes, stored: Stored) -> bool:
    return any(
        is_stored and len(shape) in (2, 3) and shape[0] > 1 and len(shape) == max(map(len, shapes))
        for shape, is_stored in zip(shapes, stored, strict=True)
    )


def _broadcasts_batch(shapes: Shapes, stored: Stored) -> bool:
    return len(shapes[1]) > 2 and [*shapes[0][:-2]] != [*shapes[1][:-2]]


# LiteRT 2.3, its WebGPU accelerator on SwiftShader: each was compared as a file of one operator
LITERT_GPU = (
    Defect("TOPK_V2", "over an axis whose size 4 does not divide", _ranks_top),
    Defect("CONV_2D", "with groups whose channels 4 does not divide", _splits_channels),
    Defect("ADD MUL SUB", "with a constant of rank 2 or 3 whose first size exceeds 1", _adds_rows),
    Defect("BATCH_MATMUL", "with a batch that is broadcast", _broadcasts_batch),
    Defect("SOFTMAX", "of rank 1", lambda shapes, stored: len(shapes[0]) == 1),
)
DEFECTS = {"litert-gpu": LITERT_GPU}


def known_defects(accelerator: str, target: str, path: Path) -> list[str]:
    """Returns descriptions of the operators of a file that the accelerator is known to compute wrongly."""
    table = DEFECTS.get(accelerator, ())
    model = target_named(target).written_model(path) if table else WrittenModel(target)
    found = [_described(row, layer, model) for layer in model.layers for row in table]
    return list(dict.fromkeys(filter(None, found)))


def _described(row: Defect, layer: WrittenLayer, model: WrittenModel) -> str:
    """Returns the operator and where it is wrong; empty where the row does not apply, or sizes are open."""
    names = [name for name in layer.inputs if name]
    shapes = [model.tensors.get(name) for name in names]
    if layer.type not in row.operators.split():
        return ""
    fixed = [shape for shape in shapes if shape is not None and all(isinstance(each, int) for each in shape)]
    if len(fixed) != len(shapes) or not row.applies(fixed, [name in model.constants for name in names]):
        return ""
    return f"{layer.type} {row.where}"
