"""Nodes: the inputs and results of expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from tmconvert.errors import UsageError
from tmconvert.ir.extensible import Extensible
from tmconvert.ir.types import QParams, TensorType

if TYPE_CHECKING:
    from tmconvert.ir.expr import Expr
    from tmconvert.ir.traced_module import TracedModule

# the layout of a rank-4 tensor of a target plan; None: that of the source
Layout = Literal["nhwc"]


AnyNode = TypeVar("AnyNode", bound="Node")


class Node(Extensible):
    """A value with exactly one producer.

    ``name`` is unique in its graph, and for people only: expressions refer to the object. ``id`` is the
    number that MegEngine's printed form shows for a node without a name. ``expr`` produces the node. ``uses``
    counts, for each expression, how many of its argument leaves are this node; only InternalGraph writes it.
    """

    __slots__ = ("_id", "_meta", "_name", "expr", "uses")
    is_module = False

    def __init__(self, name: str = "", id: int | None = None) -> None:
        self._meta: dict[str, Any] | None = None
        self._name = name
        self._id = id
        self.expr: Expr | None = None
        self.uses: dict[Expr, int] = {}

    @property
    def id(self) -> int:
        """Returns the number of the node, unique in its model; see ``Expr.id``."""
        if self._id is None and self.expr is not None and self.expr.graph is not None:
            from tmconvert.ir.ids import number_rest

            number_rest(self.expr.graph)
        return self._id or 0

    @id.setter
    def id(self, number: int | None) -> None:
        self._id = number

    @property
    def name(self) -> str:
        return self._name

    @name.setter
    def name(self, name: str) -> None:
        """Renames the node in its graph. Raises GraphError TM3003 when another node has the name."""
        graph = None if self.expr is None else self.expr.graph
        if graph is None:
            self._name = name
        else:
            graph.rename(self, name)

    @property
    def users(self) -> tuple[Expr, ...]:
        """Returns the expressions that take this node as an argument, in the order of their links."""
        return tuple(self.uses)

    @property
    def meta(self) -> dict[str, Any]:
        """Returns a dict for the user's own notes; it is not saved."""
        if self._meta is None:
            self._meta = {}
        return self._meta

    def with_notes_of(self: AnyNode, node: Node) -> AnyNode:
        """Adds the notes of another node to its own, see ``meta``, and returns this node."""
        if node._meta:
            self.meta.update(node._meta)
        return self

    def __format__(self, spec: str) -> str:
        """Formats the name; ``i`` adds the id (``%7_relu_out``), ``p`` the graph's name (``Net_relu_out``).

        Raises ValueError for another ``spec``.
        """
        if set(spec) - set("ip"):
            raise ValueError(f"the format of a node is made of 'i' and 'p', not {spec!r}")
        name = self.name if spec else str(self)
        if "p" in spec and self.expr is not None and self.expr.graph is not None:
            name = f"{self.expr.graph.name}_{name}"
        return f"%{self.id}_{name}" if "i" in spec else name

    def __str__(self) -> str:
        return self.name or str(self.id)

    __repr__ = __str__


class TensorNode(Node):
    """A tensor. ``shape`` and ``dtype`` are None where the source did not record them.

    ``layout`` is "nhwc" where a target plan stores a rank-4 tensor channels-last; ``shape`` stays the logical
    NCHW shape. None means the layout of the source.
    """

    __slots__ = ("_qparams", "_type", "dtype", "layout", "shape")

    def __init__(
        self,
        name: str = "",
        shape: tuple[Any, ...] | None = None,
        dtype: np.dtype | None = None,
        *,
        qparams: QParams | None = None,
        layout: Layout | None = None,
        id: int | None = None,
    ) -> None:
        super().__init__(name, id)
        self.shape = shape
        is_plain = dtype is None or isinstance(dtype, np.dtype)
        self.dtype = dtype if is_plain else np.dtype(dtype)  # plugins pass np.float32
        self._type: TensorType | None = None  # the last that was returned, which is so for equal fields
        self._qparams = qparams
        self.layout = layout

    @property
    def qparams(self) -> QParams | None:
        """Returns the quantization parameters; for a model trained with fake quantization, those that the
        file recorded for the tensor.

        They can be set in graphs of ATen-style ops, see ``tmconvert.normalize``, and of inputs. Elsewhere the
        fake quantization of the source applies: setting others raises UsageError TM6065.
        """
        return self._qparams

    @qparams.setter
    def qparams(self, qparams: QParams | None) -> None:
        graph = None if self.expr is None else self.expr.graph
        if graph is not None and qparams != self._qparams and not graph.takes_qparams(self):
            raise UsageError(
                "TM6065",
                f"the quantization of {self} is what its source computes: other parameters are not used",
                notes=[
                    ("help", "set them in the graph of tmconvert.normalize(model), or in a parameter file")
                ],
            )
        self._qparams = qparams

    @property
    def type(self) -> TensorType:
        """Returns the tensor's type. Raises TypeError where shape or dtype are unknown."""
        known = self._type
        if known is not None and known.shape is self.shape and known.dtype is self.dtype:
            return known
        if self.shape is None or self.dtype is None:
            raise TypeError(f"the type of {self} is not known")
        self._type = TensorType(self.dtype, self.shape)
        return self._type

    @type.setter
    def type(self, value: TensorType) -> None:
        self.shape, self.dtype, self._type = value.shape, value.dtype, value

    @property
    def holds_integers(self) -> bool:
        """Whether the source stored the tensor as quantized integers."""
        return self.qparams is not None and self.dtype is not None and self.dtype.kind in "iu"

    @property
    def real_type(self) -> TensorType:
        """Returns ``type``, or float32 for a tensor that the source stored as quantized integers."""
        return TensorType(np.dtype(np.float32), self.type.shape) if self.holds_integers else self.type


class ModuleNode(Node):
    """A module. ``class_name`` is the qualified name of the source class; ``owner`` the module itself."""

    __slots__ = ("class_name", "owner")
    is_module = True

    def __init__(
        self,
        name: str = "",
        class_name: str = "",
        *,
        owner: TracedModule | None = None,
        id: int | None = None,
    ) -> None:
        super().__init__(name, id)
        self.class_name = class_name
        self.owner = owner
