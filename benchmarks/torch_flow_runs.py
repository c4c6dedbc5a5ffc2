"""Measures one flow, in a process of its own: whatever happens to it is a row."""

from __future__ import annotations

import contextlib
import copy
import inspect
import io
import multiprocessing
import resource
import tempfile
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils._pytree import tree_map
from torch_flow import Example, Flow, size_of
from torch_models import alive, fixed_as_needed, run_onnx, run_tflite, tensors
from torch_models import other as shuffled

import tmconvert
from tmconvert.errors import TmconvertError
from tmconvert.frontends.torch.tracing.recording.structure import plain_structure
from tmconvert.verification.compare import Comparison, compare, refuse_wrong

MEASUREMENTS = ("onnx", "open", "tflite", "open-tflite", "dynamo")


@dataclass
class Row:
    """The outcome of a flow: by measurement a state and a note.

    States are right, wrong, frozen, error, crash and time, and undecided where PyTorch itself gives other
    results in float64, or with weights moved by rounding: the choice among places of nearly equal scores.
    """

    name: str
    states: dict[str, str] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    nodes: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0  # of processor time, all measurements
    seconds_of: dict[str, float] = field(default_factory=dict)
    absent: bool = False


def measured(name: str, flow: Flow, options: Any) -> Row:
    """Returns the row of one flow. It runs in a child process that is ended at the time limit."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=_measure, args=(there, name, flow, options))
    child.start()
    there.close()
    row, state, cause = Row(name), "crash", "the process ended"
    try:
        while here.poll(options.timeout):
            row = here.recv()
        state, cause = "time", f"no end after {options.timeout:.0f} s"
        child.kill()
    except EOFError:  # it is done, or dead
        pass
    child.join()
    if not row.absent and (child.exitcode or not row.states):
        for measure in options.measure:
            if measure not in row.states and (flow.axes or not measure.startswith("open")):
                row.states[measure], row.notes[measure] = state, f"{cause} (status {child.exitcode})"
    return row


def _measure(pipe: Connection, name: str, flow: Flow, options: Any) -> None:
    """Measures, and sends the row after each measurement."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    row = Row(name)
    run = FlowRun(flow, options)
    for measure in options.measure:
        if measure.startswith("open") and not flow.axes:
            continue
        try:
            row.nodes[measure], note = run.measure(measure)
            row.states[measure] = "frozen" if note else "right"
        except ImportError as error:
            row.absent, note = True, f"{type(error).__name__}: {error}"
        except Undecided as error:
            row.states[measure], note = "undecided", str(error)
        except Exception as error:  # a benchmark of what may go wrong
            if options.verbose:
                traceback.print_exc()
            is_ours = isinstance(error, TmconvertError)
            note = f"{error.code} {error}" if is_ours else f"{type(error).__name__}: {error}"
            row.states[measure] = "wrong" if is_ours and error.code == "TM4001" else "error"
        if note:
            row.notes[measure] = " ".join(note.split())[:400]
        usage = resource.getrusage(resource.RUSAGE_SELF)
        row.seconds_of[measure] = round(usage.ru_utime + usage.ru_stime - row.seconds, 2)
        row.seconds = usage.ru_utime + usage.ru_stime
        pipe.send(row)
        if row.absent:
            break
    pipe.close()


class Undecided(Exception):
    """Rounding decides what the model computes for some inputs."""


class FlowRun:
    """The model of a flow, made and traced once for all measurements."""

    def __init__(self, flow: Flow, options: Any = None) -> None:
        self.flow, self.options = flow, options
        self._example: Example | None = None
        self._traces: dict[tuple[Any, ...], Any] = {}

    def measure(self, name: str) -> tuple[int, str]:
        """Returns the number of nodes, and what is specialized; raises what goes wrong."""
        is_open, target = name.startswith("open"), "tflite" if name.endswith("tflite") else "onnx"
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"model.{target}"
            if name == "dynamo":
                self._export_dynamo(path)
                sizes = self.inputs_of_other_sizes(set()) if self.flow.axes else []
                return self._compare(path, target, [*self.inputs(), *sizes]), ""
            if not is_open:
                self._convert(self._traced(is_open), path, target)
                return self._compare(path, target, self.inputs()), ""
            closed, why = fixed_as_needed(lambda fix: self._convert(self._traced(is_open, fix), path, target))
            return self._compare(path, target, self.inputs_of_other_sizes({*closed})), why

    @property
    def example(self) -> Example:
        if self._example is None:
            torch.manual_seed(0)
            module, args, kwargs = self.flow()
            for parameter in module.parameters():
                if parameter.dim() > 1 and not parameter.any():  # a router of zeros has ties
                    torch.nn.init.normal_(parameter, std=0.02)
            self._example = alive((module, args, kwargs), self.flow.other)
        return self._example

    def inputs(self) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
        """Returns the arguments of the example, and others of the same sizes."""
        _, args, kwargs = self.example
        return [(args, kwargs), self._others((args, kwargs))]

    def inputs_of_other_sizes(self, closed: set[str]) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
        """Returns arguments at three sets of sizes; sizes that are closed remain those of the example."""
        found, named = [], self.named_tensors()
        for sizes in self.flow.other_sizes():
            places = {
                id(named[path]): [
                    (axis, size_of(text, sizes)) for axis, text in axes.items() if text not in closed
                ]
                for path, axes in self.flow.axes.items()
            }
            lengths = {
                id(named[path]): sizes[name] for path, name in self.flow.lengths.items() if name not in closed
            }
            _, args, kwargs = self.example
            resized = tree_map(
                lambda leaf, places=places, lengths=lengths: _resized(leaf, places, lengths), (args, kwargs)
            )
            found.append(self._others(resized))
        return found

    def _others(self, arguments: Any) -> Any:
        return tree_map(self.flow.other or shuffled, arguments)

    def named_tensors(self) -> dict[str, torch.Tensor]:
        """Returns the tensors of the example by their paths."""
        module, args, kwargs = self.example
        arguments = dict(zip(inspect.signature(module.forward).parameters, args, strict=False)) | kwargs
        found: dict[str, torch.Tensor] = {}
        _name_tensors(plain_structure(arguments), "", found)
        return found

    def _traced(self, is_open: bool, fix: Mapping[str, int] | None = None) -> Any:
        key = is_open, *(fix or {}).items()
        if key not in self._traces:
            module, args, kwargs = self.example
            sizes: dict[str, Any] = {"dynamic_shapes": self.flow.axes, "fix": fix} if is_open else {}
            self._traces[key] = tmconvert.trace(
                module, *args, **kwargs, **sizes, freeze_control_flow=self.flow.freeze
            )
        return self._traces[key]

    def _convert(self, traced: Any, path: Path, target: str) -> Any:
        given: dict[str, Any] = {"verify": self.options.verify, "accept_range": True}
        given["allow_random"] = self.flow.random
        if target == "tflite":
            return tmconvert.to_tflite(traced, path, io_layout="source", **given)
        return tmconvert.to_onnx(traced, path, opset=self.options.opset, **given)

    def _export_dynamo(self, path: Path) -> None:
        """Writes a file by torch.onnx.export, whose sizes are open where they can be."""
        module, args, kwargs = self.example
        places = {
            id(self.named_tensors()[name]): dict.fromkeys(axes, torch.export.Dim.AUTO)
            for name, axes in self.flow.axes.items()
        }
        shapes = tree_map(lambda leaf: places.get(id(leaf)), kwargs)
        with contextlib.redirect_stdout(io.StringIO()):
            torch.onnx.export(
                *(module, args, str(path)),
                kwargs=kwargs,
                dynamic_shapes=shapes,
                opset_version=18,
                dynamo=True,
            )

    def _compare(self, path: Path, target: str, inputs: Sequence[Any]) -> int:
        """Runs the file on each of the inputs; raises TM4001 that names the worst output."""
        run = run_tflite if target == "tflite" else run_onnx
        nodes, module = 0, self.example[0]
        for args, kwargs in inputs:
            with torch.no_grad():
                given, named = copy.deepcopy((args, kwargs))  # some modules write to their inputs
                expected = tensors(module(*given, **named))
            actual, nodes = run(path, tensors((args, kwargs)))
            names = [f"{number}" for number in range(len(expected))]
            try:
                self._refuse_wrong(compare(actual, [plain(each) for each in expected], names))
            except TmconvertError as error:
                if self._is_undecided(args, kwargs, expected):
                    raise Undecided(f"rounding moves PyTorch's own results as far; {error}") from error
                raise
        return nodes

    def _refuse_wrong(self, found: Sequence[Comparison]) -> None:
        refuse_wrong([each._replace(tolerance=each.tolerance and self.flow.tolerance) for each in found])

    def _is_undecided(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], expected: Sequence[np.ndarray]
    ) -> bool:
        """Whether the module in float64, or with weights moved by rounding, gives other results."""
        names = [f"{number}" for number in range(len(expected))]
        for module, in_float64 in self._neighbours():
            given, named = copy.deepcopy((args, kwargs))
            if in_float64:
                given, named = tree_map(_in_float64, (given, named))
            try:
                with torch.no_grad():
                    found = tensors(module(*given, **named))
            except Exception:  # it has types of its own
                continue
            if [each.shape for each in found] != [each.shape for each in expected]:
                return True
            same = [plain(each.astype(other.dtype)) for each, other in zip(found, expected, strict=True)]
            try:
                self._refuse_wrong(compare(same, [plain(each) for each in expected], names))
            except TmconvertError:
                return True
        return False

    def _neighbours(self) -> Iterator[tuple[torch.nn.Module, bool]]:
        """Yields the module in float64, and with each weight one or two units in the last place off."""
        yield copy.deepcopy(self.example[0]).double(), True
        random = torch.Generator().manual_seed(0)
        for _ in range(3):
            module = copy.deepcopy(self.example[0])
            for weight in module.parameters():
                if weight.dtype == torch.float32:
                    signs = torch.randint(0, 2, weight.shape, generator=random) * 2 - 1
                    weight.data *= 1 + signs * 2.0**-23
            yield module, False


def _in_float64(leaf: Any) -> Any:
    return leaf.double() if isinstance(leaf, torch.Tensor) and leaf.dtype == torch.float32 else leaf


def plain(array: np.ndarray) -> np.ndarray:
    """Returns complex numbers as pairs, as files have them."""
    return np.stack([array.real, array.imag], -1) if np.iscomplexobj(array) else array


def _name_tensors(tree: Any, path: str, found: dict[str, torch.Tensor]) -> None:
    pairs: Any = ()
    if isinstance(tree, torch.Tensor):
        found[path] = tree
    elif isinstance(tree, dict):
        pairs = tree.items()
    elif isinstance(tree, (tuple, list)):
        pairs = enumerate(tree)
    for name, part in pairs:
        _name_tensors(part, f"{path}.{name}" if path else str(name), found)


def _resized(leaf: Any, places: Mapping[int, Sequence[tuple[int, int]]], lengths: Mapping[int, int]) -> Any:
    """Returns a tensor with other sizes; its elements are repeated or cut, or are a length."""
    length = lengths.get(id(leaf))
    for axis, size in places.get(id(leaf), ()):
        leaf = leaf.index_select(axis, torch.arange(size) % leaf.shape[axis])
    return leaf if length is None else torch.full_like(leaf, length)
