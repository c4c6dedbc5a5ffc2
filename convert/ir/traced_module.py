"""TracedModule: a module with its parameters, its children and the graph of its forward."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from tmconvert.ir.call_structure import call_structure
from tmconvert.ir.extensible import Extensible
from tmconvert.ir.graph import InternalGraph
from tmconvert.ir.node import Node
from tmconvert.ir.pristine import State
from tmconvert.ir.tree import Tree

if TYPE_CHECKING:
    from tmconvert.ir.emitter import Emitter, GraphEmitter
    from tmconvert.ir.expr import Expr

# Computes one call on arrays: (expr, args, kwargs) -> tree of arrays.
Evaluate = Callable[["Expr", tuple[Any, ...], dict[str, Any]], Any]


# the end of a note on a source in integers, for a file that is float
IN_FLOAT = "--quantized (quantized=True) keeps that, else they are float"


class Vocabulary(Protocol):
    """Converts the calls of a source graph; each frontend has a vocabulary.

    ``identifier`` is its name in files, such as "megengine". ``has_all_qparams`` states that tensors without
    quantization parameters in a model are meant to be float, not only unspecified; ``is_channels_last`` that
    images have their channels last, also those that the model takes and returns.
    """

    identifier: str
    has_all_qparams: bool
    is_channels_last: bool

    def apply(self, g: Emitter, expr: Expr, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Converts one call to ATen-style ops on ``g``. Raises Refusal."""

    def evaluate(self, expr: Expr, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Computes one call on arrays. Raises UnsupportedError."""

    def name(self, expr: Expr) -> str:
        """Returns the source's name of a call."""
        raise NotImplementedError

    def function_name(self, function: object) -> tuple[str, bool]:
        """Returns the name of a function, and whether it is a method of tensors."""
        raise NotImplementedError

    def vocabulary_of_method(self, method: str) -> Vocabulary | None:
        """Returns the vocabulary that converts a method of a tensor; None for an unknown one."""

    def plain(self, leaf: object) -> Any:
        """Returns a constant argument as a graph stores it."""

    def emitter(self, graph: InternalGraph) -> GraphEmitter:
        """Returns an emitter that adds ops of the catalogue to a graph."""
        raise NotImplementedError

    def result_op(self, expr: Expr) -> str | None:
        """Returns the op of the catalogue that computes the first result of a call; None where none does, or
        where types that it depends on are not known.
        """


class Example(NamedTuple):
    """Flattened inputs of a model, and the outputs that the source framework computed for them.

    ``outputs`` is None if the model was edited since: the source framework did not compute its outputs.
    """

    inputs: tuple[np.ndarray, ...]
    outputs: tuple[np.ndarray, ...] | None


class Recording(NamedTuple):
    """The recorded example and original of a model, as far as they hold for its current state."""

    example: Example | None
    original: Original | None
    is_edited: bool


class Source(Protocol):
    """The source of a model while it is loaded: it runs on inputs of other shapes, given in order."""

    def at(self, shapes: Sequence[tuple[int, ...]]) -> Example | str | None:
        """Returns the outputs of the source; its error where it fails, None where it is not available."""

    def is_same_at(self, shapes: Sequence[tuple[int, ...]]) -> bool:
        """Whether the source runs at these shapes and makes the calls that were recorded."""
        raise NotImplementedError


class Original(Protocol):
    """The file, or the module, that a model was made of; another program than tmconvert runs it.

    ``name`` is that of the program, and ``refusal`` why it did not run the last inputs; empty where it did.
    ``sides`` are inputs for which Python takes other sides of the model's branches than for the example;
    ``saturates`` states that kernels may accumulate products of integers incorrectly on this processor.
    """

    name: str
    refusal: str
    sides: Sequence[Sequence[np.ndarray]]

    @property
    def saturates(self) -> bool: ...

    def run(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray] | None:
        """Returns the outputs for inputs in order; None where the program does not run the file."""

    def run_rounded(self, inputs: Sequence[np.ndarray], seed: int, units: int) -> list[np.ndarray] | None:
        """Returns the outputs with random noise of ``units`` in the last place of all floats, or computed in
        float64 for 0 units; None where the program cannot do that.
        """


class TracedModule(Extensible):
    """A module of the source model.

    The methods are what frontends, passes and targets need; ``tmconvert.TracedModule`` has those for users,
    and describes the fields.
    """

    def __init__(self, name: str = "", class_name: str = "", *, vocabulary: Vocabulary | None = None) -> None:
        self.name = name
        self.model_name = ""  # of the model that it is a part of; see name_modules
        self.class_name = class_name
        self.children: dict[str, TracedModule] = {}
        self.tensors: dict[str, np.ndarray] = {}
        self.buffers: set[str] = set()
        self.attributes: dict[str, Any] = {}
        self.graphs: dict[str, InternalGraph] = {}
        self.vocabulary = vocabulary
        self.source_file = ""
        self.producer = ""
        self.source_sha256 = ""
        self.metadata: dict[str, str] = {}  # that the file of the source stores for its users
        self._example: Example | None = None
        self._original: Original | None = None
        self._recorded: State | None = None  # what computes the outputs of the example and of the original
        self._model: TracedModule | None = None  # that it is a part of
        self.dynamic_shapes: dict[str, dict[int, str]] | None = None
        self.rerun: Source | None = None
        self.positions: int | None = None  # that a configuration states, of texts
        self.notes: list[str] = []
        self.watch_points: list[Node] = []
        self.watch_node_value: dict[Node, Any] = {}
        self.end_points: list[Node] = []
        self.meta: dict[str, Any] = {}

    @property
    def example(self) -> Example | None:
        """Returns the example inputs, and the source framework's outputs unless the model was edited."""
        return None if self._example is None else self.recording().example

    @example.setter
    def example(self, example: Example | None) -> None:
        """Sets the example of the model in its current state, and forgets the original of an edited one."""
        self._original = None if self.is_edited() else self._original
        self._example = example
        has_outputs = example is not None and example.outputs is not None
        self._recorded = State(self) if has_outputs or self._original is not None else None

    @property
    def original(self) -> Original | None:
        """Returns the file that the model was loaded from, unless the model was edited."""
        return None if self._original is None else self.recording().original

    @original.setter
    def original(self, original: Original | None) -> None:
        """Sets the file of the model in its current state."""
        self._original = original
        self._recorded = State(self) if original is not None else self._recorded

    def _takes(self, example: Example) -> bool:
        """Whether the inputs of an example are still those of the graph."""
        nodes = [] if self.graph is None else self.graph.inputs[1:]
        types = [(getattr(node, "shape", None), getattr(node, "dtype", None)) for node in nodes]
        return types == [(array.shape, array.dtype) for array in example.inputs]

    def is_edited(self) -> bool:
        """Whether graphs or tensors were changed since the example was recorded."""
        return self._recorded is not None and not self._recorded.is_that_of(self)

    def recording(self) -> Recording:
        """Returns the example, the original and whether the model was edited, all of one look at it.

        A look reads parts of all tensors: who needs several of these asks once.
        """
        is_edited, example = self.is_edited(), self._example
        if not is_edited:
            return Recording(example, self._original, is_edited)
        if example is not None:
            example = example._replace(outputs=None) if self._takes(example) else None
        return Recording(example, None, is_edited)

    def take_example(self, module: TracedModule) -> None:
        """Takes the example of a module that computes the same; and ``rerun``, unless that module was edited.

        Args:
            module: The other module, with the same tensors.
        """
        self._example, _, is_edited = module.recording()
        has_outputs = self._example is not None and self._example.outputs is not None
        self._recorded = State(self, like=module._recorded) if has_outputs else None
        self.rerun = None if is_edited else module.rerun

    @property
    def graph(self) -> InternalGraph | None:
        """Returns the first graph; the only one unless there were calls with several argument structures."""
        return next(iter(self.graphs.values()), None)

    def graph_for(self, args: tuple[Tree, ...], kwargs: dict[str, Tree]) -> InternalGraph | None:
        """Returns the graph traced for arguments of a structure; None where there is none.

        Args:
            args: The arguments by position; ``args[0]`` is the module itself.
            kwargs: The arguments by name.
        """
        if len(self.graphs) == 1:
            return self.graph
        return self.graphs.get(call_structure(args, kwargs))

    def get(self, path: str) -> Any:
        """Returns the child, tensor or attribute at a path.

        Args:
            path: The dotted path.

        Raises:
            KeyError: With the missing part of the path.
        """
        module: Any = self
        if not isinstance(path, str):
            raise KeyError(path)
        for part in path.split("."):
            if not isinstance(module, TracedModule):
                raise KeyError(path)
            for store in (module.children, module.tensors, module.attributes):
                if part in store:
                    module = store[part]
                    break
            else:
                raise KeyError(path)
        return module

    def modules(self) -> Iterator[tuple[str, TracedModule]]:
        """Yields this module and all submodules as (dotted path, module); a shared one once."""
        seen: set[int] = set()
        stack: list[tuple[str, TracedModule]] = [("", self)]
        while stack:
            path, module = stack.pop()
            if id(module) in seen:
                continue
            seen.add(id(module))
            yield path, module
            children = [
                (f"{path}.{name}" if path else name, child) for name, child in module.children.items()
            ]
            stack.extend(reversed(children))

    def parameter_count(self) -> int:
        """Counts the elements of the parameters of all modules, shared ones once."""
        return sum(tensor.size for tensor in self._held(False).values())

    def buffer_count(self) -> int:
        """Counts the elements of all other tensors, such as the statistics of batch norms."""
        parameters = self._held(False)
        return sum(tensor.size for key, tensor in self._held(True).items() if key not in parameters)

    def own_parameters(self) -> int:
        """Counts the elements of the parameters of this module alone."""
        return sum(tensor.size for name, tensor in self.tensors.items() if name not in self.buffers)

    def _held(self, buffers: bool) -> dict[int, np.ndarray]:
        return {
            id(tensor): tensor
            for _, module in self.modules()
            for name, tensor in module.tensors.items()
            if (name in module.buffers) == buffers
        }

    def name_modules(self) -> None:
        """Tells all submodules of the model that they are in, and its name, for their qualified names."""
        for _, module in self.modules():
            if module is not self:
                module.model_name, module._model = self.name, self

    def __repr__(self) -> str:
        return f"TracedModule({self.name!r}, {self.class_name})"
