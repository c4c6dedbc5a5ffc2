"""InternalGraph: expressions in execution order, and the methods that link them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from tmconvert.errors import GraphError
from tmconvert.ir.expr import CallFunction, Expr, Input
from tmconvert.ir.extensible import Extensible, extension_of
from tmconvert.ir.node import ModuleNode, Node, TensorNode
from tmconvert.ir.tree import Tree, leaves_of, map_leaves, replaced

if TYPE_CHECKING:
    from tmconvert.ir.ids import Ids


class Contents(NamedTuple):
    """The functions and subgraphs of a graph after a number of edits."""

    edits: int
    functions: tuple[str, ...]
    subgraphs: tuple[InternalGraph, ...]


class InternalGraph(Extensible):
    """The graph of a module's ``forward``.

    ``name`` is the class of the module. ``inputs`` are the formal inputs; in a source graph the first is
    ``self``. ``result`` is the tree of what is returned, ``outputs`` its nodes in order; ``output_names`` are
    their names in a written file, those of the nodes where it is empty; ``source_names`` are the names of
    nodes in the file of a model where they are no identifiers, such as ``input.1``. Expressions form a doubly
    linked list, so an insertion or removal takes constant time, and the graph may be edited during an
    iteration. ``edits`` counts the edits; ``ids`` assigns numbers to new expressions, and is shared by the
    graphs of a model.
    """

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.inputs: list[Node] = []
        self.result: Tree = ()
        self.output_names: tuple[str, ...] = ()
        self.source_names: dict[Node, str] = {}
        self._first: Expr | None = None
        self._last: Expr | None = None
        self._count = 0
        self.edits = 0
        self.ids: Ids | None = None
        self.links_checked_at = -1  # the number of edits at which the links were checked
        self.dead_code_removed_at = -1  # the same of an elimination of dead code
        self._contents = Contents(-1, (), ())
        self._next_suffix: dict[str, int] = {}
        self._names: dict[str, Node | None] = {}  # None: reserved by free_name
        self._output_uses: dict[Node, int] = {}

    # ---- reading

    def __iter__(self) -> Iterator[Expr]:
        """Yields the expressions of this graph in execution order. Any may be removed while iterating."""
        expr = self._first
        while expr is not None:
            if expr.graph is self:
                yield expr
            expr = expr.next  # a removed expression keeps its pointer, so the walk finds its way back

    @property
    def first(self) -> Expr | None:
        """Returns the first expression; ``next`` leads from there to the last."""
        return self._first

    @property
    def last(self) -> Expr | None:
        """Returns the last expression; ``previous`` leads from there to the first."""
        return self._last

    def __len__(self) -> int:
        """Counts the expressions of this graph."""
        return self._count

    @property
    def functions(self) -> tuple[str, ...]:
        """Returns the names of the functions that the graph calls, in the order of their first calls."""
        return self._contents_now().functions

    @property
    def subgraphs(self) -> tuple[InternalGraph, ...]:
        """Returns the subgraphs among the attributes of its calls, in execution order."""
        return self._contents_now().subgraphs

    def _contents_now(self) -> Contents:
        """Walks the graph only where it was edited after the last time."""
        if self._contents.edits != self.edits:
            calls = [expr for expr in self if isinstance(expr, CallFunction)]
            functions = tuple(dict.fromkeys([call.function for call in calls]))
            values = (value for call in calls for value in call.kwargs.values())
            graphs = tuple([value for value in values if isinstance(value, InternalGraph)])
            self._contents = Contents(self.edits, functions, graphs)
        return self._contents

    @property
    def outputs(self) -> list[Node]:
        """Returns the returned nodes, in order, with repetitions."""
        return leaves_of(Node, self.result)

    def is_source(self) -> bool:
        """Whether this is a source graph, of the source framework's calls: its first input is ``self``."""
        return bool(self.inputs) and isinstance(self.inputs[0], ModuleNode)

    def takes_qparams(self, node: Node) -> bool:
        """Whether conversion uses the ``qparams`` of a node, not only what calls compute."""
        owner = self.inputs[0].owner if self.inputs and isinstance(self.inputs[0], ModuleNode) else None
        vocabulary = None if owner is None else owner.vocabulary
        return vocabulary is None or vocabulary.has_all_qparams or node in self.inputs

    def is_output(self, node: Node) -> bool:
        return node in self._output_uses

    def is_used(self, node: Node) -> bool:
        return bool(node.uses) or node in self._output_uses

    def use_count(self, node: Node) -> int:
        """Counts the argument leaves and returned leaves that are this node."""
        return sum(node.uses.values()) + self._output_uses.get(node, 0)

    # ---- names

    def free_name(self, base: str) -> str:
        """Returns ``base``, or ``base_1``, ``base_2``, ... where that is used; reserves it for a new node."""
        name = base
        while name in self._names:
            suffix = self._next_suffix.get(base, 1)
            self._next_suffix[base] = suffix + 1
            name = f"{base}_{suffix}"
        self._names[name] = None
        return name

    def node_called(self, name: str) -> Node | None:
        """Returns the node of this name, or None."""
        return self._names.get(name)

    def rename(self, node: Node, name: str) -> None:
        """Gives ``node`` exactly this name. Raises GraphError when another node has it."""
        if node.name == name:
            return
        if not name or node.expr is None or node.expr.graph is not self:
            raise GraphError("TM3003", f"cannot call {node} of graph {self.name!r} {name!r}")
        if self._names.get(name) is not None:
            raise GraphError("TM3003", f"the name {name!r} is already in use in graph {self.name!r}")
        self._names.pop(node.name, None)
        self._names[name] = node
        node._name = name
        self.edits += 1

    # ---- edits

    def add_input(self, node: Node, name: str | None = None, **common: Any) -> Node:
        """Appends a formal input."""
        self._check_names([node])
        expr = Input(name or node.name, result=node, **common)
        expr.graph = self
        self.edits += 1
        self._register(node)
        self.inputs.append(node)
        return node

    def remove_input(self, node: Node) -> None:
        """Removes a formal input. Raises GraphError while it is used."""
        if node not in self.inputs or self.use_count(node):
            raise GraphError("TM3002", f"cannot remove the input {node} of graph {self.name!r}")
        self.edits += 1
        self.inputs.remove(node)
        self._names.pop(node.name, None)
        if node.expr is not None:
            node.expr.graph = None

    def insert(self, expr: Expr, *, before: Expr | None = None) -> Expr:
        """Inserts ``expr`` before ``before``, by default at the end."""
        if expr.graph is not None:
            raise GraphError("TM3002", f"{expr!r} already belongs to a graph")
        if before is not None and before.graph is not self:
            raise GraphError("TM3002", f"{before!r} is not in graph {self.name!r}")
        outputs = expr.outputs
        self._check_names(outputs)
        expr.graph = self
        self._attach(expr, before)
        self._count += 1
        self._link(expr)
        for node in outputs:
            self._register(node)
        return expr

    def remove(self, expr: Expr) -> None:
        """Removes ``expr``. Raises GraphError while one of its outputs is still used."""
        self._check_member(expr)
        for node in expr.outputs:
            if self.use_count(node):
                raise GraphError("TM3002", f"cannot remove {expr!r}: {node} is still used")
        self._detach(expr)
        expr.graph = None
        self._count -= 1
        self._unlink(expr)
        for node in expr.outputs:
            self._names.pop(node.name, None)

    def set_arguments(self, expr: Expr, args: tuple[Tree, ...], kwargs: dict[str, Tree]) -> None:
        """Replaces the arguments of ``expr``."""
        self.relink(expr, args, kwargs)

    def set_target(self, expr: Expr, **attributes: str) -> None:
        """Sets what an expression calls or reads; see ``expr.function``."""
        for name, value in attributes.items():
            setattr(expr, name, value)
        self.edits += 1

    def relink(self, expr: Expr, args: tuple[Tree, ...], kwargs: dict[str, Tree]) -> None:
        """Replaces the arguments of ``expr`` without checks."""
        self._check_member(expr)
        self._unlink(expr)
        expr.args, expr.kwargs = args, kwargs
        self._link(expr)

    def move(self, expr: Expr, before: Expr | None) -> None:
        """Moves ``expr`` before another one, by default to the end."""
        self._check_member(expr)
        if before is expr or expr.next is before:
            return
        self._detach(expr)
        self._attach(expr, before)
        self.edits += 1

    def replace_uses(self, old: Node, new: Node) -> None:
        """Makes every user of ``old``, expressions and the result, use ``new``."""
        for user in old.users:
            self.relink(user, replaced(user.args, old, new), replaced(user.kwargs, old, new))
        if old in self._output_uses:
            self.set_result(replaced(self.result, old, new))

    def substitute(self, old: TensorNode, new: TensorNode) -> None:
        """Replaces ``old`` by ``new``, which gets its name and quantization, and removes its expression."""
        assert old.expr is not None
        new.qparams = old.qparams
        self.replace_uses(old, new)
        self.remove(old.expr)
        self.rename(new, old.name)

    def set_result(self, result: Tree) -> None:
        """Sets the result of the graph."""
        self.edits += 1
        self.result = result
        self._output_uses = {}
        for node in self.outputs:
            self._output_uses[node] = self._output_uses.get(node, 0) + 1

    def forget_edits(self, edits: int) -> None:
        """Sets the number of edits back, after the later ones were undone."""
        self.edits = edits
        self.links_checked_at = self.dead_code_removed_at = -1
        self._contents = Contents(-1, (), ())

    def to_text(self) -> str:
        """Returns the typed text form of a graph of ATen-style ops, which ``parse_graph`` reads back.

        Raises UsageError TM6005 for other graphs.
        """
        from tmconvert.ir.text import graph_to_text

        return graph_to_text(self)

    def copy(self) -> InternalGraph:
        """Returns an independent graph with the same expressions; arrays of constants are shared."""
        clone = InternalGraph(self.name)
        mapped: dict[Node, Node] = {}

        def duplicate(value: Any) -> Any:
            return value.copy() if isinstance(value, InternalGraph) else value

        for node in self.inputs:
            assert isinstance(node.expr, Input)
            mapped[node] = _copy_node(node)
            clone.add_input(
                mapped[node],
                node.expr.name,
                id=node.expr._id,
                source=node.expr.source,
                made_by=node.expr.made_by,
            )
        for expr in self:
            for node in expr.outputs:
                mapped[node] = _copy_node(node)
            clone.insert(expr.copied(mapped, duplicate))
        clone.set_result(
            map_leaves(lambda leaf: mapped[leaf] if isinstance(leaf, Node) else leaf, self.result)
        )
        clone.output_names = self.output_names
        clone.source_names = {
            mapped[node]: name for node, name in self.source_names.items() if node in mapped
        }
        return clone

    # ---- links

    def _attach(self, expr: Expr, before: Expr | None) -> None:
        previous = self._last if before is None else before.previous
        expr.previous, expr.next = previous, before
        if previous is None:
            self._first = expr
        else:
            previous.next = expr
        if before is None:
            self._last = expr
        else:
            before.previous = expr

    def _detach(self, expr: Expr) -> None:
        if expr.previous is None:
            self._first = expr.next
        else:
            expr.previous.next = expr.next
        if expr.next is None:
            self._last = expr.previous
        else:
            expr.next.previous = expr.previous

    def _register(self, node: Node) -> None:
        if node._name:
            self._names[node._name] = node

    def _check_names(self, nodes: Sequence[Node]) -> None:
        """Raises GraphError, before any change, where a name is in use."""
        seen: set[str] = set()
        for node in nodes:
            name = node._name
            if name and (self._names.get(name) is not None or name in seen):
                raise GraphError("TM3003", f"two nodes of graph {self.name!r} are called {name!r}")
            seen.add(name)

    def _check_member(self, expr: Expr) -> None:
        if expr.graph is not self or isinstance(expr, Input):
            raise GraphError("TM3002", f"{expr!r} is not among the expressions of graph {self.name!r}")

    def _link(self, expr: Expr) -> None:
        self.edits += 1
        for node in expr.inputs:
            node.uses[expr] = node.uses.get(expr, 0) + 1

    def _unlink(self, expr: Expr) -> None:
        self.edits += 1
        for node in expr.inputs:
            node.uses.pop(expr, None)


@cache
def _slots_of(kind: type[Any]) -> tuple[str, ...]:
    return tuple(slot for cls in kind.__mro__ for slot in getattr(cls, "__slots__", ()))


def _copy_node(node: Node) -> Node:
    kind: Any = extension_of(type(node))
    clone: Node = object.__new__(kind)
    for slot in _slots_of(kind):
        setattr(clone, slot, getattr(node, slot))
    clone.expr, clone.uses, clone._meta = None, {}, None
    return clone.with_notes_of(node)
