"""Access to modules as in torch.nn.Module: attributes, state dicts, new parameters and submodules."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from tmconvert import ir
from tmconvert.errors import TmconvertError, UsageError
from tmconvert.ir.ids import ids_of, renumber
from tmconvert.surgery.lint import lint

if TYPE_CHECKING:
    from tmconvert.surgery.graph import InternalGraph
    from tmconvert.surgery.module import TracedModule

_LAST_FIELD = "meta"  # that the constructor of a module sets; other attributes are those of the model
_TRACED = "a TracedModule, of tmconvert.trace or tmconvert.load"
_NAME = re.compile(r"[^\W\d]\w*|\d+")


class KeyMismatch(NamedTuple):
    """The keys of a state dict that a model lacks, and those of the model that the dict lacks."""

    missing_keys: list[str]
    unexpected_keys: list[str]


def _out_of_place(function: Callable[..., Any]) -> Any:
    return lambda self, other: function(self, other)


class Parameter(np.ndarray):
    """A read tensor: ``p *= 2`` makes a new array, as files' arrays cannot be written to."""

    __iadd__, __isub__ = _out_of_place(np.add), _out_of_place(np.subtract)
    __imul__, __itruediv__ = _out_of_place(np.multiply), _out_of_place(np.true_divide)

    def __array_wrap__(self, array: Any, context: object = None, return_scalar: bool = False) -> Any:
        return array[()] if return_scalar else np.asarray(array)


class ModuleAccess(ir.TracedModule):
    """Attributes, parameters and submodules of a module, by the names that torch.nn.Module has.

    Attributes and methods of TracedModule itself come first: a child that is called ``graph`` is
    ``module.get("graph")``.
    """

    if TYPE_CHECKING:
        children: dict[str, TracedModule]  # type: ignore[assignment]
        graphs: dict[str, InternalGraph]  # type: ignore[assignment]

        @property
        def graph(self) -> InternalGraph | None: ...
        def modules(self) -> Iterator[tuple[str, TracedModule]]: ...

    def __getattr__(self, name: str) -> Any:
        """Returns the child, tensor or attribute of this name."""
        own = self.__dict__
        for store in ("children", "tensors", "attributes"):
            if name in own.get(store, ()):
                value = own[store][name]
                return value.view(Parameter) if type(value) is np.ndarray else value
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        """Sets an attribute of TracedModule; or else a child, tensor or attribute of the model.

        A tensor is copied, with the element type of the one in its place. Raises UsageError TM6061 for a
        value of another kind than the one in its place.
        """
        own = self.__dict__
        if _LAST_FIELD not in own or name in own or name.startswith("_") or hasattr(type(self), name):
            object.__setattr__(self, name, value)
            return
        if hasattr(value, "graph_for"):
            self.add_module(name, value)
        elif name in self.children or hasattr(value, "forward"):
            raise _misplaced(name, _TRACED, value)
        elif name in self.tensors or hasattr(value, "__array__"):
            self.add_tensor(name, value)
        else:
            self.attributes[name] = value

    # ---- reading

    def named_modules(self) -> Iterator[tuple[str, TracedModule]]:
        """Yields this module and all submodules with their dotted paths; a shared one once."""
        return self.modules()

    def named_children(self) -> Iterator[tuple[str, TracedModule]]:
        """Yields the submodules directly below with their names."""
        yield from self.children.items()

    def named_parameters(self) -> Iterator[tuple[str, np.ndarray]]:
        """Yields the parameters of this module and all below with their dotted paths; shared ones once."""
        return _tensors(self, buffers=False)

    def named_buffers(self) -> Iterator[tuple[str, np.ndarray]]:
        """Yields the other tensors, such as statistics of batch norms, with their dotted paths."""
        return _tensors(self, buffers=True)

    def parameters(self) -> Iterator[np.ndarray]:
        """Yields the parameters of this module and all below; shared ones once."""
        return (array for _, array in self.named_parameters())

    def get_submodule(self, path: str) -> TracedModule:
        """Returns the submodule at a path.

        Args:
            path: The dotted path; "" is this module.

        Raises:
            UsageError: TM6050 where there is none.
        """
        try:
            found = self.get(path) if path else self
        except KeyError:
            found = None
        if not isinstance(found, ModuleAccess):
            raise UsageError("TM6050", f"the model has no submodule {path!r}")
        return cast("TracedModule", found)

    def get_parameter(self, path: str) -> np.ndarray:
        """Returns the parameter at a path.

        Args:
            path: The dotted path.

        Raises:
            UsageError: TM6050 where there is none.
        """
        return self._tensor_at(path, "parameter")

    def get_buffer(self, path: str) -> np.ndarray:
        """Returns the buffer at a path.

        Args:
            path: The dotted path.

        Raises:
            UsageError: TM6050 where there is none.
        """
        return self._tensor_at(path, "buffer")

    def _tensor_at(self, path: str, kind: str) -> np.ndarray:
        holder, _, name = path.rpartition(".")
        module = self.get_submodule(holder)
        if name not in module.tensors or (name in module.buffers) is not (kind == "buffer"):
            raise UsageError("TM6050", f"the model has no {kind} {path!r}")
        return module.tensors[name]

    def state_dict(self) -> dict[str, np.ndarray]:
        """Returns all tensors by dotted path, the arrays themselves; those of shared modules at each path."""
        return dict(_all_tensors(self, ""))

    # ---- writing

    def load_state_dict(self, state: Mapping[str, object], strict: bool = True) -> KeyMismatch:
        """Sets tensors by dotted path.

        Args:
            state: Arrays, or tensors of torch, which are copied.
            strict: Raise an error for missing and unexpected keys.

        Returns:
            The missing and the unexpected keys.

        Raises:
            UsageError: TM6062, before any change, for another shape, and with ``strict`` for missing or
                unexpected keys.

        Example:
            >>> tm.load_state_dict(torch_module.state_dict())  # doctest: +SKIP
        """
        held = dict(_holders(self, ""))
        mismatch = KeyMismatch(
            [path for path in held if path not in state], [path for path in state if path not in held]
        )
        problems = [f"{path} is missing" for path in mismatch.missing_keys] if strict else []
        problems += [f"{path} is unexpected" for path in mismatch.unexpected_keys] if strict else []
        arrays = {path: as_numpy(state[path]) for path in held if path in state}
        for path, array in arrays.items():
            module, name = held[path]
            if array.shape != module.tensors[name].shape:
                problems.append(f"{path} has shape {array.shape}, expected {module.tensors[name].shape}")
        if problems:
            raise UsageError("TM6062", f"the state dict does not fit: {'; '.join(problems[:8])}")
        for path, array in arrays.items():
            module, name = held[path]
            module.add_tensor(name, array)
        return mismatch

    def add_tensor(self, name: str, value: object, *, buffer: bool = False) -> None:
        """Sets a tensor of this module to a copy of an array.

        For an array of another shape, types in the model are inferred again, once all shapes fit each other.

        Args:
            name: The attribute.
            value: The array.
            buffer: A new tensor is a buffer, and not a parameter.

        Raises:
            UsageError: TM6061 for the name of a module, and for elements that are not numbers.
        """
        _check_free(self, name, ("children", "attributes"))
        array, old = as_numpy(value), self.tensors.get(name)
        if array.dtype == object:
            raise _misplaced(name, "a tensor", value)
        if old is not None and old.dtype != array.dtype:
            if not np.can_cast(array.dtype, old.dtype, "same_kind"):
                raise _misplaced(name, f"a tensor of {old.dtype}", value)
            array = array.astype(old.dtype)
        self.tensors[name] = np.array(array)
        if buffer:
            self.buffers.add(name)
        if old is not None and old.shape != array.shape:
            with suppress(TmconvertError):  # a bias that follows may have to fit, too
                for graph in (self._model or self).graphs.values():
                    lint(graph)

    def add_module(self, name: str, module: ir.TracedModule) -> str:
        """Adds a module of any source under a path, instead of the one there, and returns the path.

        Args:
            name: The dotted path.
            module: The module; calls of it are converted by its own vocabulary.

        Raises:
            UsageError: TM6061 for a name that is taken, for a module that contains this one, and for one that
                is not traced.
        """
        if not isinstance(module, ir.TracedModule):
            raise _misplaced(name, _TRACED, module)
        owner, _, last = name.rpartition(".")
        holder = self.get_submodule(owner)
        _check_free(holder, last, ("tensors", "attributes"))
        if any(each is self for _, each in module.modules()):
            raise UsageError("TM6061", f"{module!r} contains the module that it is added to")
        holder.children[last] = cast("TracedModule", module)
        graph = self.graph
        if graph is not None:
            renumber(module, ids_of(graph))
            graph.edits += 1
        return name

    def free_attribute(self, base: str) -> str:
        """Returns a name that no part of this module has: ``base``, ``base_1``, ...

        Args:
            base: The name to begin with.
        """
        wanted = name = re.sub(r"\W", "_", base.rpartition(".")[2]) or "module"
        number = 0
        while any(name in store for store in (self.children, self.tensors, self.attributes)):
            number += 1
            name = f"{wanted}_{number}"
        return name


def as_numpy(value: object) -> np.ndarray:
    """Returns an array of a number, a list, an array or a tensor of torch."""
    detach = getattr(value, "detach", None)
    return np.asarray(value if detach is None else detach().cpu().numpy())


def _tensors(module: ir.TracedModule, buffers: bool) -> Iterator[tuple[str, np.ndarray]]:
    seen: set[int] = set()
    for path, each in module.modules():
        for name, tensor in each.tensors.items():
            if (name in each.buffers) is buffers and id(tensor) not in seen:
                seen.add(id(tensor))
                yield f"{path}.{name}" if path else name, tensor


def _holders(module: ModuleAccess, prefix: str) -> Iterator[tuple[str, tuple[ModuleAccess, str]]]:
    for name in module.tensors:
        yield prefix + name, (module, name)
    for name, child in module.children.items():
        yield from _holders(child, f"{prefix}{name}.")


def _all_tensors(module: ModuleAccess, prefix: str) -> Iterator[tuple[str, np.ndarray]]:
    return ((path, holder.tensors[name]) for path, (holder, name) in _holders(module, prefix))


def _check_free(module: ir.TracedModule, name: str, stores: tuple[str, ...]) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise UsageError("TM6061", f"{name!r} is not the name of an attribute")
    for store in stores:
        if name in getattr(module, store):
            raise UsageError("TM6061", f"{name!r} is among the {store} of {module!r} already")


def _misplaced(name: str, expected: str, value: object) -> UsageError:
    return UsageError("TM6061", f"{name!r} must be {expected}, got {type(value).__name__}")
