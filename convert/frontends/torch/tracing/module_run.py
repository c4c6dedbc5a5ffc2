"""One run of a module, in which its calls are recorded."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any, NamedTuple

import numpy as np
import torch

from tmconvert.errors import TmconvertError, UnsupportedError
from tmconvert.frontends.torch.tracing.data.integers import IntTaken, reads_data, types_in
from tmconvert.frontends.torch.tracing.data.outside import (
    Outside,
    generators_in,
    replaced_functions,
    taken_from_outside,
    variables_noted,
)
from tmconvert.frontends.torch.tracing.recording.arrays import Arrays, array_of, has_stand_ins
from tmconvert.frontends.torch.tracing.recording.assemble import assemble
from tmconvert.frontends.torch.tracing.recording.copies import refused_swaps
from tmconvert.frontends.torch.tracing.recording.leaf_calls import calls_of_leaves, unused_symbolics
from tmconvert.frontends.torch.tracing.recording.modes import modules_of
from tmconvert.frontends.torch.tracing.recording.modules import (
    class_name_of,
    held_tensors,
    hierarchy,
    leaf_modules,
    module_calls,
    module_paths,
    parameter_names,
    traced_modules,
)
from tmconvert.frontends.torch.tracing.recording.objects import is_cache, opener
from tmconvert.frontends.torch.tracing.recording.recorder import Recorder
from tmconvert.frontends.torch.tracing.recording.state_guard import (
    FROM_INITIAL,
    INSTEAD,
    marked_as_exported,
    same_folder,
    same_randomness,
    shown_names,
)
from tmconvert.frontends.torch.tracing.recording.structure import plain_structure
from tmconvert.frontends.torch.tracing.recording.tape import Forced, Outcomes, Scope, Side, Tape, Value
from tmconvert.frontends.torch.tracing.sizes.cache_lengths import count_by_sizes
from tmconvert.frontends.torch.tracing.sizes.code_constants import ReadingCode, SizeReads
from tmconvert.frontends.torch.tracing.sizes.replaced_functions import sizes_of_builtins
from tmconvert.frontends.torch.tracing.special.gradients import calls_of_autograd, is_close
from tmconvert.frontends.torch.tracing.special.quantized import dtype_of, observers_at_rest, qparams_of
from tmconvert.frontends.torch.tracing.special.upcast_to_float32 import wide_state
from tmconvert.frontends.torch.tracing.watches import (
    calls_of_constructors,
    calls_of_functions,
    calls_of_scans,
    calls_of_variable,
    calls_of_vmap,
    calls_with_boxes,
    script_calls,
)
from tmconvert.ir import TracedModule
from tmconvert.ir.ids import adopt, share_ids
from tmconvert.ir.traced_module import Example
from tmconvert.ir.tree import leaves, map_leaves

Module = Callable[..., Any]


_DATA_CHECK = "a check of the data, which the example inputs pass, is not part of the file"
_NOT_REACHED = (
    "no input that was tried leads to the side where the condition is {}; it is in the file, and was not "
    "compared"
)
_DATA_TEXT = (
    "an element becomes text there, and what that is compared with is unknown; the model computes the same "
    "with all data that was tried"
)


class Answers(NamedTuple):
    """The results of ``torch.compiler.is_exporting`` and ``torch.jit.is_tracing`` during the run."""

    is_exported: bool
    is_traced: bool


# A run changes what all threads share, such as the call of modules, and puts it back.
ONE_AT_A_TIME = threading.RLock()
WATCHES = (
    *(script_calls, calls_of_constructors, calls_of_functions, calls_of_variable, calls_of_vmap),
    *(calls_with_boxes, calls_of_scans, calls_of_autograd, refused_swaps),
)


class ModuleRun:
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
        replay: Outcomes | None = None,
        forced: Forced | None = None,
        deciding: Collection[tuple[str, str]] = (),
        int_files: Sequence[str] = (),
        code: ReadingCode | None = None,
    ) -> None:
        self.module = module
        self.int_files = int_files
        self.answers = answers
        self.is_module = isinstance(module, torch.nn.Module)
        self.class_name = class_name_of(module)
        self.top = Scope("", self.class_name)
        self.recorder = Recorder(
            self.top,
            follow_sizes=follow_sizes,
            freeze_control_flow=freeze_control_flow,
            follows_gradients=follows_gradients,
            replay=replay,
        )
        self.tape.forced, self.tape.deciding, self.tape.reads = forced, deciding, SizeReads(code)
        modules = list(module.named_modules()) if isinstance(module, torch.nn.Module) else []
        self.modules = [each for _, each in modules]
        self.paths = module_paths(modules)
        self.leaves = leaf_modules(modules, is_leaf)
        self.held = traced_modules(modules)
        self.args, self.kwargs = args, kwargs
        self.inputs: tuple[np.ndarray, ...] = ()
        self.outputs: tuple[np.ndarray, ...] = ()
        self.outside = Outside()
        self.written_names: list[str] = []  # of the tensors that the module writes to
        self.expected: tuple[np.ndarray, ...] | None = None  # the outputs of the module by itself
        self.sides: list[Side] = []  # of decisions on data
        self.changed: Mapping[str, torch.Tensor] = {}  # inputs in the place of the example's
        self._run()

    def _run(self) -> None:
        recorder, args, kwargs = self.recorder, self.args, self.kwargs
        with self._surroundings():
            self._bind_inputs(args, kwargs)
            recorder.origins.add(recorder.guard.add_modules(self.modules or modules_of(self.module)))
            try:
                with self._watched():
                    map_leaves(lambda leaf: count_by_sizes(leaf, is_cache), [*args, *kwargs.values()])
                    result = self.module(*args, **kwargs)
                    result = plain_structure(result, opener("returns"))
                    self.top.result = recorder.values_of(result)
                if recorder.tape.rejoins:
                    from tmconvert.frontends.torch.tracing.sizes.cat_of_parts import drop_unused_parts

                    drop_unused_parts(recorder.tape)
                self._check_numbers()
                returned = [leaf for leaf in leaves(result) if isinstance(leaf, torch.Tensor)]
                for leaf in returned:
                    _check_real(leaf, "returns")
                self.outputs = tuple(copied(each, self.module) for each in returned)
            finally:
                recorder.guard.restore()

    @contextmanager
    def _surroundings(self) -> Iterator[None]:
        with (
            ONE_AT_A_TIME,
            torch.set_grad_enabled(self.recorder.follows_gradients),
            same_folder(),
            same_randomness(),
            marked_as_exported(*self.answers),
            wide_state(self.module),
            products_of_stand_ins(self.module),
        ):
            yield

    def state_note(self, clone: Callable[[], Any]) -> str:
        """Returns a note on the state that the module keeps in its attributes; empty for none.

        The module is called twice, with the arguments that ``clone`` returns.
        """
        guard = self.recorder.guard
        if not guard.has_changes and not guard.changed:
            return ""
        from tmconvert.frontends.torch.tracing.recording.kept_state import state_note

        def call() -> Any:
            args, kwargs = clone()
            return self.module(*args, **kwargs)

        modules = (
            ((self.paths[id(each)], each) for each in self.modules) if self.is_module else self._captured()
        )
        with self._surroundings(), observers_at_rest(self.modules):
            return state_note([*modules], self.written_names, guard.changed, call)

    def _captured(self) -> Iterator[tuple[str, torch.nn.Module]]:
        return ((type(each).__name__, each) for each in modules_of(self.module))

    def _replaced(self) -> dict[str, dict[str, Any]]:
        return {name: types_in(name) for name in self.int_files}

    def _check_numbers(self) -> None:
        """Raises UnsupportedError TM2011 for numbers of tensors that no call uses: Python counted with them.

        They may be lost by ``int``, for which the run starts again.
        """
        used = self.recorder.used_numbers
        for each in self.recorder.data_numbers:
            if any(id(number.origin[1]) in used for number in leaves(each.numbers)):
                continue
            if each.file is not None and each.file not in self.int_files:
                raise IntTaken(each.file)
            raise reads_data(each.place, each.what)

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Makes the recorder see all calls, also those that no mode of torch intercepts."""
        recorder = self.recorder
        with ExitStack() as stack:
            stack.enter_context(module_calls(recorder, self.paths, self.leaves))
            stack.enter_context(calls_of_leaves(recorder, self.held))
            for watch in WATCHES:
                stack.enter_context(watch(recorder))
            called = self.modules or [self.module]
            held = [*recorder.guard.generators, *generators_in(called)]
            stack.enter_context(taken_from_outside(self.outside, held))
            stack.enter_context(sizes_of_builtins(called, self._replaced(), replaced_functions()))
            stack.enter_context(variables_noted())
            stack.enter_context(observers_at_rest(self.modules))
            stack.enter_context(recorder)
            yield

    def _bind_inputs(self, args: Any, kwargs: Any) -> None:
        """Creates Values for the tensors among the arguments."""
        arrays: list[np.ndarray] = []

        def bound(leaf: object) -> Any:
            if not isinstance(leaf, torch.Tensor):
                return self.recorder.value_of(leaf)
            _check_real(leaf, "takes")
            arrays.append(copied(leaf, self.module))
            value = Value(
                self.top, "input", tuple(leaf.shape), dtype_of(leaf), depends=True, qparams=qparams_of(leaf)
            )
            self.recorder.aliases.add(leaf, value)
            return value

        self.top.parameters = parameter_names(self.module, args, kwargs)
        self.top.args, self.top.kwargs = map_leaves(bound, plain_structure((args, kwargs), opener("takes")))
        self.inputs = tuple(arrays)

    def traced(self, *, of_run: bool = False) -> TracedModule:
        """Returns the TracedModule of the run; its inputs and outputs become the example.

        ``of_run`` leaves it the stand-ins of weights, so that it computes what the run did.
        """
        changed = {**self.recorder.written, **self.recorder.guard.changed}
        arrays = Arrays(changed, of_run=of_run)
        held = functools.partial(held_tensors, self.recorder.packed)
        modules, names = hierarchy(self.module if self.is_module else None, self.class_name, arrays, held)
        traced = assemble(self.recorder.tape, modules, names, arrays)
        share_ids(traced)
        for path in self.held.values():
            adopt(traced.get(path), traced)
        traced.name = self.class_name.rpartition(".")[2]
        traced.producer = f"PyTorch {torch.__version__}"
        self.written_names = [names[number][0] for number in changed if number in names]
        traced.notes = self._notes(self.written_names)
        traced.example = self.example()
        return traced

    def example(self) -> Example:
        """Returns the inputs of the run and the outputs of the module by itself, where these are known."""
        if has_stand_ins(self.module):
            return Example(self.inputs, None)
        return Example(self.inputs, self.outputs if self.expected is None else self.expected)

    def _notes(self, written: list[str]) -> list[str]:
        notes = [f"decided by the example inputs: {decision}" for decision in self.tape.decisions]
        notes += [*self.tape.notes, *self.outside.notes()]
        if not self.answers.is_exported:
            notes.append("the module fails on its code path for torch.export, so its other path was traced")
        notes += [f"{place}: {_DATA_CHECK}" for place in self.tape.checks]
        notes += [f"{place}: {_DATA_TEXT}" for place in self.tape.data_texts]
        notes += unused_symbolics({class_name_of(each): id(each) in self.leaves for each in self.modules})
        if self.sides:
            notes.append(f"branches on data with both sides in the file: {len(self.sides)}")
        notes += [
            f"{each.place}: {_NOT_REACHED.format(each.answer)}" for each in self.sides if each.inputs is None
        ]
        if written:
            notes.append(f"the module writes to {shown_names(written)}; {FROM_INITIAL}; {INSTEAD}")
        return notes

    @property
    def tape(self) -> Tape:
        return self.recorder.tape


def products_of_stand_ins(module: Module) -> AbstractContextManager[object]:
    """Makes products with stand-ins of a module take a fraction of their time within the context."""
    if not has_stand_ins(module):
        return nullcontext()
    from tmconvert.frontends.torch.tracing.special.stand_ins import ProductsOfStandIns

    return ProductsOfStandIns()


def copy_of_inputs(module: Module) -> Callable[[torch.Tensor], torch.Tensor]:
    """Returns the function that copies inputs of a module; caches of a large model would fill the memory."""
    if not has_stand_ins(module):
        return torch.clone
    from tmconvert.frontends.torch.tracing.special.stand_ins import clone_in_scratch

    return clone_in_scratch


def stored_weights_of(module: Module) -> AbstractContextManager[None]:
    """Puts the stored numbers in the place of stand-ins of a module within the context."""
    if not has_stand_ins(module):
        return nullcontext()
    from tmconvert.frontends.torch.tracing.special.stand_ins import stored_weights

    return stored_weights(module)


def _check_real(tensor: torch.Tensor, what: str) -> None:
    """Raises UnsupportedError TM2020 if a tensor is complex, since no target file has complex tensors."""
    if tensor.is_complex():
        raise UnsupportedError(
            "TM2020",
            f"the module {what} a complex tensor: {str(tensor.dtype).removeprefix('torch.')} "
            f"{list(tensor.shape)}",
            notes=[("help", "use torch.view_as_real outside of the model, and torch.view_as_complex inside")],
        )


def copied(tensor: torch.Tensor, module: Module) -> np.ndarray:
    """Returns the elements of an input or output; caches of a large model would fill the memory."""
    array = array_of(tensor)
    if not has_stand_ins(module):
        return array.copy()
    from tmconvert.output.scratch import scratch_copy

    return scratch_copy(array)


def have_same_outputs(one: ModuleRun, two: ModuleRun) -> bool:
    """Whether the outputs of both runs are equal up to rounding."""
    return _are_close(one.outputs, two.outputs)


def _are_close(ones: Sequence[np.ndarray], others: Sequence[np.ndarray]) -> bool:
    return len(ones) == len(others) and all(
        a.shape == b.shape and is_close(a, b) for a, b in zip(ones, others, strict=True)
    )


def run_like_plain(
    run: Callable[[bool], ModuleRun], follow_sizes: bool, by_itself: Callable[[], Sequence[np.ndarray] | None]
) -> ModuleRun:
    """Returns a run with sizes that are followed; one with plain integers where it does not compute the same.

    Code can tell both apart by ``type(n) is int`` or, since Python has each small integer once, by
    ``n is 7``. ``by_itself`` gives the outputs of the module with nothing recorded, which takes a fraction of
    the time; where they are other ones, as of noise, a recorded run decides.
    """
    found = run(follow_sizes)
    if not follow_sizes or not found.tape.reads.code.tells_types:
        return found
    made = by_itself()
    if made is not None and _are_close(found.outputs, made):
        return found
    plain = run(False)
    if have_same_outputs(found, plain):
        return found
    plain.tape.unlike_plain = (
        "the module tests the type or the identity of a size, and computes something else"
    )
    return plain


def first_run(run: Callable[[], ModuleRun], answers: list[Answers]) -> ModuleRun:
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
