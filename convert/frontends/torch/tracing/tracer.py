"""``tmconvert.trace``: runs a module once and records its calls."""

from __future__ import annotations

import copy
import dataclasses
import functools
import linecache
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._pytree import SUPPORTED_NODES, tree_map

from tmconvert.errors import TmconvertError, UnsupportedError
from tmconvert.frontends.torch.customization import is_builtin
from tmconvert.frontends.torch.tracing.data import integers
from tmconvert.frontends.torch.tracing.data.outside import check_repeatable
from tmconvert.frontends.torch.tracing.module_run import ModuleRun, copy_of_inputs
from tmconvert.frontends.torch.tracing.recording.leaf_calls import register_types
from tmconvert.frontends.torch.tracing.recording.modes import in_evaluation
from tmconvert.frontends.torch.tracing.recording.modules import parameter_names
from tmconvert.frontends.torch.tracing.recording.objects import cloned_object, is_cache, opener
from tmconvert.frontends.torch.tracing.recording.structure import Tensors, plain_structure
from tmconvert.frontends.torch.tracing.recording.tape import ROUNDS, Record, Scope, Value, captured_tensors
from tmconvert.frontends.torch.tracing.recording.untracked_tensors import differing
from tmconvert.frontends.torch.tracing.runs import Runs, UntouchedModule
from tmconvert.frontends.torch.tracing.sizes import validate_dynamic_shapes
from tmconvert.frontends.torch.tracing.sizes.cache_lengths import sizes_within_windows, windows_alone
from tmconvert.frontends.torch.tracing.special.gradients import is_close, refused
from tmconvert.frontends.torch.tracing.special.upcast_to_float32 import wide
from tmconvert.ir import TracedModule
from tmconvert.ir.extract import matching_input
from tmconvert.ir.interpreter import run_module
from tmconvert.ir.symbolic.open_sizes import fixed_axes
from tmconvert.ir.tree import leaves, map_leaves
from tmconvert.ir.types import Args, Kwargs

if TYPE_CHECKING:
    from tmconvert.frontends.torch.tracing.loops.rolling import Loops

Module = Callable[..., Any]


def trace_module(
    module: Module,
    args: tuple[object, ...],
    kwargs: dict[str, object],
    *,
    dynamic_shapes: Mapping[str, Mapping[int, str]] | None = None,
    freeze_control_flow: bool = False,
    is_leaf: Callable[[Any, str], bool] | None = None,
    training: bool = False,
    fix: Mapping[str, int] | None = None,
    int_files: Sequence[str] = (),
    state: Sequence[str] = (),
    noise: str = "",
    roll_loops: bool = False,
    loops: Loops | None = None,
    deciding: Collection[tuple[str, str]] = (),
) -> TracedModule:
    """Traces ``module`` called with these arguments; see ``tmconvert.trace``.

    ``int_files`` are modules of Python in which ``int`` keeps sizes traced, ``state`` the names of tensors
    that the module keeps from call to call, which become inputs and outputs, and with ``noise="input"``
    random tensors become inputs. ``roll_loops`` makes loops of equal rounds of a static number.
    """
    module, kwargs, notes, dynamic_shapes = _extended(module, args, kwargs, (state, noise), dynamic_shapes)
    options: dict[str, Any] = {"freeze_control_flow": freeze_control_flow, "is_leaf": is_leaf, "fix": fix}
    options["training"], options["roll_loops"] = training, roll_loops
    again = functools.partial(_traced_again, module, (args, kwargs), dynamic_shapes=dynamic_shapes, **options)
    args, kwargs, narrow = _widened(module, args, kwargs)
    inputs = named_tensors(module, args, kwargs)
    if len(set(map(id, inputs.values()))) < len(inputs):  # one tensor is two inputs, which other runs vary
        args, kwargs = _cloned((args, kwargs), {})
        inputs = named_tensors(module, args, kwargs)
    caches = [leaf for leaf in leaves([*args, *kwargs.values()]) if is_cache(leaf)]
    wanted: Mapping[str, Mapping[int, str]] = sizes_within_windows(
        _by_input(dynamic_shapes or {}, inputs), inputs, caches
    )
    if fix:
        wanted, args, kwargs = _fixed(wanted, fix, inputs, (args, kwargs))
        inputs = named_tensors(module, args, kwargs)
    symbols = validate_dynamic_shapes.symbols_of(wanted, inputs)
    is_leaf = is_leaf or is_builtin
    once = functools.partial(
        _once, module, training, freeze_control_flow=freeze_control_flow, is_leaf=is_leaf
    )
    clone = functools.partial(_cloned, (args, kwargs), copied=copy_of_inputs(module))
    untouched = UntouchedModule(module, clone, inputs, training)
    loops = loops or _static_loops(roll_loops)
    runs = Runs(once, clone, inputs, symbols, untouched, int_files, loops, deciding)
    runs.choose_path()
    first = runs.first
    if first.outside.is_taken:
        check_repeatable(functools.partial(runs.run, {}))
    _check_unseen(first, runs.changed, freeze_control_flow)
    decided = runs.decided_by_data()
    checks = _size_checks(runs, symbols)
    again = functools.partial(again, int_files=tuple(runs.int_files))
    found = _with_loops(again, runs, checks)
    if found := found or _with_decisions(functools.partial(again, loops=loops), runs, checks):
        return found
    validate_dynamic_shapes.keep_guards(first.tape, symbols, checks)
    reasons = {name: check.reason for name, check in checks.items() if check.reason}
    if reasons:
        return _with_traced_int(again, runs, int_files, reasons)
    _check_empty_axes(runs)
    traced = first.traced()
    traced.notes += [*notes, *filter(None, [first.state_note(functools.partial(runs.clone, {}))])]
    if narrow:
        traced.notes.append(f"float32 inputs of the file that are bfloat16 in the model: {', '.join(narrow)}")
    if first.recorder.follows_gradients or first.tape.takes_gradients:
        from tmconvert.frontends.torch.tracing.data.perturbed_inputs import moved

        _check_gradients(traced, runs.changed(moved))
    _check_decisions(traced, decided, freeze_control_flow)
    traced.dynamic_shapes = {name: dict(axes) for name, axes in wanted.items()}
    if any((traced.dynamic_shapes or {}).values()):
        traced.notes += [_text_note(place) for place in first.tape.texts]
    traced.notes += windows_alone(wanted, caches)
    traced.rerun = runs.rerun if symbols else None
    if not freeze_control_flow:  # on other data the module may take other branches
        traced.original = runs.original
    return traced


def _static_loops(roll_loops: bool) -> Loops | None:
    if not roll_loops:
        return None
    from tmconvert.frontends.torch.tracing.loops.rolling import Loops

    return Loops(is_static=True)


def _extended(
    module: Module,
    args: tuple[object, ...],
    kwargs: Kwargs,
    wanted: tuple[Sequence[str], str],
    sizes: Mapping[str, Mapping[int, str]] | None,
) -> tuple[Module, Kwargs, list[str], Any]:
    """Returns a module that takes random numbers and state, its keyword arguments, notes, and sizes."""
    (state, noise), notes = wanted, list[str]()
    if noise == "input":
        from tmconvert.frontends.torch.tracing.noise import noisy

        copies = functools.partial(_cloned, (args, kwargs), {})
        original, names = module, {*parameter_names(module, args, kwargs), *kwargs}
        module, drawn, notes = noisy(module, copies, names)
        sizes = {**_sizes_of_noise(original, args, kwargs, drawn, sizes or {}), **(sizes or {})}
        kwargs = {**kwargs, **drawn}
    if not state:
        return module, kwargs, notes, sizes
    from tmconvert.frontends.torch.tracing.streaming import streaming

    names = {*parameter_names(module, args, kwargs), *kwargs}
    copies = functools.partial(_cloned, (args, kwargs), {})
    module, examples, found = streaming(module, state, copies, names, [*(sizes or {})])
    return module, {**kwargs, **examples}, [*notes, *found], sizes


def _sizes_of_noise(
    module: Module,
    args: tuple[object, ...],
    kwargs: dict[str, object],
    drawn: Tensors,
    sizes: Mapping[str, Mapping[int, str]],
) -> dict[str, dict[int, str]]:
    """Returns the dynamic axes of random tensors, which the module draws at two sizes."""
    from tmconvert.frontends.torch.tracing.noise import drawn_by, follows

    inputs = named_tensors(module, args, kwargs)
    wanted = _by_input(sizes, inputs)
    found: dict[str, dict[int, str]] = {}
    for size in {size for axes in wanted.values() for size in axes.values() if size.isidentifier()}:
        number, others = 0, dict[int, torch.Tensor]()
        for name, axes in wanted.items():
            for axis in (axis for axis, own in axes.items() if own == size):
                number = inputs[name].shape[axis]
                changed = others.get(id(inputs[name]), inputs[name])
                others[id(inputs[name])] = validate_dynamic_shapes.resized(changed, axis, number + 2)
        try:
            other = drawn_by(module, functools.partial(_cloned, (args, kwargs), others))
        except Exception:  # a size that the module does not take
            continue
        for (name, tensor), each in zip(drawn.items(), other, strict=False):
            if tensor.dim() == each.tensor.dim():
                axes = follows(tensor, each.tensor, size, number, number + 2)
                found.setdefault(name, {}).update(axes)
    return found


def _once(module: Module, training: bool, *args: Any, **options: Any) -> ModuleRun:
    """Runs the module in its mode, also long after it was traced, for references."""
    with in_evaluation(module, training):
        return ModuleRun(module, *args, **options)


def _widened(module: Module, args: tuple[object, ...], kwargs: dict[str, object]) -> Any:
    """Returns the arguments with float32 in place of bfloat16, and the names of these inputs."""
    inputs = named_tensors(module, args, kwargs)
    narrow = [name for name, tensor in inputs.items() if tensor.dtype == torch.bfloat16]
    if not narrow:
        return args, kwargs, narrow
    return *_cloned((args, kwargs), {id(tensor): wide(tensor) for tensor in inputs.values()}), narrow


def _check_unseen(
    first: ModuleRun, changed: Callable[[Callable[[Tensor], Tensor]], ModuleRun], freeze_control_flow: bool
) -> None:
    """Rejects a captured tensor that depends on the inputs: a file would have the example's data for all."""
    is_seen = not first.recorder.origins.unknown
    if (
        is_seen or first.recorder.follows_gradients or freeze_control_flow
    ):  # that is compared, or said, elsewhere
        return
    try:
        from tmconvert.frontends.torch.tracing.data.perturbed_inputs import moved

        second = changed(moved)
    except (Exception, SystemExit):  # data that the module does not take says nothing
        return
    place = differing(*(each.recorder.origins.used(captured_tensors(each.tape)) for each in (first, second)))
    if place is not None:
        raise UnsupportedError(
            "TM2011",
            "the module computes a tensor from its inputs where tracing cannot follow, such as in another "
            "thread, in a subclass of Tensor, with set_() or with pickle",
            source=place,
            excerpt=linecache.getline(place.file, place.line or 0).strip(),
            notes=[("help", "compute it in the thread that calls the module, with functions of torch")],
        )


def _size_checks(
    runs: Runs, symbols: list[validate_dynamic_shapes.Symbol]
) -> dict[str, validate_dynamic_shapes.Agreement]:
    """Returns by symbol whether the module does the same at other sizes, and keeps what was seen."""
    first = runs.first
    has_buffers = first.tape.has_data_loops or runs.loops is not None  # which are made at plain sizes
    if first.recorder.follows_gradients or first.tape.has_plain_sizes or has_buffers:
        runs.recovery.learn(first.tape)
    elements = sum(tensor.numel() for tensor in runs.inputs.values())
    if not symbols:
        return {}
    from tmconvert.frontends.torch.tracing.sizes.lost_numbers import depends_on

    decides = functools.cache(lambda place: depends_on(runs, place, first, {}))
    checks = validate_dynamic_shapes.agreements(symbols, first.tape, runs.at_sizes, elements, decides)
    needed = set[Record]().union(*(each.needed for each in checks.values()))
    for each in checks.values():
        each.without_effect |= runs.without_effect - needed
    if runs.deciding:
        from tmconvert.frontends.torch.tracing.control_flow.size_ways import FurtherDecisions, deciding

        if further := deciding(checks, runs.loops) - {*runs.deciding}:
            raise FurtherDecisions(further)
    return checks


def _is_pinned(check: validate_dynamic_shapes.Agreement) -> bool:
    """Whether the calls depend on one value of a size, as those of a loop of ``n // 2`` rounds, or on several
    comparisons in a line, as those of ``while t < n // 2``.
    """
    lines = [str(each.source) for each in check.needed]
    return len({*lines}) < len(lines) or any(each.args[0] == "eq" and each.args[-1] for each in check.needed)


def _with_decisions(
    again: Callable[..., TracedModule],
    runs: Runs,
    checks: Mapping[str, validate_dynamic_shapes.Agreement],
) -> TracedModule | None:
    is_decided = any(check.needed or check.lost for check in checks.values())
    is_decided = is_decided or bool(runs.first.tape.data_numbers)
    if runs.first.recorder.freeze_control_flow or not is_decided:
        return None
    from tmconvert.frontends.torch.tracing.control_flow.size_ways import with_both_sides, with_decided_numbers

    found = with_both_sides(again, runs.deciding, checks, runs.loops)
    return found or with_decided_numbers(again, runs.deciding, runs.first.tape)


def _check_empty_axes(runs: Runs) -> None:
    """Adds guards where the graph computes something else than the module for sizes of 0."""
    for symbol in runs.symbols:
        if runs.loops is not None and not runs.loops.is_search and symbol.place is not None:
            _check_no_round(runs, symbol)
        if symbol.is_part:
            empty = validate_dynamic_shapes.with_sizes(runs.inputs, runs.symbols, {symbol.name: 0})
            _check_empty(runs.first, symbol, functools.partial(runs.run, empty))


def _check_no_round(runs: Runs, symbol: validate_dynamic_shapes.Symbol) -> None:
    """Notes a size of 0 at which loops without a round do something else, or the module fails.

    The mean of no elements, which is no number, is another value in some runtimes.
    """
    empty = validate_dynamic_shapes.with_sizes(runs.inputs, runs.symbols, {symbol.name: 0})
    with suppress(Exception, SystemExit):  # the module's own, at a size that it does not take
        found, difference = runs.compared(empty)
        if not difference and not any(np.isnan(each).any() for each in found.outputs or ()):
            return
    runs.first.tape.note(
        f"the file is valid for {symbol.name} >= 1: where a loop has no round, the model fails or computes "
        "something else"
    )


def _check_empty(
    first: ModuleRun, symbol: validate_dynamic_shapes.Symbol, empty: Callable[[], ModuleRun]
) -> None:
    """Adds a guard for a part of a sum if the module computes something else where it is empty.

    The past of a first step is. A module that makes other calls there may compute the same: the graph is
    run.
    """
    try:
        other = empty()
    except (Exception, SystemExit):  # the module's own, at a size that it does not take
        return
    from tmconvert.frontends.torch.tracing.sizes.differences import (
        Calls,
        Comparison,
        at_least,
        without_guards,
    )

    compared = Comparison(Calls(first.tape), other.tape)
    if symbol.place is None or not compared.message:
        return
    try:
        with without_guards(first.tape):
            graph = first.traced(of_run=True)
        made = [leaf for leaf in leaves(run_module(graph, other.inputs)) if isinstance(leaf, np.ndarray)]
    except Exception:  # what the interpreter cannot run at this size is not compared
        return
    if all(a.shape == b.shape and is_close(a, b) for a, b in zip(made, other.outputs, strict=True)):
        return
    tensor = dict(first.top.formal_inputs())[symbol.place.input]
    at_least(first.tape, tensor, symbol.place.axis, 1, compared.source)


def _fixed(
    wanted: validate_dynamic_shapes.Axes,
    fix: Mapping[str, int],
    inputs: Tensors,
    arguments: tuple[Args, Kwargs],
) -> tuple[validate_dynamic_shapes.Axes, Args, Kwargs]:
    """Returns the dynamic axes that are left, and the arguments with the sizes that ``fix`` has."""
    wanted = {
        name: {axis % inputs[name].dim(): size for axis, size in axes.items()}
        for name, axes in wanted.items()
    }
    left, shapes = fixed_axes(wanted, {name: tuple(each.shape) for name, each in inputs.items()}, fix)
    others = {}
    for name, tensor in inputs.items():
        others[id(tensor)] = tensor
        for axis, size in enumerate(shapes[name]):
            if tensor.shape[axis] != size:
                others[id(tensor)] = validate_dynamic_shapes.resized(others[id(tensor)], axis, size)
    return left, *_cloned(arguments, others)


def _with_traced_int(
    again: Callable[..., TracedModule], runs: Runs, known: Sequence[str], reasons: Mapping[str, str]
) -> TracedModule:
    """Traces again with ``int`` replaced in the files where it lost sizes; ``known`` are the earlier ones.

    Raises UnsupportedError TM2031 where that does not help.
    """
    from tmconvert.frontends.torch.tracing.loops.rolling import lost_sizes

    found = runs.first.tape.int_files
    lost = lost_sizes(runs.loops, runs.symbols, reasons)
    if found.keys() <= set(known):
        return _with_counters(again, runs, lost)
    try:
        return again(int_files=(*known, *found))
    except Exception as error:  # as without
        remains = isinstance(error, UnsupportedError) and error.code == lost.code
        raise (error if remains else lost) from None  # what ``int`` lost is no longer a reason


def _with_counters(again: Callable[..., TracedModule], runs: Runs, refused: UnsupportedError) -> TracedModule:
    """Traces again with comparisons of counters as decisions, if they may be why loops are ``refused``."""
    from tmconvert.frontends.torch.tracing.control_flow.size_ways import trace_deciding

    if refused.code == "TM2031" and runs.first.tape.has_ranges and runs.loops is None:
        with suppress(Exception):  # then its reason is the user's
            if (made := trace_deciding(again, runs.deciding, {ROUNDS})) is not None:
                return made
    raise refused


def _traced_again(
    module: Module, given: tuple[Args, Kwargs], arguments: tuple[Args, Kwargs] | None = None, **options: Any
) -> TracedModule:
    """Traces a module with the arguments ``given``, or with others."""
    args, kwargs = arguments or given
    return trace_module(module, args, kwargs, **options)


def _with_loops(
    again: Callable[..., TracedModule], runs: Runs, checks: Mapping[str, validate_dynamic_shapes.Agreement]
) -> TracedModule | None:
    """Traces again with loops over sizes as calls with a subgraph; None where there are none.

    A loop has to have some rounds to be found: where the example is short, the module runs with a longer one.
    """
    is_refused = any(each.reason for each in checks.values())
    before = None if runs.loops is None or runs.loops.is_static else runs.loops
    is_explained = any(each.needed if before else _is_pinned(each) for each in checks.values())
    if not (is_refused or is_explained) or (before is not None and not runs.deciding):
        return None
    from tmconvert.frontends.torch.tracing.loops.rolling import Loops, open_loops

    found = open_loops(runs.tape_at, runs.symbols) or (before and Loops(()))
    is_search = before is not None and before.is_search
    if found is None or (before is not None and not found.add(before)):
        return None
    found.signatures = None if runs.loops is not None and before is None else found.signatures
    found.refused = {each.name: each.number for each in runs.symbols if checks[each.name].reason}
    short = {each.name: max(found.sizes[each.name], each.number) for each in runs.symbols}
    longer = validate_dynamic_shapes.with_sizes(runs.inputs, runs.symbols, short)
    arguments = runs.clone({id(runs.inputs[name]): each for name, each in longer.items()})
    is_needed = is_refused and (found.signatures is None or found.signatures or found.reasons)
    with nullcontext() if is_needed or is_search else suppress(TmconvertError):  # else its sizes have a range
        try:
            traced = again(arguments=arguments, loops=found, deciding=runs.deciding)
        except UnsupportedError as refused:
            return _with_counters(again, runs, refused)
        traced.example = runs.first.example()
        return traced
    return None


def _by_input(wanted: validate_dynamic_shapes.Axes, inputs: Tensors) -> validate_dynamic_shapes.Axes:
    """Returns the sizes under the names of the inputs. Raises UsageError TM6014 for other names."""
    return {matching_input(name, list(inputs)): axes for name, axes in wanted.items()}


def _text_note(place: str) -> str:
    return (
        f"{place}: a size becomes text or a hash there, and what that is compared with is unknown; the model "
        "computes the same at all sizes that were tried"
    )


def _check_gradients(traced: TracedModule, other: ModuleRun) -> None:
    """Rejects a trace whose gradient is not fully recorded, as it would differ for other inputs."""
    made = [leaf for leaf in leaves(run_module(traced, other.inputs)) if isinstance(leaf, np.ndarray)]
    pairs = zip(made, other.outputs, strict=True)
    if not all(a.shape == b.shape and is_close(a, b) for a, b in pairs):
        raise refused(
            "the module computes a gradient with respect to its inputs, and its backward pass is not "
            "fully recorded"
        )


def _check_decisions(traced: TracedModule, found: str, freeze_control_flow: bool) -> None:
    """Rejects, or notes, what Python decides by data."""
    if found and not freeze_control_flow:
        raise UnsupportedError("TM2011", found, notes=[("help", integers.INSTEAD)])
    if found:
        traced.notes.append(f"decided by the example inputs: {found}")


# ---- data


def named_tensors(module: object, args: tuple[object, ...], kwargs: dict[str, object]) -> dict[str, Tensor]:
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


def _cloned(
    tree: object, others: Mapping[int, Tensor], copied: Callable[[Tensor], Tensor] = torch.clone
) -> Any:
    """Returns the arguments with each tensor copied, so that the module may write to them.

    ``others`` are what to take in the place of tensors, by their ids.
    """
    if isinstance(tree, torch.Tensor):
        return copied(others.get(id(tree), tree).detach())
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type) and type(tree) not in SUPPORTED_NODES:
        clone = copy.copy(tree)
        for field in dataclasses.fields(tree):
            object.__setattr__(clone, field.name, _cloned(getattr(tree, field.name), others, copied))
        return clone
    if type(tree) not in SUPPORTED_NODES and is_cache(tree):
        return cloned_object(tree, lambda tensor: _cloned(tensor, others, copied))
    return tree_map(lambda leaf: leaf if leaf is tree else _cloned(leaf, others, copied), tree)
