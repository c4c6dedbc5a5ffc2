"""Tests of the ids of expressions and nodes: unique in a model, whichever way its graph was made."""

from __future__ import annotations

import copy

import pytest

import tmconvert

torch = pytest.importorskip("torch")


class Net(torch.nn.Module):
    """Calls one module twice, and has a branch."""

    def __init__(self):
        super().__init__()
        self.block = torch.nn.Sequential(torch.nn.Conv2d(3, 3, 1), torch.nn.ReLU())

    def forward(self, x):
        y = self.block(self.block(x))
        return torch.cond(y.sum() > 0, lambda y: y.relu() * 2, lambda y: y.sigmoid() + 1, (y,))


WAYS = {
    "trace": lambda tm, folder: tm,
    "flatten": lambda tm, folder: tm.flatten(),
    "deepcopy": lambda tm, folder: copy.deepcopy(tm),
    "transform": lambda tm, folder: tmconvert.Transformer(tm).transform(),
    "normalize": lambda tm, folder: tmconvert.normalize(tm),
    "optimize": lambda tm, folder: tmconvert.optimize(tm),
    "decompose": lambda tm, folder: tmconvert.decompose(
        tm, {"aten::relu": lambda g, x: g.call("aten::clamp", x, 0.0)}
    ),
    "parse": lambda tm, folder: tmconvert.parse_graph(tmconvert.normalize(tm).graph.to_text(), tm),
    "split": lambda tm, folder: tmconvert.split_module(tm, lambda node: node.name.startswith("cond")),
    "load": lambda tm, folder: loaded(tmconvert.normalize(tm), folder),
    "onnx": lambda tm, folder: written(tm, folder),
}


def loaded(tm, folder):
    tm.save(folder / "net.tm")
    return tmconvert.load(folder / "net.tm")


def written(tm, folder):
    tmconvert.to_onnx(tm, folder / "net.onnx", verify=False)
    return tmconvert.load(folder / "net.onnx")


@pytest.mark.parametrize("way", WAYS)
def test_every_way_a_graph_is_made_numbers_its_expressions_and_nodes(way, tmp_path):
    tm = WAYS[way](tmconvert.trace(Net().eval(), torch.ones(1, 3, 4, 4)), tmp_path)
    for graph in {expr.graph: None for expr in tm.graph.exprs() if expr.graph.is_source()}:
        with graph.insert_exprs() as g:
            g.constant(1.0)
    for found in (tm.graph.exprs(), tm.graph.nodes()):
        assert list(found.as_dict().values()) == found.as_list()
    for expr in tm.graph.exprs():
        assert tm.graph.get_expr_by_id(expr.id).as_unique() is expr


def test_a_pass_finds_expressions_by_their_ids():
    def check(graph):
        assert list(graph.exprs().as_dict().values()) == graph.exprs().as_list()

    tmconvert.optimize(tmconvert.trace(Net().eval(), torch.ones(1, 3, 4, 4)), [check])
