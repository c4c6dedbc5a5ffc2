"""Random ONNX graphs with open sizes, to ONNX and to TFLite, compared with ONNX Runtime at six other sizes.

    python benchmarks/random_onnx_graphs.py [COUNT] [FIRST SEED]

A graph has one input, an image [n, 4, h, w] or a sequence [n, s, 8], and up to six steps of ``IMAGE`` or
``SEQUENCE`` in a random opset from 11 to 21. The reference is the source file without optimizations. An
outcome is right (all sizes that the source runs), refused (with its code), fixed (the file has fewer open
sizes than the source, at status 0) or wrong.
"""

from __future__ import annotations

import collections
import math
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from onnx import TensorProto, helper, numpy_helper

import tmconvert
from tmconvert.errors import InternalError, TmconvertError

# batch, height, width, and length of a sequence
SIZES = [(1, 5, 7, 3), (2, 8, 8, 8), (3, 13, 6, 1), (1, 32, 33, 20), (4, 4, 9, 7), (2, 31, 1, 33)]
VALID = "the file is valid for these sizes: "
OPSETS = range(11, 22)
MOST_STEPS = 6
TOLERANCE = 1e-3


class Graph:
    """Nodes that are appended; each method returns the name of a tensor."""

    def __init__(self, draw: random.Random, opset: int) -> None:
        self.draw, self.opset = draw, opset
        self.nodes: list[Any] = []
        self.stored: list[Any] = []

    def op(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> str:
        names = [f"t{len(self.nodes)}_{number}" for number in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, names, **attributes))
        return names[0]

    def const(self, values: Any, dtype: Any = np.int64) -> str:
        self.stored.append(numpy_helper.from_array(np.array(values, dtype), f"c{len(self.stored)}"))
        return str(self.stored[-1].name)

    def size(self, x: str, axis: int) -> str:
        """The size of an axis, as a vector of one element, in one of three ways to write it."""
        shape = self.op("Shape", x)
        way = self.draw.randrange(3)
        if way == 0:
            return self.op("Gather", shape, self.const([axis]))
        if way == 1:
            return self.op(
                "Slice", shape, self.const([axis]), self.const([axis + 1 or 1 << 40]), self.const([0])
            )
        number = self.op("Gather", shape, self.const(axis))
        return self.axes("Unsqueeze", number, [0])

    def axes(self, kind: str, x: str, axes: list[int], since: int = 13, **attributes: Any) -> str:
        """An operator whose axes are an attribute before ``since``, an input from then on."""
        if self.opset < since:
            return self.op(kind, x, axes=axes, **attributes)
        return self.op(kind, x, self.const(axes), **attributes)

    def shape(self, *sizes: str | int) -> str:
        return self.op(
            "Concat", *(each if isinstance(each, str) else self.const([each]) for each in sizes), axis=0
        )

    def like(self, x: str, number: float) -> str:
        return self.op("Mul", x, self.const(number, np.float32))


def _resized(g: Graph, x: str) -> str:
    coordinates = g.draw.choice(["half_pixel", "asymmetric", "pytorch_half_pixel", "align_corners"])
    mode = g.draw.choice(["nearest", "linear", "cubic"])
    options = {"mode": mode, "coordinate_transformation_mode": coordinates}
    if mode == "nearest":
        options["nearest_mode"] = g.draw.choice(["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
    region = g.const([], np.float32) if g.opset < 13 else ""
    if g.draw.random() < 0.5:
        factors = g.draw.choice([[2, 2], [1.7, 0.6], [0.5, 3]])
        return g.op("Resize", x, region, g.const([1, 1, *factors], np.float32), **options)
    grown = g.op("Add", g.op("Mul", g.size(x, 2), g.const([2])), g.const([g.draw.randrange(3)]))
    sizes = g.shape(g.size(x, 0), 4, grown, g.draw.choice([6, g.size(x, 3)]))
    return g.op("Resize", x, region, region, sizes, **options)


def _pooled(g: Graph, x: str) -> str:
    kind = g.draw.choice(["MaxPool", "AveragePool"])
    options: dict[str, Any] = {"kernel_shape": g.draw.choice([[2, 2], [3, 3], [1, 2]])}
    options["strides"] = g.draw.choice([[1, 1], [2, 2]])
    if g.draw.random() < 0.4:
        return g.op(kind, x, auto_pad=g.draw.choice(["SAME_UPPER", "SAME_LOWER"]), **options)
    return g.op(kind, x, pads=[0, 1, 0, 1], ceil_mode=g.draw.randrange(2), **options)


def _padded(g: Graph, x: str) -> str:
    """Pads to a multiple of 4, by shape arithmetic."""
    rest = g.op("Mod", g.size(x, 2), g.const([4]))
    end = g.op("Mod", g.op("Sub", g.const([4]), rest), g.const([4]))
    return g.op("Pad", x, g.shape(0, 0, 0, 1, 0, 0, end, g.draw.randrange(2)))


def _convolved(g: Graph, x: str) -> str:
    weights = np.random.default_rng(g.draw.randrange(1 << 30)).standard_normal((4, 4, 3, 3)) / 6
    way: dict[str, Any] = g.draw.choice([{"pads": [1] * 4}, {"auto_pad": "SAME_UPPER", "strides": [2, 2]}])
    return g.op("Conv", x, g.const(weights, np.float32), **way)


def _cropped(g: Graph, x: str) -> str:
    """Slices one axis by bounds that are numbers, or computed of a size."""
    bounds = g.draw.choice([([0], [-1], [1]), ([1], [1 << 40], [2]), ([-3], [99], [1]), ([-1], [-99], [-1])])
    axis = g.draw.choice([2, 3])
    start, end, step = map(g.const, bounds)
    if g.draw.random() < 0.3:
        end = g.op("Sub", g.size(x, axis), g.const([1]))
    return g.op("Slice", x, start, end, g.const([axis]), step)


def _places(g: Graph, x: str, axis: int) -> str:
    """Adds the index of each position along an axis."""
    count = g.axes("Squeeze", g.size(x, axis), [0])
    steps = g.op("Cast", g.op("Range", g.const(0), count, g.const(1)), to=TensorProto.FLOAT)
    return g.op("Add", x, g.op("Reshape", g.like(steps, 0.1), g.const([-1] + [1] * (-axis - 1))))


def _filled(g: Graph, x: str) -> str:
    """Takes elements where they are positive, and those of a tensor of the same shape elsewhere."""
    value = helper.make_tensor("value", TensorProto.FLOAT, [1], [0.0])
    other = g.op("ConstantOfShape", g.op("Shape", x), value=value)
    if g.draw.random() < 0.5:
        other = g.op("Expand", g.const([[0.0]], np.float32), g.op("Shape", x))
    return g.op("Where", g.op("Greater", x, g.const(0, np.float32)), x, other)


def _token(g: Graph, x: str) -> str:
    token = g.op("Expand", g.const(np.ones((1, 1, 8)), np.float32), g.shape(g.size(x, 0), 1, 8))
    return g.op("Concat", *g.draw.choice([(token, x), (x, token)]), axis=1)


def _attended(g: Graph, x: str) -> str:
    heads = g.op("Reshape", x, g.shape(g.size(x, 0), g.draw.choice([g.size(x, 1), -1]), 2, 4))
    q = g.op("Transpose", heads, perm=[0, 2, 1, 3])
    scores = g.op("Softmax", g.op("MatMul", q, g.op("Transpose", heads, perm=[0, 2, 3, 1])), axis=3)
    return g.op("Reshape", g.op("Transpose", g.op("MatMul", scores, q), perm=[0, 2, 1, 3]), g.op("Shape", x))


def _cumulated(g: Graph, x: str) -> str:
    flags = {"exclusive": g.draw.randrange(2), "reverse": g.draw.randrange(2)}
    return g.op("CumSum", g.like(x, 0.1), g.const(g.draw.choice([1, -2])), **flags)


def _tiled(g: Graph, x: str) -> str:
    return g.op("Tile", x, g.const([1, g.draw.choice([1, 2, 3]), 1]))


def _gathered(g: Graph, x: str) -> str:
    return g.op("Gather", x, g.const(g.draw.choice([[0, -1], [0, 0, 0], [-1]])), axis=1)


def _centred(g: Graph, x: str) -> str:
    mean = g.axes("ReduceMean", x, [1], 18) if g.draw.random() < 0.5 else g.axes("ReduceSum", x, [-1, 1])
    return g.op("Sub", x, g.like(mean, 0.1))


def _split(g: Graph, x: str) -> str:
    """Concatenates both halves of the last axis the other way round."""
    options = {"num_outputs": 2} if g.opset >= 18 else {}
    first = g.op("Split", x, outputs=2, axis=-1, **options)
    return g.op("Concat", first[:-1] + "1", first, axis=-1)


def _scaled(g: Graph, x: str) -> str:
    """Divides by the size of an axis."""
    return g.op("Div", x, g.op("Cast", g.size(x, g.draw.randrange(2)), to=TensorProto.FLOAT))


def _unary(g: Graph, x: str) -> str:
    return g.op(g.draw.choice(["Relu", "Tanh", "Sigmoid", "Abs", "Neg", "Erf", "Softsign"]), x)


def _flat(g: Graph, x: str) -> str:
    """Joins two axes of an image, and divides them again."""
    flat = g.op("Reshape", x, g.draw.choice([g.const([0, 0, -1]), g.shape(g.size(x, 0), 4, -1)]))
    return g.op("Reshape", g.op("Softmax", flat, axis=2), g.op("Shape", x))


Step = Callable[[Graph, str], str]
ANY: list[Step] = [_unary, _filled, _centred, _scaled, lambda g, x: _places(g, x, -2)]
IMAGE: list[Step] = [
    *ANY,
    _resized,
    _pooled,
    _padded,
    _convolved,
    _cropped,
    _flat,
    lambda g, x: _places(g, x, -1),
]
SEQUENCE: list[Step] = [*ANY, _token, _attended, _cumulated, _tiled, _gathered, _split]


def made(seed: int) -> tuple[str, Any, int]:
    """(the steps, the model, the rank of its input)."""
    draw = random.Random(seed)
    opset, is_image = draw.choice(OPSETS), draw.random() < 0.5
    g, x, names = Graph(draw, opset), "x", []
    for step in (draw.choice(IMAGE if is_image else SEQUENCE) for _ in range(draw.randint(1, MOST_STEPS))):
        x = step(g, x)
        names.append(g.nodes[-1].op_type if step.__name__ == "<lambda>" else step.__name__[1:])
    shape: list[Any] = ["n", 4, "h", "w"] if is_image else ["n", "s", 8]
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    result = onnx.ValueInfoProto(name=x)
    result.type.tensor_type.elem_type = TensorProto.FLOAT
    graph = helper.make_graph(g.nodes, f"seed{seed}", [given], [result], g.stored)
    imports = [helper.make_opsetid("", opset)]
    return (
        f"{opset}: {', '.join(names)}",
        helper.make_model(graph, opset_imports=imports, ir_version=8),
        len(shape),
    )


def _outputs(path: Path, x: np.ndarray) -> np.ndarray:
    """Returns what a file computes in its runtime."""
    if path.suffix == ".onnx":
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = 1, 4
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        return np.array(session.run(None, {"x": x})[0])
    mode = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    runner = Interpreter(str(path), num_threads=1, experimental_op_resolver_type=mode)
    given = runner.get_input_details()[0]["index"]
    runner.resize_tensor_input(given, list(x.shape))
    runner.allocate_tensors()
    runner.set_tensor(given, x)
    runner.invoke()
    return np.array(runner.get_tensor(runner.get_output_details()[0]["index"]))


def _holds(notes: list[str], sizes: dict[str, int]) -> bool:
    """Whether the sizes are in the range for which the file is valid, by its notes."""
    ranges = ", ".join(note.removeprefix(VALID) for note in notes if note.startswith(VALID))
    names = {"min": min, "max": max, "floor": math.floor}
    return all(eval(each, names, sizes) for each in ranges.split(", ") if each)


def _differences(source: Path, path: Path, rank: int, notes: list[str]) -> Iterator[str]:
    """Yields where a file differs from its source, at the sizes that the source runs."""
    rng, ran = np.random.default_rng(0), 0
    for n, h, w, s in SIZES:
        shape = (n, 4, h, w) if rank == 4 else (n, s, 8)
        x = rng.standard_normal(shape).astype(np.float32)
        try:
            wanted = _outputs(source, x)
        except Exception:
            continue
        ran += 1
        if not wanted.size or not _holds(notes, {"n": n, "h": h, "w": w, "s": s}):
            continue
        try:
            found = _outputs(path, x)
        except Exception as error:
            yield f"{shape}: {str(error)[:200]}"
            continue
        if found.shape != wanted.shape:
            yield f"{shape}: {found.shape} for {wanted.shape}"
        elif not np.allclose(found, wanted, TOLERANCE, TOLERANCE * np.abs(wanted).max(), equal_nan=True):
            yield f"{shape}: off by {np.abs(found - wanted).max():.1e}"
    if not ran:
        yield "the source runs at none of the sizes"


def outcome(seed: int, target: str, folder: Path) -> tuple[str, str]:
    """(what became of a graph, what it was)."""
    steps, model, rank = made(seed)
    source, path = folder / "source.onnx", folder / f"made.{target}"
    onnx.save(model, source)
    convert = tmconvert.to_onnx if target == "onnx" else tmconvert.to_tflite
    options = {} if target == "onnx" else {"io_layout": "source"}
    try:
        report = convert(source, path, **options)
    except TmconvertError as error:
        is_defect = isinstance(error, InternalError) or error.code == "TM4001"
        return ("wrong" if is_defect else f"refused {error.code}"), f"{steps}: {error.message[:200]}"
    except Exception as error:
        return "crashed", f"{steps}: {error!r}"
    wrong = list(_differences(source, path, rank, report.notes))
    if wrong:
        return "wrong", f"{steps}: {wrong}"
    is_open = all(
        isinstance(size, str) for size in np.array(report.inputs[0]["shape"], object)[[0, -1 - (rank < 4)]]
    )
    return ("right" if is_open else "fixed"), f"{steps}: {report.inputs[0]['shape']} {report.notes}"


def main() -> None:
    count, first = (int(each) for each in [*sys.argv[1:], *("50", "0")[len(sys.argv) - 1 :]])
    counts: collections.Counter[str] = collections.Counter()
    for seed in range(first, first + count):
        for target in ("onnx", "tflite"):
            with tempfile.TemporaryDirectory() as folder:
                what, about = outcome(seed, target, Path(folder))
            counts[f"{target}: {what}"] += 1
            if what != "right":
                print(f"seed {seed} {target} {what}: {about}", flush=True)
    print(dict(sorted(counts.items())))


if __name__ == "__main__":
    main()
