"""Times search and single edits on a graph of 20,000 expressions, and tries random edits.

    python benchmarks/edits.py                 milliseconds of each operation, median of 9
    python benchmarks/edits.py --random 5000   so many random edits of recorded models

An edit takes below 50 ms. A random edit is done and leaves a graph that graph.lint() accepts, or raises an
error with a code before anything has changed; any other exception ends the program.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import tmconvert  # noqa: E402
from tests.ir.editing.random_edits import Edits  # noqa: E402
from tmconvert.errors import LoadError  # noqa: E402
from tmconvert.frontends.torch.vocabulary import VOCABULARY  # noqa: E402
from tmconvert.ir import CallFunction, InternalGraph, ModuleNode, TensorNode, TracedModule  # noqa: E402

EXPRESSIONS = 20_000
REPEATED = 9
EDITS_PER_MODEL = 30


def chain(length: int) -> InternalGraph:
    """Returns a graph of calls in a row."""
    module = TracedModule("chain", "Chain", vocabulary=VOCABULARY)
    graph = module.graphs["((M,T,),{})"] = InternalGraph("Chain")
    graph.add_input(ModuleNode("self", owner=module))
    node = TensorNode("x", (4, 8), np.dtype(np.float32))
    graph.add_input(node)
    for number in range(length):
        result = TensorNode(f"n{number}", (4, 8), np.dtype(np.float32))
        graph.insert(CallFunction("torch.relu", (node,), label="torch.relu", result=result, id=number))
        node = result
    graph.set_result(node)
    return graph


def inserted(graph: InternalGraph) -> None:
    middle = graph.node_called(f"n{EXPRESSIONS // 2}")
    assert isinstance(middle, TensorNode)
    with graph.insert_exprs() as g:
        made = g.call("aten::neg", middle) * 2
    graph.replace_node({middle: made})


def removed(graph: InternalGraph) -> None:
    assert graph.last is not None
    node = graph.last.outputs[0]
    graph.replace_node({node: graph.last.inputs[0]})
    graph.erase_node(node)


OPERATIONS: dict[str, Callable[[InternalGraph], object]] = {
    "search by function": lambda graph: graph.get_function_by_type("torch.relu").as_count(),
    "search by id": lambda graph: graph.get_expr_by_id(EXPRESSIONS - 1).as_unique(),
    "insert two calls in the middle": inserted,
    "remove the last call": removed,
    "rename": lambda graph: setattr(graph.outputs[0], "name", graph.free_name("renamed")),
    "another function": lambda graph: setattr(graph.last, "function", "torch.sigmoid"),
    "an output": lambda graph: graph.add_output_node(graph.inputs[1]),  # type: ignore[arg-type]
    "an input": lambda graph: graph.add_input_node((4, 8)),
    "dead code": lambda graph: graph.compile(),
}


def measure() -> None:
    graph = chain(EXPRESSIONS)
    graph.lint()
    for name, operation in OPERATIONS.items():
        times = []
        for _ in range(REPEATED):
            start = time.perf_counter()
            operation(graph)
            times.append(time.perf_counter() - start)
        print(f"{name:<32} {statistics.median(times) * 1000:8.2f} ms")


def try_random(count: int) -> None:
    done = refused = seed = 0
    while done + refused < count:
        for path in sorted((ROOT / "tests/data").glob("*.tm")):
            if done + refused >= count:
                break
            try:
                edits = Edits(tmconvert.load(path), seed)
            except LoadError:
                continue
            while edits.is_sound and edits.done + edits.refused < EDITS_PER_MODEL:
                edits.step()
            done, refused = done + edits.done, refused + edits.refused
        seed += 1
    print(f"{done} edits done, {refused} refused, none left a graph that is wrong")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--random", type=int, default=0, help="number of random edits")
    arguments = parser.parse_args()
    if arguments.random:
        try_random(arguments.random)
    else:
        measure()
