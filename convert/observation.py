"""Learns the example inputs and the open sizes of a module from its real calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tmconvert.errors import UsageError
from tmconvert.errors.values import type_and_value


class Observation:
    """The calls of a module within ``observe``: ``count`` of them, and the ``options`` of a conversion."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self._calls: list[dict[str, Any]] = []  # arguments by name

    @property
    def count(self) -> int:
        return len(self._calls)

    def add(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Notes the arguments of a call; tensors are copied, since the module may change them.

        Args:
            args: The positional arguments.
            kwargs: The arguments by name.

        Example:
            >>> seen.add((torch.ones(1, 3),), {})  # doctest: +SKIP
        """
        import inspect

        bound = inspect.signature(self.module.forward).bind(*args, **kwargs)
        named: dict[str, Any] = {}
        for name, value in bound.arguments.items():
            kind = bound.signature.parameters[name].kind
            if kind == inspect.Parameter.VAR_POSITIONAL:
                raise UsageError("TM6008", f"calls with *{name} cannot be observed: pass example_inputs")
            named |= value if kind == inspect.Parameter.VAR_KEYWORD else {name: value}
        self._calls.append({name: _copied(value) for name, value in named.items() if value is not None})

    @property
    def options(self) -> dict[str, Any]:
        """The keywords ``example_kwargs`` and ``dynamic_shapes`` of a conversion.

        The example is the call with the most arguments, of these the largest. An axis is open where its size
        differs between calls with the same arguments; sizes that change alike are one size.
        """
        if not self._calls:
            raise UsageError("TM6008", "no call of the module was observed")
        most = max(len(call) for call in self._calls)
        keys = next(call.keys() for call in reversed(self._calls) if len(call) == most)
        calls = [call for call in self._calls if call.keys() == keys]
        shapes = [dict(_shapes(call)) for call in calls]
        largest = max(range(len(calls)), key=lambda number: sum(map(sum, shapes[number].values())))
        names: dict[tuple[int, ...], str] = {}
        sizes: dict[str, dict[int, str]] = {}
        for path, shape in shapes[largest].items():
            found = [each[path] for each in shapes if path in each]
            for axis in range(len(shape)) if len({len(each) for each in found}) == 1 else ():
                seen = tuple(each[axis] for each in found)
                if len(set(seen)) > 1:
                    free = f"{path}_{axis}".replace(".", "_")
                    sizes.setdefault(path, {})[axis] = names.setdefault(seen, free)
        return {"example_kwargs": calls[largest], "dynamic_shapes": sizes or None}


@contextmanager
def observe(module: Any) -> Iterator[Observation]:
    """Observes the calls of a PyTorch module, to convert it with the inputs and open sizes that they had.

    Args:
        module: The module, or a part of a pipeline such as a model within ``generate``.

    Returns:
        A context manager for an Observation, which functions that trace take as the keyword ``seen``.

    Raises:
        UsageError: TM6008 for what is not a module.

    Example:
        >>> with tmconvert.observe(net) as seen:  # doctest: +SKIP
        ...     net(torch.ones(1, 3)), net(torch.ones(4, 3))
        >>> tmconvert.to_onnx(net, "net.onnx", seen=seen)  # doctest: +SKIP
    """
    if not callable(getattr(module, "register_forward_pre_hook", None)):
        raise UsageError("TM6008", f"module must be a PyTorch module, got {type_and_value(module)}")
    found = Observation(module)
    hook = module.register_forward_pre_hook(lambda _, args, kwargs: found.add(args, kwargs), with_kwargs=True)
    try:
        yield found
    finally:
        hook.remove()


def _copied(value: Any) -> Any:
    if callable(getattr(value, "clone", None)):
        return value.detach().clone()
    if isinstance(value, Mapping) and type(value) is dict:
        return {key: _copied(each) for key, each in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(_copied, value))
    if hasattr(value, "__dict__"):  # a cache of transformers
        import copy

        return copy.deepcopy(value)
    return value


def _shapes(value: Any, path: str = "") -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yields the shapes of tensors by path."""
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        yield path, tuple(value.shape)
        return
    pairs: Any = ()
    if isinstance(value, Mapping):
        pairs = value.items()
    elif isinstance(value, (list, tuple)):
        pairs = enumerate(value)
    for key, each in pairs:
        yield from _shapes(each, f"{path}.{key}" if path else str(key))
