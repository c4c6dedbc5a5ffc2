"""Writes random models with MegEngine, with inputs and what MegEngine computes: SEED.tm and SEED.npz.

Runs with MegEngine 1.13 (Python 3.8), not with tmconvert:

    python generator.py FIRST COUNT FOLDER
"""

import importlib
import random
import sys
from pathlib import Path

import megengine as mge
import megengine.module as M
import numpy as np
from chosen import CHOICES
from megengine.traced_module import trace_module

ELEMENTS = 20_000
LARGEST = 1e4
FAMILIES = ("choices", "raw_choices", "found_choices")

for family in FAMILIES:
    importlib.import_module(family)


class Program(M.Module):
    """Replays steps; ``results`` are the numbers of the values it returns."""

    def __init__(self):
        super().__init__()
        self.steps, self.results = [], []

    def forward(self, *inputs):
        values = list(inputs)
        for step in self.steps:
            made = step(self, values)
            values.extend(made if isinstance(made, list) else [made])
        return tuple(values[i] for i in self.results)


class OneInput(Program):
    def forward(self, x):
        return super().forward(x)


class TwoInputs(Program):
    def forward(self, x, y):
        return super().forward(x, y)


class Draw:
    """The random decisions of one program."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.numpy = np.random.RandomState(seed)
        inputs = [self.input() for _ in range(1 + self.chance(0.4))]
        self.program = (OneInput if len(inputs) == 1 else TwoInputs)()
        self.inputs = inputs
        self.values = list(inputs)
        self.exact = [True] * len(inputs)
        self.used = set()
        self.final = set()

    def chance(self, probability):
        return self.random.random() < probability

    def below(self, end):
        return self.random.randrange(end)

    def between(self, first, last):
        return self.random.randint(first, last)

    def any(self, items):
        return self.random.choice(list(items))

    def shuffled(self, items):
        return self.random.sample(list(items), len(list(items)))

    def integers(self, end, shape):
        return self.numpy.randint(0, end, size=shape).tolist()

    def axis(self, x):
        return self.below(2 * x.ndim) - x.ndim

    def axes(self, x):
        return tuple(sorted(self.random.sample(range(x.ndim), self.between(1, x.ndim))))

    def index(self, value):
        i = next(i for i, other in enumerate(self.values) if other is value)
        self.used.add(i)
        return i

    def usable(self):
        """The values that a step may take."""
        return [value for i, value in enumerate(self.values) if i not in self.final]

    def partner(self, x, same_dtype=False):
        """A value that broadcasts with ``x``."""
        found = [x]
        for value in self.usable():
            if np.dtype(value.dtype).kind != "f" and (same_dtype or self.chance(0.7)):
                continue
            try:
                np.broadcast_shapes(value.shape, x.shape)
            except (ValueError, AttributeError):
                continue
            found.append(value)
        return self.any(found)

    def fits(self, value, x, axis):
        """Whether the two can be joined along ``axis``."""
        return np.array_equal(np.delete(value.shape, axis), np.delete(x.shape, axis))

    def input(self):
        """Multiples of 1/8: sums, products and comparisons of them are exact."""
        rank = self.any([1, 2, 2, 3, 3, 4, 4, 4, 4, 5])
        shape = [self.between(1, 6) for _ in range(rank)]
        if rank == 4:
            shape = [self.between(1, 2), self.any([1, 3, 4, 6]), self.between(3, 9), self.between(3, 9)]
        if self.chance(0.12):
            return mge.Tensor(self.numpy.randint(-5, 9, size=shape).astype("int32"))
        values = self.numpy.permutation(np.arange(int(np.prod(shape)))) - int(np.prod(shape)) // 2
        return mge.Tensor(((values % 65 - 32) / 8 + 0.0).astype("float32").reshape(shape))

    def parameter(self, shape):
        name = f"p{len(list(self.program.parameters()))}"
        setattr(self.program, name, mge.Parameter(self.numpy.normal(size=shape).astype("float32")))
        return name

    def module(self, module):
        """Registers a layer with random parameters and statistics."""
        module.eval()
        for key, tensor in [*module.named_parameters(), *module.named_buffers()]:
            values = self.numpy.normal(size=tensor.shape) * 0.4
            if key.endswith("var"):
                values = np.abs(values) + 0.5
            tensor[...] = mge.Tensor(values.astype("float32"))
        name = f"m{len(list(self.program.children()))}"
        setattr(self.program, name, module)
        return name


def grow(draw):
    """Adds one step to the program, if the drawn choice suits."""
    usable = [i for i in range(len(draw.values)) if i not in draw.final]
    unused = [i for i in usable if i not in draw.used]
    i = draw.any(unused) if unused and draw.chance(0.7) else draw.any(usable)
    value = draw.values[i]
    suitable = [choice for choice in CHOICES if choice.suits(value, draw.exact[i])]
    if not suitable:
        return
    choice = draw.random.choices(suitable, [each.weight for each in suitable])[0]
    used = set(draw.used)
    try:
        step = choice.make(draw, value)
        made = None if step is None else step(draw.program, draw.values)
        made = made if isinstance(made, list) else [made]
        if step is None or not all(map(sound, made)):
            draw.used = used
            return
    except Exception:  # what MegEngine itself does not take is no program
        draw.used = used
        return
    exact = choice.exact and all(draw.exact[j] for j in draw.used - used | {i})
    draw.program.steps.append(step)
    if choice.final:
        draw.final.update(range(len(draw.values), len(draw.values) + len(made)))
    draw.values.extend(made)
    draw.exact.extend([exact] * len(made))


def sound(value):
    """Whether it makes a test: not large, and finite."""
    if value.size == 0 or value.size > ELEMENTS or value.ndim > 6:
        return False
    array = value.numpy()
    return array.dtype.kind == "b" or bool(np.isfinite(array).all() and np.abs(array).max() < LARGEST)


def computed(traced, inputs):
    """What ``traced`` returns, computed on copies.

    MegEngine 1.13 takes wrong elements where a slice meets a tensor that has to be broadcast.
    """

    def copied(value):
        return mge.Tensor(value.numpy()) if isinstance(value, mge.Tensor) else value

    graph = traced.graph
    values = dict(zip(graph.inputs, [traced, *inputs]))  # noqa: B905 - not in Python 3.8
    for expr in graph._exprs:
        made = expr.interpret(*[copied(values[node]) for node in expr.inputs])
        values.update(zip(expr.outputs, made or []))  # noqa: B905
    return [values[node] for node in graph.outputs]


def write(seed, folder):
    draw = Draw(seed)
    length = draw.between(3, 12)
    for _ in range(20 * length):
        if len(draw.program.steps) < length:
            grow(draw)
    program = draw.program
    program.results = [i for i in range(len(draw.inputs), len(draw.values)) if i not in draw.used]
    if not program.results:
        return
    program.eval()
    traced = trace_module(program, *draw.inputs)
    outputs = computed(traced, draw.inputs)
    if not all(map(sound, outputs)):
        return
    mge.save(traced, str(folder / f"{seed}.tm"))
    arrays = {f"in{i}": value.numpy() for i, value in enumerate(draw.inputs)}
    arrays.update({f"out{i}": value.numpy() for i, value in enumerate(outputs)})
    np.savez_compressed(str(folder / f"{seed}.npz"), **arrays)


def main(first, count, folder):
    mge.config.async_level = 0  # errors where they happen
    folder.mkdir(parents=True, exist_ok=True)
    for seed in range(first, first + count):
        try:
            write(seed, folder)
        except Exception as error:
            print(f"no program of seed {seed}: {error!r}")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
