"""Modules of a run: their calls, paths and tensors."""

from __future__ import annotations

import functools
import inspect
import threading
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FunctionType
from typing import Any

import torch

from tmconvert.frontends.torch.tracing.recording.arrays import Arrays
from tmconvert.frontends.torch.tracing.recording.leaf_calls import leaf_call
from tmconvert.frontends.torch.tracing.recording.recorder import Recorder
from tmconvert.frontends.torch.tracing.recording.source_lines import user_place
from tmconvert.frontends.torch.tracing.recording.structure import plain_structure
from tmconvert.frontends.torch.tracing.recording.tape import CalledModule, Scope
from tmconvert.frontends.torch.tracing.special.quantized import PackedWeights, parts_of
from tmconvert.frontends.torch.vocabulary import VOCABULARY
from tmconvert.ir import TracedModule

Module = Callable[..., Any]


def _called_regularly(original: Module, module: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Calls a traced module so that its results equal those of evaluation mode."""
    if type(module) is not torch.nn.TransformerEncoder:
        return original(module, *args, **kwargs)
    from tmconvert.frontends.torch.tracing.recording.fast_path import called

    return called(original, module, args, kwargs)


@contextmanager
def module_calls(recorder: Recorder, paths: Mapping[int, str], leaf_ids: Collection[int]) -> Iterator[None]:
    """Records calls of modules in this thread; those of leaves as one call."""
    original = torch.nn.Module.__call__
    thread = threading.get_ident()

    def called(module: object, *args: object, **kwargs: object) -> Any:
        path = paths.get(id(module))
        if recorder.is_busy or recorder.is_batched or threading.get_ident() != thread:
            return original(module, *args, **kwargs)
        if not path:
            return _called_regularly(original, module, args, kwargs)
        if id(module) in leaf_ids:
            run = functools.partial(_called_regularly, original, module)
            return leaf_call(recorder, "", lambda *a, **k: run(a, k), args, kwargs, CalledModule(path))
        return _recorded_call(recorder, module, path, original, args, kwargs)

    torch.nn.Module.__call__ = called  # type: ignore[method-assign]
    try:
        yield
    finally:
        torch.nn.Module.__call__ = original  # type: ignore[method-assign]


def _recorded_call(
    recorder: Recorder,
    module: object,
    path: str,
    original: Module,
    args: tuple[object, ...],
    kwargs: dict[str, object],
) -> Any:
    outer = recorder.scope
    recorded = recorder.values_of(plain_structure((args, kwargs)))
    scope = Scope(path, class_name_of(module), outer, recorded[0], recorded[1], source=user_place())
    scope.parameters = parameter_names(module, args, kwargs)
    outer.items.append(scope)
    recorder.scope = scope
    try:
        result = _called_regularly(original, module, args, kwargs)
        scope.result = recorder.values_of(plain_structure(result))
    finally:
        recorder.scope = outer
    return result


Named = Sequence[tuple[str, Any]]  # a module and all its submodules, by their paths


def module_paths(modules: Named) -> dict[int, str]:
    return {id(each): path for path, each in modules}


def leaf_modules(modules: Named, is_leaf: Callable[[Any, str], bool]) -> frozenset[int]:
    """Returns the ids of the submodules that are recorded as one call."""
    return frozenset(id(each) for path, each in modules if path and is_leaf(each, path))


def traced_modules(modules: Named) -> dict[int, str]:
    """Returns the paths of the TracedModules that are attributes of modules, by id."""
    return {
        id(value): f"{path}.{name}" if path else name
        for path, each in modules
        for name, value in each.__dict__.items()
        if isinstance(value, TracedModule)
    }


def hierarchy(
    module: Any, class_name: str, arrays: Arrays, held: Callable[[Any], Iterator[tuple[str, torch.Tensor]]]
) -> tuple[dict[str, TracedModule], dict[int, list[str]]]:
    """Returns TracedModules without graphs by dotted path, and the dotted paths of tensors by id."""
    if module is None:
        return {"": TracedModule("", class_name, vocabulary=VOCABULARY)}, {}
    modules: dict[str, TracedModule] = {}
    by_id: dict[int, TracedModule] = {}
    names: dict[int, list[str]] = {}
    for path, each in module.named_modules(remove_duplicate=False):
        traced = by_id.get(id(each))
        if traced is None:
            traced = by_id[id(each)] = TracedModule(path, class_name_of(each), vocabulary=VOCABULARY)
            traced.attributes = _attributes(each)
            held_here = {k: v for k, v in each.__dict__.items() if isinstance(v, TracedModule)}
            traced.children.update(held_here)
        for name, tensor in held(each):
            if tensor.is_meta:  # of a template, whose calls get other tensors
                continue
            own = name.replace(".", "_")  # a dot, as in names of TensorDictParams, is that of a path
            names.setdefault(id(tensor), []).append(f"{path}.{own}" if path else own)
            traced.tensors[own] = arrays.of(tensor)
            if not isinstance(tensor, torch.nn.Parameter) and name not in each._parameters:
                traced.buffers.add(own)
        modules[path] = traced
        if path:
            holder, _, name = path.rpartition(".")
            modules[holder].children[name] = traced
    return modules, names


def held_tensors(packed: PackedWeights, module: Any) -> Iterator[tuple[str, torch.Tensor]]:
    for store in (module._parameters, module._buffers, module.__dict__):
        for name, tensor in store.items():
            if isinstance(tensor, torch.Tensor):
                yield from parts_of(name, tensor)
    yield from packed.tensors(module)


def _attributes(module: object) -> dict[str, Any]:
    """Returns the plain public attributes of a module: ``stride``, ``eps``, ..."""
    plain = (bool, int, float, str, type(None))
    return {
        name: value
        for name, value in module.__dict__.items()
        if not name.startswith("_")
        and (isinstance(value, plain) or (type(value) is tuple and all(isinstance(v, plain) for v in value)))
    }


def class_name_of(module: object) -> str:
    cls = module if inspect.isfunction(module) else type(module)
    return f"{cls.__module__}.{cls.__qualname__}"


def parameter_names(module: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the parameter names that a call's positional arguments bind to."""
    function = module.forward if isinstance(module, torch.nn.Module) else module
    if isinstance(function, (torch._C.ScriptFunction, torch._C.ScriptMethod)):
        schema: Any = function.schema
        named = [each.name for each in schema.arguments if each.name != "self"]
        return tuple(named[: len(args)])
    try:
        parameters = _parameters(function)
    except (TypeError, ValueError):
        return tuple(f"input_{i}" for i in range(len(args)))
    names = []
    for index in range(len(args)):
        parameter = parameters[min(index, len(parameters) - 1)] if parameters else None
        if parameter is None or parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_KEYWORD):
            names.append(f"input_{index}")
        elif parameter.kind == parameter.VAR_POSITIONAL:
            names.append(
                f"{parameter.name}.{index - len(parameters) + 1}"
                if len(args) > len(parameters)
                else parameter.name
            )
        else:
            names.append(parameter.name)
    return tuple(names)


def _parameters(function: Any) -> list[inspect.Parameter]:
    """Returns the parameters of a function or bound method; those of a method are kept with its function."""
    own = function.__func__ if inspect.ismethod(function) else None
    if not inspect.isfunction(own):
        return list(inspect.signature(function).parameters.values())
    if own not in _PARAMETERS:
        _PARAMETERS[own] = list(inspect.signature(function).parameters.values())
    return _PARAMETERS[own]


_PARAMETERS: weakref.WeakKeyDictionary[FunctionType, list[inspect.Parameter]] = weakref.WeakKeyDictionary()
