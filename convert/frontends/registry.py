"""The frontends: the built-in ones, and those of plugins and installed packages.

The module of a built-in frontend imports nothing of its format or framework before a model is loaded. An
installed package names its module in the entry-point group ``tmconvert.frontends``; it is imported when a
file or a vocabulary is met that no other frontend knows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from tmconvert.errors import LoadError, UsageError
from tmconvert.errors.source import Source
from tmconvert.errors.values import type_and_value
from tmconvert.frontends.frontend import Frontend, LoadedModel, LoadRequest
from tmconvert.ir import TensorNode, TracedModule
from tmconvert.ir.ids import number
from tmconvert.symbolics.plugins import load_installed

if TYPE_CHECKING:
    from tmconvert.frontends.shared.vocabulary import AdapterVocabulary

GROUP = "tmconvert.frontends"
# In the order in which they are asked: containers and PyTorch's archives are both ZIP files, and old
# checkpoints of PyTorch are pickles, as MegEngine's files are.
_BUILT_IN = {
    "container": "tmconvert.container.frontend:ContainerFrontend",
    "torch": "tmconvert.frontends.torch.frontend:TorchFrontend",
    "caffe": "tmconvert.frontends.caffe.frontend:CaffeFrontend",
    "onnx": "tmconvert.frontends.onnx.frontend:OnnxFrontend",
    "tflite": "tmconvert.frontends.tflite.frontend:TfliteFrontend",
    "megengine": "tmconvert.frontends.megengine.frontend:MegEngineFrontend",
    "aten": "tmconvert.frontends.aten.frontend:AtenFrontend",
}
# ``prefixes`` of the built-in frontends, which need not be imported to find one
_PREFIXES = {
    "torch.": "torch",
    "megengine.": "megengine",
    "aten::": "aten",
    "tm::": "aten",
    "torchvision::": "aten",
}
_registered: list[Frontend] = []


def register_frontend(frontend: Frontend) -> None:
    """Registers a frontend, so that ``tmconvert.load``, conversions and all commands read its models.

    Built-in frontends come first. Raises UsageError TM6021 for a name that is taken.

    >>> register_frontend(TinyFrontend())  # doctest: +SKIP
    """
    if frontend.name and any(frontend.name == each.name for each in known_frontends()):
        raise UsageError("TM6021", f"the frontend {frontend.name!r} is already registered")
    _registered.append(frontend)
    frontend_of_function.cache_clear()


def known_frontends() -> list[Frontend]:
    """Returns the built-in frontends and the registered ones, without loading packages."""
    return list(_all_known())


def _all_known() -> Iterator[Frontend]:
    """Iterates over the known frontends; the module of a built-in one is imported when it is reached."""
    yield from map(frontend_named, _BUILT_IN)
    yield from _registered


def frontends() -> Iterator[Frontend]:
    """Iterates over all frontends; installed packages are loaded after the others."""
    known = []
    for each in _all_known():
        known.append(each)
        yield each
    _load_packages()
    yield from (each for each in _registered if each not in known)


@cache
def frontend_named(name: str) -> Frontend:
    """Returns the built-in frontend of this name. Raises KeyError."""
    module, _, attribute = _BUILT_IN[name].partition(":")
    frontend = getattr(import_module(module), attribute)()
    assert isinstance(frontend, Frontend)
    return frontend


def frontend_of_name(name: str) -> Frontend | None:
    """Returns the frontend of a model that is not a file, such as ``package.module:factory``."""
    return next((each for each in _all_known() if each.recognizes_name(name)), None)


def frontend_of_file(path: str, head: bytes) -> Frontend | None:
    """Returns the frontend that reads the file at ``path``, which begins with ``head``."""
    return next((each for each in frontends() if each.recognizes_file(path, head)), None)


@cache
def frontend_of_function(function: str) -> Frontend | None:
    """Returns the frontend with whose prefix the name of a function begins.

    >>> frontend_of_function("torch.relu").name
    'torch'
    """
    name = next((name for prefix, name in _PREFIXES.items() if function.startswith(prefix)), None)
    if name is not None:
        return frontend_named(name)
    return next((each for each in _registered if function.startswith(each.prefixes)), None)


def vocabulary_named(identifier: str) -> AdapterVocabulary | None:
    """Returns the vocabulary with an identifier; None for an unknown one."""
    found = (each.vocabulary(identifier) for each in frontends())
    return next((each for each in found if each is not None), None)


def load_with(frontend: Frontend, path: str, request: LoadRequest) -> LoadedModel:
    """Loads a model, and numbers the expressions of one that a plugin has built.

    Raises UsageError TM6020 for a frontend that returns something else than a model, LoadError TM1006 for
    tensors of impossible sizes.
    """
    made = frontend.load(path, request)
    loaded = made if isinstance(made, LoadedModel) else LoadedModel(made)
    if frontend in _registered:
        check_model(loaded.module, frontend.load)
        number(loaded.module)
    _check_sizes(loaded.module, path)
    return loaded


def _check_sizes(module: TracedModule, path: str) -> None:
    """Raises LoadError TM1006 for a tensor that no program can hold, which what follows need not expect."""
    from tmconvert.formats.mapped_file import shape_problem

    for node in _tensors(module):
        if problem := shape_problem(node.shape or ()):
            help = "such a file is damaged, or made to exhaust its readers"
            message = f"the tensor {node.name!r:.80} {problem:.200}"
            raise LoadError("TM1006", message, source=Source(path), notes=[("help", help)])


def _tensors(module: TracedModule) -> Iterator[TensorNode]:
    for _, each in module.modules():
        graph = each.graph
        if graph is not None:
            nodes = (*graph.inputs, *(node for expr in graph for node in expr.outputs))
            yield from (node for node in nodes if isinstance(node, TensorNode))


def check_model(made: object, load: Callable[..., object]) -> None:
    """Raises UsageError TM6020 if the function ``load`` of a plugin made something else than a model."""
    if isinstance(made, TracedModule):
        return
    code = getattr(load, "__code__", None)
    raise UsageError(
        "TM6020",
        f"the reader {getattr(load, '__name__', 'load')} of a plugin returned {type_and_value(made)}, "
        "not a TracedModule",
        source=Source("") if code is None else Source(code.co_filename, code.co_firstlineno),
    )


@contextmanager
def temporary_frontends() -> Iterator[None]:
    """Context manager that undoes registrations at its end."""
    _load_packages()
    registered = list(_registered)
    try:
        yield
    finally:
        _registered[:] = registered
        frontend_of_function.cache_clear()


@cache
def _load_packages() -> None:
    load_installed(GROUP, "a frontend")
