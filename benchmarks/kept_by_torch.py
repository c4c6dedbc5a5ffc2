"""The open sizes of ``torch_flows.py`` that ``torch.export`` keeps, and whether its program is right.

    python benchmarks/kept_by_torch.py transformers/llava vision/spandrel-swinir

Each size that the flow opens is ``Dim.AUTO``. A size is kept if it is a symbol in the exported program; the
program is then run at the three other sets of sizes, with the kept ones alone, and compared with the module.
The module may fail at such sizes itself. Each flow is a process of its own with a time limit.
"""

from __future__ import annotations

import argparse
import copy
import logging
import multiprocessing
import warnings
from collections.abc import Mapping
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten
from torch_flow import Flow
from torch_flow_runs import FlowRun
from torch_flows import flows


class OfTensors(torch.nn.Module):
    """A module as a function of the tensors among its arguments."""

    def __init__(self, module: torch.nn.Module, arguments: Any) -> None:
        super().__init__()
        self.module = module
        self.leaves, self.structure = tree_flatten(arguments)

    def forward(self, *tensors: torch.Tensor) -> Any:
        given = iter(tensors)
        leaves = [next(given) if isinstance(leaf, torch.Tensor) else leaf for leaf in self.leaves]
        args, kwargs = tree_unflatten(leaves, self.structure)
        return self.module(*args, **kwargs)


def tensors_in(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def report(name: str, flow: Flow) -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    run = FlowRun(flow)
    module, args, kwargs = run.example
    whole, tensors = OfTensors(module, (args, kwargs)), tensors_in((args, kwargs))
    axes = {id(tensor): flow.axes[path] for path, tensor in run.named_tensors().items() if path in flow.axes}
    opened = [axes.get(id(tensor), {}) for tensor in tensors]
    shapes = tuple(dict.fromkeys(each, torch.export.Dim.AUTO) for each in opened)
    try:
        program = torch.export.export(whole, tuple(tensors), dynamic_shapes={"tensors": shapes})
    except Exception as error:  # whatever an exporter raises
        print(f"{name}: torch.export fails ({type(error).__name__}: {' '.join(str(error).split())[:120]})")
        return
    sizes = [
        node.meta["val"].shape
        for node in program.graph.nodes
        if node.op == "placeholder" and node.name in program.graph_signature.user_inputs
    ]
    closed = {
        text
        for shape, each in zip(sizes, opened, strict=True)
        for axis, text in each.items()
        if str(shape[axis]).isdigit()
    }
    kept = {text for each in opened for text in each.values()} - closed
    results = (
        [at_others(program, module, *each) for each in run.inputs_of_other_sizes(closed)] if kept else []
    )
    print(f"{name}: keeps {sorted(kept)}, specializes {sorted(closed)}; at other sizes: {results}")


def at_others(program: Any, module: torch.nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    with torch.no_grad():
        try:
            given, named = copy.deepcopy((args, kwargs))
            expected = tensors_in(module(*given, **named))
        except Exception as error:
            return f"the module fails ({type(error).__name__})"
        try:
            actual = tensors_in(program.module()(*tensors_in((args, kwargs))))
        except Exception as error:
            return f"the program fails ({type(error).__name__}: {' '.join(str(error).split())[:80]})"
    is_right = len(actual) == len(expected) and all(
        one.shape == other.shape and torch.allclose(one.double(), other.double(), 1e-3, 1e-3)
        for one, other in zip(actual, expected, strict=True)
    )
    return "right" if is_right else "wrong"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="+")
    parser.add_argument("--timeout", type=float, default=300)
    options = parser.parse_args()
    known = flows()
    for name in options.names:
        process = multiprocessing.get_context("fork").Process(target=report, args=(name, known[name]))
        process.start()
        process.join(options.timeout)
        if process.is_alive():
            process.kill()
            print(f"{name}: no end after {options.timeout:.0f} s", flush=True)


if __name__ == "__main__":
    main()
