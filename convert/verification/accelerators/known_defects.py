"""Operators that accelerators are known to compute wrongly, as tables of what was measured."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from tmconvert.symbolics.idioms.tflite import has_odd_groups, is_misread
from tmconvert.targets.written_model import written_model

Shapes = Sequence[Sequence[int]]
PRODUCTS = "CONV_2D DEPTHWISE_CONV_2D FULLY_CONNECTED TRANSPOSE_CONV"
PADS = "PAD PADV2"


class Operands(NamedTuple):
    """The inputs of an operator: their shapes, and which are constants, quantized, or outputs of the file
    that nothing else takes; ``makers`` are the types of the operators that compute them, or empty.
    """

    shapes: Shapes
    stored: Sequence[bool]
    makers: Sequence[str]
    last: Sequence[bool]
    quantized: Sequence[bool]


class Defect(NamedTuple):
    """``applies`` decides by the operands of an operator of one of these types."""

    operators: str
    where: str
    applies: Callable[[Operands], bool]


def _adds_rows(of: Operands) -> bool:
    return any(is_misread(shape, of.shapes) for shape, kept in zip(of.shapes, of.stored, strict=True) if kept)


def _broadcasts_batch(of: Operands) -> bool:
    return len(of.shapes[1]) > 2 and [*of.shapes[0][:-2]] != [*of.shapes[1][:-2]]


def _hides_output(of: Operands) -> bool:
    pairs = zip(of.makers, of.last, of.stored[::-1], of.shapes[::-1], strict=True)
    return any(
        maker in PRODUCTS.split() and is_last and is_stored and math.prod(shape[:-1]) == 1
        for maker, is_last, is_stored, shape in pairs
    )


# They compute with the numbers that integers represent, which CAST does not convert.
CAST = Defect(
    "CAST",
    "of quantized integers (for --runtime 2.23 conversions write QUANTIZE)",
    lambda of: of.quantized[0],
)
# LiteRT 2.3, its WebGPU accelerator on SwiftShader: each was compared as a file of one operator
LITERT_GPU = (
    CAST,
    Defect("TOPK_V2", "over an axis whose size 4 does not divide", lambda of: of.shapes[0][-1] % 4 != 0),
    Defect(
        "CONV_2D", "with groups whose channels 4 does not divide", lambda of: has_odd_groups(*of.shapes[:2])
    ),
    Defect(
        "ADD SUB MUL DIV MAXIMUM MINIMUM SQUARED_DIFFERENCE POW",
        "with a constant of rank 2 or 3 whose first size exceeds 1",
        _adds_rows,
    ),
    Defect("ADD MUL", "of an output that a convolution or FULLY_CONNECTED computes", _hides_output),
    Defect("AVERAGE_POOL_2D", "after PAD", lambda of: of.makers[0] in PADS.split()),
    Defect("BATCH_MATMUL", "with a batch that is broadcast", _broadcasts_batch),
    Defect("SOFTMAX", "of rank 1", lambda of: len(of.shapes[0]) == 1),
)
DEFECTS = {"litert-gpu": LITERT_GPU, "openvino": (CAST,)}


def known_defects(accelerator: str, path: Path) -> list[str]:
    """Returns descriptions of the operators of a file that the accelerator is known to compute wrongly."""
    table = DEFECTS.get(accelerator, ())
    if not table:
        return []
    model = written_model(path)
    makers = {name: layer.type for layer in model.layers for name in layer.outputs}
    uses = Counter(name for layer in model.layers for name in layer.inputs)
    found = []
    for layer in model.layers:
        names = [name for name in layer.inputs if name]
        shapes = [model.tensors.get(name) or () for name in names]
        fixed = [shape for shape in shapes if all(isinstance(each, int) for each in shape)]
        if len(fixed) < len(shapes):
            continue
        of = Operands(
            fixed,
            [name in model.constants for name in names],
            [makers.get(name, "") for name in names],
            [name in model.outputs and uses[name] == 1 for name in names],
            [name in model.quantized for name in names],
        )
        rows = [row for row in table if layer.type in row.operators.split()]
        found += [f"{layer.type} {row.where}" for row in rows if row.applies(of)]
    return list(dict.fromkeys(found))
