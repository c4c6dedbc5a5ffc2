"""Makes a recorder see calls that no mode of torch intercepts; what records them is imported at the first."""

from __future__ import annotations

import functools
import importlib
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import torch
from torch._functorch import apis
from torch._higher_order_ops import utils as higher_order
from torch.autograd.function import _SingleLevelFunction

from tmconvert.frontends.torch.names import Name

if TYPE_CHECKING:
    from tmconvert.frontends.torch.tracing.recording.recorder import Recorder

_SCRIPTS: tuple[Any, ...] = (
    torch._C.ScriptMethod,
    torch._C.ScriptFunction,
)  # a ScriptModule's forward is a ScriptMethod
_COMPILE = "_hop_compile_and_call"  # (wrapper, arguments): what every higher-order function ends in
# the names of the wrappers of cond, while_loop, scan and map
HIGHER_ORDER = ("_cond_op_wrapper", "_while_loop_op_wrapper", "run_flattened_scan", "run_flattened_map")

_OLD_TYPES = (
    *("FloatTensor", "DoubleTensor", "HalfTensor", "BFloat16Tensor", "BoolTensor"),
    *("LongTensor", "IntTensor", "ShortTensor", "CharTensor", "ByteTensor"),
)


@contextmanager
def script_calls(recorder: Recorder) -> Iterator[None]:
    """Records the calls inside of scripts in this thread."""
    originals = [vars(kind)["__call__"] for kind in _SCRIPTS]
    for kind in _SCRIPTS:
        kind.__call__ = _script_call(recorder, kind.__call__, threading.get_ident())
    try:
        with torch.jit.optimized_execution(False):
            yield
    finally:
        for kind, original in zip(_SCRIPTS, originals, strict=True):
            kind.__call__ = original


def _script_call(recorder: Recorder, original: Callable[..., Any], thread: int) -> Callable[..., Any]:
    def call(script: Any, *args: object, **kwargs: object) -> Any:
        if recorder.is_busy or threading.get_ident() != thread:
            return original(script, *args, **kwargs)
        from tmconvert.frontends.torch.tracing.programs.scripted import called_script

        return called_script(recorder, original, script, args, kwargs)

    return call


@contextmanager
def calls_of_functions(recorder: Recorder) -> Iterator[None]:
    """Context manager in which the recorder records torch.cond, torch.while_loop, scan, map, and functions
    with a ``symbolic`` (``torch.autograd.Function``), when this thread calls them.
    """
    thread = threading.get_ident()
    original, torch_compile = getattr(higher_order, _COMPILE, None), torch.compile

    def is_ours() -> bool:
        return threading.get_ident() == thread and not recorder.is_busy and not recorder.is_batched

    def compiled(wrapper: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        name = getattr(wrapper, "__name__", "")
        if name in HIGHER_ORDER and is_ours():
            from tmconvert.frontends.torch.tracing.special.branches import called_by_name

            return called_by_name(recorder, name, wrapper, args)
        assert original is not None
        return original(wrapper, args)

    def compile_(function: Any = None, **options: Any) -> Any:
        name = getattr(function, "__name__", "")
        is_higher = name in HIGHER_ORDER and is_ours()
        return (lambda *args: compiled(function, args)) if is_higher else torch_compile(function, **options)

    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        def forward(*args: Any) -> Any:
            return super(_SingleLevelFunction, cls).apply(*args, **kwargs)

        if hasattr(cls, "symbolic") and is_ours() and not kwargs:
            from tmconvert.frontends.torch.tracing.special.branches import applied

            return applied(recorder, cls, forward, args)
        if recorder.follow_sizes and len(args) == 2 and not kwargs and is_ours():
            from tmconvert.frontends.torch.tracing.special.scans import recorded_recurrence

            if (made := recorded_recurrence(recorder, forward, args)) is not None:
                return made
        return forward(*args)

    # found where Function.apply looks for the original, so that references to it find ours as well
    functions: Any = _SingleLevelFunction
    functions.apply = classmethod(apply)
    # earlier releases than 2.13 end in torch.compile instead
    place, name, ours = (higher_order, _COMPILE, compiled) if original else (torch, "compile", compile_)
    setattr(place, name, ours)
    try:
        yield
    finally:
        del functions.apply
        setattr(place, name, original or torch_compile)


@contextmanager
def calls_of_variable(recorder: Recorder) -> Iterator[None]:
    """Records ``torch.autograd.Variable(tensor)``, which is made in C++, as what it returns: an alias."""
    thread, kind = threading.get_ident(), torch.autograd.Variable
    original = kind.__new__

    def new(cls: type, *args: object, **kwargs: object) -> object:
        given = dict(zip(("data", "requires_grad"), args, strict=False)) | kwargs
        tensor = given.get("data")
        if not isinstance(tensor, torch.Tensor) or recorder.is_busy or threading.get_ident() != thread:
            return original(cls, *args, **kwargs)
        alias = torch.Tensor.detach(tensor)
        return alias.requires_grad_() if given.get("requires_grad") else alias

    setattr(kind, "__new__", new)  # noqa: B010
    try:
        yield
    finally:
        del kind.__new__


class _OldType(str):
    """Stands for ``torch.FloatTensor`` and its like; a text is what ``x.type()`` accepts in its place."""

    original: Any
    made: Callable[..., Any]

    def __call__(self, *args: object, **kwargs: object) -> Any:
        return self.made(*args, **kwargs)

    def __instancecheck__(self, instance: object) -> bool:
        return isinstance(instance, self.original)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.original, name)


@contextmanager
def calls_of_constructors(recorder: Recorder) -> Iterator[None]:
    """Records ``torch.Tensor(2, n)`` as ``torch.empty``, ``torch.LongTensor([n])`` as ``torch.tensor``."""
    thread, kind = threading.get_ident(), torch.Tensor
    original = kind.__new__

    def made(original: Callable[..., Any], dtype: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs or not args or recorder.is_busy or threading.get_ident() != thread:
            return original(*args, **kwargs)
        first = args[0]
        if isinstance(first, (torch.Size, int)):
            return torch.empty(first if isinstance(first, torch.Size) else args, dtype=dtype)
        if isinstance(first, torch.Tensor):
            return torch.Tensor.detach(first) if first.dtype == dtype else original(*args)
        return torch.tensor(first, dtype=dtype) if isinstance(first, (list, tuple)) else original(*args)

    def new(cls: type, *args: object, **kwargs: object) -> Any:
        plain = functools.partial(original, cls)
        if cls is not kind:
            return plain(*args, **kwargs)
        return made(plain, torch.get_default_dtype(), *args, **kwargs)

    types = {name: getattr(torch, name) for name in _OLD_TYPES}
    for name, each in types.items():
        stand_in = _OldType(f"torch.{name}")
        stand_in.original, stand_in.made = each, functools.partial(made, each, each.dtype)
        setattr(torch, name, stand_in)
    setattr(kind, "__new__", new)  # noqa: B010
    recorder.load_dynamo = _load_dynamo
    try:
        yield
    finally:
        del kind.__new__
        for name, each in types.items():
            setattr(torch, name, each)


def _load_dynamo() -> None:
    """Imports what the kernels of prims import, while the original constructors are in place."""
    if "torch._dynamo" in sys.modules:
        return
    stand_ins = {name: getattr(torch, name) for name in _OLD_TYPES}
    made = vars(torch.Tensor)["__new__"]
    for name, each in stand_ins.items():
        setattr(torch, name, each.original)
    del torch.Tensor.__new__
    try:
        importlib.import_module("torch._dynamo")
    finally:
        setattr(torch.Tensor, "__new__", made)  # noqa: B010
        for name, each in stand_ins.items():
            setattr(torch, name, each)


@contextmanager
def calls_of_vmap(recorder: Recorder) -> Iterator[None]:
    """Records the batched ATen ops that functorch makes of functions of ``torch.vmap``, in this thread."""
    thread = threading.get_ident()
    original = apis.vmap_impl

    def batched(*args: Any, **kwargs: Any) -> Any:
        if recorder.is_busy or recorder.is_batched or threading.get_ident() != thread:
            return original(*args, **kwargs)
        from tmconvert.frontends.torch.tracing.recording.inner_ops import Inside

        recorder.is_batched, recorder.tape.is_batched = True, True
        try:
            with Inside(recorder, Name("torch.vmap", False)):
                return original(*args, **kwargs)
        finally:
            recorder.is_batched = False

    apis.vmap_impl = batched
    try:
        yield
    finally:
        apis.vmap_impl = original


def calls_with_boxes(recorder: Recorder) -> AbstractContextManager[None]:
    """Records functions of torchvision that loop over boxes as single calls, where it is imported."""
    if "torchvision" not in sys.modules:
        return nullcontext()
    from tmconvert.frontends.torch.tracing.special.torchvision_loops import box_functions

    return box_functions(recorder)


def calls_of_scans(recorder: Recorder) -> AbstractContextManager[None]:
    """Records scans of logarithmic depth as loops, where sizes are open and a library has such a function."""
    modules = tuple(sys.modules.items()) if recorder.follow_sizes else ()
    homes = [name for name, each in modules if "associative_scan" in getattr(each, "__dict__", ())]
    homes = [name for name in homes if not name.startswith(("torch.", "jax."))]
    if not homes:
        return nullcontext()
    from tmconvert.frontends.torch.tracing.special.scans import scan_functions

    return scan_functions(recorder, homes)
