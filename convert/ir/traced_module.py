"""TracedModule: a module with its parameters, its children and the graph of its forward."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from tmconvert.errors import UsageError
from tmconvert.errors.values import shown_value
from tmconvert.ir.call_structure import call_structure
from tmconvert.ir.code_generator import code_generator
from tmconvert.ir.editing.active import required
from tmconvert.ir.editing.fx_module import FxModule
from tmconvert.ir.editing.modules import ModuleAccess
from tmconvert.ir.graph import InternalGraph
from tmconvert.ir.node import Node
from tmconvert.ir.notebook import NotebookForm
from tmconvert.ir.pristine import State
from tmconvert.ir.tree import Tree, leaves

if TYPE_CHECKING:
    from tmconvert.ir.emitter import Emitter, GraphEmitter
    from tmconvert.ir.expr import Expr

# Computes one call on arrays: (expr, args, kwargs) -> tree of arrays.
Evaluate = Callable[["Expr", tuple[Any, ...], dict[str, Any]], Any]


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
    """The file that a model was loaded from; another program than tmconvert runs it."""

    def run(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray] | None:
        """Returns the outputs for inputs in order; None where the program does not run the file."""


class TracedModule(ModuleAccess, FxModule, NotebookForm):
    """A module of the source model.

    ``children``, ``tensors`` (parameters, buffers and constants; ``buffers`` has the names of those that are
    not trained) and ``attributes`` (``stride``, ``eps``, ...) are by attribute name. ``graphs`` holds one
    graph for each structure of call arguments (see ``call_structure``) with which it was traced; a builtin
    leaf has none, and is converted by an adapter of the frontend.

    The model itself also has ``source_file``, ``producer`` (the program that made it), ``source_sha256`` (the
    digest of its original file, if that is not ``source_file``) and optionally an ``example``.
    ``dynamic_shapes`` names the sizes of inputs for which the recorded graph was validated, by input and
    axis; None if the graph is valid for every size. ``rerun`` runs the source on inputs of other shapes,
    while it is loaded; ``original`` runs the source's file, unless the model was edited. ``notes`` are for
    the report of a conversion. ``watch_node_value`` has the values of ``watch_points`` in the last run; a run
    ends at ``end_points``. ``meta`` is for the user's own notes, which are not saved.

    Args:
        name: The attribute path of the module.
        class_name: The qualified name of its source class.
        vocabulary: Converts the calls of the source.

    Example:
        >>> tm = tmconvert.load("net.tm")  # doctest: +SKIP
        >>> outputs = tm(np.zeros((1, 3, 32, 32), np.float32))  # doctest: +SKIP
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
        self._example: Example | None = None
        self._original: Original | None = None
        self._recorded: State | None = None  # what computes the outputs of the example and of the original
        self.dynamic_shapes: dict[str, dict[int, str]] | None = None
        self.rerun: Source | None = None
        self.notes: list[str] = []
        self.watch_points: list[Node] = []
        self.watch_node_value: dict[Node, Any] = {}
        self.end_points: list[Node] = []
        self.meta: dict[str, Any] = {}
        self._is_made = True  # other attributes are those of the model from now on

    @property
    def example(self) -> Example | None:
        """Returns the example inputs, and the source framework's outputs for them unless the model was
        edited.
        """
        return None if self._example is None else self.recording().example

    @example.setter
    def example(self, example: Example | None) -> None:
        """Sets the example of the model in its current state."""
        self._example = example
        self._recorded = State(self) if example is not None and example.outputs is not None else None

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
        """Returns the first graph; the only one unless the module was called with several argument
        structures.
        """
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

    def flatten(self) -> TracedModule:
        """Returns a module whose graph has all submodules inlined; tensors are shared."""
        from tmconvert.ir.flatten import flatten_module

        return flatten_module(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the graph on arrays by the reference kernels. The result has the source's structure.

        Arguments are those of the source: nested, by keyword; or the inputs of the graph in order. With
        nodes among them, inside of ``graph.insert_exprs()``, a call of the module is inserted. Raises
        UsageError TM6003, TM6014 for inputs that do not fit.
        """
        from tmconvert.ir.call_arguments import flat_inputs
        from tmconvert.ir.interpreter import run_module

        if any(isinstance(leaf, Node) for leaf in leaves((args, kwargs))):
            return required(f"a call of {self!r}").call_module(self, *args, **kwargs)
        return run_module(self, flat_inputs(self, args, kwargs))

    def set_watch_points(self, nodes: Node | Iterable[Node]) -> None:
        """Keeps the values of nodes in ``watch_node_value``, a dict by node, at each run from now on.

        Args:
            nodes: Nodes, which may be in the graphs of submodules; for several calls of a submodule the value
                of the last one is kept. A node that a run does not compute has no value.

        Raises:
            UsageError: TM6050 for a node of another model.

        Example:
            >>> tm.set_watch_points(tm.graph.get_node_by_name("relu_out").as_unique())  # doctest: +SKIP
            >>> tm(x); tm.watch_node_value  # doctest: +SKIP
        """
        self.watch_points, self.watch_node_value = self._own_nodes(nodes), {}

    def clear_watch_points(self) -> None:
        """Stops watching, and forgets the values."""
        self.watch_points, self.watch_node_value = [], {}

    def set_end_points(self, nodes: Node | Iterable[Node]) -> None:
        """Ends each run from now on as soon as all given nodes have values; it returns a list of these.

        Args:
            nodes: Nodes, which may be in the graphs of submodules.

        Raises:
            UsageError: TM6050 for a node of another model, and when a run does not compute all of them.

        Example:
            >>> tm.set_end_points(tm.graph.get_node_by_name("relu_out").as_unique())  # doctest: +SKIP
            >>> (relu_out,) = tm(x)  # doctest: +SKIP
        """
        self.end_points = self._own_nodes(nodes)

    def clear_end_points(self) -> None:
        """Lets runs compute the outputs of the model again."""
        self.end_points = []

    def _own_nodes(self, nodes: Node | Iterable[Node]) -> list[Node]:
        found = [nodes] if isinstance(nodes, Node) else list(nodes)
        graphs = {id(graph) for _, module in self.modules() for graph in module.graphs.values()}
        for node in found:
            expr = node.expr if isinstance(node, Node) else None
            if expr is None or id(expr.graph) not in graphs:
                raise UsageError("TM6050", f"{shown_value(node)} is not a node of the model")
        return found

    def save(self, path: str | PathLike[str], format: str = "tm") -> None:
        """Writes the module to a file, which ``tmconvert.load`` reads. The same model gives the same bytes.

        Args:
            path: The file to write.
            format: "tm" for the container of tmconvert, or "megengine" for a pickle that MegEngine 1.13
                loads: only a model of MegEngine's own calls, edited or not, can be written in that format.

        Raises:
            UsageError: TM6009 for another format.
            WriteError: TM5001, TM5004, TM5005.

        Example:
            >>> model.graph.compile()  # doctest: +SKIP
            >>> model.save("edited.tm", format="megengine")  # doctest: +SKIP
        """
        writer = _writers.get(format)
        if writer is None:
            known = ", ".join(sorted(_writers))
            raise UsageError("TM6009", f"format must be one of {known}, got {format!r}")
        writer(self, path)

    def __deepcopy__(self, memo: dict[int, Any]) -> TracedModule:
        """Returns an independent copy, with the same example; see ``copy.deepcopy``."""
        from tmconvert.ir.copying import copied_module

        return copied_module(self, memo)

    @property
    def qualname(self) -> str:
        """Returns the qualified name of the module in the model, which begins with the model's name:
        ``Net.block``.
        """
        return ".".join(filter(None, (self.model_name, self.name)))

    @property
    def is_model(self) -> bool:
        """Whether this is the model itself, not a module in it."""
        return not self.model_name

    def name_modules(self) -> None:
        """Sets the model's name in all submodules, for their qualified names."""
        for _, module in self.modules():
            if module is not self:
                module.model_name = self.name

    def __str__(self) -> str:
        """Returns the tree of modules with their settings."""
        from tmconvert.ir.printing import format_tree

        return format_tree(self)

    def to_torch(self, *, dynamic_shapes: Mapping[str, Mapping[int, str]] | None = None) -> Any:
        """Returns the model as a ``torch.nn.Module``, in evaluation mode, to train it and to look at it.

        Parameters and buffers have the paths of the source. ``forward`` has the inputs as parameters, in
        their order, and calls functions of torch, and modules of torch.nn where the source has equivalent
        ones.

        Args:
            dynamic_shapes: Names of dynamic sizes, as in ``trace``. Without it, dynamic sizes of a trace stay
                dynamic, and in other models the first axes of inputs are dynamic.

        Raises:
            UnsupportedError: Calls that PyTorch lacks.
            LoadError: TM1021 without torch.

        Example:
            >>> net = tmconvert.load("samples/digits.tm").to_torch()  # doctest: +SKIP
            >>> optimizer = torch.optim.SGD(net.train().parameters(), 0.01)  # doctest: +SKIP
        """
        return code_generator().module(self, dynamic_shapes)

    @property
    def code(self) -> str:
        """Returns the source text of the class of ``to_torch``. Raises UnsupportedError."""
        return code_generator().text(self)

    def to_folder(
        self,
        folder: str | PathLike[str],
        class_name: str | None = None,
        *,
        dynamic_shapes: Mapping[str, Mapping[int, str]] | None = None,
    ) -> None:
        """Writes a package of the code and the weights, which needs PyTorch only.

        Args:
            folder: A folder that must not exist; it is written as a whole or not at all.
            class_name: Name of the class; None takes that of the model.
            dynamic_shapes: Names of dynamic sizes, as of ``to_torch``.

        Raises:
            UnsupportedError: Calls that PyTorch lacks.
            UsageError: TM6071.
            WriteError: The folder cannot be written.

        Example:
            >>> model.to_folder("net", "Net")  # then: from net import Net; Net()(x)  # doctest: +SKIP
        """
        code_generator().write_folder(self, folder, class_name, dynamic_shapes)

    def __repr__(self) -> str:
        return f"TracedModule({self.name!r}, {self.class_name})"


Writer = Callable[[TracedModule, "str | PathLike[str]"], None]
_writers: dict[str, Writer] = {}


def register_writer(format: str, write: Writer) -> None:
    """Registers the function that ``TracedModule.save`` calls for ``format``; ``tmconvert.container`` does so
    on import.
    """
    _writers[format] = write
