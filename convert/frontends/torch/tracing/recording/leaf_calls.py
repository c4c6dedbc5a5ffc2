"""Records calls of wrapped functions, leaf modules, and TracedModules inside of modules as one call each."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree

from tmconvert.errors import UnsupportedError
from tmconvert.frontends.torch.customization import SUPPORTED_TYPES, is_plain_function, recording_calls
from tmconvert.frontends.torch.tracing.recording import op_traits
from tmconvert.frontends.torch.tracing.recording.arrays import array_of
from tmconvert.frontends.torch.tracing.recording.objects import opener
from tmconvert.frontends.torch.tracing.recording.recorder import Recorder
from tmconvert.frontends.torch.tracing.recording.source_lines import user_place
from tmconvert.frontends.torch.tracing.recording.structure import plain_structure
from tmconvert.frontends.torch.tracing.recording.tape import CalledModule, Record, Value
from tmconvert.frontends.torch.tracing.recording.untracked_tensors import version_of
from tmconvert.frontends.torch.tracing.sizes.integers import untraced
from tmconvert.frontends.torch.tracing.special.quantized import dtype_of
from tmconvert.ir import TracedModule
from tmconvert.ir.extensible import extension_of
from tmconvert.ir.tree import leaves, leaves_of, map_leaves
from tmconvert.ir.types import AnyCallable
from tmconvert.symbolics.registry import custom_op, registered_ops

WRITES = "TM2021"


@contextmanager
def calls_of_leaves(recorder: Recorder, held: Mapping[int, str]) -> Iterator[None]:
    """Records calls of wrapped functions, and of the TracedModules at the paths ``held``."""
    owner: Any = extension_of(TracedModule)
    original: Any = vars(owner).get("__call__")  # a model can be called where users have models
    thread = threading.get_ident()

    def recorded(name: str, function: AnyCallable, args: tuple[object, ...], kwargs: dict[str, Any]) -> Any:
        if recorder.is_busy or recorder.is_batched:
            return function(*args, **kwargs)
        return leaf_call(recorder, name, function, args, kwargs)

    def called(module: TracedModule, *args: object, **kwargs: object) -> Any:
        is_ours = threading.get_ident() == thread and not recorder.is_busy
        if not is_ours or not any(isinstance(leaf, torch.Tensor) for leaf in leaves((args, kwargs))):
            return original(module, *args, **kwargs)
        callee = CalledModule(held.get(id(module), ""), module)
        return leaf_call(recorder, "", _on_tensors(module, original), args, kwargs, callee)

    with ExitStack() as stack:
        stack.enter_context(recording_calls(recorded))
        if original is not None:
            owner.__call__ = called
            stack.callback(setattr, owner, "__call__", original)
        yield


def _on_tensors(module: TracedModule, original: AnyCallable) -> AnyCallable:
    """Returns a function of tensors that computes a TracedModule by its reference kernels."""

    def computed(*args: object, **kwargs: object) -> Any:
        arrays = map_leaves(_as_array, (args, kwargs))
        return map_leaves(_as_tensor, original(module, *arrays[0], **arrays[1]))

    return computed


def _as_array(leaf: object) -> Any:
    return array_of(leaf) if isinstance(leaf, torch.Tensor) else leaf


def _as_tensor(leaf: object) -> Any:
    return torch.from_numpy(np.array(leaf)) if isinstance(leaf, (np.ndarray, np.generic)) else leaf


def leaf_call(
    recorder: Recorder,
    name: str,
    function: AnyCallable,
    args: tuple[object, ...],
    kwargs: dict[str, Any],
    module: CalledModule | None = None,
) -> Any:
    """Runs ``function`` without recording its calls, and puts one call on the tape; the results are new
    tensors.

    It is a call of ``module``, or of the function ``name``. Raises UnsupportedError TM2021 where the function
    writes to one of its arguments.
    """
    what = name or (module.path or module.module.class_name if module is not None else "")
    if recorder.follows_gradients and op_traits.autograd_follows(args, kwargs):
        from tmconvert.frontends.torch.tracing.special.gradients import refused

        raise refused(f"the gradient of {what}, which is recorded as one call, is not known")
    given = recorder.values_of(plain_structure((args, kwargs), opener("takes")))
    tensors = [leaf for leaf in leaves(plain_structure((args, kwargs))) if isinstance(leaf, torch.Tensor)]
    versions = [version_of(tensor) for tensor in tensors]
    plain_args, plain_kwargs = map_leaves(untraced, (args, kwargs))
    result = recorder.run(function, *plain_args, **plain_kwargs)
    if [version_of(tensor) for tensor in tensors] != versions:
        raise UnsupportedError(
            WRITES,
            f"{what} writes to one of its arguments, and is recorded as one call",
            source=user_place(),
            notes=[("help", "let it return a new tensor, or let tracing go through it")],
        )
    return _recorded(recorder, name, given, module, result)


def _recorded(
    recorder: Recorder, name: str, given: tuple[Any, Any], module: CalledModule | None, result: object
) -> Any:
    """Puts the call on the tape, and returns its result with new tensors."""
    args, kwargs = given
    values = leaves_of(Value, given)
    depends = any(value.depends for value in values)
    hint = name.rpartition(".")[2] or (module.path.rpartition(".")[2] if module is not None else "") or "call"
    made: dict[int, tuple[torch.Tensor, Value]] = {}

    def fresh(leaf: object) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        if id(leaf) not in made:
            tensor = recorder.run(torch.clone, leaf)
            shape = recorder.run(lambda: tuple(tensor.shape))  # nothing is known of it yet
            value = Value(recorder.scope, f"{hint}_out", shape, dtype_of(tensor), depends=depends)
            recorder.run(recorder.aliases.add, tensor, value)
            made[id(leaf)] = tensor, value
        return made[id(leaf)][0]

    result = _pytree.tree_map(fresh, result)
    results = tuple(value for _, value in made.values())
    tree = results[0] if len(results) == 1 else results
    if module is None:
        call = Record(name, False, args, kwargs, tree, user_place())
    else:
        call = Record("__call__", True, (module, *args), kwargs, tree, user_place())
    recorder.scope.items.append(call)
    return result


def register_types() -> None:
    """Registers the classes of ``register_supported_type`` with torch's pytree."""
    for cls, (flatten, unflatten) in SUPPORTED_TYPES.items():
        if cls not in _pytree.SUPPORTED_NODES:
            _pytree.register_pytree_node(cls, _as_list(flatten), unflatten)  # type: ignore[arg-type]


def _as_list(flatten: Callable[[Any], tuple[Any, Any]]) -> Callable[[Any], tuple[list[Any], Any]]:
    def flattened(value: object) -> tuple[list[Any], Any]:
        parts, context = flatten(value)
        return list(parts), context

    return flattened


def unused_symbolics(class_names: Mapping[str, bool]) -> list[str]:
    """Returns notes on registered symbolics for functions or classes that this trace cannot call.

    ``class_names`` maps the classes of the model's modules to whether they are leaves.
    """
    notes = []
    for name in registered_ops():
        if custom_op(name) is None or "::" in name:
            continue
        if class_names.get(name) is False:
            notes.append(
                f"register_symbolic({name!r}) has no effect: modules of this class are traced through; "
                "use register_as_builtin, or leaf_modules of trace"
            )
        elif is_plain_function(_found(name)):
            notes.append(
                f"register_symbolic({name!r}) has no effect: tracing goes through this function; "
                "decorate it with tmconvert.wrap"
            )
        elif isinstance(_found(name), type) and issubclass(_found(name), torch.autograd.Function):
            notes.append(
                f"register_symbolic({name!r}) has no effect: tracing goes through this function unless it "
                "has a static method symbolic(g, ...)"
            )
    return notes


def _found(name: str) -> Any:
    """Returns what a qualified name refers to in the loaded modules; None for nothing."""
    module, _, attribute = name.rpartition(".")
    if module.partition(".")[0] == "torch":
        return None
    return getattr(sys.modules.get(module), attribute, None)
