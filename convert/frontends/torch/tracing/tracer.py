"""``tmconvert.trace``: runs a module once and records its calls."""

from __future__ import annotations

import copy
import dataclasses
import functools
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils._pytree import SUPPORTED_NODES, tree_map

from tmconvert.errors import TmconvertError, UnsupportedError
from tmconvert.frontends.torch.customization import Tracer
from tmconvert.frontends.torch.tracing import data_access as flow
from tmconvert.frontends.torch.tracing import validate_dynamic_shapes as agreement
from tmconvert.frontends.torch.tracing.arrays import Arrays, array_of
from tmconvert.frontends.torch.tracing.assemble import assemble
from tmconvert.frontends.torch.tracing.batched import calls_of_vmap
from tmconvert.frontends.torch.tracing.boxes import boxes_at_once
from tmconvert.frontends.torch.tracing.branches import calls_of_functions
from tmconvert.frontends.torch.tracing.gradients import GradientTaken, calls_of_autograd, is_close, refused
from tmconvert.frontends.torch.tracing.leaf_calls import (
    calls_of_leaves,
    register_types,
    unused_symbolics,
)
from tmconvert.frontends.torch.tracing.modules import (
    class_name_of,
    held_tensors,
    hierarchy,
    leaf_modules,
    module_calls,
    module_paths,
    parameter_names,
    traced_modules,
)
from tmconvert.frontends.torch.tracing.objects import cloned_object, is_cache, opener
from tmconvert.frontends.torch.tracing.quantized import (
    dtype_of,
    observers_at_rest,
    qparams_of,
)
from tmconvert.frontends.torch.tracing.recorder import Recorder
from tmconvert.frontends.torch.tracing.recovered_sizes import SizeRecovery
from tmconvert.frontends.torch.tracing.rerun import Rerun
from tmconvert.frontends.torch.tracing.scripted import script_calls
from tmconvert.frontends.torch.tracing.sizes import sizes_of_builtins
from tmconvert.frontends.torch.tracing.state_guard import marked_as_exported, same_folder, same_randomness
from tmconvert.frontends.torch.tracing.structure import plain_structure
from tmconvert.frontends.torch.tracing.tape import Scope, Tape, Value
from tmconvert.frontends.torch.tracing.unseen import differing
from tmconvert.frontends.torch.tracing.widening import wide, wide_state
from tmconvert.ir import TracedModule
from tmconvert.ir.editing.ids import adopt, share_ids
from tmconvert.ir.extract import input_called
from tmconvert.ir.symbolic.dims import is_symbolic
from tmconvert.ir.symbolic.text import size_of
from tmconvert.ir.traced_module import Example
from tmconvert.ir.tree import leaves, map_leaves

Module = Callable[..., Any]


def trace_module(
    module: Module,
    args: tuple[object, ...],
    kwargs: dict[str, object],
    *,
    dynamic_shapes: Mapping[str, Mapping[int, str]] | None = None,
    freeze_control_flow: bool = False,
    is_leaf: Callable[[Any, str], bool] | None = None,
) -> TracedModule:
    """Traces ``module`` called with these arguments; see ``tmconvert.trace``."""
    args, kwargs = _widened(module, args, kwargs)
    inputs = named_tensors(module, args, kwargs)
    wanted = _by_input(dynamic_shapes or {}, inputs)
    symbols = agreement.symbols_of(wanted, inputs)

    def run_once(others: Mapping[str, torch.Tensor], follow_sizes: bool) -> _Run:
        replaced = {id(inputs[name]): tensor for name, tensor in others.items()}
        once = functools.partial(
            _Run,
            module,
            freeze_control_flow=freeze_control_flow,
            follow_sizes=follow_sizes,
            is_leaf=is_leaf or Tracer().is_leaf_module,
        )
        try:
            return once(*_cloned((args, kwargs), replaced), answers=answers[0])
        except GradientTaken:
            return once(*_cloned((args, kwargs), replaced), answers=answers[0], follows_gradients=True)

    def run(others: Mapping[str, torch.Tensor]) -> _Run:
        return _like_plain(functools.partial(run_once, others), bool(dynamic_shapes))

    answers = [Answers(True, True), Answers(True, False)] if dynamic_shapes else [Answers(True, False)]
    answers.append(Answers(False, False))
    first = _first_run(lambda: run({}), answers)

    def compared(others: Mapping[str, torch.Tensor]) -> tuple[Example, str]:
        found = run(others)
        return found.example(), found.tape.unlike_plain or agreement.difference(first.tape, found.tape)

    rerun = Rerun(compared, inputs, first.example())

    def resized(symbol: agreement.Symbol, number: int) -> Tape:
        """Returns the tape of a run with this number of elements for the symbol."""
        found = run(agreement.with_size(inputs, symbols, symbol, number))
        difference = found.tape.unlike_plain or agreement.difference(first.tape, found.tape)
        rerun.remember(found.example(), difference)
        return found.tape

    def changed(change: Callable[[torch.Tensor], torch.Tensor]) -> _Run:
        return run({name: change(tensor) for name, tensor in inputs.items()})

    if first.recorder.origins.unknown:
        _check_unseen(first, changed, freeze_control_flow)
    has_data = bool(first.recorder.has_open_sizes or first.tape.data_texts)
    decided = agreement.decided_by_data(first.tape, lambda change: changed(change).tape) if has_data else ""
    checks = _size_checks(first, inputs, symbols, resized)
    for symbol in symbols:
        if symbol.is_part and not checks[symbol.name].reason:
            _check_empty(first, symbol, lambda each: run(agreement.with_size(inputs, symbols, each, 0)))
    traced = first.traced()
    if first.recorder.follows_gradients or first.tape.takes_gradients:
        _check_gradients(traced, changed(agreement.moved))
    _check_decisions(traced, decided, freeze_control_flow)
    _leave_open(traced, wanted, symbols, checks)
    if any((traced.dynamic_shapes or {}).values()):
        traced.notes += [_text_note(place) for place in first.tape.texts]
    traced.rerun = rerun if symbols else None
    return traced


def _widened(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Returns the arguments with float32 in place of bfloat16."""
    inputs = named_tensors(module, args, kwargs).values()
    if not any(tensor.dtype == torch.bfloat16 for tensor in inputs):
        return args, kwargs
    return _cloned((args, kwargs), {id(tensor): wide(tensor) for tensor in inputs})


def _check_unseen(
    first: _Run,
    changed: Callable[[Callable[[torch.Tensor], torch.Tensor]], _Run],
    freeze_control_flow: bool,
) -> None:
    """Rejects a captured tensor that depends on the inputs: a file would have the example's data for all."""
    if first.recorder.follows_gradients or freeze_control_flow:  # that is compared, or said, elsewhere
        return
    try:
        second = changed(agreement.moved)
    except (Exception, SystemExit):  # data that the module does not take says nothing
        return
    place = differing(
        *(each.recorder.origins.used(agreement.captured_tensors(each.tape)) for each in (first, second))
    )
    if place is not None:
        raise UnsupportedError(
            "TM2011",
            "the module computes a tensor from its inputs where tracing cannot follow, such as in another "
            "thread or in a subclass of Tensor",
            source=place,
            notes=[("help", "compute it in the thread that calls the module, with functions of torch")],
        )


def _like_plain(run: Callable[[bool], _Run], follow_sizes: bool) -> _Run:
    """Returns a run with sizes that are followed; one with plain integers where it does not compute the same.

    Code can tell both apart by ``type(n) is int`` or, since Python has each small integer once, by
    ``n is 7``.
    """
    found = run(follow_sizes)
    if not follow_sizes or not found.tape.reads.tells_types:
        return found
    plain = run(False)
    pairs = list(zip(found.outputs, plain.outputs, strict=False))
    if len(found.outputs) == len(plain.outputs) and all(
        a.shape == b.shape and is_close(a, b) for a, b in pairs
    ):
        return found
    plain.tape.unlike_plain = (
        "the module tests the type or the identity of a size, and computes something else"
    )
    return plain


def _first_run(run: Callable[[], _Run], answers: list[Answers]) -> _Run:
    """Returns the first run that succeeds, and leaves its answers at the front of the list.

    Some libraries fail on the path that they take for an export. Raises the first error if all runs fail.
    """
    errors: list[Exception] = []
    while True:
        try:
            return run()
        except Exception as error:
            if not answers[0].is_traced:
                errors.append(error)
                if isinstance(error, TmconvertError) or len(answers) == 1:
                    raise errors[0] from errors[0].__cause__
            del answers[0]


def _size_checks(
    first: _Run,
    inputs: Mapping[str, torch.Tensor],
    symbols: list[agreement.Symbol],
    resized: Callable[[agreement.Symbol, int], Tape],
) -> dict[str, agreement.Agreement]:
    """Returns by symbol whether the module does the same at other sizes, and keeps what was seen."""
    recovery = SizeRecovery(symbols, resized)
    if first.recorder.follows_gradients:
        recovery.learn(first.tape)
    elements = sum(tensor.numel() for tensor in inputs.values())
    checks = {
        symbol.name: agreement.agreement(symbol, first.tape, recovery.rerun, elements) for symbol in symbols
    }
    _note_checks(first, symbols, checks)
    return checks


def _note_checks(
    run: _Run, symbols: list[agreement.Symbol], checks: Mapping[str, agreement.Agreement]
) -> None:
    """Keeps those comparisons of dynamic sizes on the tape that become guards."""
    values = dict(run.top.formal_inputs())
    for symbol in symbols:
        check = checks[symbol.name]
        if not check.reason:
            agreement.without(run.tape, check.without_effect)
        if check.reason or check.other_at_one is None:
            continue
        if symbol.place is None:
            check.reason = f"{check.other_at_one} does something else at a size of 1"
        else:
            place = symbol.place
            agreement.at_least(run.tape, values[place.input], place.axis, 2, check.other_at_one)


def _check_empty(first: _Run, symbol: agreement.Symbol, empty: Callable[[agreement.Symbol], _Run]) -> None:
    """Adds a guard for a part of a sum if the module computes something else where it is empty.

    The past of a first step is. A module that makes other calls there may compute the same: the graph is
    run.
    """
    try:
        other = empty(symbol)
    except (Exception, SystemExit):  # the module's own, at a size that it does not take
        return
    line = agreement.first_other_line(first.tape, other.tape)
    if symbol.place is None or line is None:
        return
    try:
        with agreement.without_guards(first.tape):
            graph = first.traced()
        made = [leaf for leaf in leaves(graph(*other.inputs)) if isinstance(leaf, np.ndarray)]
    except Exception:  # what the interpreter cannot run at this size is not compared
        return
    if all(a.shape == b.shape and is_close(a, b) for a, b in zip(made, other.outputs, strict=True)):
        return
    tensor = dict(first.top.formal_inputs())[symbol.place.input]
    agreement.at_least(first.tape, tensor, symbol.place.axis, 1, line)


def _leave_open(
    traced: TracedModule,
    wanted: agreement.Axes,
    symbols: list[agreement.Symbol],
    checks: Mapping[str, agreement.Agreement],
) -> None:
    """Names the dimensions that stay dynamic, and notes why others are specialized."""
    fixed = {symbol.name: symbol.number for symbol in symbols if checks[symbol.name].reason}
    sizes = {
        name: {axis: size_of(size, fixed) for axis, size in axes.items()} for name, axes in wanted.items()
    }
    traced.dynamic_shapes = {
        name: {axis: str(size) for axis, size in axes.items() if is_symbolic(size)}
        for name, axes in sizes.items()
    }
    traced.notes += [
        f"{symbol.name} is specialized to {symbol.number}: {checks[symbol.name].reason}"
        for symbol in symbols
        if checks[symbol.name].reason
    ]


def _by_input(wanted: agreement.Axes, inputs: Mapping[str, torch.Tensor]) -> agreement.Axes:
    """Returns the sizes under the names of the inputs. Raises UsageError TM6014 for other names."""
    return {input_called(name, list(inputs)): axes for name, axes in wanted.items()}


_DATA_CHECK = "a check of the data, which the example inputs pass, is not part of the file"
_DATA_TEXT = (
    "an element becomes text there, and what that is compared with is unknown; the model computes the same "
    "with all data that was tried"
)


def _text_note(place: str) -> str:
    return (
        f"{place}: a size becomes text or a hash there, and what that is compared with is unknown; the model "
        "computes the same at all sizes that were tried"
    )


def _check_gradients(traced: TracedModule, other: _Run) -> None:
    """Rejects a trace whose gradient is not fully recorded, as it would differ for other inputs."""
    made = [leaf for leaf in leaves(traced(*other.inputs)) if isinstance(leaf, np.ndarray)]
    pairs = zip(made, other.outputs, strict=True)
    if not all(a.shape == b.shape and is_close(a, b) for a, b in pairs):
        raise refused(
            "the module computes a gradient with respect to its inputs, and its backward pass is not "
            "fully recorded"
        )


def _check_decisions(traced: TracedModule, found: str, freeze_control_flow: bool) -> None:
    """Rejects, or notes, a conversion of a data-dependent size to a plain Python number, found at a line."""
    if found and not freeze_control_flow:
        raise UnsupportedError(
            "TM2011",
            f"the module converts data, or a data-dependent size, to a plain value: {found}",
            notes=[("help", flow.INSTEAD)],
        )
    if found:
        traced.notes.append(f"decided by the example inputs: {found}")


class Answers(NamedTuple):
    """The results of ``torch.compiler.is_exporting`` and ``torch.jit.is_tracing`` during the run."""

    is_exported: bool
    is_traced: bool


# A run changes what all threads share, such as the call of modules, and puts it back.
_ONE_AT_A_TIME = threading.RLock()


class _Run:
    """One run of a module, and its tape."""

    def __init__(
        self,
        module: Module,
        args: tuple[object, ...],
        kwargs: dict[str, object],
        *,
        freeze_control_flow: bool,
        follow_sizes: bool,
        is_leaf: Callable[[Any, str], bool],
        answers: Answers,
        follows_gradients: bool = False,
    ) -> None:
        self.module = module
        self.answers = answers
        self.is_module = isinstance(module, torch.nn.Module)
        self.class_name = class_name_of(module)
        self.top = Scope("", self.class_name)
        self.recorder = Recorder(
            self.top,
            follow_sizes=follow_sizes,
            freeze_control_flow=freeze_control_flow,
            follows_gradients=follows_gradients,
        )
        self.paths = module_paths(module) if self.is_module else {}
        self.leaves = leaf_modules(module, is_leaf) if self.is_module else frozenset()
        self.held = traced_modules(module) if self.is_module else {}
        self.args, self.kwargs = args, kwargs
        self.inputs: tuple[np.ndarray, ...] = ()
        self.outputs: tuple[np.ndarray, ...] = ()
        self._run()

    def _run(self) -> None:
        recorder, args, kwargs = self.recorder, self.args, self.kwargs
        with (
            _ONE_AT_A_TIME,
            torch.set_grad_enabled(recorder.follows_gradients),
            same_folder(),
            same_randomness(),
            marked_as_exported(*self.answers),
            wide_state(self.module),
        ):
            self._bind_inputs(args, kwargs)
            if self.is_module:
                recorder.guard.add_module(self.module)
                recorder.origins.add_module(self.module)
            try:
                with self._watched():
                    result = self.module(*args, **kwargs)
                    result = plain_structure(result, opener("returns"))
                    self.top.result = map_leaves(recorder.value_of, result)
                returned = [leaf for leaf in leaves(result) if isinstance(leaf, torch.Tensor)]
                for leaf in returned:
                    _check_real(leaf, "returns")
                self.outputs = tuple(map(_copied, returned))
            finally:
                recorder.guard.restore()

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Makes the recorder see all calls, also those that no mode of torch intercepts."""
        recorder = self.recorder
        with ExitStack() as stack:
            stack.enter_context(module_calls(recorder, self.paths, self.leaves))
            stack.enter_context(calls_of_leaves(recorder, self.held))
            for watch in (script_calls, calls_of_functions, calls_of_vmap, boxes_at_once, calls_of_autograd):
                stack.enter_context(watch(recorder))
            stack.enter_context(sizes_of_builtins(self.module))
            stack.enter_context(observers_at_rest(self.module))
            stack.enter_context(recorder)
            yield

    def _bind_inputs(self, args: Any, kwargs: Any) -> None:
        """Creates Values for the tensors among the arguments."""
        arrays: list[np.ndarray] = []

        def bound(leaf: object) -> Any:
            if not isinstance(leaf, torch.Tensor):
                return self.recorder.value_of(leaf)
            _check_real(leaf, "takes")
            arrays.append(_copied(leaf))
            value = Value(
                self.top,
                "input",
                tuple(leaf.shape),
                dtype_of(leaf),
                depends=True,
                qparams=qparams_of(leaf),
            )
            self.recorder.aliases.add(leaf, value)
            return value

        self.top.parameters = parameter_names(self.module, args, kwargs)
        self.top.args, self.top.kwargs = map_leaves(bound, plain_structure((args, kwargs), opener("takes")))
        self.inputs = tuple(arrays)

    def traced(self) -> TracedModule:
        """Returns the TracedModule of the run; its inputs and outputs become the example."""
        changed = {**self.recorder.written, **self.recorder.guard.changed}
        arrays = Arrays(changed)
        held = functools.partial(held_tensors, self.recorder.packed)
        modules, names = hierarchy(self.module if self.is_module else None, self.class_name, arrays, held)
        traced = assemble(self.recorder.tape, modules, names, arrays)
        share_ids(traced)
        for path in self.held.values():
            adopt(traced.get(path), traced)
        traced.name = self.class_name.rpartition(".")[2]
        traced.producer = f"PyTorch {torch.__version__}"
        traced.notes = self._notes([names[number][0] for number in changed if number in names])
        traced.example = self.example()
        return traced

    def example(self) -> Example:
        """Returns the inputs and outputs of the run."""
        return Example(self.inputs, self.outputs)

    def _notes(self, written: list[str]) -> list[str]:
        notes = [f"decided by the example inputs: {decision}" for decision in self.tape.decisions]
        notes += self.tape.notes
        if not self.answers.is_exported:
            notes.append("the module fails on its code path for torch.export, so its other path was traced")
        notes += [f"{place}: {_DATA_CHECK}" for place in self.tape.checks]
        notes += [f"{place}: {_DATA_TEXT}" for place in self.tape.data_texts]
        modules = self.module.modules() if isinstance(self.module, torch.nn.Module) else ()
        notes += unused_symbolics({class_name_of(each): id(each) in self.leaves for each in modules})
        if written:
            notes.append(
                f"the module writes to {', '.join(written)}; each run of the file starts from the "
                "initial values"
            )
        return notes

    @property
    def tape(self) -> Tape:
        return self.recorder.tape


# ---- data


def _check_real(tensor: torch.Tensor, what: str) -> None:
    """Raises UnsupportedError TM2020 if a tensor is complex, since no target file has complex tensors."""
    if tensor.is_complex():
        raise UnsupportedError(
            "TM2020",
            f"the module {what} a complex tensor: {str(tensor.dtype).removeprefix('torch.')} "
            f"{list(tensor.shape)}",
            notes=[("help", "use torch.view_as_real outside of the model, and torch.view_as_complex inside")],
        )


def named_tensors(
    module: object, args: tuple[object, ...], kwargs: dict[str, object]
) -> dict[str, torch.Tensor]:
    """Returns the tensors among the arguments by input name."""
    register_types()
    scope = Scope("", "", parameters=parameter_names(module, args, kwargs))
    tensors: dict[Value, torch.Tensor] = {}

    def held(leaf: object) -> Any:
        value = Value(scope, "input")
        if isinstance(leaf, torch.Tensor):
            tensors[value] = leaf
        return value

    scope.args, scope.kwargs = map_leaves(held, plain_structure((args, kwargs), opener("takes")))
    return {name: tensors[value] for name, value in scope.formal_inputs() if value in tensors}


def _cloned(tree: object, others: Mapping[int, torch.Tensor]) -> Any:
    """Returns the arguments with each tensor copied, so that the module may write to them.

    ``others`` are what to take in the place of tensors, by their ids.
    """
    if isinstance(tree, torch.Tensor):
        return others.get(id(tree), tree).detach().clone()
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type) and type(tree) not in SUPPORTED_NODES:
        clone = copy.copy(tree)
        for field in dataclasses.fields(tree):
            object.__setattr__(clone, field.name, _cloned(getattr(tree, field.name), others))
        return clone
    if type(tree) not in SUPPORTED_NODES and is_cache(tree):
        return cloned_object(tree, lambda tensor: _cloned(tensor, others))
    return tree_map(lambda leaf: leaf if leaf is tree else _cloned(leaf, others), tree)


def _copied(tensor: torch.Tensor) -> np.ndarray:
    return array_of(tensor).copy()
