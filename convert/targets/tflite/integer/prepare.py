"""Rewrites the float graph before quantization."""

from __future__ import annotations

from tmconvert.lowering.target_graph import TargetGraph
from tmconvert.targets.options import IntegerType
from tmconvert.targets.tflite.integer.averages import averages_in_products, windows_in_products
from tmconvert.targets.tflite.integer.blocks import blocks_in_views
from tmconvert.targets.tflite.integer.clamps import clamps_in_integers
from tmconvert.targets.tflite.integer.gates import clamped_gates
from tmconvert.targets.tflite.integer.products import constant_products
from tmconvert.targets.tflite.integer.resizes import resizes_in_products


def prepared(graph: TargetGraph, kind: IntegerType, infers: bool) -> TargetGraph:
    """Returns a rewritten copy of ``graph``; idempotent. The other arguments are those of ``in_integers``."""
    graph = clamps_in_integers(constant_products(graph), kind)
    graph = averages_in_products(graph)
    graph = clamped_gates(graph, kind)
    graph = windows_in_products(graph, kind, infers)
    return blocks_in_views(resizes_in_products(graph, kind, infers), kind, infers)
