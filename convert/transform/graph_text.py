"""The text form of models in ATen-style ops."""

from __future__ import annotations

from tmconvert.calibration.module import as_module
from tmconvert.frontends.aten.vocabulary import VOCABULARY
from tmconvert.ir import TracedModule
from tmconvert.ir.parser import parse_graph
from tmconvert.ir.text import graph_constants
from tmconvert.ir.types import NamedArrays
from tmconvert.ir.verifier import verify_graph
from tmconvert.symbolics.op import Ops
from tmconvert.transform.normal_form import normal_form, take_example

TEXT = "text"  # the file of lines that have no location


def parse_model(text: str, weights: TracedModule | NamedArrays | None, catalogue: Ops) -> TracedModule:
    """Reads the text form of a model whose weights are those of another one, or arrays by digest.

    Raises LoadError TM1101, GraphError for a graph with inconsistent types.
    """
    if isinstance(weights, TracedModule):
        source, constants = weights, graph_constants(normal_form(weights, catalogue))
        graph = parse_graph(text, constants, TEXT)
    else:
        graph = parse_graph(text, weights, TEXT)
        source = TracedModule(graph.name, graph.name, vocabulary=VOCABULARY)
    verify_graph(graph, catalogue)
    made = as_module(graph, source, catalogue)
    take_example(made, source, keeps_outputs=False)
    return made
