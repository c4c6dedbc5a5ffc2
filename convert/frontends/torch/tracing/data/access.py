"""Handles Python code that reads a tensor's sizes, data or length."""

from __future__ import annotations

import builtins
import math
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.hooks import RemovableHandle

from tmconvert.errors import UnsupportedError
from tmconvert.errors.source import Source
from tmconvert.frontends.torch.names import Name, aten_name
from tmconvert.frontends.torch.tracing.data.integers import (
    TEXTS,
    WHAT,
    NumberRead,
    file_of_caller,
    reads_data,
    traced_numbers,
)
from tmconvert.frontends.torch.tracing.recording import copies
from tmconvert.frontends.torch.tracing.recording.source_lines import is_assertion, user_place
from tmconvert.frontends.torch.tracing.recording.tape import ROUNDS
from tmconvert.frontends.torch.tracing.sizes.integers import (
    CONDITION,
    TO_NUMBER,
    TO_TEXT,
    TracedFloat,
    TracedInt,
    lost_number,
    untraced,
)
from tmconvert.frontends.torch.tracing.special import quantized

if TYPE_CHECKING:
    from tmconvert.frontends.torch.tracing.recording.recorder import Recorder
    from tmconvert.frontends.torch.tracing.recording.tape import Value

Special = Callable[["Recorder", Any, tuple[Any, ...], dict[str, Any]], Any]


def _shape(recorder: Recorder, function: object, args: tuple[Any, ...], kwargs: dict[str, object]) -> Any:
    return torch.Size(recorder.shape_of(args[0]))


def _size(recorder: Recorder, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    shape = recorder.shape_of(args[0])
    dim = args[1] if len(args) > 1 else kwargs.get("dim")
    return torch.Size(shape) if dim is None else shape[dim]


def _length(recorder: Recorder, function: object, args: tuple[Any, ...], kwargs: dict[str, object]) -> Any:
    recorder.run(function, *args)  # raises for tensors without axes
    return recorder.shape_of(args[0])[0]  # len() makes it a plain number, which a second run shows


def _numel(recorder: Recorder, function: object, args: tuple[Any, ...], kwargs: dict[str, object]) -> Any:
    shape = recorder.shape_of(args[0])
    if not any(isinstance(extent, TracedInt) for extent in shape):
        return recorder.run(function, *args, **kwargs)
    count: Any = 1
    for extent in shape:
        count = count * extent
    return count


def _sizes(recorder: Recorder, function: object, args: tuple[Any, ...], kwargs: dict[str, object]) -> Any:
    """``torch._shape_as_tensor``, which C++ fills where no mode sees it."""
    return recorder.called(torch.tensor, (list(recorder.shape_of(args[0])),), {"dtype": torch.int64})


def _stride(recorder: Recorder, function: object, args: tuple[Any, ...], kwargs: dict[str, object]) -> Any:
    """Strides of a tensor without gaps are products of its sizes, and traced as these are."""
    tensor, dims = args[0], list[Any]((*args[1:], *kwargs.values()))
    strides = list(recorder.run(tensor.stride))
    shape, extent = recorder.shape_of(tensor), 1
    for axis in sorted(range(len(shape) - 1, -1, -1), key=strides.__getitem__):
        if strides[axis] != extent:
            return recorder.run(tensor.stride, *dims)
        strides[axis] = extent
        extent = extent * shape[axis]
    return strides[dims[0]] if dims else tuple(strides)


def _bytes(recorder: Recorder, function: object, args: tuple[Any, ...], kwargs: dict[str, object]) -> Any:
    return _numel(recorder, torch.Tensor.numel, args, {}) * recorder.run(torch.Tensor.element_size, args[0])


def _look(recorder: Recorder, function: object, args: tuple[object, ...], kwargs: dict[str, object]) -> Any:
    """Returns the data of a tensor; it is a constant of the run only if it does not depend on an input."""
    operands = [arg for arg in (*args, *kwargs.values()) if isinstance(arg, torch.Tensor)]
    result = recorder.run(function, *args, **kwargs)
    name = getattr(function, "__name__", "").partition(".")[0]
    if recorder.size_tensors and len(operands) == 1:
        size = recorder.size_tensors.read(name, operands[0])
        if size is not None:
            return size
    values = [recorder.value_of(operand) for operand in operands]
    if not any(value.depends for value in values) or is_assertion():
        is_of_sizes = recorder.follow_sizes and any(value.captured is None for value in values)
        return _of_sizes(recorder, name, (args, kwargs), values, result) if is_of_sizes else result
    from tmconvert.frontends.torch.tracing.data.checks import is_in_check

    if is_in_check():
        recorder.tape.checks.setdefault(str(_place(recorder)))
        return result
    place, why = _place(recorder), ""
    if isinstance(result, bool) and not recorder.freeze_control_flow:
        from tmconvert.frontends.torch.tracing.control_flow.decisions import answer, why_undecidable

        why = why_undecidable(recorder)
        if (decided := answer(recorder, name, (args, kwargs), result, place)) is not None:
            return decided
    what = WHAT.get(name, "it is converted to a number or array of Python")
    numbers = traced_numbers(recorder, name, operands[0])
    if numbers is not None:
        recorder.data_numbers.append(NumberRead(numbers, place, what, file_of_caller()))
        return numbers
    if not recorder.freeze_control_flow:
        if type(result) is float:
            from tmconvert.frontends.torch.tracing.data import floats

            if (number := floats.read(recorder, name, operands[0], result)) is not None:
                return number
        raise reads_data(place, what, why)
    shown = repr(result) if isinstance(result, (bool, int, float)) else type(result).__name__
    recorder.tape.decisions.append(f"{place}: {what}, {shown} with the example inputs")
    return result


def _of_sizes(recorder: Recorder, name: str, arguments: Any, values: list[Value], result: Any) -> Any:
    """Returns the element of a tensor of sizes: the answer of a decision, or a lost number.

    Python takes plain numbers of some methods.
    """
    place = _place(recorder)
    if isinstance(result, bool) and (str(place), CONDITION) in recorder.tape.deciding:
        from tmconvert.frontends.torch.tracing.control_flow.decisions import answer

        if (decided := answer(recorder, name, arguments, result, place)) is not None:
            return decided
    made = lost_number(result, (*values,), recorder.note_comparison)
    if name in ("__int__", "__float__"):
        recorder.note_comparison(name.strip("_"), made, None, True)
    return untraced(made) if name in ("__int__", "__float__", "__index__") else made


def _place(recorder: Recorder) -> Source:
    """Returns the user's current line, or at least the module."""
    place, scope = user_place(), recorder.scope
    return place if place.file else Source("", None, scope.path, scope.class_name.rpartition(".")[2])


def _whole(recorder: Recorder, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``torch.sym_int``: truncates towards zero."""
    number = args[0]
    if isinstance(number, TracedFloat):
        return math.floor(number) if number >= 0 else math.ceil(number)
    return number if isinstance(number, TracedInt) else int(number)


def decided_size(
    recorder: Recorder, name: str, operands: tuple[Any, Any], outcome: bool, place: Source
) -> bool | None:
    """Returns the answer of a comparison of sizes that is a decision; None for others."""
    if (str(place), name) not in recorder.tape.deciding:
        return None
    from tmconvert.frontends.torch.tracing.control_flow.size_decisions import answer_sizes

    return answer_sizes(recorder, name, operands, outcome, place)


def answer_otherwise(recorder: Recorder, name: str, left: Any, right: Any, outcome: bool) -> bool | None:
    """Returns the answer to a comparison of a counter that is followed, a loop over a size, or a size that
    becomes text or a plain number; None for a comparison of sizes.
    """
    if name == "range":
        recorder.tape.has_ranges = True
        return ROUNDS in recorder.tape.deciding
    if name in TO_TEXT or name in TO_NUMBER:
        from tmconvert.frontends.torch.tracing.sizes.lost_numbers import note_conversion

        note_conversion(recorder.tape, name, left)
        return outcome
    if ROUNDS not in recorder.tape.deciding:
        return None
    from tmconvert.frontends.torch.tracing.loops.counters import Counted, answer_counter

    if not isinstance(left, Counted):
        return None
    return answer_counter(recorder, name, left, right, outcome, user_place())


def _symbolic(recorder: Recorder, function: Any, args: tuple[Any, ...], kwargs: dict[str, object]) -> Any:
    """torch's functions on symbolic sizes, applied to traced sizes like Python's."""
    return getattr(builtins, function.__name__.removeprefix("sym_"))(*args)


def _filled(recorder: Recorder, function: object, args: tuple[Any, ...], kwargs: dict[str, object]) -> Any:
    return recorder.called(torch.full, args[0].filled, kwargs)


def special(name: Name, args: tuple[object, ...] = ()) -> Special | None:
    """Returns the handler of a function that reads a tensor's data; None for a function that computes."""
    first = args[0] if args else None
    if isinstance(first, list) and name.text in FROM_LISTS and getattr(first, "filled", None):
        return _filled
    found = SPECIAL.get(name.text)
    if found is not None and name.is_method == (not name.text.startswith("torch.")):
        return found
    own = aten_name(name.text, name.is_method)
    return _look if own in READS else OF_SIZES.get(own)


def _set_data(recorder: Recorder, function: object, args: tuple[Any, ...], kwargs: dict[str, object]) -> None:
    recorder.set_data(*args)


def _text(recorder: Recorder, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The text of a tensor. Of many elements it is a message; of one it may be used in a decision, which may
    show in a run on other data.
    """
    from tmconvert.frontends.torch.tracing.data.checks import is_in_message, is_in_text

    if args[0].numel() > 1 or is_in_message():
        return recorder.run(function, *args, **kwargs)
    if not is_in_text() or recorder.freeze_control_flow:
        return _look(recorder, function, args, kwargs)
    if recorder.value_of(args[0]).depends:
        recorder.tape.data_texts.setdefault(str(_place(recorder)))
    return recorder.run(function, *args, **kwargs)


def _unrecorded(
    recorder: Recorder, function: object, args: tuple[object, ...], kwargs: dict[str, object]
) -> Any:
    """Calls a function whose result is the same in every run and not a tensor, unrecorded."""
    return recorder.run(function, *args, **kwargs)


def _hook(recorder: Recorder, function: Any, args: tuple[object, ...], kwargs: dict[str, object]) -> Any:
    """Ignores a backward hook, which changes no result; returns its handle. A trace has no backward pass."""
    if recorder.follows_gradients:
        raise UnsupportedError(
            "TM2016",
            f"{function.__name__}: the hook may change the gradient that the module computes",
            source=_place(recorder),
            notes=[("help", "remove the hook, and change the gradient after it is computed")],
        )
    return RemovableHandle(OrderedDict())


def _new(recorder: Recorder, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``Tensor.new``: ``new_empty`` of integers and of a ``torch.Size``, ``new_tensor`` of another list."""
    tensor, *given = args
    is_shape = len(given) == 1 and isinstance(given[0], torch.Size)
    if is_shape or (not kwargs and all(isinstance(each, int) for each in given)):
        sizes = given[0] if is_shape else tuple(given) or (0,)
        return recorder.called(torch.Tensor.new_empty, (tensor, sizes), kwargs)
    if len(given) == 1 and isinstance(given[0], (list, tuple)):
        return recorder.called(torch.Tensor.new_tensor, (tensor, given[0]), kwargs)
    return recorder.traced_through(recorder._name(function), function, args, kwargs)


def _cond(recorder: Recorder, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The ``torch.cond`` of exported programs; it is recorded."""
    with recorder:
        return torch.cond(*args, **kwargs)


def _packed(recorder: Recorder, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    from tmconvert.frontends.torch.tracing.special.packed_sequences import SPECIAL as packed

    return packed[function.__name__](recorder, function, args, kwargs)


def _flex_attention(recorder: Recorder, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    from tmconvert.frontends.torch.tracing.special.flex_attention import recorded_flex_attention

    return recorded_flex_attention(recorder, function, args, kwargs)


def _dropout(recorder: Recorder, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Dropout in evaluation, which returns its operand itself: recorded as a call with a result of its own.

    Generated code drops there again in training. A call in a module of dropout is the module's.
    """
    given = dict(zip(("input", "p", "training", "inplace"), args, strict=False)) | kwargs
    is_module = recorder.scope.class_name.startswith(DROPOUT_MODULES)
    is_kept = not (given.get("training", True) or given.get("inplace") or is_module)

    def same(*args: Any, **kwargs: Any) -> Any:
        return torch.ops.aten.alias(args[0] if args else kwargs["input"])

    if recorder.follows_gradients:
        return recorder.traced_through(recorder._name(function), function, args, kwargs)
    return recorder.record(recorder._name(function), same if is_kept else function, args, kwargs)


DROPOUT_MODULES = "torch.nn.modules.dropout."
DROPOUTS = "dropout dropout1d dropout2d dropout3d alpha_dropout feature_alpha_dropout"
# of packed sequences, and layers that may receive them
PACKED = "_pack_padded_sequence _pad_packed_sequence lstm gru rnn_tanh rnn_relu"
FROM_LISTS = ("torch.tensor", "torch.as_tensor")
HOOKS = ("register_hook", "register_post_accumulate_grad_hook")
OF_SIZES: dict[str, Special] = {"sym_size": _size, "sym_numel": _numel}  # in exported programs
READS = frozenset(("_local_scalar_dense", "allclose", "equal", "is_nonzero", "item"))
SPECIAL: dict[str, Special] = {
    "shape": _shape,
    "size": _size,
    "__len__": _length,
    "numel": _numel,
    "nelement": _numel,
    "nbytes": _bytes,
    "stride": _stride,
    "untyped_storage": copies.storage_of,
    "storage": copies.storage_of,
    "__deepcopy__": copies.deep_copy,
    "data.__set__": _set_data,
    "new": _new,
    **dict.fromkeys(quantized.PARAMETERS, _unrecorded),
    "torch.fused_moving_avg_obs_fake_quant": quantized.without_observer,
    "torch.ops.higher_order.cond": _cond,
    "torch.ops.higher_order.flex_attention": _flex_attention,
    **{f"torch.nn.functional.{kind}": _dropout for kind in DROPOUTS.split()},
    "torch._shape_as_tensor": _sizes,
    "torch.sym_int": _whole,
    "torch.sym_float": _symbolic,
    "torch.sym_max": _symbolic,
    "torch.sym_min": _symbolic,
    **{f"torch.{name}": _packed for name in PACKED.split()},
    **dict.fromkeys([*WHAT, "__complex__", "__dlpack__"], _look),
    **dict.fromkeys(TEXTS, _text),
    **dict.fromkeys(HOOKS, _hook),
}
