"""Makes a ``torch.nn.Module`` from generated code."""

from __future__ import annotations

import itertools
import linecache
from functools import lru_cache, partialmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from tmconvert.errors import LoadError
from tmconvert.ir import TracedModule
from tmconvert.symbolics.op import Ops
from tmconvert.torch_code.class_source import Code, generate
from tmconvert.torch_code.prepare import DynamicShapes

if TYPE_CHECKING:
    import torch

_numbers = itertools.count()


def torch_module(
    module: TracedModule, catalogue: Ops, dynamic_shapes: DynamicShapes | None = None
) -> torch.nn.Module:
    """Returns the model as a module of PyTorch, in evaluation mode.

    Raises UnsupportedError for calls that have no form in PyTorch, LoadError TM1021 without torch.
    """
    try:
        import torch
    except ImportError as error:
        raise LoadError("TM1021", "to_torch needs PyTorch, which is not installed") from error
    code = generate(module, catalogue, dynamic_shapes=dynamic_shapes)
    with torch.random.fork_rng(devices=[]):  # constructors draw weights, which are then replaced
        made = class_of(code.text, code.class_name)()
    load_weights(made, code)
    return made.eval()


def load_weights(made: torch.nn.Module, code: Code) -> None:
    """Copies the weights of ``code`` into a module of its class."""
    import torch

    targets = {**dict(made.named_parameters()), **dict(made.named_buffers())}
    with torch.no_grad():
        for path, array in code.weights.items():
            targets[path].copy_(torch.from_numpy(np.array(array)).reshape(array.shape))


def class_of(text: str, name: str) -> Any:
    """Returns a class that the text defines, one for equal texts.

    The text is found by tracebacks, by ``inspect`` and so by TorchScript. Instances are pickled as the text
    and their state: reading them again needs tmconvert.
    """
    return _classes(text)[name]


@lru_cache(maxsize=64)
def _classes(text: str) -> dict[str, Any]:
    number = next(_numbers)
    place = f"<tmconvert code {number}>"
    linecache.cache[place] = (len(text), None, text.splitlines(keepends=True), place)
    space: dict[str, Any] = {"__name__": f"tmconvert.torch_code.generated_{number}"}
    exec(compile(text, place, "exec"), space)
    classes = {
        name: value
        for name, value in space.items()
        if isinstance(value, type) and value.__module__ == space["__name__"]
    }
    for name, cls in classes.items():
        setattr(cls, "__reduce_ex__", partialmethod(_reduced, text, name))  # noqa: B010
    return classes


def _reduced(made: torch.nn.Module, text: str, name: str, protocol: int) -> Any:
    return rebuilt, (text, name), made.__dict__


def rebuilt(text: str, name: str) -> Any:
    """Returns an instance without state, for pickle and copy."""
    cls = class_of(text, name)
    return cls.__new__(cls)
