"""The five kinds of expressions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import is_
from typing import TYPE_CHECKING, Any, NamedTuple

from tmconvert.errors import GraphError
from tmconvert.errors.source import Source, printable
from tmconvert.ir.extensible import Extensible
from tmconvert.ir.function_names import FunctionName, name_of_function
from tmconvert.ir.lazy_constants import computed
from tmconvert.ir.node import ModuleNode, Node, TensorNode
from tmconvert.ir.tree import Tree, leaves_of, map_leaves, map_objects

if TYPE_CHECKING:
    from tmconvert.ir.graph import InternalGraph
    from tmconvert.ir.printing import Printing
    from tmconvert.ir.traced_module import Vocabulary
    from tmconvert.ir.types import TensorType


class Expr(Extensible):
    """One step of a graph.

    ``args`` and ``kwargs`` are trees with Nodes and constants at the leaves; ``result`` is the tree of output
    nodes. ``source`` is the location in the user's code, ``made_by`` the pass that made the expression;
    ``vocabulary`` converts the call if it is not that of the graph's module. Links to nodes change only
    through InternalGraph, which updates ``Node.uses``; trees are never modified, only replaced.
    """

    __slots__ = (
        "_id", "_returned", "_walked", "args", "graph", "kwargs", "made_by", "next", "previous", "result",
        "source", "vocabulary",
    )  # fmt: skip

    def __init__(
        self,
        args: tuple[Tree, ...] = (),
        kwargs: dict[str, Tree] | None = None,
        *,
        result: Tree = (),
        id: int | None = None,
        source: Source | None = None,
        made_by: str | None = None,
    ) -> None:
        self.args = args
        self.kwargs = kwargs or {}
        self.result = result
        self._id = id
        self.source = source
        self.made_by = made_by
        self.vocabulary: Vocabulary | None = None
        self.graph: InternalGraph | None = None
        self.previous: Expr | None = None
        self.next: Expr | None = None
        self._walked: tuple[Tree, Tree, tuple[Node, ...]] = (None, None, ())
        self._returned: tuple[Tree, tuple[Node, ...]] = (None, ())
        for node in self.outputs:
            node.expr = self

    @property
    def id(self) -> int:
        """Returns the number of the expression, unique in its model; the first number that is read of a graph
        numbers all of its expressions that have none.
        """
        if self._id is None and self.graph is not None:
            from tmconvert.ir.ids import number_rest

            number_rest(self.graph)
        return self._id or 0

    @id.setter
    def id(self, number: int | None) -> None:
        self._id = number

    @property
    def inputs(self) -> tuple[Node, ...]:
        """Returns the nodes among the arguments, in order, with repetitions."""
        args, kwargs, nodes = self._walked
        if args is not self.args or kwargs is not self.kwargs:
            nodes = _nodes((self.args, self.kwargs))
            self._walked = (self.args, self.kwargs, nodes)
        return nodes

    @property
    def outputs(self) -> tuple[Node, ...]:
        """Returns the output nodes, in order."""
        result, nodes = self._returned
        if result is not self.result:
            nodes = _nodes(self.result)
            self._returned = (self.result, nodes)
        return nodes

    @property
    def op(self) -> str:
        """Returns what ``torch.fx`` calls the kind of the expression: "placeholder", "get_attr",
        "call_function", "call_method" or "call_module".
        """
        raise NotImplementedError

    @property
    def target(self) -> str:
        """Returns the name of the input, function or method, or the path of the attribute or module."""
        return self.target_in("")

    def target_in(self, path: str) -> str:
        """Returns the target, with the path of the module that has the graph before paths."""
        raise NotImplementedError

    @property
    def output(self) -> TensorNode:
        """Returns the single output tensor."""
        (node,) = self.outputs
        assert isinstance(node, TensorNode)
        return node

    def like(self, args: tuple[Tree, ...], kwargs: dict[str, Tree], result: Tree) -> Expr:
        """Returns an unlinked expression of the same kind and origin with other arguments and results."""
        clone = object.__new__(type(self))
        for slot in self._own_slots:
            setattr(clone, slot, getattr(self, slot))
        Expr.__init__(
            clone, args, kwargs, result=result, id=self._id, source=self.source, made_by=self.made_by
        )
        clone.vocabulary = self.vocabulary
        return clone

    def copied(self, nodes: Mapping[Node, Node], value: Callable[[Any], Any] = lambda value: value) -> Expr:
        """Returns an unlinked copy with other nodes; ``value`` maps all other leaves."""

        def leaf(leaf: Any) -> Any:
            return nodes[leaf] if isinstance(leaf, Node) else value(leaf)

        inputs = tuple([nodes[node] for node in self.inputs])
        are_nodes = len(inputs) == len(self.args) and all(map(is_, self.inputs, self.args))
        args = inputs if are_nodes else map_leaves(leaf, self.args)
        clone = self.like(args, map_objects(leaf, self.kwargs), map_leaves(leaf, self.result))
        clone._walked = (clone.args, clone.kwargs, inputs)
        return clone

    _own_slots: tuple[str, ...] = ()

    def printed(self, form: Printing) -> str:
        """Returns the expression as MegEngine prints it, without its id: ``out = nn.relu(x, )``."""
        raise NotImplementedError

    def _result(self, form: Printing) -> str:
        return f"{form.text(self.result)} = " if self.outputs else ""

    def __format__(self, spec: str) -> str:
        """Formats the expression with its id; ``spec`` is for its nodes, see ``Node``."""
        from tmconvert.ir.printing import Printing

        return f"%{self.id}:\t{printable(self.printed(Printing(spec)))}"

    def __repr__(self) -> str:
        return format(self)


def _nodes(tree: Tree) -> tuple[Node, ...]:
    if isinstance(tree, Node):
        return (tree,)
    return tuple(leaves_of(Node, tree))


def _module_path(node: Node, path: str) -> str:
    """Returns the path of a module from that of the module whose graph has the node."""
    expr = node.expr
    if expr is None or (expr.graph is not None and expr.graph.inputs and expr.graph.inputs[0] is node):
        return path
    return expr.target_in(path)


class Input(Expr):
    """A formal input of the graph. Not part of an iteration over the graph."""

    __slots__ = ("name",)
    _own_slots = ("name",)

    def __init__(self, name: str = "", **common: Any) -> None:
        super().__init__(**common)
        self.name = name

    def printed(self, form: Printing) -> str:
        return f"{form.text(self.outputs[0])} = Input()"

    @property
    def op(self) -> str:
        return "placeholder"

    def target_in(self, path: str) -> str:
        return self.name or str(self.outputs[0])


class Constant(Expr):
    """A captured value: an ``np.ndarray``, or a TracedModule.

    ``name`` is the path of the value in the source (``layer1.0.conv.weight``), if it has one. ``stored`` is
    the value, or one that is not computed yet (``Lazy``).
    """

    __slots__ = ("name", "stored")
    _own_slots = ("name", "stored")

    def __init__(self, value: Any, name: str | None = None, **common: Any) -> None:
        super().__init__(**common)
        self.stored = value
        self.name = name

    def printed(self, form: Printing) -> str:
        (node,) = self.outputs
        kind = "Module" if isinstance(node, ModuleNode) else "Tensor"
        return f"{form.text(node)} = Constant({self.name or ''}) -> ({kind})"

    @property
    def op(self) -> str:
        return "get_attr"

    def target_in(self, path: str) -> str:
        return self.name or str(self.outputs[0])

    @property
    def value(self) -> Any:
        """Returns the array, or the module."""
        return computed(self.stored)

    @value.setter
    def value(self, value: Any) -> None:
        self.stored = value


class GetAttr(Expr):
    """Attribute ``name`` (dotted after flatten) of the module ``args[0]``."""

    __slots__ = ("_name",)
    _own_slots = ("_name",)

    def __init__(self, owner: Node, name: str, **common: Any) -> None:
        super().__init__((owner,), **common)
        self._name = name

    def printed(self, form: Printing) -> str:
        (node,) = self.outputs
        kind = node.class_name.rpartition(".")[2] if isinstance(node, ModuleNode) else "Tensor"
        return f'{form.text(node)} = getattr({form.text(self.args[0])}, "{self.name}") -> ({kind})'

    @property
    def op(self) -> str:
        return "get_attr"

    def target_in(self, path: str) -> str:
        holder = _module_path(self.args[0], path)
        return f"{holder}.{self.name}" if holder else self.name

    @property
    def name(self) -> str:
        return self._name

    @name.setter
    def name(self, name: str) -> None:
        """Reads another attribute. Raises GraphError TM3008 where it does not exist."""
        _set_target(self, _name=name)


class CallMethod(Expr):
    """``args[0].method(*args[1:], **kwargs)``: of a tensor, or ``__call__`` of a module."""

    __slots__ = ("_method",)
    _own_slots = ("_method",)

    def __init__(
        self, method: str, args: tuple[Tree, ...], kwargs: dict[str, Tree] | None = None, **common: Any
    ) -> None:
        super().__init__(args, kwargs, **common)
        self._method = method

    def printed(self, form: Printing) -> str:
        method = "" if self.method == "__call__" else f".{self.method}"
        arguments = form.arguments(self.args[1:], self.kwargs)
        return f"{self._result(form)}{form.text(self.args[0])}{method}({arguments})"

    @property
    def op(self) -> str:
        return "call_module" if self.method == "__call__" and self.args[0].is_module else "call_method"

    def target_in(self, path: str) -> str:
        return self.method if self.op == "call_method" else _module_path(self.args[0], path)

    @property
    def method(self) -> str:
        return self._method

    @method.setter
    def method(self, method: str) -> None:
        """Calls another method with these arguments. Raises GraphError TM3015 where they do not match."""
        _set_target(self, _method=method)


class Inferred(NamedTuple):
    """The arguments and types with which the type rule of a call has run: the objects themselves."""

    args: Tree
    kwargs: Tree
    types: tuple[TensorType, ...]  # of the inputs and outputs of the call

    @classmethod
    def of(cls, call: CallFunction) -> Inferred:
        """Returns those of a call between tensors of known types."""
        return cls(call.args, call.kwargs, tuple([node.type for node in _ends(call)]))

    def holds(self, call: CallFunction) -> bool:
        """Whether the call still has these arguments and types."""
        if call.args is not self.args or call.kwargs is not self.kwargs:
            return False
        ends = _ends(call)
        return len(ends) == len(self.types) and all(
            node.shape is type_.shape and node.dtype is type_.dtype
            for node, type_ in zip(ends, self.types, strict=True)
        )


def _ends(call: CallFunction) -> tuple[Any, ...]:
    return (*call.inputs, *call.outputs)


class CallFunction(Expr):
    """``function(*args, **kwargs)``.

    ``function`` is the qualified name in the source framework (``megengine.functional.nn.relu``), or an op of
    the catalogue (``aten::relu``). For the latter ``args`` holds the tensor arguments in the order of the
    signature (None for one left out) and ``kwargs`` all its attributes. ``label`` is the short form that
    MegEngine prints (``nn.relu``). ``inferred`` is what the types of the results were computed from, where
    that is known.
    """

    __slots__ = ("_function", "inferred", "label")
    _own_slots = ("_function", "inferred", "label")

    def __init__(
        self,
        function: str,
        args: tuple[Tree, ...],
        kwargs: dict[str, Tree] | None = None,
        *,
        label: str = "",
        **common: Any,
    ) -> None:
        super().__init__(args, kwargs, **common)
        self._function = function
        self.inferred: Inferred | None = None
        self.label = label or function

    def printed(self, form: Printing) -> str:
        if "." not in self.label:  # a raw operator: MegEngine shows no attributes and no trailing comma
            outputs = ", ".join(map(form.text, self.outputs))
            return f"{outputs} = {self.label}({', '.join(map(form.text, self.args))})"
        return f"{self._result(form)}{self.label}({form.arguments(self.args, self.kwargs)})"

    @property
    def op(self) -> str:
        return "call_function"

    def target_in(self, path: str) -> str:
        """Returns the name of the function, which also equals the function itself."""
        return FunctionName(self.function)

    @property
    def function(self) -> str:
        return self._function

    @function.setter
    def function(self, function: str | Callable[..., Any]) -> None:
        """Calls another function, given by its name or itself, with these arguments.

        Raises GraphError TM3015 where they do not fit.
        """
        if not isinstance(function, str) and not callable(function):
            message = f"function must be a name or a function, got {type(function).__name__}"
            raise GraphError("TM3014", message, source=self.source)
        name = name_of_function(function)
        _set_target(self, _function=name, label=short_label(name))


def short_label(function: str) -> str:
    """Returns the short form of a function's name that prints show: ``nn.relu``.

    >>> short_label("megengine.functional.nn.relu"), short_label("aten::relu")
    ('nn.relu', 'aten::relu')
    """
    return function if "::" in function else ".".join(function.split(".")[-2:])


def _set_target(expr: Expr, **attributes: str) -> None:
    if expr.graph is not None:
        expr.graph.set_target(expr, **attributes)
        return
    for name, value in attributes.items():
        setattr(expr, name, value)
