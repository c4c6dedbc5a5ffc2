"""The text form of models in ATen-style ops."""

from __future__ import annotations

from collections.abc import Mapping

from tmconvert.calibration.module import as_module
from tmconvert.ir import TracedModule
from tmconvert.ir.parser import parse_graph
from tmconvert.ir.text import graph_constants
from tmconvert.ir.verifier import verify_graph
from tmconvert.symbolics.op import Op
from tmconvert.transform.normal_form import normal_form, take_example


def parse_model(text: str, weights: TracedModule, catalogue: Mapping[str, Op]) -> TracedModule:
    """Reads the text form of a model whose weights are those of another one. Raises LoadError TM1101.

    Raises GraphError for a graph with inconsistent types.
    """
    graph = parse_graph(text, graph_constants(normal_form(weights, catalogue)))
    verify_graph(graph, catalogue)
    made = as_module(graph, weights, catalogue)
    take_example(made, weights, keeps_outputs=False)
    return made
