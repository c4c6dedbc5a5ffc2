"""PyTorch models traced, converted, run in ONNX Runtime or LiteRT on two inputs; against PyTorch.

    python benchmarks/torch_models.py                           all of torch_models_*.py, at opset 17
    python benchmarks/torch_models.py --only torchvision/swin 'timm/*18' --opset 20 --markdown
    python benchmarks/torch_models.py --target tflite

    python benchmarks/torch_models.py --dynamic --only timm      sizes stay open; run at three others

A model is right, wrong (it computes something else on one of the inputs), frozen (with --dynamic: a size
did not stay open) or an error. Exit status 1 if any is not right.
"""

from __future__ import annotations

import argparse
import fnmatch
import importlib
import inspect
import re
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils._pytree import tree_map

import tmconvert
from tmconvert.errors import TmconvertError
from tmconvert.frontends.torch.tracing.recording.objects import opener
from tmconvert.frontends.torch.tracing.recording.structure import plain_structure
from tmconvert.ir.tree import leaves
from tmconvert.verification.compare import check

Example = tuple[torch.nn.Module, tuple[Any, ...], dict[str, Any]]
# the sizes that --dynamic leaves open, by the name of the input; of other inputs it is the batch
SEQUENCE = {0: "batch", 1: "sequence"}
AXES = {
    **dict.fromkeys(["input_ids", "attention_mask", "bbox"], SEQUENCE),
    "decoder_input_ids": {0: "batch", 1: "target"},
    "target": {0: "target"},
    "states": {},  # of layers, and a batch behind
}
OTHER_SIZES = (
    {"batch": 1, "sequence": 3, "target": 2},
    {"batch": 3, "sequence": 12, "target": 9},
    {"batch": 5, "sequence": 20, "target": 13},
)
FAMILIES = ("small", "torchvision", "timm", "transformers")


def models() -> dict[str, Callable[[], Example]]:
    """All tables together, by family/name."""
    tables = {family: importlib.import_module(f"torch_models_{family}").MODELS for family in FAMILIES}
    return {f"{family}/{name}": make for family, table in tables.items() for name, make in table.items()}


@dataclass
class Row:
    """What came of one model."""

    name: str
    state: str  # right, wrong, frozen, error
    trace: float = 0.0  # seconds
    export: float = 0.0
    nodes: int = 0
    note: str = ""


def tensors(tree: Any) -> list[np.ndarray]:
    plain = plain_structure(tree, opener("returns"))
    return [leaf.detach().numpy() for leaf in leaves(plain) if isinstance(leaf, torch.Tensor)]


def tried(name: str, make: Callable[[], Example], goal: TargetOptions, verbose: bool, dynamic: bool) -> Row:
    """One model. Whatever it raises is a row."""
    row = Row(name, "error")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.manual_seed(0)
            (_try_sizes if dynamic else _try)(row, alive(make()), goal)
    except Exception as error:  # a benchmark of what may go wrong
        if verbose:
            traceback.print_exc()
        is_ours = isinstance(error, TmconvertError)
        text = error.message if is_ours else f"{type(error).__name__}: {error}"
        row.state = "wrong" if is_ours and error.code == "TM4001" else "error"
        row.note = " ".join(text.split())[:200]
    return row


def alive(example: Example, others: Callable[[Any], Any] | None = None) -> Example:
    """Sees to it that the outputs depend on the inputs, or there is nothing to compare.

    Some untrained models end in a layer of zeros, or let their numbers fade away layer by layer: of these
    the weights of zeros are drawn anew, and batch norms take the statistics of the example. ``others``
    makes other inputs, by default with elements in another order.
    """
    module, args, kwargs = example
    if _depends(module, args, kwargs, others):
        return example
    for name, parameter in module.named_parameters():
        if name.endswith("weight") and not parameter.any():
            torch.nn.init.normal_(parameter, std=0.02)
    norms = [each for each in module.modules() if isinstance(each, _BatchNorm) and each.track_running_stats]
    for norm in norms:
        norm.reset_parameters()
        norm.momentum = None  # the statistics of all that it has seen
        norm.register_forward_pre_hook(_trains_where_it_can)
    with torch.no_grad():
        module(*args, **kwargs)
    for norm in norms:
        norm.eval()
        norm._forward_pre_hooks.clear()
    if not _depends(module, args, kwargs, others):
        raise ValueError("its outputs do not depend on its inputs")
    return example


def _depends(
    module: torch.nn.Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    others: Callable[[Any], Any] | None,
) -> bool:
    """Whether each of the outputs, but for those of one value or none, is another for other inputs."""
    other_args, other_kwargs = tree_map(others or other, (args, kwargs))
    with torch.no_grad():
        pairs = zip(
            tensors(module(*args, **kwargs)), tensors(module(*other_args, **other_kwargs)), strict=True
        )
    return not any(
        np.array_equal(a, b) for a, b in pairs if a.size > 1 and np.issubdtype(a.dtype, np.floating)
    )


def _trains_where_it_can(norm: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
    norm.train(inputs[0].numel() > inputs[0].shape[1])  # one value has no variance


def _try(row: Row, example: Example, goal: TargetOptions) -> None:
    module, args, kwargs = example
    start = time.perf_counter()
    traced = tmconvert.trace(module, *args, **kwargs)
    row.trace = time.perf_counter() - start
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        start = time.perf_counter()
        goal.convert(traced, path)
        row.export = time.perf_counter() - start
        for given in ((args, kwargs), tree_map(other, (args, kwargs))):
            with torch.no_grad():
                wanted = tensors(module(*given[0], **given[1]))
            found, row.nodes = goal.run(path, tensors(given))
            check(found, wanted, [f"output {number}" for number in range(len(wanted))])
    row.state = "right"


def _try_sizes(row: Row, example: Example, goal: TargetOptions) -> None:
    """Traced and exported once, and run at three other sizes."""
    module, args, kwargs = example
    named = _named(module, args, kwargs)
    wanted = {name: AXES.get(name, {0: "batch"}) for name in named}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"

        def convert(fix: dict[str, int]) -> None:
            start = time.perf_counter()
            traced = tmconvert.trace(module, *args, **kwargs, dynamic_shapes=wanted, fix=fix)
            row.trace = time.perf_counter() - start
            goal.convert(traced, path)
            row.export = time.perf_counter() - start - row.trace

        closed, why = fixed_as_needed(convert)
        for sizes in OTHER_SIZES:
            places = {
                id(named[name]): [(axis, sizes[size]) for axis, size in axes.items() if size not in closed]
                for name, axes in wanted.items()
            }
            given = tree_map(other, tree_map(lambda leaf, p=places: _resized(leaf, p), (args, kwargs)))
            with torch.no_grad():
                right = tensors(module(*given[0], **given[1]))
            found, row.nodes = goal.run(path, tensors(given))
            check(found, right, [f"output {number}" for number in range(len(right))])
    row.state, row.note = ("frozen", why[:200]) if closed else ("right", "")


def fixed_as_needed(convert: Callable[[dict[str, int]], Any]) -> tuple[dict[str, int], str]:
    """Converts with open sizes. Returns the numbers that those got which cannot stay open, and why."""
    fix, why = dict[str, int](), ""
    while True:
        try:
            convert(fix)
            return fix, why
        except TmconvertError as error:
            found = {name: int(size) for name, size in re.findall(r"--fix (\S+)=(\d+)", str(error))}
            if error.code != "TM2031" or found.keys() <= fix.keys():
                raise
            fix, why = fix | found, f"{why} {error.message}".strip()


def _named(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Mapping[str, torch.Tensor]:
    """The tensors among the arguments by the names of their parameters."""
    given = dict(zip(inspect.signature(module.forward).parameters, args, strict=False)) | kwargs
    return {name: value for name, value in given.items() if isinstance(value, torch.Tensor)}


def _resized(leaf: Any, places: Mapping[int, Sequence[tuple[int, int]]]) -> Any:
    for axis, size in places.get(id(leaf), ()):
        leaf = leaf.index_select(axis, torch.arange(size) % leaf.shape[axis])
    return leaf


def other(leaf: Any) -> Any:
    """The elements of a tensor in another order."""
    if not isinstance(leaf, torch.Tensor):
        return leaf
    order = torch.randperm(leaf.numel(), generator=torch.Generator().manual_seed(1))
    return leaf.reshape(-1)[order].reshape(leaf.shape)


def run_onnx(path: Path, inputs: Sequence[np.ndarray]) -> tuple[list[np.ndarray], int]:
    """What ONNX Runtime makes of the inputs, and the number of nodes of the file."""
    import onnx
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [node.name for node in session.get_inputs()]
    nodes = len(onnx.load(path, load_external_data=False).graph.node)
    return session.run(None, dict(zip(names, inputs, strict=True))), nodes


def run_tflite(path: Path, inputs: Sequence[np.ndarray]) -> tuple[list[np.ndarray], int]:
    """What LiteRT makes of the inputs, and the number of operators of the file.

    Inputs that the file has narrowed from int64 are given as int32.
    """
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(str(path), num_threads=1)
    described = interpreter.get_input_details()
    for detail, array in zip(described, inputs, strict=True):
        interpreter.resize_tensor_input(detail["index"], array.shape, strict=True)
    interpreter.allocate_tensors()
    for detail, array in zip(described, inputs, strict=True):
        interpreter.set_tensor(detail["index"], array.astype(detail["dtype"], order="C"))
    interpreter.invoke()
    outputs = [
        # LiteRT 2.3 cannot read an empty output
        interpreter.get_tensor(detail["index"])
        if detail["shape"].all()
        else np.zeros(detail["shape"], detail["dtype"])
        for detail in interpreter.get_output_details()
    ]
    return outputs, len(interpreter._get_ops_details())


@dataclass(frozen=True)
class TargetOptions:
    """What the models are converted to."""

    target: str
    opset: int

    def convert(self, traced: Any, path: Path) -> Any:
        if self.target == "tflite":
            return tmconvert.to_tflite(traced, path, io_layout="source", verify=False)
        return tmconvert.to_onnx(traced, path, opset=self.opset, verify=False)

    def run(self, path: Path, inputs: Sequence[np.ndarray]) -> tuple[list[np.ndarray], int]:
        return (run_tflite if self.target == "tflite" else run_onnx)(path, inputs)

    def __str__(self) -> str:
        return "for TFLite" if self.target == "tflite" else f"at opset {self.opset}"


def table(rows: Sequence[Row], markdown: bool) -> str:
    lines = []
    if markdown:
        lines += ["| model | state | trace s | export s | nodes | |", "|---|---|---|---|---|---|"]
    form = "| {} | {} | {:.2f} | {:.2f} | {} | {} |" if markdown else "{:32} {:6} {:7.2f} {:7.2f} {:6} {}"
    lines += [form.format(r.name, r.state, r.trace, r.export, r.nodes or "", r.note) for r in rows]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--only", nargs="+", default=["*"], help="names or patterns; a part of a name will do"
    )
    parser.add_argument("--target", choices=("onnx", "tflite"), default="onnx")
    parser.add_argument("--opset", type=int, default=17)
    parser.add_argument("--dynamic", action="store_true", help="leave sizes open, and run at others")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--verbose", action="store_true", help="show where errors come from")
    options = parser.parse_args()
    known, rows, goal = models(), [], TargetOptions(options.target, options.opset)
    for name, make in known.items():
        if any(fnmatch.fnmatch(name, pattern) or pattern in name for pattern in options.only):
            rows.append(tried(name, make, goal, options.verbose, options.dynamic))
            if not options.markdown:
                print(table(rows[-1:], False), flush=True)
    if options.markdown:
        print(table(rows, True), end="\n\n")
    states = Counter(row.state for row in rows)
    seconds = sum(row.trace + row.export for row in rows)
    print(
        f"{len(rows)} models {goal}: {states['right']} right, {states['wrong']} wrong, "
        f"{states['frozen']} frozen, {states['error']} errors; {seconds:.1f} s to trace and export"
    )
    return int(states["right"] < len(rows))


if __name__ == "__main__":
    sys.exit(main())
