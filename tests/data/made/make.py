"""Writes the small models of this folder. Runs with MegEngine 1.13 (Python 3.8), not with tmconvert:

    python make.py FOLDER

Each NAME.tm has a NAME.npz beside it: in0, in1, ... and out0, out1, ... as MegEngine computed them,
and a NAME.txt: the graph as MegEngine prints it, and the flattened graph.
"""

import sys
from pathlib import Path

import megengine as mge
import megengine.functional as F
import megengine.module as M
import numpy as np
from megengine.traced_module import trace_module
from megengine.traced_module.pytree import TreeDef

# MegEngine 1.13 sorts the keys of dicts that are set on modules, and has no order of TreeDefs: without
# one, a module that is called in several ways cannot be traced. 1.7 could.
TreeDef.__lt__ = lambda self, other: str(self) < str(other)


class Scale(M.Module):
    """Called with one tensor, two tensors, keywords and constants: a graph for each structure."""

    def __init__(self, factor):
        super().__init__()
        self.factor = mge.Parameter(np.array([factor], "float32"))

    def forward(self, x, other=None, mode="plain"):
        y = x * self.factor
        if other is not None:
            y = y - other
        return F.relu(y) if mode == "relu" else y


class SeveralGraphs(M.Module):
    def __init__(self):
        super().__init__()
        self.scale = Scale(1.5)

    def forward(self, x):
        a = self.scale(x)
        b = self.scale(x, a)
        c = self.scale(b, mode="relu")
        return self.scale(other=c, x=a, mode="relu") + self.scale(a)


class Keywords(M.Module):
    """Keyword arguments in another order than the parameters, a tuple and a dict of tensors."""

    def __init__(self):
        super().__init__()
        self.mix = Mix()

    def forward(self, x, y):
        out = self.mix(z=x, a=y, pair=(x, y), table={"second": y, "first": x})
        return {"sum": out[0], "parts": [out[1]["b"], out[1]["a"]]}


class Mix(M.Module):
    def forward(self, a, z, pair, table):
        s = a - 2 * z + pair[0] * 3 - pair[1] * 5
        return s, {"a": table["first"] * 7, "b": table["second"] + a}


class Nested(M.Module):
    """A module shared by two holders, a list of modules, a module called twice."""

    def __init__(self):
        super().__init__()
        shared = M.Conv2d(2, 2, 3, padding=1)
        self.left = Holder(shared)
        self.right = Holder(shared)
        self.blocks = [Holder(M.Conv2d(2, 2, 1)) for _ in range(2)]

    def forward(self, x):
        x = self.left(x) + self.right(x)
        for block in self.blocks:
            x = block(x)
        return self.left(x), x


class Holder(M.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return F.relu(self.inner(x))


class Empty(M.Module):
    """Returns an argument as it is, and an argument twice."""

    def __init__(self):
        super().__init__()
        self.swap = Swap()

    def forward(self, x, y):
        a, b = self.swap(x, y)
        return a, b, a - y


class Swap(M.Module):
    def forward(self, x, y):
        return y, x


def arrays(seed, *shapes):
    rng = np.random.RandomState(seed)
    return [rng.standard_normal(shape).astype("float32") for shape in shapes]


MODELS = {
    "several_graphs": (SeveralGraphs, arrays(1, (2, 3))),
    "keywords": (Keywords, arrays(2, (2, 3), (2, 3))),
    "nested_shared": (Nested, arrays(3, (1, 2, 5, 7))),
    "passes_through": (Empty, arrays(4, (2, 3), (2, 3))),
}


def flattened(value):
    """Leaves of a result; a dict with its keys sorted, as MegEngine flattens it."""
    if isinstance(value, dict):
        return [leaf for key in sorted(value) for leaf in flattened(value[key])]
    if isinstance(value, (tuple, list)):
        return [leaf for item in value for leaf in flattened(item)]
    return [value]


def make(folder, name):
    mge.random.seed(7)
    build, inputs = MODELS[name]
    module = build()
    module.eval()
    rng = np.random.RandomState(5)
    for parameter in module.parameters():
        parameter[...] = mge.Tensor(rng.standard_normal(parameter.shape).astype("float32"))
    tensors = [mge.Tensor(array) for array in inputs]
    traced = trace_module(module, *tensors)
    path = str(folder / (name + ".tm"))
    mge.save(traced, path)
    loaded = mge.load(path)
    outputs = [leaf.numpy() for leaf in flattened(loaded(*tensors))]
    named = {f"in{i}": array for i, array in enumerate(inputs)}
    named.update({f"out{i}": array for i, array in enumerate(outputs)})
    np.savez(str(folder / (name + ".npz")), **named)
    (folder / (name + ".txt")).write_text(str(loaded.graph) + "\n" + str(loaded.flatten().graph) + "\n")


if __name__ == "__main__":
    for model in MODELS:
        make(Path(sys.argv[1]), model)
