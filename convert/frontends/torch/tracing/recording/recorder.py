"""Records the calls of torch functions while a module runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from tmconvert.errors import TmconvertError, UnsupportedError
from tmconvert.frontends.torch.names import Name, aten_name, name_of
from tmconvert.frontends.torch.tracing.data import access
from tmconvert.frontends.torch.tracing.data.integers import NumberRead
from tmconvert.frontends.torch.tracing.recording import op_traits
from tmconvert.frontends.torch.tracing.recording.aliases import Aliases, Tracked, View, check_sizes, memory_of
from tmconvert.frontends.torch.tracing.recording.arrays import plain_constant
from tmconvert.frontends.torch.tracing.recording.copies import takes_storage
from tmconvert.frontends.torch.tracing.recording.python_functions import FunctionCopies
from tmconvert.frontends.torch.tracing.recording.source_lines import user_place
from tmconvert.frontends.torch.tracing.recording.state_guard import StateGuard
from tmconvert.frontends.torch.tracing.recording.tape import Outcomes, Record, Scope, Tape, Value
from tmconvert.frontends.torch.tracing.recording.untracked_tensors import Origins, version_of
from tmconvert.frontends.torch.tracing.sizes.integers import (
    LOST,
    TRACED,
    TracedInt,
    untraced,
    untraced_call,
)
from tmconvert.frontends.torch.tracing.sizes.replaced_functions import computation
from tmconvert.frontends.torch.tracing.sizes.scalar_tensors import SizeTensors
from tmconvert.frontends.torch.tracing.special.quantized import (
    PackedWeights,
    called_of_class,
    dtype_of,
    fake_quant_qparams_of,
    has_wrappers,
    made_of_tensors,
    qparams_of,
)
from tmconvert.frontends.torch.tracing.special.upcast_to_float32 import Float32Copies, float8_steps, widened
from tmconvert.ir.tree import Tree, leaves, leaves_of, map_leaves
from tmconvert.ir.types import Args, Kwargs

Function = Callable[..., Any]


class Recorder(TorchFunctionMode):
    """Writes a Tape. With ``follow_sizes`` all tensor sizes are TracedInts, else data-dependent ones only."""

    def __init__(
        self,
        top: Scope,
        *,
        follow_sizes: bool,
        freeze_control_flow: bool,
        follows_gradients: bool = False,
        replay: Outcomes | None = None,
    ) -> None:
        super().__init__()
        self.tape = Tape(top)
        self.replay = replay or {}  # the outcomes of comparisons that the module gets, whatever its sizes
        self.scope = top
        self.follow_sizes = follow_sizes
        self.freeze_control_flow = freeze_control_flow
        self.follows_gradients = follows_gradients  # what autograd follows is recorded as ATen ops
        self.guard = StateGuard()
        self.origins = Origins()
        self.size_tensors = SizeTensors(self)
        self.packed = PackedWeights()
        self.float32_copies = Float32Copies()
        self.aliases = Aliases(self._repeat, self._write_back, keeps=follows_gradients)
        self.fills_unseen = False  # whether C++ writes elements of new tensors past all modes
        self.written: dict[int, torch.Tensor] = {}  # of what was there before the run
        self.is_busy = False  # a recorded call runs: what it calls in turn is not of interest
        self.data_numbers: list[NumberRead] = []
        self.used_numbers: set[int] = set()  # identities of the Values whose sizes calls use
        self.has_open_sizes = False  # whether the shape of a tensor depends on data
        self.failure: TmconvertError | None = None
        self.is_batched = False  # a function that torch.vmap made runs: only its ATen ops are of interest
        self.load_dynamo: Callable[[], object] = lambda: None  # imports what the kernels of prims import
        self._kept: list[torch.Tensor] = []  # captured tensors stay, so that no other gets their id
        self._roots: dict[int | None, list[Tracked]] = {}  # captured tensors by their memory
        self._numbers: dict[tuple[Any, ...], Any] = {}
        self._names: dict[Any, Name] = {}
        self._copies = FunctionCopies(lambda function: op_traits.knows(self._name(function)))
        self.storages: dict[int | None, Any] = {}  # those that were read of tensors that depend on inputs
        self.running: list[Any] = []  # Python functions whose bodies are being traced

    # ---- calls

    def __torch_function__(self, func: Any, types: Any, args: Args = (), kwargs: Kwargs | None = None) -> Any:
        if self.is_batched:
            return func(*args, **kwargs or {})
        cls = next((each for each in types if made_of_tensors(each)), None)
        if cls is not None and not self.is_busy:
            return called_of_class(self, cls, func, types, args, kwargs or {})
        return self.called(func, args, kwargs or {})

    def called(self, function: Any, args: Args, kwargs: Kwargs) -> Any:
        """Records a call of a torch function, and returns its result."""
        if self.is_busy:
            return function(*args, **kwargs)
        function, args, kwargs = widened(self, function, *self.tape.with_tensors((args, kwargs)))
        steps = float8_steps(self, function, args, kwargs) or op_traits.body_call(function, args, kwargs)
        if steps is not None:
            with self:
                return steps()
        name = self._name(function)
        special = access.special(name, args)
        if special is not None:
            return special(self, function, args, kwargs)
        if has_wrappers(args) or (self.follows_gradients and op_traits.autograd_follows(args, kwargs)):
            return self.traced_through(name, function, args, kwargs)
        if op_traits.knows(name):
            return self.record(name, function, args, kwargs)
        if op_traits.is_assertion(name):
            return self.run(function, *map_leaves(untraced, args), **kwargs)
        if name.is_python and function not in self.running:
            return self._traced_body(function, args, kwargs)
        if name.is_python and name.is_method:  # torch names it when it calls the method of C++ in turn
            function = getattr(torch._C.TensorBase, name.text)
        return self.traced_through(name, function, args, kwargs)

    def _traced_body(self, function: object, args: tuple[object, ...], kwargs: dict[str, object]) -> Any:
        """Runs a Python function of torch, and records the calls inside."""
        self.running.append(function)
        try:
            with self:
                return self._copies.of(function)(*args, **kwargs)
        finally:
            self.running.pop()

    def traced_through(self, name: Name, function: Any, args: Args, kwargs: Kwargs) -> Any:
        """Runs a function that has no adapter, and records its inner calls.

        A result that is computed from plain numbers alone is a constant.
        """
        if not any(isinstance(leaf, (torch.Tensor, *TRACED)) for leaf in leaves((args, kwargs))):
            return self.origins.add(self.run(function, *args, **kwargs))
        plain_args, plain_kwargs = untraced_call(args, kwargs)
        from tmconvert.frontends.torch.tracing.recording.inner_ops import Inside

        with Inside(self, name) as inside:
            return inside.captured(function(*plain_args, **plain_kwargs))

    def record(self, name: Name, function: object, args: Args, kwargs: Kwargs) -> Any:
        """Runs a function, and puts the call on the tape."""
        if (joined := op_traits.rejoined(self, name, function, args, kwargs)) is not None:
            return joined
        if op_traits.looks_at_memory(name):
            args, kwargs = self._in_order(*args, **kwargs)
        elif op_traits.writes_to_memory(name):
            from tmconvert.frontends.torch.tracing.recording.view_writes import from_its_start

            args, kwargs = from_its_start(*args, **kwargs), {}
        else:
            args = self.size_tensors.in_call(name, args)
        arguments = (args, kwargs)
        given = leaves(arguments)
        tensors = [leaf for leaf in given if isinstance(leaf, torch.Tensor)]
        has_traced = any(isinstance(leaf, TRACED) for leaf in given)
        plain = untraced_call(args, kwargs) if has_traced else arguments
        recorded = map_leaves(self.value_of, arguments)
        if op_traits.may_write(name, function, args, kwargs):
            self._keep_data(tensors)
        versions = [version_of(tensor) for tensor in tensors]
        result = self.run(function, *plain[0], **plain[1])
        said = op_traits.written_by_schema(function, *plain)
        if any(tensor.is_inference() for tensor in tensors):
            said = said or op_traits.written_by_name(name, *plain)
        written = [
            tensor
            for tensor, version in zip(tensors, versions, strict=True)
            if version_of(tensor) != version or any(tensor is each for each in said)
        ]
        results = [leaf for leaf in leaves(result) if isinstance(leaf, torch.Tensor)]
        if not results and not written:
            return result
        if not leaves_of(Value, recorded) and op_traits.is_constant(name, plain):
            return self.origins.add(result)  # captured when it is used
        # of a statement such as x[0] = y the result is the new x
        bound = result if results else said if len(said) > 1 else written[0]
        self._bind(name, function, recorded, tensors, written, bound, results)
        if len(results) == 1 and (self.follow_sizes or not results[0].dim()):
            self.size_tensors.note(name, args, kwargs, results[0])
        return result

    def run(self, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Runs a function unrecorded."""
        self.is_busy = True
        try:
            return function(*args, **kwargs)
        finally:
            self.is_busy = False

    def _bind(
        self,
        name: Name,
        function: object,
        recorded: tuple[Any, Any],
        tensors: Sequence[torch.Tensor],
        written: list[torch.Tensor],
        result: object,
        results: list[torch.Tensor],
    ) -> None:
        """Puts a call on the tape, and assigns Values to its results and to the tensors that it wrote."""
        own = {id(tensor) for tensor in tensors}
        if not written and all(id(tensor) in own for tensor in results):
            return  # it returned what it got
        args, kwargs = recorded
        made = leaves_of(Value, (args, kwargs))
        depends = any(value.depends for value in made) and not op_traits.forgets_data(name)
        is_open = op_traits.is_open(name, args, kwargs, made) or any(value.is_open for value in made)
        self.has_open_sizes |= is_open
        outputs: dict[int, Value] = {}
        keeping = [] if op_traits.resizes(name) else written  # whose shape stays what it was
        closed = {id(each) for each in keeping if not self._tracked(each).value.is_open}
        qparams = self.run(fake_quant_qparams_of, name.text, args) if "fake_quantize" in name.text else None
        is_given = kwargs.get("out") is not None
        kwargs = {key: value for key, value in kwargs.items() if key != "out"}

        def output(tensor: torch.Tensor) -> Value:
            value = outputs.get(id(tensor))
            if value is None:
                hint = f"{aten_name(name.text, name.is_method).strip('_').rpartition(':')[2]}_out"
                value = Value(
                    self.scope,
                    hint,
                    tuple(tensor.shape),
                    None if is_given else dtype_of(tensor),
                    depends=depends,
                    is_open=is_open and tensor.dim() > 0 and id(tensor) not in closed,
                    qparams=qparams or qparams_of(tensor),
                )
                outputs[id(tensor)] = value
            return value

        tree = map_leaves(
            lambda leaf: output(leaf) if isinstance(leaf, torch.Tensor) else plain_constant(leaf), result
        )
        call = Record(name.text, name.is_method, args, kwargs, tree, user_place(), function)
        self.scope.items.append(call)
        if op_traits.lays_out(name):  # from now on the tensor is a view of what it was
            call.name, call.is_method = aten_name(name.text, name.is_method)[:-1], True
            before = View(self._tracked(written[0]), call, args[0], 0)
            self.aliases.add(written[0], outputs[id(written[0])], before)
            return
        if is_given:
            self._retype(results, outputs)
        self._write(written, outputs)
        for place, tensor in enumerate(leaves(result)):
            if isinstance(tensor, torch.Tensor) and id(tensor) not in own and not self.aliases.find(tensor):
                base = self.aliases.viewed_by(tensor, tensors)
                view = None if base is None else View(base, call, base.value, place)
                self.aliases.add(tensor, outputs[id(tensor)], view)

    def _retype(self, results: list[torch.Tensor], outputs: dict[int, Value]) -> None:
        """Casts results to the types of the tensors that they are written to."""
        for tensor in results:
            natural = outputs[id(tensor)]
            value = self._emit("to", natural, natural, plain_constant(tensor.dtype))
            value.dtype = dtype_of(tensor)
            outputs[id(tensor)] = value

    def _write(self, written: list[torch.Tensor], outputs: dict[int, Value]) -> None:
        for tensor in written:
            origin = self._origin(tensor)
            if origin is not None:
                self.written[id(origin)] = origin
            if id(tensor) in outputs:
                self.aliases.write(self._tracked(tensor), outputs[id(tensor)])

    # ---- values

    def value_of(self, leaf: object) -> Any:
        """Returns the representation on the tape of a leaf of an argument tree."""
        if isinstance(leaf, torch.Tensor):
            tracked = self._tracked(leaf)
            if tracked.has_moved(leaf):
                self.origins.forget(leaf)
                tracked = self.aliases.add(leaf, self.capture(leaf))
            return self.aliases.read(tracked)
        if isinstance(leaf, TRACED):
            is_own = getattr(leaf.note, "__self__", self) is self  # or of an earlier run, from a cache
            return self._number(leaf) if is_own and not isinstance(leaf, LOST) else untraced(leaf)
        if isinstance(leaf, torch.ScriptObject):
            return map_leaves(self.value_of, self.packed.parts(leaf))
        return plain_constant(leaf)

    def values_of(self, tree: Tree) -> Any:
        """Returns the representation of an argument tree, where calls are being recorded.

        What this reads of the tensors are no calls of the module: no mode of torch sees it.
        """
        with torch._C.DisableTorchFunction():
            return map_leaves(self.value_of, tree)

    def _tracked(self, tensor: torch.Tensor) -> Tracked:
        tracked = self.aliases.find(tensor)
        if tracked is None and self.follows_gradients:
            tracked = self.aliases.with_same_elements(tensor, user_place())
        if tracked is None:
            tracked = self.aliases.add(tensor, self.capture(tensor))
            self._join(tracked, tensor)
        return tracked

    def _join(self, tracked: Tracked, tensor: torch.Tensor) -> None:
        """Finds a captured tensor within the storage of another, such as a part of a buffer."""
        memory = memory_of(tensor)
        roots = self._roots.setdefault(memory, [])
        for other in roots if memory is not None else ():
            if other.value.dtype != tracked.value.dtype or other.view is not None:
                continue
            if other.covers(tracked):
                tracked.join(self._place(tracked, other))
                return
            if tracked.covers(other):
                tracked.memory = other.memory
                other.view = self._place(other, tracked)
                if other.memory.writes:
                    tracked.value = self._write_back(other, tracked.value, other.value)
                tracked.seen = other.memory.writes
        roots.append(tracked)

    def _place(self, part: Tracked, whole: Tracked) -> View:
        """Records a captured tensor as a view of a larger one."""
        args = (whole.value, part.shape, part.stride, part.offset - whole.offset)
        result = Value(self.tape.top, "part", part.shape, part.value.dtype)
        call = Record("as_strided", True, args, {}, result, user_place(), torch.as_strided)
        return View(whole, call, whole.value, 0)

    def capture(self, tensor: torch.Tensor) -> Value:
        """Returns the Value of a tensor that existed before the run, or that no recorded call computed."""
        if self.storages and memory_of(tensor) in self.storages:
            raise takes_storage()
        check_sizes(tensor)
        self._kept.append(tensor)
        self.origins.captured(tensor)
        return Value(
            self.tape.top,
            "const",
            tuple(tensor.shape),
            dtype_of(tensor),
            captured=tensor,
            qparams=qparams_of(tensor),
        )

    def _number(self, number: Any) -> Any:
        """Returns a Value of the current scope for a size; its computation is put on the tape."""
        kind, *operands = number.origin
        name, is_method = computation(kind)
        if is_method:
            self.used_numbers.add(id(operands[0]))
        else:
            operands = [self.value_of(operand) for operand in operands]
        key = (self.scope, kind, *operands, len(self.tape.decided))  # others after a decision
        if key not in self._numbers:
            is_open = any(isinstance(each, Value) and each.is_open for each in operands)
            value = Value(self.scope, f"{kind}_out", is_open=is_open)
            self.scope.items.append(Record(name, is_method, tuple(operands), {}, value, user_place()))
            self._numbers[key] = value
        return self._numbers[key]

    def shape_of(self, tensor: torch.Tensor) -> tuple[int, ...]:
        """Returns the sizes of a tensor, traced if they may differ in another run."""
        value = self.aliases.read(self._tracked(tensor))
        if not (value.is_open or (self.follow_sizes and value.captured is None)):
            return tuple(tensor.shape)
        if self.follow_sizes:
            self.tape.reads.add(tuple(tensor.shape), tensor.element_size())
        return tuple(
            TracedInt(extent, ("size", value, axis), self.note_comparison)
            for axis, extent in enumerate(tensor.shape)
        )

    def note_comparison(self, name: str, left: object, right: object, outcome: bool) -> bool:
        """Puts the outcome of a comparison of sizes on the tape, as a guard, and returns that of ``replay``.

        Notes a size that becomes text or a plain number.
        """
        if self.is_busy:
            return outcome
        from tmconvert.frontends.torch.tracing.sizes.lost_numbers import lost_sizes

        if (answer := access.answer_otherwise(self, name, left, right, outcome)) is not None:
            return answer
        lost, source = lost_sizes(left, right), user_place()
        place = (str(source), name)
        if lost:
            self.tape.lost.setdefault(place, lost)
        elif (answer := access.decided_size(self, name, (left, right), outcome, source)) is not None:
            return answer
        else:
            args = (name, self.value_of(left), self.value_of(right), bool(outcome))
            key = (self.scope, "assume", *args)
            if key not in self._numbers:
                self._numbers[key] = None
                self.scope.items.append(Record("tm.assume", False, args, {}, (), source))
        outcomes, earlier = self.tape.outcomes.setdefault(place, []), self.replay.get(place, ())
        own = outcome if name == "lost" else bool(outcome)
        outcomes.append(earlier[len(outcomes)] if len(outcomes) < len(earlier) else own)
        return outcomes[-1]

    # ---- writes and views

    def _keep_data(self, tensors: Sequence[torch.Tensor]) -> None:
        """Saves the data of tensors that a call may write to."""
        for tensor in tensors:
            origin = self._origin(tensor)
            if origin is not None:
                self.guard.about_to_write(origin)

    def _in_order(self, input: torch.Tensor, *args: object, **kwargs: object) -> tuple[Any, Any]:
        """Returns ``as_strided``'s arguments for contiguous elements. Raises UnsupportedError TM2012."""
        if len(args) < 3 and kwargs.get("storage_offset") is None:
            kwargs["storage_offset"] = input.storage_offset()
        root = self._tracked(input)
        own = root.value
        while root.view is not None:
            root = root.view.base
        if root.offset or not root.covers(root):
            raise UnsupportedError(
                "TM2012",
                "the module addresses the memory of a tensor whose elements are not contiguous",
                source=user_place(),
            )
        if root.value.dtype != own.dtype:
            raise UnsupportedError(
                "TM2012", f"the module addresses the memory of a tensor of {root.value.dtype} as {own.dtype}"
            )
        whole = root.reference()
        if whole is None:
            whole = self.run(torch.as_strided, input, root.shape, root.stride, 0)
            value = self.aliases.read(root)
            same = Record("detach", True, (value,), {}, value, user_place(), torch.detach)
            self.aliases.add(whole, value, View(root, same, value, 0))
        return (whole, *args), kwargs

    def set_data(self, tensor: torch.Tensor, source: torch.Tensor) -> None:
        """Gives ``tensor`` the storage of ``source``."""
        self._keep_data([tensor])
        base = self._tracked(source)
        viewed = self.aliases.read(base)
        value = self._emit("detach", viewed, viewed)
        call = self.scope.items[-1]
        assert isinstance(call, Record)
        self.run(setattr, tensor, "data", source)
        self.written[id(tensor)] = tensor
        self.aliases.add(tensor, value, View(base, call, viewed, 0))

    def _origin(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """Returns the tensor from before the run that shares this one's storage, if any."""
        tracked = self.aliases.find(tensor)
        while tracked is not None and tracked.view is not None:
            tracked = tracked.view.base
        if tracked is None:
            return tensor
        return tracked.reference() if tracked.value.captured is not None else None

    def _emit(self, method: str, like: Value, *args: object) -> Value:
        depends = any(value.depends for value in args if isinstance(value, Value))
        shape = None if method == "reshape" else like.shape
        value = Value(
            self.scope,
            f"{method.strip('_')}_out",
            shape,
            like.dtype,
            depends=depends,
            is_open=like.is_open,
            qparams=like.qparams,
        )
        self.scope.items.append(Record(method, True, args, {}, value, user_place()))
        return value

    def _write_back(self, tracked: Tracked, base: Value, new: Value) -> Value:
        from tmconvert.frontends.torch.tracing.recording.view_writes import written_back

        return self.run(written_back, self._emit, self.capture, tracked, base, new)

    def _repeat(self, view: View, base: Value) -> Value:
        """Repeats the call of a view for the current content of its base."""
        call = view.call
        results = [
            Value(
                self.scope,
                leaf.hint,
                leaf.shape,
                leaf.dtype,
                depends=base.depends,
                is_open=leaf.is_open,
                qparams=leaf.qparams,
            )
            for leaf in call.results()
        ]
        fresh = iter(results)
        tree = map_leaves(lambda leaf: next(fresh) if isinstance(leaf, Value) else leaf, call.result)
        args, kwargs = map_leaves(
            lambda leaf: base if leaf is view.viewed else leaf, (call.args, call.kwargs)
        )
        self.scope.items.append(
            Record(call.name, call.is_method, args, kwargs, tree, user_place(), call.function)
        )
        places = [place for place, leaf in enumerate(leaves(call.result)) if isinstance(leaf, Value)]
        return results[places.index(view.place)]

    # ---- functions

    def _name(self, function: object) -> Name:
        try:
            return self._names[function]
        except KeyError:
            name = self._names[function] = name_of(function)
            return name
        except TypeError:  # it has no hash
            return name_of(function)
