"""Writes the small models of this folder. Runs with MegEngine 1.13 (Python 3.8), not with tmconvert:

    python make.py FOLDER [NAME ...]

Each NAME.tm has a NAME.npz beside it: in0, in1, ... and out0, out1, ... as MegEngine computed them,
and a NAME.txt: the graph as MegEngine prints it, and the flattened graph.
"""

import collections
import enum
import sys
from pathlib import Path

import megengine as mge
import megengine.functional as F
import megengine.module as M
import numpy as np
from megengine.core._imperative_rt.core2 import apply
from megengine.core.ops import builtin
from megengine.traced_module import trace_module
from megengine.traced_module.pytree import TreeDef, register_supported_type

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


class Mode(enum.Enum):
    """Prints as a reader does that knows the class by name only."""

    ADD = 1
    SCALE = "scale"

    def __str__(self):
        return f"<__main__.Mode({self.value!r})>"


class Settings:
    """A class of the user's that knows nothing of MegEngine."""

    def __init__(self, factor, number=0):
        self.factor = factor
        self.number = number  # in the order in which a reader meets them
        self.itself = self

    def __str__(self):
        return f"<__main__.Settings object {self.number}>"


register_supported_type(Mode)
register_supported_type(Settings)


class UserObjects(M.Module):
    """Attributes and constant arguments that are objects of the user's own classes."""

    def __init__(self):
        super().__init__()
        self.mode = Mode.ADD
        self.settings = [Settings(1.0), {"more": Settings(2.0)}]
        self.step = Step()

    def forward(self, x):
        x = self.step(x, Mode.SCALE) + self.step(x, mode=self.mode)
        return self.step(x, Mode.SCALE, Settings(3.0, 1)) - self.step(x, Mode.SCALE, Settings(5.0, 2))


class Step(M.Module):
    def forward(self, x, mode, settings=None):
        factor = 2.0 if settings is None else settings.factor
        return x * factor if mode is Mode.SCALE else x + 1


class NewTensors(M.Module):
    """Tensor(...) of a constant and of a tensor."""

    def __init__(self):
        super().__init__()
        self.inner = Swap()

    def forward(self, x):
        x, _ = self.inner(x, x + 1)
        return x + mge.Tensor([1.0, 2.0, 3.0]) + mge.tensor(np.full((2, 3), 0.5, "float32")) * mge.Tensor(x)


class Arguments(M.Module):
    """*args, **kwargs, keyword-only arguments and defaults of several kinds."""

    def __init__(self):
        super().__init__()
        self.mix = MixAll()

    def forward(self, x, y, flag=True, part=slice(None, 2), every=Ellipsis, weights=(2, [3, {"k": 5}])):
        a = self.mix(x, y, x, extra=y) if flag else x
        b = self.mix(x[every, part], scale=weights[1][1]["k"], extra=y[every, part])
        return a + self.mix(x, extra=x) * weights[1][0], b


class MixAll(M.Module):
    def forward(self, x, *args, scale=2.0, **more):
        for arg in args:
            x = x + arg
        return x * scale + more["extra"]


class ManyWays(M.Module):
    """One module called with constants that are equal and of other types, with containers, with None."""

    def __init__(self):
        super().__init__()
        self.way = Way()

    def forward(self, x):
        way = self.way
        total = way(x) + way(x, 1) + way(x, 1.0) + way(x, True) + way(x, None) + way(x, y=x)
        return total + way([x, x]) + way((x, x)) + way({"a": x}) + way(x, np.float32(2))


class Way(M.Module):
    def forward(self, x, y=0):
        if isinstance(x, (list, tuple)):
            return x[0] * 7 + x[1]
        if isinstance(x, dict):
            return x["a"] * 3
        return x * 11 if y is None else x * y + (y if isinstance(y, bool) else 2)


class Containers(M.Module):
    """Modules and parameters in lists and dicts, shared between them; an ordered dict as result."""

    def __init__(self):
        super().__init__()
        shared = M.Linear(3, 3)
        self.items = [shared, M.Linear(3, 3), [shared, Tied()]]
        self.table = {"a": shared, "b": {"c": M.Linear(3, 3)}}
        self.again = shared

    def forward(self, x):
        x = self.items[0](x) + self.items[1](x)
        x = self.items[2][1](self.items[2][0](x))
        y = self.table["b"]["c"](self.table["a"](x))
        return collections.OrderedDict([("a", x), ("z", self.again(y))])


class Tied(M.Module):
    def __init__(self):
        super().__init__()
        self.linear = M.Linear(3, 3)
        self.weight = self.linear.weight

    def forward(self, x):
        return self.linear(x) + F.linear(x, self.weight)


class Points(M.Module):
    """Saved with end points set, which a file does not keep in its graphs, or with watch points."""

    def __init__(self):
        super().__init__()
        self.inner = Holder(M.Linear(3, 3))

    def forward(self, x):
        return {"first": F.relu(x) * 2, "second": self.inner(x) - 1}


class RawOperators(M.Module):
    """Operators applied directly: with attributes of all kinds, and several results that are not all used."""

    def __init__(self):
        super().__init__()
        self.weights = mge.Parameter(np.zeros(16 * 3 + 16 * 4 + 32, "float32"))

    def forward(self, x):
        (wide,) = apply(builtin.Concat(axis=1, comp_node=x.device), x, x)
        (total,) = apply(builtin.Reduce(axis=1, mode="sum", keepdim=False), wide)
        state, one = F.zeros((1, 2, 4)), F.ones((1, 2, 1, 1))
        sequence, hidden, _, _ = apply(
            builtin.LSTM(hidden_size=4, fwd_mode="INFERENCE"), x, state, state, self.weights
        )
        (image,) = apply(builtin.AddAxis(axis=[3]), sequence)
        normal = apply(
            builtin.BatchNorm(fwd_mode="INFERENCE", param_dim="DIM_1C11"), image, one * 2, one, one, one * 3
        )[-1]
        centred, mean, _ = apply(builtin.LayerNorm(normalized_dim=1, normalized_size=3, affine=False), x)
        (part,) = apply(
            builtin.Subtensor(items=[[0, True, True, False, False]]), x, mge.Tensor(1), mge.Tensor(4)
        )
        _, order = apply(builtin.Argsort(order="DESCENDING"), total)
        (cube,) = apply(builtin.TypeCvt(dtype="float16"), part)
        return {"hidden": hidden, "normal": normal, "mean": [centred, mean], "order": order, "part": cube}


class CallsRawOperators(M.Module):
    def __init__(self):
        super().__init__()
        self.inner = RawOperators()

    def forward(self, x):
        return self.inner(x * 2)


class Boxes(M.Module):
    """Images and boxes, by functions and by operators: stubs of a float model, masks, kept boxes."""

    def __init__(self):
        super().__init__()
        self.into, self.out_of = M.QuantStub(), M.DequantStub()

    def forward(self, x, corners, moves):
        x = self.out_of(self.into(x))
        numbers = F.floor(F.mod(F.arange(corners.shape[0]), 2)).reshape(-1, 1)
        low = F.minimum(corners[:, :2], corners[:, 2:]) * 2
        boxes = F.concat([numbers, low, low + F.abs(corners[:, 2:]) * 3 + 1], 1)
        pooling = builtin.DeformablePSROIPooling(
            no_trans=True,
            part_size=2,
            pooled_h=2,
            pooled_w=3,
            sample_per_part=2,
            spatial_scale=1.0,
            trans_std=0.1,
        )
        size, last = mge.Tensor([5, 9], dtype="int32"), F.transpose(x, (0, 2, 3, 1))
        found, places = apply(builtin.CondTake(), x, x > 0.5)
        return (
            apply(builtin.PixelShuffleBackward(factor=2), x)[0],
            F.vision.roi_pooling(x, boxes, (2, 3), mode="average"),
            F.nn.deformable_psroi_pooling(x, boxes, moves, False, 2, 2, 2, 2, 0.5),
            apply(pooling, x, boxes, moves)[0],
            apply(builtin.Resize(format="NHWC", imode="LINEAR"), last, size)[0],
            found * 2,
            places,
            *apply(builtin.NMSKeep(0.3, 4), F.expand_dims(boxes[:, 1:], 0)),
        )


class CallsBoxes(M.Module):
    def __init__(self):
        super().__init__()
        self.inner = Boxes()

    def forward(self, x, corners, moves):
        return self.inner(x * 2, corners, moves)


class Head(M.Module):
    """The end of a detector: distances to the sides of a box, in units of the stride."""

    def __init__(self):
        super().__init__()
        self.box = M.Conv2d(3, 4, 3, padding=1)
        self.scale = mge.Parameter(np.array([1.5], "float32"))
        self.stride = mge.Tensor(np.array([8.0], "float32"))

    def forward(self, x):
        return F.relu(self.box(x) * self.scale) / self.stride


def positive_scale(module):
    module.scale[...] = mge.Tensor(np.array([1.5], "float32"))


def set_end_points(traced):
    traced.set_end_points([node for node in traced.graph.nodes(False) if "relu" in node.name])


def set_watch_points(traced):
    traced.set_watch_points([node for node in traced.graph.nodes(False) if "relu" in node.name])


def arrays(seed, *shapes):
    rng = np.random.RandomState(seed)
    return [rng.standard_normal(shape).astype("float32") for shape in shapes]


MODELS = {
    "several_graphs": (SeveralGraphs, arrays(1, (2, 3))),
    "keywords": (Keywords, arrays(2, (2, 3), (2, 3))),
    "nested_shared": (Nested, arrays(3, (1, 2, 5, 7))),
    "passes_through": (Empty, arrays(4, (2, 3), (2, 3))),
    "user_objects": (UserObjects, arrays(5, (2, 3))),
    "new_tensors": (NewTensors, arrays(6, (2, 3))),
    "arguments": (Arguments, arrays(7, (2, 3), (2, 3))),
    "many_ways": (ManyWays, arrays(8, (2, 3))),
    "end_points": (Points, arrays(10, (2, 3))),
    "watch_points": (Points, arrays(10, (2, 3))),
    "raw_operators": (CallsRawOperators, arrays(11, (5, 2, 3))),
    "raw_boxes": (CallsBoxes, arrays(12, (2, 4, 6, 8), (4, 4), (4, 2, 2, 2))),
    "scale_stride_head": (Head, arrays(13, (1, 3, 8, 8))),
    **{f"protocol{number}": (Containers, arrays(9, (2, 3))) for number in (2, 3, 4, 5)},
}

EDITS = {"end_points": set_end_points, "watch_points": set_watch_points}


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
    if isinstance(module, Head):
        positive_scale(module)
    tensors = [mge.Tensor(array) for array in inputs]
    traced = trace_module(module, *tensors)
    EDITS.get(name, lambda traced: None)(traced)
    path = str(folder / (name + ".tm"))
    protocol = int(name[-1]) if name.startswith("protocol") else 4
    mge.save(traced, path, pickle_protocol=protocol)
    loaded = mge.load(path)
    loaded.watch_points = []  # a model that was saved with some does not run
    outputs = [leaf.numpy() for leaf in flattened(loaded(*tensors))]
    named = {f"in{i}": array for i, array in enumerate(inputs)}
    named.update({f"out{i}": array for i, array in enumerate(outputs)})
    np.savez(str(folder / (name + ".npz")), **named)
    (folder / (name + ".txt")).write_text(str(loaded.graph) + "\n" + str(loaded.flatten().graph) + "\n")


if __name__ == "__main__":
    for model in sys.argv[2:] or MODELS:
        make(Path(sys.argv[1]), model)
