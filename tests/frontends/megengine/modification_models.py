"""Makes tests/data/modification in MegEngine's Python: models, and what they compute after edits.

    PYTHON modification_models.py tests/data/modification [FOLDER]

With FOLDER the models are not made, but those of that folder are edited.
Each NAME.npz has the input ``x``, the output ``y`` of the model as it is, and one array for each edit that
MegEngine made on the model; test_modification.py makes the same edits.
"""

import sys
from pathlib import Path

import megengine
import megengine.functional as F
import megengine.module as M
import numpy as np
from megengine.traced_module import trace_module


class Same(M.Module):
    def forward(self, x):
        return x


class Block(M.Module):
    def __init__(self):
        super().__init__()
        self.conv = M.Conv2d(3, 3, 3, padding=1, bias=False)
        self.norm = M.BatchNorm2d(3)
        self.same = Same()

    def forward(self, x):
        return self.same(F.relu(self.norm(self.conv(x))) + 1)


class Nested(M.Module):
    def __init__(self):
        super().__init__()
        self.first = Block()
        self.second = Block()
        self.same = Same()

    def forward(self, x):
        return self.same(self.second(self.first(x)))


class Joined(M.Module):
    def forward(self, a):
        return a, F.concat([a, a])


class Pairs(M.Module):
    def __init__(self):
        super().__init__()
        self.first = Joined()
        self.second = Joined()

    def forward(self, a):
        a, one = self.first(a)
        a, two = self.second(a + 1)
        return a, one + two


class Negated(M.Module):
    def forward(self, x):
        return F.neg(x)


class Doubled(M.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x - 1) * 2


def with_statistics(module, seed):
    """The module in evaluation mode, with other running statistics than zeros and ones."""
    random = np.random.RandomState(seed)
    for each in module.modules():
        if isinstance(each, M.BatchNorm2d):
            each.running_mean._reset(megengine.Tensor(random.randn(1, 3, 1, 1).astype("float32") * 0.1))
            each.running_var._reset(megengine.Tensor(random.rand(1, 3, 1, 1).astype("float32") + 0.5))
    module.eval()
    return module


def relu_of(graph):
    return graph.get_function_by_type(F.relu).as_unique()


def inserted(tm, x):
    out = relu_of(tm.graph).outputs[0]
    with tm.graph.insert_exprs():
        negative = F.neg(out)
    tm.graph.replace_node({out: negative})
    tm.graph.compile()
    return tm(x)


def inserted_module(tm, x):
    out = relu_of(tm.graph).outputs[0]
    tm.negated = Negated()
    with tm.graph.insert_exprs():
        negative = tm.graph.inputs[0].negated(out)
    tm.graph.replace_node({out: negative})
    tm.graph.compile()
    return tm(x)


def deleted(tm, x):
    relu = relu_of(tm.graph)
    tm.graph.replace_node({relu.outputs[0]: relu.inputs[0]})
    tm.graph.compile()
    return tm(x)


def negated_below(tm, x):
    for expr in tm.graph.get_function_by_type(F.relu).as_list():
        out, graph = expr.outputs[0], expr.top_graph
        with graph.insert_exprs():
            negative = F.neg(out)
        graph.replace_node({out: negative})
        graph.compile()
    return tm(x)


def with_another_input(tm, x):
    added = tm.graph.add_input_node(shape=(1, 3, 4, 4), name="data")
    tm.graph.add_output_node(added)
    return tm(x, x + 1)[0]


def traced_again(tm, x):
    return trace_module(Doubled(tm), x)(x)


EDITS = {
    Block: (inserted, inserted_module, deleted, traced_again),
    Nested: (negated_below, with_another_input, traced_again),
    Pairs: (),
}


def main():
    folder = Path(sys.argv[1])
    megengine.random.seed(7)
    x = megengine.Tensor(np.random.RandomState(3).randn(1, 3, 4, 4).astype("float32"))
    for seed, (cls, edits) in enumerate(EDITS.items()):
        path = Path(sys.argv[-1]) / (cls.__name__.lower() + ".tm")
        if len(sys.argv) < 3:
            megengine.save(trace_module(with_statistics(cls(), seed), x), str(path))
        y = megengine.load(str(path))(x)
        arrays = {"x": x.numpy(), "y": (y[1] if isinstance(y, tuple) else y).numpy()}
        for edit in edits:
            arrays[edit.__name__] = edit(megengine.load(str(path)), x).numpy()
        np.savez(str(folder / (path.stem + ".npz")), **arrays)


if __name__ == "__main__":
    main()
