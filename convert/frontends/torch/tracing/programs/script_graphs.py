"""Runs the graph of a script op by op where its control flow depends on data, or sizes are followed.

TorchScript itself takes one branch. Here both branches of such an ``If`` are traced, as those of torch.cond,
and such a ``Loop`` like torch.while_loop. A number that depends on data is represented by a tensor of rank 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch

from tmconvert.errors import UnsupportedError
from tmconvert.frontends.torch.tracing.programs.script_layers import FUSED
from tmconvert.frontends.torch.tracing.recording.source_lines import user_place
from tmconvert.frontends.torch.tracing.sizes.script_arithmetic import (
    as_python,
    as_tensor,
    computed,
    constant,
    has_layers,
    inlined,
    is_arithmetic,
    is_followed,
    makes_integers,
    plain,
    with_tensors,
)
from tmconvert.frontends.torch.tracing.special.branches import conditional, while_loop
from tmconvert.ir.types import Kwargs

if TYPE_CHECKING:
    from tmconvert.frontends.torch.tracing.recording.recorder import Recorder

_NUMBERS = (
    *("aten::Bool", "aten::Float", "aten::FloatImplicit", "aten::Int", "aten::IntImplicit"),
    "aten::item",
)
_CASTS = {"aten::Bool": torch.bool, "aten::Int": torch.int64, "aten::IntImplicit": torch.int64}
_MADE_OF_NUMBERS = ("aten::arange", "aten::full", "aten::linspace", "aten::scalar_tensor")
_ENDLESS = 2**63 - 1  # trips of a while loop
_COUNTS = (bool, int, float)


def decides_by_data(script: object) -> bool:
    """Whether a script function or method has a condition, or a number of trips, read from a tensor."""
    try:
        return _depends_on_data(inlined(script))
    except RuntimeError:  # a method of C++ has no graph, such as those of packed weights
        return False


def hides_sizes(recorder: Recorder, script: object) -> bool:
    """Whether the run in C++ would lose what is to be followed, and the graph can be run op by op."""
    known = (*_STRUCTURES, "prim::Constant", "prim::If", "prim::Loop")
    # an integer of a tensor is traced as a size, where C++ takes plain ones only
    integers = makes_integers(script) and not recorder.freeze_control_flow
    return (recorder.follow_sizes or has_layers(script) or integers) and is_followed(script, known)


def _depends_on_data(graph: Any) -> bool:
    for node in graph.nodes():
        if node.kind() in ("prim::If", "prim::Loop"):
            decisions = [node.inputsAt(place) for place in range(1 + (node.kind() == "prim::Loop"))]
            if any(map(_is_read, decisions)):
                return True
        if any(_depends_on_data(block) for block in node.blocks()):
            return True
        if node.kind() == "prim::Loop" and _is_read(next(next(node.blocks()).outputs())):
            return True
    return False


def _is_read(number: Any) -> bool:
    """Whether a number is read from a tensor, or computed from such."""
    node = number.node()
    if node.kind() == "prim::If":
        place = [output.debugName() for output in node.outputs()].index(number.debugName())
        made = [list(block.outputs())[place] for block in node.blocks()]
        return _is_read(node.inputsAt(0)) or any(map(_is_read, made))
    if node.kind() in _NUMBERS:
        return _reads_tensor(node) or any(map(_is_read, filter(_is_number, node.inputs())))
    return is_arithmetic(node.kind()) and any(map(_is_read, filter(_is_number, node.inputs())))


def _reads_tensor(node: Any) -> bool:
    return node.kind() in _NUMBERS and node.inputsAt(0).type().kind() == "TensorType"


def run_script(
    recorder: Recorder, script: Any, args: Sequence[Any], kwargs: Kwargs, at: Callable[[Any], None]
) -> Any:
    """Runs a script function or method, whose ops the recorder sees; ``at`` gets each node before it runs.

    Raises UnsupportedError TM2011.
    """
    graph = inlined(script)
    given: list[Any] = [script.owner] if isinstance(script, torch._C.ScriptMethod) else []
    remaining = list(args)
    for argument in script.schema.arguments[len(given) :]:
        if remaining:
            given.append(remaining.pop(0))
        else:
            given.append(kwargs.get(argument.name, argument.default_value))
    results = _GraphRun(recorder, at).block(graph, {}, given)
    results = [as_tensor(*each) for each in zip(graph.outputs(), results, strict=True)]
    return results[0] if len(results) == 1 else tuple(results)


# of the first operand
_VIEWS = {
    f"aten::{name}"
    for name in ("select", "slice", "view", "narrow", "squeeze", "unsqueeze", "transpose", "permute", "t")
}


class _GraphRun:
    """Runs blocks of a graph; values are by their names, which are unique.

    While the recorder is busy, a loop that was traced before computes its results: it goes one way only.
    """

    def __init__(self, recorder: Recorder, at: Callable[[Any], None]) -> None:
        self.recorder = recorder
        self._at = at
        self._same: dict[str, list[bool]] = {}  # results of an If that are the same number in both branches

    def block(self, block: Any, outer: Kwargs, given: Sequence[Any]) -> list[Any]:
        """Returns the results of a block whose inputs are ``given``."""
        values = dict(outer)
        for name, value in zip(block.inputs(), given, strict=True):
            values[name.debugName()] = value
        for node in block.nodes():
            self._at(node)
            results = self._node(node, values)
            for output, result in zip(node.outputs(), results, strict=True):
                values[output.debugName()] = result
        return [values[output.debugName()] for output in block.outputs()]

    def _node(self, node: Any, values: Kwargs) -> list[Any]:
        kind = node.kind()
        if kind == "prim::Constant":
            return [constant(node)]
        args = with_tensors(node, [values[each.debugName()] for each in node.inputs()])
        if kind == "prim::If":
            return self._if(node, args[0], values)
        if kind == "prim::Loop":
            return self._loop(node, args, values)
        if kind in _STRUCTURES:
            return _STRUCTURES[kind](node, args)
        if kind in _NUMBERS and isinstance(args[0], torch.Tensor) and self._depends(args[0]):
            return [args[0].to(_CASTS[kind]) if kind in _CASTS else args[0]]
        if kind == "aten::__not__" and isinstance(args[0], torch.Tensor):
            return [torch.logical_not(args[0])]
        counted = computed(kind, args)
        if counted is not None:
            return counted[: node.outputsSize()]
        operation, _ = torch._C._jit_get_operation(kind)
        operation = FUSED.get(kind, operation)
        if operation is None:
            raise self._refused(f"TorchScript's {kind}, after a decision that depends on data")
        named = [] if node.schema() == "(no schema)" else torch._C.parse_schema(node.schema()).arguments
        if named:
            args = [as_python(each.name, arg) for each, arg in zip(named, args, strict=False)]
        if not _holds_tensors(args) and node.outputsSize() == 1 and _is_number(node.output()):
            args = [plain(arg) for arg in args]
        if kind in _MADE_OF_NUMBERS:  # which has no overload for a tensor
            args = [arg.item() if isinstance(arg, torch.Tensor) else arg for arg in args]
        # by name, since those after a number stand elsewhere in the overload for a tensor
        keywords = {
            each.name: arg
            for each, arg in zip(named, args, strict=False)
            if each.kwarg_only or each.has_default_value()
        }
        result = operation(*args[: len(args) - len(keywords)], **keywords)
        return list(result) if node.outputsSize() > 1 else [result][: node.outputsSize()]

    def _if(self, node: Any, condition: Any, values: Kwargs) -> list[Any]:
        blocks = list(node.blocks())
        if not isinstance(condition, torch.Tensor):
            return self.block(blocks[0 if condition else 1], values, ())
        safe = [block for block in blocks if not _raises(block)]
        if len(safe) == 1:  # an assertion
            return self.block(safe[0], values, ())
        constants: list[list[Any]] = []
        written = self._written(blocks, values)

        def branch(block: object) -> Callable[[], Any]:
            def traced() -> Any:
                own = {name: values[name].clone() for name in written}
                results = self.block(block, values | own, ())
                constants.append([None if _holds_tensors(result) else result for result in results])
                return (*(self._as_tensors(result) for result in results), *own.values())

            return traced

        if self.recorder.is_busy:
            results = self.block(blocks[0 if condition else 1], values, ())
            known = self._same[_key(node)]
            return [a if same else self._as_tensors(a) for a, same in zip(results, known, strict=True)]
        made = list(conditional(self.recorder, condition, branch(blocks[0]), branch(blocks[1]), ()))
        results = _write_back(made, written, values)
        taken, other = constants[:2]
        is_same = [a is not None and type(a) is type(b) and a == b for a, b in zip(taken, other, strict=True)]
        self._same[_key(node)] = is_same
        return [a if same else made for made, a, same in zip(results, taken, is_same, strict=True)]

    def _loop(self, node: Any, args: list[Any], values: Kwargs) -> list[Any]:
        (block,) = node.blocks()
        trips, goes_on, *state = args
        number = 0
        by_data = isinstance(trips, torch.Tensor) or _is_read(next(block.outputs()))
        while not by_data and not isinstance(goes_on, torch.Tensor):
            if not goes_on or number >= trips:
                return state
            goes_on, *state = self.block(block, values, (number, *state))
            number += 1
        return self._while(block, values, (number, trips, goes_on, state))

    def _while(self, block: object, values: Kwargs, start: tuple[int, Any, Any, list[Any]]) -> list[Any]:
        number, trips, goes_on, state = start
        is_endless = not isinstance(trips, torch.Tensor) and trips >= _ENDLESS
        limit = self._as_tensors(trips) if not is_endless else None
        if self.recorder.is_busy:
            while goes_on and (limit is None or number < limit):
                goes_on, *state = self.block(block, values, (number, *state))
                number += 1
            return [self._as_tensors(each) for each in state]

        written, size = self._written([block], values), len(state)

        def within(count: torch.Tensor, flag: torch.Tensor) -> torch.Tensor:
            return flag if limit is None else torch.logical_and(flag, count < limit)

        def condition(count: torch.Tensor, flag: torch.Tensor, *state: object) -> torch.Tensor:
            return within(count, flag)

        def body(count: torch.Tensor, flag: torch.Tensor, *state: Any) -> tuple[Any, ...]:
            own = {name: each.clone() for name, each in zip(written, state[size:], strict=True)}
            made, *after = self.block(block, values | own, (count, *state[:size]))
            return (count + 1, *(self._as_tensors(each) for each in (made, *after)), *own.values())

        carried = [self._as_tensors(each) for each in (number, goes_on, *state)]
        carried += [values[name] for name in written]
        if not all(isinstance(each, torch.Tensor) for each in carried):
            raise self._refused("a loop whose end depends on data carries lists or objects")
        after = list(while_loop(self.recorder, condition, body, carried, ()))[2:]
        return _write_back(after, written, values)

    def _written(self, blocks: Sequence[Any], values: Kwargs) -> list[str]:
        """Returns the tensors to which blocks write, by name; their views must not be used there, too."""
        written = _written_tensors(blocks, values)
        used = _used_names(blocks) if written else set()
        for name in written:
            others = (values.get(each) for each in used - {name})
            if any(_share_data(values[name], each) for each in others if isinstance(each, torch.Tensor)):
                raise self._refused("a loop or branch that writes to a tensor and uses a view of it, too")
        return written

    # ---- values

    def _depends(self, tensor: torch.Tensor) -> bool:
        return self.recorder.is_busy or bool(self.recorder.value_of(tensor).depends)

    def _as_tensors(self, value: object) -> Any:
        """Returns a number as a tensor of no axes; numbers of Python have 64 bits, floats 32 here."""
        if isinstance(value, _COUNTS):
            return self._constant(value, torch.float32 if isinstance(value, float) else None)
        if isinstance(value, (list, tuple)):
            return type(value)(self._as_tensors(each) for each in value)
        if isinstance(value, torch.Tensor):
            return value
        if value is None:
            return self._constant(0, None)
        raise self._refused(f"a branch that depends on data returns a {type(value).__name__}")

    def _constant(self, value: float, dtype: torch.dtype | None) -> torch.Tensor:
        if self.recorder.is_busy:
            return torch.tensor(value, dtype=dtype)
        made: torch.Tensor = self.recorder.run(torch.tensor, value, dtype=dtype)
        return made

    def _refused(self, what: str) -> UnsupportedError:
        return UnsupportedError("TM2011", f"the script has {what}", source=user_place())


def _written_tensors(blocks: Sequence[Any], values: Kwargs) -> list[str]:
    """Returns the names of tensors around blocks to which they write, also through views."""
    found: dict[str, None] = {}
    for node in (node for block in blocks for node in block.nodes()):
        found |= dict.fromkeys(_written_tensors(list(node.blocks()), values))
        kind = node.kind()
        if kind.startswith("aten::") and kind.endswith("_") and not kind.endswith("__"):
            value = node.inputsAt(0)
            while value.node().kind() in _VIEWS:
                value = value.node().inputsAt(0)
            if isinstance(values.get(value.debugName()), torch.Tensor):
                found[value.debugName()] = None
    return list(found)


def _used_names(blocks: Sequence[Any]) -> set[str]:
    """Returns the names of all operands in blocks."""
    nodes = [node for block in blocks for node in block.nodes()]
    inner = [_used_names(list(node.blocks())) for node in nodes]
    return {each.debugName() for node in nodes for each in node.inputs()}.union(*inner)


def _share_data(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()


def _write_back(made: list[Any], written: list[str], values: Kwargs) -> list[Any]:
    """Writes the last of the results of blocks to the tensors around them, and returns the others."""
    count = len(made) - len(written)
    for name, result in zip(written, made[count:], strict=True):
        values[name].copy_(result)
    return made[:count]


def _key(node: Any) -> str:
    return "|".join(output.debugName() for output in node.outputs())


def _is_number(value: Any) -> bool:
    return value.type().kind() in ("IntType", "FloatType", "BoolType")


def _raises(block: Any) -> bool:
    return any(node.kind() == "prim::RaiseException" for node in block.nodes())


def _holds_tensors(value: object) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_holds_tensors, value))
    return isinstance(value, torch.Tensor)


def _dict(node: object, args: list[Any]) -> list[Any]:
    return [dict(zip(args[::2], args[1::2], strict=True))]


def _tensor(node: object, args: list[Any]) -> list[Any]:
    """Returns a tensor of numbers; numbers that depend on data are tensors of rank 0."""
    dtype = as_python("dtype", args[1])
    if isinstance(args[0], torch.Tensor):
        return [args[0].clone() if dtype is None else args[0].to(dtype)]
    if _holds_tensors(args[0]):
        parts = [each if isinstance(each, torch.Tensor) else torch.tensor(each) for each in args[0]]
        return [torch.stack([part.to(dtype or torch.result_type(parts[0], part)) for part in parts])]
    return [torch.tensor(args[0], dtype=dtype)]


def _stft(node: object, args: list[Any]) -> list[Any]:
    has_center = len(args) > 9
    return [torch.stft(*(args if has_center else [*args[:5], False, "reflect", *args[5:]]))]


_STRUCTURES: dict[str, Callable[[Any, list[Any]], list[Any]]] = {
    "aten::as_tensor": _tensor,
    "aten::stft": _stft,
    "aten::tensor": _tensor,
    "prim::CallFunction": lambda node, args: [args[0](*args[1:])],
    "prim::CallMethod": lambda node, args: [getattr(args[0], node.s("name"))(*args[1:])],
    "prim::DictConstruct": _dict,
    "prim::GetAttr": lambda node, args: [getattr(args[0], node.s("name"))],
    "prim::ListConstruct": lambda node, args: [list(args)],
    "prim::ListUnpack": lambda node, args: list(args[0]),
    "prim::TupleConstruct": lambda node, args: [tuple(args)],
    "prim::TupleIndex": lambda node, args: [args[0][args[1]]],
    "prim::TupleUnpack": lambda node, args: list(args[0]),
    "prim::Uninitialized": lambda node, args: [None],
    "prim::unchecked_cast": lambda node, args: [args[0]],
    "prim::unchecked_unwrap_optional": lambda node, args: [args[0]],
}
