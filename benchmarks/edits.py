"""Times search and single edits on a graph of 20,000 expressions, and tries random edits.

    python benchmarks/edits.py                 milliseconds of each operation, median of 9
    python benchmarks/edits.py --random 5000   so many random edits of recorded models and models of PyTorch
    python benchmarks/edits.py --random 5000 --corpus FOLDER --only 'pytorch/*' --seed 3

An edit takes below 50 ms. A random edit is done and leaves a graph that graph.lint() accepts, or raises an
error with a code before anything has changed. After a series of edits a model is run, saved and loaded,
flattened, and converted to ONNX and TFLite, whose files are run: all compute the same, or the use raises an
error with a code. Models of PyTorch also get edits that PyTorch does, too, and must compute the same. Exit
status 1 where something else happens.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.edits_of_models import Model, of_pytorch, recorded  # noqa: E402
from tests.surgery.edited import RIGHT, inputs_of, outcomes  # noqa: E402
from tests.surgery.random_edits import Edits  # noqa: E402
from tests.surgery.torch_edits import judged  # noqa: E402
from tmconvert.frontends.torch.vocabulary import VOCABULARY  # noqa: E402
from tmconvert.ir import CallFunction, InternalGraph, ModuleNode, TensorNode, TracedModule  # noqa: E402

EXPRESSIONS = 20_000
REPEATED = 9
EDITS_PER_SERIES = 28
JUDGED = 3  # edits of a series that PyTorch does, too


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


@dataclass
class Row:
    """What became of the edits of one model."""

    name: str
    done: int = 0
    refused: int = 0
    undone: int = 0
    judged: int = 0
    uses: Counter[tuple[str, str]] = field(default_factory=Counter)
    defects: list[str] = field(default_factory=list)


def series(model: Model, seed: int, row: Row) -> None:
    """Edits a model, and looks at what it computes then."""
    module, examples = model.load()
    edits = Edits(module, seed)
    try:
        if model.source is not None:
            row.judged += judged(module, model.source, model.arguments, seed, JUDGED)
        while edits.done + edits.refused < EDITS_PER_SERIES:
            edits.step()
        module = edits.module
        with tempfile.TemporaryDirectory() as folder:
            inputs = inputs_of(module, examples, seed)
            row.uses.update(outcomes(module, inputs, Path(folder), quantized=model.quantized).items())
    except Exception as error:
        row.defects.append(f"seed {seed}: {type(error).__name__}: {error}"[:2000])
        print(f"{row.name}, seed {seed}\n{traceback.format_exc()}", file=sys.stderr, flush=True)
    row.done, row.refused, row.undone = (
        row.done + edits.done,
        row.refused + edits.refused,
        row.undone + edits.undone,
    )


def shown(row: Row) -> str:
    uses = sorted({use for use, _ in row.uses})
    right = ", ".join(f"{use} {row.uses[use, RIGHT]}" for use in uses)
    codes = ", ".join(f"{use} {code} x{n}" for (use, code), n in sorted(row.uses.items()) if code != RIGHT)
    numbers = f"{row.done:5} {row.refused:4} {row.undone:4} {row.judged:4}"
    return (
        f"{row.name:<36}{numbers}  {right}{'; ' + codes if codes else ''}{'; DEFECTS' if row.defects else ''}"
    )


def try_random(count: int, corpus: Path, only: list[str], seed: int) -> int:
    models = [*recorded(corpus), *of_pytorch()]
    models = [each for each in models if not only or any(fnmatch(each.name, glob) for glob in only)]
    rounds = -(-count // (EDITS_PER_SERIES * len(models)))
    print(f"{'model':<36}{'done':>5} {'ref.':>4} {'und.':>4} {'judg':>4}  right; errors with codes")
    rows = []
    for model in models:
        row = Row(model.name)
        for number in range(seed, seed + rounds):
            series(model, number, row)
        rows.append(row)
        print(shown(row), flush=True)
    total = Row(f"all {len(rows)}", *(sum(getattr(row, each) for row in rows) for each in COUNTS))
    for row in rows:
        total.uses.update(row.uses)
        total.defects += row.defects
    print(shown(total))
    return 1 if total.defects else 0


COUNTS = ("done", "refused", "undone", "judged")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--random", type=int, default=0, help="number of random edits")
    parser.add_argument("--corpus", type=Path, default=ROOT / "tests" / "data", help="recorded models")
    parser.add_argument("--only", nargs="*", default=[], help="patterns of names of models")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first series")
    arguments = parser.parse_args()
    if arguments.random:
        sys.exit(try_random(arguments.random, arguments.corpus, arguments.only, arguments.seed))
    measure()
