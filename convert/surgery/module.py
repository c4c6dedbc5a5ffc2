"""TracedModule as users have it: a module to search, change, run, train and write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, cast

from tmconvert import ir
from tmconvert.conveniences import NotebookForm
from tmconvert.errors import UsageError
from tmconvert.errors.values import shown_value
from tmconvert.ir.call_arguments import flat_inputs
from tmconvert.ir.flatten import flatten_module
from tmconvert.ir.ids import share_ids
from tmconvert.ir.interpreter import run_module
from tmconvert.ir.tree import leaves
from tmconvert.surgery.active import required
from tmconvert.surgery.call_objects import opened
from tmconvert.surgery.copying import copied_module
from tmconvert.surgery.fx_module import FxModule
from tmconvert.surgery.tables import format_tree
from tmconvert.symbolics.registry import catalogue

if TYPE_CHECKING:
    from tmconvert.surgery.nodes import Node


class TracedModule(FxModule, NotebookForm, extends=ir.TracedModule):
    """A module of the source model; a model is the module at the top.

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

    if TYPE_CHECKING:
        watch_points: list[Node]  # type: ignore[assignment]
        watch_node_value: dict[Node, Any]  # type: ignore[assignment]
        end_points: list[Node]  # type: ignore[assignment]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the graph on arrays by the reference kernels. The result has the source's structure.

        Arguments are those of the source: nested, by keyword, dataclasses and objects of the classes of
        ``register_supported_type``; or the inputs of the graph in order. With
        nodes among them, inside of ``graph.insert_exprs()``, a call of the module is inserted. Raises
        UsageError TM6003, TM6014 for inputs that do not fit.
        """
        if any(isinstance(leaf, ir.Node) for leaf in leaves((args, kwargs))):
            return required(f"a call of {self!r}").call_module(self, *args, **kwargs)
        return run_module(self, flat_inputs(self, *opened((args, kwargs))))

    def flatten(self) -> TracedModule:
        """Returns a module whose graph has all submodules inlined; tensors are shared."""
        return cast("TracedModule", flatten_module(self))

    def set_watch_points(self, nodes: ir.Node | Iterable[ir.Node]) -> None:
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

    def set_end_points(self, nodes: ir.Node | Iterable[ir.Node]) -> None:
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

    def _own_nodes(self, nodes: ir.Node | Iterable[ir.Node]) -> list[Node]:
        found = [nodes] if isinstance(nodes, ir.Node) else list(nodes)
        graphs = {id(graph) for _, module in self.modules() for graph in module.graphs.values()}
        for node in found:
            expr = node.expr if isinstance(node, ir.Node) else None
            if expr is None or id(expr.graph) not in graphs:
                raise UsageError("TM6050", f"{shown_value(node)} is not a node of the model")
        return cast("list[Node]", found)

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
        from tmconvert import container

        writers = {"tm": container.save, "megengine": container.save_for_megengine}
        if format not in writers:
            raise UsageError("TM6009", f"format must be one of {', '.join(sorted(writers))}, got {format!r}")
        writers[format](self, path)

    def __deepcopy__(self, memo: dict[int, Any]) -> TracedModule:
        """Returns an independent copy, with the same example; see ``copy.deepcopy``."""
        clone = cast("TracedModule", copied_module(self, memo))
        share_ids(clone)
        if clone.is_model:
            clone.name_modules()
        return clone

    @property
    def qualname(self) -> str:
        """Returns the qualified name of the module in the model, from the model's name on: ``Net.block``."""
        return ".".join(filter(None, (self.model_name, self.name)))

    @property
    def is_model(self) -> bool:
        """Whether this is the model itself, not a module in it."""
        return not self.model_name

    def __str__(self) -> str:
        """Returns the tree of modules with their settings."""
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
        from tmconvert.torch_code.build import torch_module

        return torch_module(self, catalogue(), dynamic_shapes)

    @property
    def code(self) -> str:
        """Returns the source text of the class of ``to_torch``. Raises UnsupportedError."""
        from tmconvert.torch_code.class_source import generate

        return generate(self, catalogue()).text

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
        from tmconvert.torch_code.folder import write_folder

        write_folder(self, folder, class_name, catalogue(), dynamic_shapes)


def users_model(module: ir.TracedModule) -> TracedModule:
    """Returns a model that was made since this package was imported, as what it is."""
    assert isinstance(module, TracedModule)
    return module
