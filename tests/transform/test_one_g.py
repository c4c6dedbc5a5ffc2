"""The ``g`` of decompositions, replacements and insertions: operators, numbers, unknown ops."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tmconvert
from tmconvert.errors import UsageError

X = torch.linspace(-3, 3, 8).reshape(2, 4)

BODIES = {
    "operators": lambda g, x: (1 - x) * 2 / 4 + x**2,
    "numbers on both sides": lambda g, x: g.call("aten::sub", 1, g.call("aten::mul", x, 2)),
    "methods and indices": lambda g, x: x.sigmoid() * x[0] - abs(-x),
    "functions of torch": lambda g, x: torch.relu(x) + g.constant(2.0),
    "comparisons": lambda g, x: g.call("aten::where", x > 0, x, 0.1 * x),
}


def expected(body):
    class Calls:
        def call(self, op, *args):
            name = op.removeprefix("aten::")
            return getattr(torch, name)(*(torch.tensor(a) if isinstance(a, int) else a for a in args))

        def constant(self, value):
            return torch.tensor(value)

    return body(Calls(), X).numpy()


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_g_is_the_same_in_decompositions_replacements_and_insertions(body):
    tm = tmconvert.trace(lambda x: torch.nn.functional.silu(x), X)
    decomposed = tmconvert.decompose(tm, {"aten::silu": body})
    replaced = tmconvert.trace(lambda x: torch.nn.functional.silu(x), X)
    assert tmconvert.replace_pattern(replaced, lambda g, x: g.call("aten::silu", x), body)
    inserted = tmconvert.trace(lambda x: torch.nn.functional.silu(x), X)
    with inserted.graph.insert_exprs() as g:
        made = body(g, inserted.graph.inputs[1])
    inserted.graph.reset_outputs(made)
    for model in (decomposed, replaced, inserted):
        np.testing.assert_allclose(model(X.numpy()), expected(body), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["aten::silo", "aten::Silu"])
def test_an_unknown_op_is_named_with_the_most_similar(name):
    tm = tmconvert.trace(lambda x: torch.relu(x), X)

    def body(g, x):
        return g.call(name, x)

    def relu(g, x):
        return g.call("aten::relu", x)

    def insert():
        with tm.graph.insert_exprs() as g:
            body(g, tm.graph.inputs[1])

    for act in (
        lambda: tmconvert.decompose(tm, {"aten::relu": body}),
        lambda: tmconvert.replace_pattern(tm, relu, body),
        lambda: tmconvert.replace_pattern(tm, body, relu),
        insert,
    ):
        with pytest.raises(UsageError, match=r"TM60.*did you mean 'aten::silu'"):
            act()


def test_a_fraction_is_no_constant_among_integers():
    tm = tmconvert.trace(lambda x: torch.neg(x), torch.arange(4))
    with pytest.raises(UsageError, match=r"TM6052.*0\.5 is not a value of int64"):
        tmconvert.decompose(tm, {"aten::neg": lambda g, x: g.call("aten::mul", x, 0.5)})


def test_patterns_have_operators():
    tm = tmconvert.trace(lambda x: 1 - torch.relu(x) * 2, X)
    found = tmconvert.replace_pattern(tm, lambda g, x: 1 - g.call("aten::relu", x) * 2, lambda g, x: x + 3)
    assert len(found) == 1
    np.testing.assert_allclose(tm(X.numpy()), X.numpy() + 3)


def test_a_module_is_counted_once():
    class Twice(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = torch.nn.Conv2d(3, 3, 1)

        def forward(self, x):
            return self.conv(self.conv(x))

    graph = tmconvert.trace(Twice().eval(), torch.ones(1, 3, 2, 2)).graph
    assert graph.get_module_by_type(torch.nn.Conv2d).as_unique().name == "conv"
