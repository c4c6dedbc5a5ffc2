"""Times searches and edits of one graph of 20,000 expressions: python benchmarks/surgery.py

Each row is the least processor time of five runs. An edit is measured once, on a copy of the graph.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from tmconvert.frontends.torch.vocabulary import VOCABULARY
from tmconvert.ir import CallFunction, InternalGraph, ModuleNode, TensorNode
from tmconvert.ir.traced_module import TracedModule

EXPRESSIONS = 20_000
RUNS = 5
FLOAT = np.dtype("float32")


def chain(length: int) -> TracedModule:
    """Returns a model that calls relu and sin by turns."""
    model = TracedModule("Chain", "user.Chain", vocabulary=VOCABULARY)
    graph = InternalGraph("Chain")
    graph.add_input(ModuleNode("self", "user.Chain", owner=model))
    value: TensorNode = graph.add_input(TensorNode("x", (1, 4), FLOAT))  # type: ignore[assignment]
    for number in range(length):
        result = TensorNode(graph.free_name("v"), (1, 4), FLOAT, id=number + 2)
        function = "torch.relu" if number % 2 else "torch.sin"
        graph.insert(CallFunction(function, (value,), {}, result=result, id=number + 2))
        value = result
    graph.set_result(value)
    model.graphs[""] = graph
    return model


def milliseconds(run: Callable[[], object], runs: int = RUNS) -> float:
    times = []
    for _ in range(runs):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times) * 1000


def main() -> None:
    graph = chain(EXPRESSIONS).graph
    assert graph is not None
    middle = graph.get_expr_by_id(EXPRESSIONS // 2).as_unique()

    def replace_one() -> None:
        expr = graph.get_expr_by_id(EXPRESSIONS // 2).as_unique()
        graph.replace_node({expr.outputs[0]: expr.inputs[0]})

    rows = [
        ("search by name", lambda: graph.get_function_by_type("torch.relu").as_list(), RUNS),
        ("search by meaning", lambda: graph.get_function_by_type("aten::relu").as_list(), RUNS),
        ("search by id", lambda: graph.get_expr_by_id(EXPRESSIONS // 2).as_unique(), RUNS),
        ("search by wildcard", lambda: graph.get_node_by_name("v_100*").as_list(), RUNS),
        ("find_nodes", lambda: graph.find_nodes(op="call_function", target="torch.relu"), RUNS),
        ("dependencies", lambda: graph.get_dep_exprs(middle.outputs[0]), RUNS),
        ("search by id and replace_node", replace_one, 1),
        ("compile", graph.compile, 1),
    ]
    for name, run, runs in rows:
        print(f"{name:32}{milliseconds(run, runs):8.1f} ms")


if __name__ == "__main__":
    main()
