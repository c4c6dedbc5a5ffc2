"""Rewrites the float graph before it is quantized: the stage ``prepare``."""

from __future__ import annotations

from tmconvert.targets.tflite.integer.averages import convolve_averages, fold_averages
from tmconvert.targets.tflite.integer.blocks import decompose_blocks
from tmconvert.targets.tflite.integer.clamps import legalize_clamps
from tmconvert.targets.tflite.integer.gates import quantize_gates
from tmconvert.targets.tflite.integer.products import fuse_biases, multiply_by_constants
from tmconvert.targets.tflite.integer.resizes import decompose_resizes
from tmconvert.targets.tflite.integer.resolve import ResolvedGraph


def prepare(resolved: ResolvedGraph) -> ResolvedGraph:
    """Returns a rewritten copy of the graph, or ``resolved`` itself where nothing is to be rewritten.

    The first rewrites read the QParams of the source alone, the last three those of each tensor. A graph that
    is prepared is not changed again.
    """
    graph = legalize_clamps(multiply_by_constants(fuse_biases(resolved.graph)), resolved.activations)
    graph = quantize_gates(fold_averages(graph), resolved.activations)
    resolved = resolved.replace_graph(graph)
    for rewrite in (convolve_averages, decompose_resizes, decompose_blocks):
        resolved = resolved.replace_graph(rewrite(resolved))
    return resolved
