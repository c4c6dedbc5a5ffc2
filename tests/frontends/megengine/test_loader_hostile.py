"""Files that are sound pickles and hostile models: refused, or read, in little time and memory."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.frontends.megengine.pickles import (
    Obj,
    Ref,
    call,
    dump,
    expression,
    function,
    leaf,
    module_node,
    tensor_node,
    traced_module,
    tree,
)
from tmconvert.conversion.lowering import survey
from tmconvert.errors import LoadError, TmconvertError
from tmconvert.frontends.megengine.arguments import merged
from tmconvert.frontends.megengine.loader import load_megengine
from tmconvert.frontends.megengine.pickle.budget import Budget
from tmconvert.ir import TracedModule
from tmconvert.passes.normalize import normalize
from tmconvert.symbolics.registry import catalogue
from tmconvert.targets.options import TFLITE_RUNTIME, TargetOptions

DATA = Path(__file__).parents[2] / "data"
GOALS = (
    TargetOptions("onnx", 17),
    TargetOptions("tflite", TFLITE_RUNTIME, "nhwc"),
    TargetOptions("caffe", 0),
)
SECONDS = 10.0  # what is built without a budget takes minutes, on any processor


def doubled(depth: int = 60, of: Any = 1) -> Any:
    """A tuple of 2 ** depth leaves, written in ``depth`` steps."""
    value = of
    for _ in range(depth):
        value = (value, value)
    return value


def endless() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


def attempt(path: Path) -> list[str]:
    """Everything a conversion does before it writes; the codes of the errors on the way."""
    codes: list[str] = []

    def stage(step: Callable[[], Any]) -> Any:
        started = time.process_time()
        try:
            return step()
        except TmconvertError as error:
            assert error.exit_status == 1, str(error)
            assert str(error)
            codes.append(error.code)
            return None
        finally:
            assert time.process_time() - started < SECONDS

    tm: TracedModule | None = stage(lambda: load_megengine(str(path)))
    if tm is None:
        return codes
    assert len(stage(lambda: str(tm.graph))) < 10_000_000
    flat = stage(tm.flatten)
    if flat is not None:
        stage(lambda: str(flat.graph))
        stage(lambda: normalize(flat, catalogue()))
        for goal in GOALS:
            stage(lambda goal=goal: survey(tm, goal, catalogue()))
    return codes


def written(tmp_path: Path, root: Any) -> Path:
    path = tmp_path / "made.tm"
    path.write_bytes(dump(root))
    return path


def refused(tmp_path: Path, root: Any) -> LoadError:
    path = written(tmp_path, root)
    started = time.process_time()
    with pytest.raises(LoadError) as caught:
        load_megengine(str(path))
    assert time.process_time() - started < SECONDS
    assert str(caught.value).splitlines()[1] == f"  --> {path}"
    assert len(str(caught.value)) < 2000
    return caught.value


def net(*constants: Any, op: str = "nn.relu", shape: Any = (1, 2, 4, 4), **attributes: Any) -> Obj:
    """``op(x, *constants)``."""
    x, y = tensor_node("x", shape), tensor_node("y")
    exprs = [function(op, [x], [y], list(constants))]
    return traced_module(exprs, [y], inputs=[module_node("self"), x], **attributes)


def test_the_writer_makes_sound_files(tmp_path: Path) -> None:
    tm = load_megengine(str(written(tmp_path, net(bias=3, pads=[(1, 2), {"a": None}]))))
    assert str(tm.graph) == "Net.Graph (self, x) {\n\t%2:\ty = nn.relu(x, )\n\treturn y\n}"
    assert tm.attributes == {"bias": 3, "pads": [(1, 2), {"a": None}]}
    assert np.array_equal(tm(np.full((1, 2, 4, 4), -1.0)), np.zeros((1, 2, 4, 4)))
    assert attempt(tmp_path / "made.tm") == []


# ---- little files that unfold to much


@pytest.mark.parametrize(
    "make",
    [
        lambda: net(doubled()),
        lambda: net([doubled(20), doubled(25)]),
        lambda: net({"k": doubled()}),
        lambda: net(endless()),
        lambda: net(stride=doubled()),
        lambda: net(stride=endless()),
        lambda: net(table={"a": {"b": doubled(30)}}),
        lambda: net(*[["long text" * 100] * 50] * 200, pads=[["x" * 900] * 100] * 100),
    ],
    ids=[
        "constant",
        "list",
        "dict",
        "endless",
        "attribute",
        "endless attribute",
        "nested dict",
        "repeated text",
    ],
)
def test_values_that_unfold(tmp_path: Path, make: Callable[[], Obj]) -> None:
    assert refused(tmp_path, make()).code == "TM1006"


def doubled_tree(depth: int, inner: Any) -> Any:
    for _ in range(depth):
        inner = tree("tuple", [inner, inner])
    return inner


@pytest.mark.slow
@pytest.mark.parametrize("depth", [17, 30, 60])
def test_argument_structures_that_unfold(tmp_path: Path, depth: int) -> None:
    x, y = tensor_node("x"), tensor_node("y")
    expr = function("nn.relu", [x], [y])
    expr.state["arg_def"] = call(doubled_tree(depth, leaf()))
    error = refused(tmp_path, traced_module([expr], [y], inputs=[module_node("self"), x]))
    assert error.code in ("TM1006", "TM1007")
    root = net()
    key = call(leaf(), doubled_tree(depth, leaf(constant=1)))
    root.state["argdef_graph_map"] = {key: next(iter(root.state["argdef_graph_map"].values()))}
    assert refused(tmp_path, root).code == "TM1006"


def test_a_structure_that_contains_itself(tmp_path: Path) -> None:
    x, y = tensor_node("x"), tensor_node("y")
    expr = function("nn.relu", [x], [y])
    inner = tree("tuple", [])
    inner.state["children_defs"].append(inner)
    expr.state["arg_def"] = inner
    assert refused(tmp_path, traced_module([expr], [y], inputs=[module_node("self"), x])).code == "TM1006"


@pytest.mark.slow
def test_a_graph_that_is_built_again_and_again(tmp_path: Path) -> None:
    """Many keys for one graph of many expressions."""
    nodes = [tensor_node(f"n{i}") for i in range(500)]
    root = net()
    (graph,) = root.state["argdef_graph_map"].values()
    x = graph.state["_inputs"][1]
    graph.state["_exprs"] = [
        function("nn.relu", [before], [after]) for before, after in zip([x, *nodes], nodes, strict=False)
    ]
    graph.state["_outputs"] = nodes[-1:]
    keys = [call(*[leaf()] * 2, leaf(constant=i)) for i in range(1000)]
    root.state["argdef_graph_map"] = dict.fromkeys(keys, graph)
    assert refused(tmp_path, root).code == "TM1006"


def test_modules_in_modules(tmp_path: Path) -> None:
    inner = Obj("megengine.module.module", "Module", {"x": 1})
    for _ in range(150):
        inner = Obj("megengine.module.module", "Module", {"child": inner})
    assert refused(tmp_path, net(child=inner)).code == "TM1006"


# ---- numbers and types that no tensor has


@pytest.mark.parametrize(
    ("shape", "code"),
    [
        ((2**40, 2**40), "TM1006"),
        ((2**49,), "TM1006"),
        ((0, 2**60, 2**60), "TM1006"),
        ((1, -2), "TM1007"),
        ((1,) * 40, "TM1007"),
        ("12", "TM1007"),
        (7, "TM1007"),
        ((1, "x"), "TM1007"),
        ((1, None), "TM1007"),
        (doubled(), "TM1007"),
    ],
    ids=range(10),
)
def test_shapes(tmp_path: Path, shape: Any, code: str) -> None:
    assert refused(tmp_path, net(shape=shape)).code == code


HUGE = [
    10**9,
    -(10**9),
    0,
    -1,
    2**40,
    2**63,
    10**30,
    1.5,
    float("nan"),
    float("inf"),
    "x",
    None,
    True,
    (),
    [],
    (1,),
]


@pytest.mark.parametrize("value", HUGE, ids=repr)
@pytest.mark.parametrize(
    "op",
    ["nn.max_pool2d", "nn.avg_pool2d", "nn.adaptive_avg_pool2d", "nn.pad", "tensor.reshape", "tensor.split"],
)
def test_huge_and_odd_numbers_in_calls(tmp_path: Path, op: str, value: Any) -> None:
    odd = ((value, value), (value, value)) if op == "nn.pad" else value
    for constants in ([odd], [2, odd], [2, 1, odd], [(odd, 3), (1, odd), (odd, odd)]):
        assert set(attempt(written(tmp_path, net(*constants, op=op)))) <= {"TM2003"}
    attempt(written(tmp_path, net(odd, op=op, shape=(1, 2**30, 2**8, 2**9))))


@pytest.mark.parametrize("value", HUGE, ids=repr)
def test_huge_and_odd_numbers_in_modules(tmp_path: Path, value: Any) -> None:
    for name in ("kernel_size", "stride", "padding"):
        state = {"kernel_size": 2, "stride": 2, "padding": 0, name: value}
        pool = Obj("megengine.module.pooling", "MaxPool2d", state)
        x, node, y = (
            tensor_node("x"),
            module_node("pool", ("megengine.module.pooling", "MaxPool2d")),
            tensor_node("y"),
        )
        self_node = module_node("self")
        exprs = [
            expression("GetAttr", [self_node], [node], name="pool"),
            expression("CallMethod", [node, x], [y], method="__call__", arg_def=call(leaf(), leaf())),
        ]
        root = traced_module(exprs, [y], inputs=[self_node, x], pool=pool)
        assert attempt(written(tmp_path, root)) == []


ODD = [
    None,
    True,
    3,
    -1,
    10**40,
    1.5,
    "",
    "text",
    (),
    (1, 2),
    [],
    [[]],
    {},
    {"a": 1},
    doubled(),
    Ref("a", "B"),
    leaf(),
]


@pytest.mark.parametrize("seed", range(6))
def test_wrong_types_everywhere(tmp_path: Path, seed: int) -> None:
    """Any field of any record holds something else."""
    rng = random.Random(seed)
    for _ in range(60):
        self_node, x, y, z = module_node("self"), tensor_node("x"), tensor_node("y"), tensor_node("z")
        child = module_node("child", ("megengine.module.activation", "ReLU"))
        exprs = [
            function("tensor.reshape", [x], [y], [(2, 16)]),
            expression("GetAttr", [self_node], [child], name="act"),
            expression("Constant", [], [tensor_node("c")], value=1.5, name="c"),
            expression("CallMethod", [child, y], [z], method="__call__", arg_def=call(leaf(), leaf())),
        ]
        act = Obj("megengine.module.activation", "ReLU", {"training": False})
        root = traced_module(exprs, [z], inputs=[self_node, x], act=act)
        (graph,) = root.state["argdef_graph_map"].values()
        (key,) = root.state["argdef_graph_map"]
        records = [root, graph, key, self_node, x, y, z, child, act, *exprs, exprs[0].state["arg_def"]]
        for _ in range(rng.choice([1, 1, 2])):
            record = rng.choice(records)
            if record.state:
                name = rng.choice(list(record.state))
                if rng.random() < 0.2:
                    del record.state[name]
                else:
                    record.state[name] = rng.choice([*ODD, rng.choice(records), x, child])
        codes = set(attempt(written(tmp_path, root)))
        assert codes <= {"TM1005", "TM1006", "TM1007", "TM2006", "TM2007", "TM2009", "TM2010"}


def test_positions_of_constants() -> None:
    assert merged(["a", "b"], [(0, 1), (2, 2), (4, 3)]) == [1, "a", 2, "b", 3]
    for positions in ([-1], [3], [1, 0], [0, 5], ["0"], [None], [0.0], [2, 4]):
        with pytest.raises(LoadError, match="TM1007"):
            merged(["a", "b"], [(position, None) for position in positions])


def test_the_budget_grows_with_the_file() -> None:
    Budget(0).spend(100_000)
    with pytest.raises(LoadError, match=r"TM1006.*again and again"):
        Budget(0).spend(10_000_000)
    Budget(10_000_000).spend(10_000_000)


# ---- real files with flipped bytes

SMALL = sorted(
    path.stem for path in DATA.glob("*.tm") if path.stat().st_size < 8_000 and "hostile" not in path.stem
)


@pytest.mark.parametrize("name", SMALL)
def test_flipped_bytes(tmp_path: Path, name: str) -> None:
    original = (DATA / f"{name}.tm").read_bytes()
    rng = random.Random(name)
    path = tmp_path / "flipped.tm"
    for _ in range(25):
        data = bytearray(original)
        for _ in range(rng.randint(1, 3)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        path.write_bytes(data)
        attempt(path)
