"""The runs of a module: with its example inputs, at other sizes, on other data, and by itself."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from tmconvert.errors import TmconvertError
from tmconvert.frontends.torch.tracing.data.integers import IntTaken
from tmconvert.frontends.torch.tracing.data.outside import Outside, generators_in, taken_from_outside
from tmconvert.frontends.torch.tracing.module_run import (
    ONE_AT_A_TIME,
    Answers,
    ModuleRun,
    copied,
    first_run,
    have_same_outputs,
    products_of_stand_ins,
    run_like_plain,
    stored_weights_of,
)
from tmconvert.frontends.torch.tracing.recording.arrays import has_stand_ins
from tmconvert.frontends.torch.tracing.recording.modes import in_evaluation, modules_of
from tmconvert.frontends.torch.tracing.recording.objects import opener
from tmconvert.frontends.torch.tracing.recording.state_guard import StateGuard, same_folder, same_randomness
from tmconvert.frontends.torch.tracing.recording.structure import Tensors, plain_structure
from tmconvert.frontends.torch.tracing.recording.tape import Forced, Outcomes, Record, Tape
from tmconvert.frontends.torch.tracing.sizes import validate_dynamic_shapes
from tmconvert.frontends.torch.tracing.sizes.code_constants import ReadingCode
from tmconvert.frontends.torch.tracing.special.gradients import GradientTaken
from tmconvert.frontends.torch.tracing.special.quantized import observers_at_rest
from tmconvert.frontends.torch.tracing.special.upcast_to_float32 import is_widened, wide_state
from tmconvert.ir.arrays import are_equal
from tmconvert.ir.traced_module import Example
from tmconvert.ir.tree import leaves

if TYPE_CHECKING:
    from tmconvert.frontends.torch.tracing.control_flow.size_ways import TriedSizes
    from tmconvert.frontends.torch.tracing.loops.rolling import Loops
    from tmconvert.frontends.torch.tracing.sizes.differences import Calls, Comparison
    from tmconvert.frontends.torch.tracing.sizes.recovered import SizeRecovery
    from tmconvert.frontends.torch.tracing.sizes.rerun import Rerun

OTHER_OUTPUTS = (
    "the module returns other outputs while torch.compiler.is_exporting() is true: the file has these, and "
    "is compared with these"
)
Outputs = tuple[np.ndarray, ...]
MOST_SAVED = 1 << 30  # bytes of parameters: few modules write to larger ones, whose copy may not fit


class Runs:
    """The runs of a module: ``first`` with its example inputs, others at other sizes and on other data.

    A branch on sizes whose two ways compute the same, such as padding by nothing, does not matter. So a run
    that takes another branch than ``first`` is repeated with the outcomes of comparisons that ``first`` had.
    ``clone`` copies arguments, with other tensors in the place of some, by their ids. ``original`` is the
    module by itself, None where it does not compute in the types of the traced run.
    """

    def __init__(
        self,
        once: Callable[..., ModuleRun],
        clone: Callable[[Mapping[int, torch.Tensor]], Any],
        inputs: Tensors,
        symbols: Sequence[validate_dynamic_shapes.Symbol],
        untouched: UntouchedModule,
        int_files: Sequence[str] = (),
        loops: Loops | None = None,
        deciding: Collection[tuple[str, str]] = (),
    ) -> None:
        self.loops = loops  # to roll on all tapes
        self.without_effect: set[Record] = set()  # comparisons of the first run, where its graph is right
        self.deciding = deciding  # comparisons of sizes whose both sides are wanted
        self._endless: set[str] = set()  # loops that end on data alone
        self._tried_sizes: dict[Any, TriedSizes] = {}  # by the decisions that are no comparisons of sizes
        self.once, self.clone, self._code = once, clone, ReadingCode()
        self.inputs, self.symbols = inputs, symbols
        self.untouched = untouched
        self.int_files = dict.fromkeys(int_files)  # modules whose code converts tensors or sizes by ``int``
        self.answers = [Answers(True, False), Answers(False, False)]
        if symbols:
            self.answers.insert(0, Answers(True, True))
        self.first = first_run(lambda: self.run({}), self.answers)  # which other runs are compared with
        self.first = self._with_traced_int(self.first)
        self.original = untouched if self._returns_the_same() else None
        self.first.expected = untouched.first if self.original else None
        untouched.sides = [side.inputs for side in self.first.sides if side.inputs is not None]
        self._replay: Outcomes | None = None  # of all runs at the sizes of the example
        self._known: dict[tuple[tuple[str, int], ...], ModuleRun] = {}
        self._calls: tuple[Calls, bool] | None = None  # of the first run, before or after recovery

    @functools.cached_property
    def rerun(self) -> Rerun:
        """Runs the module at other sizes for references."""
        from tmconvert.frontends.torch.tracing.sizes.rerun import Rerun

        outputs = None if has_stand_ins(self.first.module) else self.first.outputs
        first = Example(self.first.inputs, outputs)
        return Rerun(self.compared, self.inputs, first, self.original)

    def _with_traced_int(self, first: ModuleRun) -> ModuleRun:
        """Returns a run in which ``int`` and ``float`` keep sizes traced, in the files that convert sizes."""
        found = first.tape.int_files.keys() - self.int_files.keys()
        if not found:
            return first
        before = dict(self.int_files)
        self.int_files.update(dict.fromkeys(sorted(found)))
        other = self.tried({}, None)
        if other is not None and have_same_outputs(other, first):
            return self._with_traced_int(other)
        self.int_files = before
        return first

    def _returns_the_same(self) -> bool:
        """Whether the module by itself returns outputs of the types of the traced run, in float32 like it.

        A module may return others while ``torch.compiler.is_exporting()`` is true. A note says so.
        """
        found, tape = self.untouched.first, self.first.tape
        if found is None or is_widened(tape.notes):
            return False
        is_same = [each.dtype for each in found] == [each.dtype for each in self.first.outputs]
        if not is_same:
            tape.note(OTHER_OUTPUTS)
        return is_same

    @functools.cached_property
    def recovery(self) -> SizeRecovery:
        """Recovers sizes that are plain numbers on the tapes."""
        from tmconvert.frontends.torch.tracing.sizes.recovered import SizeRecovery

        return SizeRecovery(self.symbols, self.resized)

    def run(
        self,
        others: Tensors,
        replay: Outcomes | None = None,
        *,
        like_plain: bool = True,
        known: ModuleRun | None = None,
    ) -> ModuleRun:
        """Runs the module with other inputs, by name; comparisons have the outcomes of ``replay``.

        Where the module fails at other sizes, its lengths follow the sizes. Unless ``like_plain``, only the
        first run says whether the module computes the same with plain integers: for runs whose outputs are
        compared with those of others, or at the sizes of the first. ``known`` is the run with sizes that are
        followed, where it was made before.
        """

        def run(given: Tensors) -> ModuleRun:
            follow_sizes = bool(self.symbols)
            if not like_plain and not self.first.tape.unlike_plain:
                return self._once(given, replay, follow_sizes)
            return run_like_plain(
                lambda follow: known if known and follow else self._once(given, replay, follow),
                follow_sizes,
                lambda: self.untouched.outputs(given) if given else self.untouched.first,
            )

        try:
            return run(others)
        except Exception as error:
            from tmconvert.frontends.torch.tracing.data.perturbed_inputs import lengths_like_sizes

            longer = lengths_like_sizes(self.inputs, others)
            if not longer or isinstance(error, TmconvertError):
                raise
            try:
                return run({**others, **longer})
            except Exception:
                raise error from None

    def _once(self, others: Tensors, replay: Outcomes | None, follow_sizes: bool) -> ModuleRun:
        """Returns a run whose recording has both sides of all decisions on data."""
        found = self._one_way(others, replay, follow_sizes, None)
        if found.tape.decided:
            from tmconvert.frontends.torch.tracing.control_flow.both_sides import BothSides
            from tmconvert.frontends.torch.tracing.control_flow.size_ways import TriedSizes, candidates

            def run(changed: Tensors, forced: Forced | None) -> ModuleRun:
                return self._one_way({**others, **changed}, replay, follow_sizes, forced)

            def resized(run: ModuleRun) -> Iterator[tuple[str, Tensors]]:
                return candidates(
                    self.symbols, self.inputs, {**self.inputs, **others, **run.changed}, run.tape
                )

            given = {**self.inputs, **others}
            key = (follow_sizes, self.answers[0], repr(replay), *self.int_files)
            tried = self._tried_sizes.setdefault(key, TriedSizes())
            options = {"is_example": not others, "rolls": self.loops is not None}
            sides = BothSides(run, given, self._endless, resized=resized, tried=tried, **options)
            found = sides.joined(found)
        if self.loops is not None:
            self.loops.roll(found.tape)
        return found

    def _one_way(
        self, others: Tensors, replay: Outcomes | None, follow_sizes: bool, forced: Forced | None
    ) -> ModuleRun:
        """Runs the module with answers for its first decisions."""
        replaced = {id(self.inputs[name]): tensor for name, tensor in others.items()}
        options: dict[str, Any] = {"follow_sizes": follow_sizes, "answers": self.answers[0], "replay": replay}
        options["forced"], options["deciding"], options["code"] = forced, self.deciding, self._code
        while True:
            options["int_files"] = tuple(self.int_files)
            try:
                return self.once(*self.clone(replaced), **options)
            except GradientTaken:
                options["follows_gradients"] = True
            except IntTaken as taken:
                self.int_files[taken.file] = None

    def changed(self, change: Callable[[torch.Tensor], torch.Tensor]) -> ModuleRun:
        """Runs the module on other data."""
        others = {name: change(tensor) for name, tensor in self.inputs.items()}
        return self.run(others, self._replay, like_plain=False)

    def decided_by_data(self) -> str:
        """Returns what Python decides by data, with the place; empty for nothing.

        A comparison of data-dependent sizes may have another outcome on other data if the recorded calls
        compute the same there, or fail. Such a comparison stays on the tape, and is reported.
        """
        tape = self.first.tape
        if not (self.first.recorder.has_open_sizes or tape.data_texts or tape.with_floats):
            return ""
        from tmconvert.frontends.torch.tracing.data.perturbed_inputs import OTHER_DATA
        from tmconvert.frontends.torch.tracing.sizes.differences import difference_of_data, other_decision

        for change in OTHER_DATA:
            try:
                found = self.changed(change)
            except (Exception, SystemExit):  # data that the module does not take says nothing
                continue
            other, _ = difference_of_data(self.first.tape, found.tape)
            if other:
                return f"the module converts data, or a data-dependent size, to a plain value: {other}"
            place = other_decision(self.first.tape, found.tape)
            if place and self._computes_otherwise(found, change):
                return f"the module computes something else if data-dependent sizes differ: {place}"
        from tmconvert.frontends.torch.tracing.sizes.lost_decisions import LOST_NUMBER
        from tmconvert.frontends.torch.tracing.sizes.lost_numbers import depends_on

        for key, sizes in tape.lost.items():
            is_of_data = any(value is not None and value.is_open for value, _ in sizes)
            if is_of_data and depends_on(self, key, self.first, {}):
                return LOST_NUMBER.format(key[0])
        return ""

    def _computes_otherwise(self, found: ModuleRun, change: Callable[[torch.Tensor], torch.Tensor]) -> bool:
        """Whether the branches of the first run give other outputs on other data than the module itself."""
        others = {name: change(tensor) for name, tensor in self.inputs.items()}
        like_first = self.tried(others, self.first.tape.outcomes)
        return like_first is not None and not have_same_outputs(like_first, found)

    def compared(self, others: Tensors) -> tuple[Example, str]:
        """Returns what a run computes, and how it differs from the first one."""
        found = self.run(others)
        return found.example(), self._like_first(found, others)[1]

    def at_sizes(self, sizes: Mapping[str, int]) -> Comparison:
        """Compares a run with these numbers of elements for symbols with the first one."""
        others = self.sized(sizes)
        found = self.run(others, known=self._known.pop((*sizes.items(),), None))
        like, difference = self._like_first(found, others)
        self.rerun.remember(found.example(), difference)
        if self._has_joined_calls() and not difference and like.message:
            from tmconvert.frontends.torch.tracing.control_flow.size_ways import decided_otherwise

            self.without_effect |= decided_otherwise(self.first.tape, found.tape)
            return self._with_first(self.first.tape)  # whose graph computes the same
        return like

    def _has_joined_calls(self) -> bool:
        """Whether the calls of the first run were joined to loops and branches: at few rounds, and where the
        sides have more in common, they are others that compute the same.
        """
        return self.loops is not None or self.first.tape.has_data_loops or bool(self.deciding)

    def tape_at(self, sizes: Mapping[str, int]) -> Tape:
        """Returns the tape of a run with these numbers of elements."""
        return self.run(self.sized(sizes)).tape

    def resized(self, symbol: validate_dynamic_shapes.Symbol, number: int) -> Tape:
        """Returns the tape of a run at this size, if possible with the calls of the first one."""
        key, others = ((symbol.name, number),), self.sized({symbol.name: number})
        found = self._known[key] = self._known.get(key) or self.run(others, like_plain=False)
        from tmconvert.frontends.torch.tracing.sizes.recovered import called

        if called(found.tape) == called(self.first.tape):
            return found.tape
        return (self._replayed(others, self.first, found) or found).tape

    def choose_path(self) -> None:
        """Makes ``first`` take the branches of other sizes, where those of the example are valid there alone.

        As where the example is padded by nothing, or needs no interpolation.
        """
        sizes: dict[str, int] = {}
        for symbol in self.symbols if self.first.tape.outcomes else ():
            from tmconvert.frontends.torch.tracing.sizes.recovered import called

            for number in symbol.neighbours():
                tried = {**sizes, symbol.name: number}
                other = self.tried(self.sized(tried), None)
                if other is not None and len(tried) == 1:
                    self._known[(symbol.name, number),] = other
                if other is None or called(other.tape) == called(self.first.tape):
                    continue
                if self._replayed(self.sized(tried), self.first, other) is not None:
                    continue
                chosen = self._replayed({}, other, self.first)
                if chosen is not None:
                    chosen.outputs, chosen.expected = self.first.outputs, self.first.expected
                    self.first, self._replay, sizes = chosen, other.tape.outcomes, tried

    def _like_first(self, found: ModuleRun, others: Tensors) -> tuple[Comparison, str]:
        """Compares a run on these inputs, with the calls of the first one if it computes the same; returns
        also how its calls differ from those.
        """
        compared, difference = self._difference(found)
        if not difference or found.tape.unlike_plain:
            return compared, difference
        replayed = self._replayed(others, self.first, found)
        if replayed is not None:
            like, other = self._difference(replayed)
            if not other:
                return like, ""
        return compared, difference

    def _replayed(self, others: Tensors, path: ModuleRun, expected: ModuleRun) -> ModuleRun | None:
        """Returns a run with the outcomes of comparisons of another; None if it does not compute the same, or
        does on some data only, as one without a decision on data.
        """
        if path.tape.outcomes == expected.tape.outcomes:
            return None
        found = self.tried(others, path.tape.outcomes)
        if found is None or not have_same_outputs(found, expected):
            return None
        return (
            found if {each.place for each in expected.sides} <= {each.place for each in found.sides} else None
        )

    def tried(self, others: Tensors, replay: Outcomes | None) -> ModuleRun | None:
        try:
            return self.run(others, replay, like_plain=False)
        except (Exception, SystemExit):  # the module's own, at a size that it does not take
            return None

    def sized(self, sizes: Mapping[str, int]) -> dict[str, torch.Tensor]:
        """Returns the inputs for these sizes of symbols."""
        return validate_dynamic_shapes.with_sizes(self.inputs, self.symbols, sizes)

    def _difference(self, found: ModuleRun) -> tuple[Comparison, str]:
        """Compares a run with the first one; the text is empty where both compute the same by other calls."""
        self.recovery.recover(found.tape)
        compared = self._with_first(found.tape)
        if compared.reason and self._has_joined_calls():
            from tmconvert.frontends.torch.tracing.loops.rolling import compute_the_same

            return compared, "" if compute_the_same(self.first, found) else compared.reason
        return compared, compared.reason

    def _with_first(self, other: Tape) -> Comparison:
        """Compares a tape with the first one, whose calls are numbered once."""
        from tmconvert.frontends.torch.tracing.sizes.differences import Calls, Comparison

        tape = self.first.tape
        if self._calls is None or self._calls[0].tape is not tape or self._calls[1] != tape.is_recovered:
            self._calls = Calls(tape), tape.is_recovered
        return Comparison(self._calls[0], other)


# ---- the module by itself


class UntouchedModule:
    """A module, or a function of tensors, that runs by itself; see ``ir.traced_module.Original``.

    Its state, the random number generators and the current folder are afterwards what they were before.
    ``clone`` copies the arguments, with other tensors in the place of some, by their ids; ``inputs`` are
    these tensors by name; ``training`` keeps the module's mode. ``name`` is that of the program that runs it.
    """

    def __init__(
        self,
        module: Callable[..., Any],
        clone: Callable[[Mapping[int, torch.Tensor]], Any],
        inputs: Tensors,
        training: bool = False,
    ) -> None:
        self.name, self.refusal, self.saturates = f"PyTorch {torch.__version__}", "", False
        self.sides: Sequence[Sequence[np.ndarray]] = ()
        self._module, self._clone, self._inputs = module, clone, inputs
        self._owners = list(_owners(module))
        self._modules, self._training = modules_of(module), training
        self.first = self.outputs({})
        self._is_same: bool | None = None  # as it was when it was traced

    def __reduce__(self) -> tuple[Any, ...]:
        """Leaves the module out of pickled models: None takes the place of this object."""
        return type(None), ()

    def outputs(self, others: Tensors, rounding: tuple[int, int] | None = None) -> Outputs | None:
        """Returns the outputs, with other inputs by name; None where the module raises an error.

        ``rounding`` is the seed and the units of other rounding, if any.

        Gradients are followed only where the module needs them, as it then holds all activations.
        """
        replaced = {id(self._inputs[name]): tensor for name, tensor in others.items()}
        for follows_gradients in (False, True):
            try:
                with self._as_it_is(follows_gradients), _rounded(rounding):
                    args, kwargs = self._clone(replaced)
                    made = leaves(plain_structure(self._module(*args, **kwargs), opener("returns")))
                    tensors = [leaf for leaf in made if isinstance(leaf, torch.Tensor)]
                    self.refusal = ""
                    return tuple(copied(tensor, self._module) for tensor in tensors)
            except (Exception, SystemExit) as error:  # the module's own
                what = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
                self.refusal = f"the module fails in {self.name} ({what})"
                if "grad" not in what:
                    break
        return None

    def run(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray] | None:
        """Returns the outputs for arrays in order; None where the module raises, or is no longer the same."""
        return self._run(inputs, None)

    def run_rounded(self, inputs: Sequence[np.ndarray], seed: int, units: int) -> list[np.ndarray] | None:
        """Returns the outputs with noise of ``units`` in the last place of floats; in float64 for 0 units."""
        return self._run(inputs, (seed, units))

    def _run(self, inputs: Sequence[np.ndarray], rounding: tuple[int, int] | None) -> list[np.ndarray] | None:
        tensors = list(self._inputs.values())
        if [array.ndim for array in inputs] != [tensor.dim() for tensor in tensors]:
            self.refusal = "the module takes inputs of other ranks"
            return None
        if not self._is_unchanged():
            self.refusal = "the module is no longer what was traced"
            return None
        pairs = zip(self._inputs.items(), inputs, strict=True)
        others = {
            name: torch.from_numpy(np.array(array)).to(tensor.device, tensor.dtype)
            for (name, tensor), array in pairs
        }
        with stored_weights_of(self._module):
            made = self.outputs(others, rounding)
        return None if made is None else list(made)

    def _is_unchanged(self) -> bool:
        if self._is_same is None:
            again = self.outputs({})
            self._is_same = again is not None and self.first is not None and are_equal(again, self.first)
        return self._is_same

    @contextmanager
    def _as_it_is(self, follows_gradients: bool) -> Iterator[None]:
        """Restores all that a run changes, and has the modules in the modes that they are traced in."""
        guard = StateGuard()
        with ExitStack() as stack:
            stack.enter_context(ONE_AT_A_TIME)
            stack.enter_context(in_evaluation(self._module, self._training))
            for context in (torch.set_grad_enabled(follows_gradients), same_folder(), same_randomness()):
                stack.enter_context(context)
            for tensor in savable(guard.add_modules(self._owners + self._modules)):
                guard.about_to_write(tensor)
            guard.about_to_differentiate()
            stack.callback(guard.restore)
            held = [*guard.generators, *generators_in([self._module, *self._modules])]
            stack.enter_context(taken_from_outside(Outside(), held))
            stack.enter_context(wide_state(self._module))
            stack.enter_context(products_of_stand_ins(self._module))
            stack.enter_context(observers_at_rest(self._modules))
            yield


def _rounded(rounding: tuple[int, int] | None) -> AbstractContextManager[Any]:
    if rounding is None:
        return nullcontext()
    from tmconvert.frontends.torch.tracing.special.other_rounding import OtherRounding

    return OtherRounding(*rounding)


def savable(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Returns the tensors that can be copied and put back; without the parameters where these are large."""
    plain = [each for each in tensors if type(each) in (torch.Tensor, torch.nn.Parameter)]
    dense = [each for each in plain if each.layout == torch.strided and not each.is_meta]
    parameters = {id(each) for each in dense if isinstance(each, torch.nn.Parameter)}
    is_large = sum(each.nbytes for each in dense if id(each) in parameters) > MOST_SAVED
    return [each for each in dense if not (is_large and id(each) in parameters)]


def _owners(module: Any) -> Iterator[Any]:
    """Yields what holds state: the module, and what a function, or a method, refers to."""
    if isinstance(module, torch.nn.Module):
        yield module
        return
    yield from (each for each in (getattr(module, "__self__", None),) if hasattr(each, "__dict__"))
    with suppress(TypeError, ValueError):
        found = inspect.getclosurevars(inspect.unwrap(module))
        held = {**found.globals, **found.nonlocals}
        yield from (each for each in held.values() if isinstance(each, torch.nn.Module))
        yield SimpleNamespace(**held)
