"""Traces each kind of PyTorch model: modules, programs, TorchScript, factories, folders."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import torch
from torch.utils._pytree import tree_leaves

from tmconvert.errors import TmconvertError, UsageError
from tmconvert.errors.values import type_and_value
from tmconvert.frontends.torch.request import Tracing, inputs_needed, open_sizes
from tmconvert.frontends.torch.tracing.recording.modes import in_evaluation
from tmconvert.frontends.torch.tracing.recording.modules import parameter_names
from tmconvert.frontends.torch.tracing.recording.state_guard import same_randomness
from tmconvert.frontends.torch.tracing.recording.users_code import (
    check_arguments,
    failure,
    raise_users_own,
    shown,
    signature_of,
)
from tmconvert.frontends.torch.tracing.special.upcast_to_float32 import wide_state
from tmconvert.frontends.torch.tracing.tracer import named_tensors, trace_module
from tmconvert.ir import TracedModule
from tmconvert.ir.types import Args, Kwargs
from tmconvert.progress import begin

if TYPE_CHECKING:
    from tmconvert.frontends.torch.pretrained import PretrainedFolder
    from tmconvert.frontends.torch.sentence_module import SentenceModule
    from tmconvert.frontends.torch.tracing.programs.exported_file import Exported
    from tmconvert.frontends.torch.tracing.programs.parts import Split
    from tmconvert.frontends.torch.tracing.programs.pretrained import Pretrained
    from tmconvert.frontends.torch.tracing.programs.pretrained_inputs import Part


_PROCESS = os.getpid()


@contextlib.contextmanager
def _one_thread_in_fork() -> Iterator[None]:
    """Uses one thread in a fork of a process that used several: the pool of OpenMP's does not exist there."""
    threads = torch.get_num_threads()
    if os.getpid() == _PROCESS or threads == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def trace_object(model: object, tracing: Tracing) -> TracedModule:
    """Traces a module, a function of tensors, or an ExportedProgram.

    The caller's code runs, and its exceptions are not wrapped, except for SystemExit, which would end
    the process silently. Raises UsageError TM6008 for another object, UnsupportedError.
    """
    if isinstance(model, torch.export.ExportedProgram):
        from tmconvert.frontends.torch.tracing.programs.exported_file import exported_object

        return _trace_exported(exported_object(model), tracing)
    _check_model(model)
    if not tracing.has_inputs and isinstance(model, torch.nn.Module):
        raise inputs_needed(signature_of(model))
    args, kwargs = example_tensors(tracing)
    check_arguments(model, args, kwargs)
    try:
        return _trace(model, args, kwargs, tracing)
    except SystemExit as error:
        raise failure(error, error) from error


def _check_model(model: Any) -> None:
    """Raises UsageError TM6008 for what cannot be traced."""
    if isinstance(model, type) or not callable(model):
        is_module = isinstance(model, type) and issubclass(model, torch.nn.Module)
        help = f"trace an instance of it: {model.__name__}(...)" if is_module else ""
    elif isinstance(model, TracedModule):
        help = "it is traced already: convert it as it is"
    else:
        return
    raise UsageError(
        "TM6008",
        f"module must be a PyTorch module, a function of tensors or an ExportedProgram, "
        f"got {type_and_value(model)}",
        notes=[("help", help)] if help else [],
    )


def trace_script(path: str, tracing: Tracing) -> TracedModule:
    """Traces a TorchScript file; code in it runs. Raises LoadError TM1026."""
    if not tracing.has_inputs:
        raise inputs_needed()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch says that TorchScript is deprecated
            script = torch.jit.load(path, map_location="cpu")
    except Exception as error:  # of many kinds, for files that are damaged or too new
        from tmconvert.frontends.torch.tracing.programs.exported_file import unreadable

        raise unreadable(path, shown(error)) from error
    return _trace_of_user(script, *example_tensors(tracing), tracing)


def trace_exported(path: str, tracing: Tracing) -> TracedModule:
    """Traces a file of ``torch.export.save``. Raises LoadError TM1026."""
    from tmconvert.frontends.torch.tracing.programs.exported_file import read_exported

    return _trace_exported(read_exported(path), tracing)


def _trace_exported(exported: Exported, tracing: Tracing) -> TracedModule:
    """Traces a program with its own example inputs and dynamic sizes, unless ``tracing`` has others."""
    args, kwargs = example_tensors(tracing) if tracing.has_inputs else (exported.args, exported.kwargs)
    if not args and not kwargs:
        raise inputs_needed()
    if not tracing.has_sizes:
        tracing = tracing._replace(dynamic_shapes=_named_sizes(exported, args, kwargs))
    return _trace_of_user(exported.program, args, kwargs, tracing)


def _named_sizes(
    exported: Exported, args: tuple[object, ...], kwargs: dict[str, object]
) -> dict[str, dict[int, str]]:
    names = {id(tensor): name for name, tensor in named_tensors(exported.program, args, kwargs).items()}
    flat = list(tree_leaves((args, kwargs)))
    return {
        names[id(flat[number])]: axes
        for number, axes in exported.open_sizes.items()
        if number < len(flat) and id(flat[number]) in names
    }


def trace_factory(name: str, tracing: Tracing) -> TracedModule:
    """Traces the result of ``package.module:factory``; inputs of ``tracing`` replace those of the factory."""
    from tmconvert.frontends.torch.tracing.programs.factory import importable_folder, made_by

    with same_randomness(), importable_folder():
        module, args, kwargs = made_by(name)
        if tracing.has_inputs:
            args, kwargs = example_tensors(tracing)
        if not args and not kwargs:
            raise inputs_needed(signature_of(module))
        return _trace_of_user(module, args, kwargs, tracing)


def trace_pretrained(folder: PretrainedFolder, tracing: Tracing) -> TracedModule:
    """Traces the model in a folder of transformers. Raises LoadError TM1028, UnsupportedError."""
    from tmconvert.frontends.torch.tracing.programs.pretrained import example_inputs, pretrained_model
    from tmconvert.frontends.torch.tracing.programs.pretrained_inputs import example_of

    with same_randomness():
        torch.manual_seed(0)
        model = pretrained_model(folder)
        args, kwargs = example_tensors(tracing)
        if not tracing.has_inputs:
            example = example_inputs(folder, model.module, lambda module: example_of(module, named_tensors))
            kwargs = example.inputs
            if not tracing.has_sizes:
                tracing = tracing._replace(dynamic_shapes=example.sizes)
        return _trace_in_folder(folder.around, model, model.module, args, kwargs, tracing)


def trace_parts(
    folder: PretrainedFolder, *, split: Split, pooling: Sequence[SentenceModule] | None
) -> dict[str, TracedModule]:
    """Traces the parts of the model in a folder, by name. Raises LoadError TM1028, UnsupportedError."""
    from tmconvert.frontends.torch.tracing.programs.parts import parts_of
    from tmconvert.frontends.torch.tracing.programs.pretrained import example_inputs, pretrained_model
    from tmconvert.frontends.torch.tracing.programs.sentence_vectors import SentenceHead

    with same_randomness():
        torch.manual_seed(0)
        head = None if pooling is None else SentenceHead(pooling)
        model = pretrained_model(folder)
        parts = example_inputs(
            folder,
            model.module,
            lambda module: parts_of(module, named_tensors, split=split, head=head),
        )
        return {name: _trace_part(folder.around, model, part) for name, part in parts.items()}


def vectors_of_tokens(
    modules: Sequence[SentenceModule], tokens: np.ndarray, mask: np.ndarray, prompt: int
) -> np.ndarray:
    """Computes vectors of texts from those of their tokens; see ``entry.py``."""
    from tmconvert.frontends.torch.tracing.programs.sentence_vectors import SentenceHead

    with torch.no_grad():
        return SentenceHead(modules)(torch.tensor(tokens), torch.tensor(mask), prompt).numpy()


def trace_static_decoder(
    folder: PretrainedFolder, length: int, prefills: Sequence[int]
) -> tuple[dict[str, TracedModule], Callable[[Sequence[int]], np.ndarray]]:
    """Traces the signatures of a decoder with caches of a fixed length; see ``entry.py``."""
    from tmconvert.frontends.torch.tracing.programs.pretrained import example_inputs, pretrained_model
    from tmconvert.frontends.torch.tracing.programs.static_decoder import (
        cache_shapes,
        logits_after,
        random_caches,
        static_parts,
    )

    with same_randomness():
        torch.manual_seed(0)
        model = pretrained_model(folder)
        shapes = example_inputs(folder, model.module, cache_shapes)
        caches = random_caches(model.module, shapes, length)
        parts = example_inputs(folder, model.module, lambda module: static_parts(module, caches, prefills))
        traced = {name: _trace_part(folder.around, model, part) for name, part in parts.items()}
    return traced, functools.partial(logits_after, model.module)


def trace_pipeline(folder: Path, classes: Mapping[str, str]) -> dict[str, TracedModule]:
    """Traces the parts of a pipeline of diffusers. Raises LoadError TM1028, UnsupportedError."""
    from tmconvert.frontends.torch.tracing.programs.diffusion import parts_of_pipeline

    with same_randomness():
        torch.manual_seed(0)
        return {
            name: _trace_part(str(folder), model, part)
            for name, model, part in parts_of_pipeline(folder, classes)
        }


def trace_detector(path: Path) -> TracedModule:
    """Traces a checkpoint of ultralytics. Raises LoadError TM1021, TM1028, UnsupportedError."""
    from tmconvert.frontends.torch.tracing.programs.detectors import read_detector

    with same_randomness():
        torch.manual_seed(0)
        detector = read_detector(path)
        traced = _trace_of_user(detector.module, (detector.image,), {}, Tracing())
        traced.metadata = detector.metadata
        return traced


def _trace_part(folder: str, model: Pretrained, part: Part) -> TracedModule:
    tracing = Tracing(dynamic_shapes=part.sizes)
    return _trace_in_folder(folder, model, part.module, (), part.inputs, tracing)


def _trace_in_folder(
    folder: str, model: Pretrained, module: Any, args: Args, kwargs: Kwargs, tracing: Tracing
) -> TracedModule:
    from tmconvert.frontends.torch.tracing.programs.confined_libraries import confined

    with confined(folder, only_folder=True):  # plugins, and lines of source code, lie anywhere
        traced = _trace_of_user(module, args, kwargs, tracing)
    traced.notes += model.notes
    traced.positions = _positions(model.module)
    return traced


def _positions(model: Any) -> int | None:
    """Returns how many positions the configuration of a model states; None for a model without them."""
    from tmconvert.frontends.torch.pretrained import POSITIONS

    config: Any = getattr(model, "config", None)
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    found = (getattr(text, name, None) for name in POSITIONS)
    return next((each for each in found if isinstance(each, int) and each > 0), None)


def _trace_of_user(module: Any, args: Args, kwargs: Kwargs, tracing: Tracing) -> TracedModule:
    """Traces a model that is not the caller's code: exceptions in it become UnsupportedError TM2014."""
    check_arguments(module, args, kwargs)
    try:
        return _trace(module, args, kwargs, tracing)
    except TmconvertError:
        raise
    except (Exception, SystemExit) as error:
        raise_users_own(module, args, kwargs, error)
        raise


def _trace(module: Any, args: Args, kwargs: Kwargs, tracing: Tracing) -> TracedModule:
    begin("trace")
    module = getattr(module, "_orig_mod", module)  # of torch.compile
    sizes = _sizes(module, args, kwargs, tracing)
    if not sizes:
        return _trace_with(module, args, kwargs, tracing, sizes)
    from tmconvert.frontends.torch.tracing.sizes.automatic import traced_with

    trace = functools.partial(_trace_with, module, args, kwargs, tracing)
    return traced_with(trace, sizes, named_tensors(module, args, kwargs))


def _trace_with(
    module: Any, args: Args, kwargs: Kwargs, tracing: Tracing, sizes: Mapping[str, Mapping[int, str]] | None
) -> TracedModule:
    mode = in_evaluation(module, tracing.training)
    with _one_thread_in_fork(), _uncompiled(), mode as modes, wide_state(module) as notes:
        traced = trace_module(
            module,
            args,
            kwargs,
            dynamic_shapes=sizes,
            freeze_control_flow=tracing.freeze_control_flow,
            is_leaf=tracing.is_leaf,
            training=tracing.training,
            fix=tracing.fix,
            state=tracing.state,
            noise=tracing.noise,
            roll_loops=tracing.roll_loops,
        )
        traced.notes[:0] = modes
        traced.notes += [note for note in notes if note not in traced.notes]
        return traced


def _sizes(
    module: Any, args: Args, kwargs: Kwargs, tracing: Tracing
) -> Mapping[str, Mapping[int, str]] | None:
    """Returns the dynamic sizes by input. Raises UsageError TM6014, and what a collection raises."""
    given: Any = tracing.sizes_of_call
    if given is None and not tracing.dynamic_shapes:
        return tracing.dynamic_shapes
    if given is not None and not isinstance(given, (tuple, list)):
        given = given.dynamic_shapes(module, args, kwargs)
    arguments = _arguments_by_name(module, args, kwargs)
    if isinstance(given, (tuple, list)):
        given = dict(zip(arguments, given, strict=False))
    tensors = named_tensors(module, args, kwargs)
    names = {id(tensor): name for name, tensor in tensors.items()}
    sizes = tracing.dynamic_shapes if given is None else open_sizes(given)
    return sizes and {
        path if path in tensors else names.get(id(_at(arguments, path)), path): axes
        for path, axes in sizes.items()
    }


def _arguments_by_name(module: Any, args: Args, kwargs: Kwargs) -> Kwargs:
    """Returns the arguments of a call; those of ``*args`` are one tuple, those of ``**kwargs`` one dict."""
    function = module.forward if isinstance(module, torch.nn.Module) else module
    try:
        return inspect.signature(function).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):  # of TorchScript
        return dict(zip(parameter_names(module, args, kwargs), args, strict=True)) | kwargs


def _at(arguments: Any, path: str) -> object:
    """Returns the tensor at a path such as ``pair.1.key`` of nested arguments; None where there is none."""
    found = arguments
    for key in path.split("."):
        if isinstance(found, Mapping):
            found = found.get(key)
        elif isinstance(found, (tuple, list)) and key.isdecimal() and int(key) < len(found):
            found = found[int(key)]
        else:
            return None
    return found


def _uncompiled() -> AbstractContextManager[Any]:
    """Returns the original module or function of one that torch.compile wrapped."""
    if "torch._dynamo" not in sys.modules:  # nothing is compiled then, and importing it takes seconds
        return nullcontext()
    return torch.compiler.set_stance("force_eager")


def example_tensors(tracing: Tracing) -> tuple[Args, Kwargs]:
    """Returns the example inputs with arrays converted to tensors."""
    return (
        tuple(_tensor(value) for value in tracing.args),
        {name: _tensor(value) for name, value in tracing.kwargs.items()},
    )


def _tensor(value: object) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    array = np.array(value)  # a copy: torch does not take arrays that must not be written to
    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    try:
        return torch.from_numpy(array)
    except TypeError as error:
        raise UsageError("TM6008", f"PyTorch has no tensors of {array.dtype}, given as an input") from error
