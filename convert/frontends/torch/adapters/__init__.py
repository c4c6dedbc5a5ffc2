"""Adapters: torch's functions, tensor methods and ATen ops in aten-style ops.

An adapter is ``name(g, *arguments)`` with ATen's parameter names and defaults. ``ATEN`` has them by the name
of the op, for the function and the method alike; ``FUNCTIONS`` (by qualified name) and ``METHODS`` have what
differs: functions that torch itself writes in Python, methods that take their sizes one by one.
"""

from __future__ import annotations

from ...table import Table
from . import (
    activations,
    arithmetic,
    attention,
    bins,
    complex,
    control_flow,
    convolutions,
    counting,
    creation,
    ctc,
    detection,
    factors,
    fourier,
    images,
    indexing,
    instances,
    least_squares,
    linear_algebra,
    logic,
    lookup,
    losses,
    normalization,
    norms,
    order,
    parts,
    picking,
    pooling,
    products,
    randomness,
    recurrent,
    reductions,
    shapes,
    sizes,
    types,
    unary,
    writing,
)

_FAMILIES = (
    *(arithmetic, logic, reductions, order, products, linear_algebra, factors, norms, losses),
    *(ctc, sizes, types, unary),
    *(shapes, parts, indexing, picking, counting, bins, creation, writing, randomness),
    *(complex, fourier, control_flow, least_squares),
    *(convolutions, pooling, normalization, activations, lookup, images, attention, recurrent),
    *(detection, instances),
)


def _merged(kind: str) -> Table:
    return Table.merged(*(getattr(family, kind) for family in _FAMILIES if hasattr(family, kind)))


ATEN = _merged("ATEN")
FUNCTIONS = _merged("FUNCTIONS")
METHODS = _merged("METHODS")
# of calls that are given complex numbers
COMPLEX = _merged("COMPLEX")
