"""Emitters: the interface to which adapters and decompositions write ATen-style ops.

One adapter serves both emitters: with a GraphEmitter it adds expressions to a graph, with an EagerEmitter it
computes on arrays.
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tmconvert.errors import GraphError, Refusal, TmconvertError
from tmconvert.errors.source import Source
from tmconvert.ir.expr import CallFunction, Constant, Expr, Inferred
from tmconvert.ir.fake_quant import RestoredArray, Rounding, fake_quantize, with_qparams
from tmconvert.ir.graph import InternalGraph
from tmconvert.ir.lazy_constants import Array, Lazy
from tmconvert.ir.node import TensorNode
from tmconvert.ir.subgraphs import fill_body
from tmconvert.ir.symbolic import data_dependent as data_sizes
from tmconvert.ir.symbolic.dims import example, example_count, is_symbolic
from tmconvert.ir.symbolic.journal import SizeJournal
from tmconvert.ir.tree import leaves, map_leaves
from tmconvert.ir.types import QParams, TensorType

if TYPE_CHECKING:
    from tmconvert.ir.traced_module import TracedModule

# Shape arithmetic and other small integer constants are folded as they are emitted, so that
# adapters see plain numbers; weights wait for the pass.
FOLD_ELEMENTS = 4096
# No machine holds a tensor of so many elements. Extents may come from a damaged file; 64 bits are
# enough to count up to here and a little further.
MAX_ELEMENTS = 1 << 48
# What a call of arrays makes may be this large, or this many times as large as its operands.
LARGE, MAX_GROWTH = 1 << 26, 1024
_MOST_FLOATS = 1 << 16  # of a tensor whose floats may be sizes
LONG = 4096  # an attribute of a call that makes much of little
# The op that makes a tensor of sizes.
SIZES = "tm::sizes"


# the one op whose folded result keeps the quantization of its operand: adapters reshape parameters
RESHAPE = "aten::reshape"
NONZERO = "aten::nonzero"


class OpDefinition(Protocol):
    """The definition of a catalogued op for the graph; ``kernel`` is None if it has none."""

    name: str
    kernel: Any
    args: Any

    @property
    def is_random(self) -> bool: ...

    def bind(self, args: Any, attributes: Any) -> tuple[tuple[Any, ...], dict[str, Any]]: ...

    def infer(self, types: Any, attributes: Any) -> list[TensorType]: ...

    def by_name(self, tensors: Any, attributes: Any) -> dict[str, Any]: ...

    def evaluate(self, arrays: Any, attributes: Any) -> Any: ...


Definitions = Mapping[str, OpDefinition]  # by name


class Emitter(Protocol):
    """Interface of emitters; ``Value`` is a TensorNode or an array, depending on the emitter."""

    catalogue: Definitions

    def begin(self, name: str, source: Source | None) -> None:
        """Starts with the next expression of the source."""

    def call(self, op: str, *args: Any, **attributes: Any) -> Any:
        """Returns the op's result: one value, or a list where the op has several."""

    def constant(self, value: Any, dtype: Any = None) -> Any:
        """Returns a constant tensor; constants of integer types may contain Dims."""

    def parameter(self, array: np.ndarray, name: str) -> Any:
        """Returns a constant that is a parameter of the model, named by its path."""

    def body(self, module: TracedModule, given: Sequence[Any], around: Sequence[Any]) -> InternalGraph:
        """Builds the subgraph of a call of ``module`` with the arguments ``given``; its inputs replace the
        captured tensors ``around``.
        """
        raise NotImplementedError

    def type(self, value: Any) -> TensorType: ...

    def stream(self) -> int:
        """Returns the number of the random numbers that the current expression of the source draws."""

    def known(self, value: Any) -> np.ndarray | None:
        """Returns the array of a value that does not depend on the inputs, else None."""

    def sizes(self, value: Any) -> np.ndarray | None:
        """Like ``known``, but also for values that depend on the inputs' shapes: entries may be Dims."""

    def quantized(self, value: Any, qparams: QParams, rounded: Rounding | None = fake_quantize) -> Any:
        """Quantizes the value with ``qparams``, which the result carries as ``value.qparams``.

        ``rounded`` quantizes and dequantizes an array; None only annotates. Raises GraphError TM3004 for
        parameters that do not match the tensor.
        """


class EagerEmitter:
    """Computes each op immediately by its reference kernel; ``name`` is that of the result."""

    def __init__(self, catalogue: Mapping[str, OpDefinition], name: str = "") -> None:
        self.catalogue = catalogue
        self.name = name

    def begin(self, name: str, source: Source | None) -> None:
        self.name = name

    def call(self, op: str, *args: Any, **attributes: Any) -> Any:
        definition = self.catalogue[op]
        tensors, bound = definition.bind(args, attributes)
        if any(isinstance(leaf, int) and leaf > LONG for leaf in leaves(bound)):
            _check_growth(definition, tensors, bound)
        result = definition.evaluate(tensors, bound)
        return map_leaves(np.asarray, result)  # NumPy turns results of rank 0 into scalars

    def constant(self, value: Any, dtype: Any = None) -> np.ndarray:
        return _array(value, dtype)

    def parameter(self, array: np.ndarray, name: str) -> np.ndarray:
        return array

    def body(self, module: TracedModule, given: Sequence[Any], around: Sequence[Any]) -> InternalGraph:
        return _body(self, module, given, around)

    def type(self, value: np.ndarray) -> TensorType:
        return TensorType(value.dtype, value.shape)

    def stream(self) -> int:
        return stream_of(self.name)

    def known(self, value: np.ndarray) -> np.ndarray:
        return value

    sizes = known

    def quantized(
        self, value: np.ndarray, qparams: QParams, rounded: Rounding | None = fake_quantize
    ) -> np.ndarray:
        _check_fit(qparams, value.shape)
        return with_qparams(value if rounded is None else rounded(value, qparams), qparams)


class GraphEmitter:
    """Appends typed expressions to a graph, or inserts them before ``before``.

    ``source`` and ``made_by`` are recorded in the emitted expressions; ``name`` is the base for the names of
    nodes.
    """

    def __init__(
        self,
        graph: InternalGraph,
        catalogue: Mapping[str, OpDefinition],
        *,
        source: Source | None = None,
        made_by: str | None = None,
        name: str = "v",
        before: Expr | None = None,
    ) -> None:
        self.graph = graph
        self.catalogue = catalogue
        self.source = source
        self.made_by = made_by
        self.name = name
        self.before = before
        self._sizes: dict[TensorNode, np.ndarray] = {}
        self._parameters: dict[int | str, TensorNode] = {}
        self._fresh: set[TensorNode] = set()
        self._of_data: list[CallFunction] = []  # calls that made a data-dependent size

    def begin(self, name: str, source: Source | None) -> None:
        """Starts with the next expression of the source."""
        self.name, self.source = name, source
        self._fresh.clear()

    def call(self, op: str, *args: Any, **attributes: Any) -> Any:
        definition = self.catalogue[op]
        tensors, bound = definition.bind(args, attributes)
        types = map_leaves(lambda leaf: self.type(leaf) if leaf is not None else None, list(tensors))
        results = definition.infer(types, bound)
        if any(isinstance(leaf, int) and abs(leaf) > MAX_ELEMENTS for leaf in leaves(bound)):
            raise GraphError("TM3004", f"{op} has an argument that exceeds the size of any tensor")
        for type_ in results:
            extents = [example(extent) for extent in type_.shape]
            if math.prod(extents) > MAX_ELEMENTS or min(extents, default=0) < 0:
                raise GraphError("TM3004", f"the result {type_} of {op} exceeds the limit of 2^63 elements")
        # padding makes kernels allocate more than what goes in and comes out
        is_plain = definition.kernel is not None and not definition.is_random and not is_symbolic(bound)
        if is_plain and _is_small(types, results) and not any(bound.get("padding") or ()):
            known = map_leaves(lambda leaf: None if leaf is None else self._folded(leaf), list(tensors))
            if not any(leaf is _UNKNOWN for leaf in _flat(known)):
                name = _parameter_name(_flat(tensors))
                make = self.constant if name is None else lambda array: self._named_constant(array, name)
                result = map_leaves(make, definition.evaluate(known, bound))
                if op == RESHAPE and tensors[0].qparams is not None:
                    result.qparams = tensors[0].qparams.reshaped(tensors[0].shape, result.shape)
                return result
        is_new_size = data_sizes.STAND_IN in data_sizes.data_symbols([type_.shape for type_ in results])
        if is_new_size:
            requested = self._earlier_results(op, tensors, bound)
            if requested is not None:
                return requested
            results = data_sizes.named(results, self.graph, self._equal_count(op, tensors))
        base = f"{self.name}_{op.rpartition('::')[2]}"
        nodes = [TensorNode(self.graph.free_name(base), type_.shape, type_.dtype) for type_ in results]
        result = nodes[0] if len(nodes) == 1 else nodes
        call = CallFunction(op, tensors, bound, result=result, source=self.source, made_by=self.made_by)
        call.inferred = Inferred.of(call)
        self._insert(call)
        if is_new_size and self.before is None:
            self._of_data.append(call)
        if op == SIZES or self._sizes:
            self._note_sizes(definition, tensors, bound, nodes)
        return result

    def _earlier_results(self, op: str, tensors: Any, attributes: dict[str, Any]) -> Any:
        """Returns the results of an earlier equal call, if its result sizes are data-dependent."""
        for expr in self._of_data if self.before is None else ():
            if (expr.function, expr.kwargs) == (op, attributes) and self._is_equal(expr.args, tensors):
                return expr.result
        return None

    def _equal_count(self, op: str, tensors: Any) -> Any:
        """Returns the number of elements that an earlier call found in a tensor with the same elements."""
        for expr in self._of_data if self.before is None and op == NONZERO else ():
            if expr.function == op and self._is_equal([_reshaped(expr.args[0])], [_reshaped(tensors[0])]):
                return expr.output.type.shape[0]
        return None

    def _is_equal(self, first: Iterable[object], second: Iterable[object], depth: int = 4) -> bool:
        """Whether two trees of tensors are equal: the same nodes, or the same calls with equal tensors."""
        left, right = _flat(first), _flat(second)
        return len(left) == len(right) and all(
            one is other
            or (depth > 0 and self._is_equal_call(one, other, depth))
            or self._is_equal_number(one, other)
            for one, other in zip(left, right, strict=True)
        )

    def _is_equal_number(self, first: object, second: object) -> bool:
        left, right = self.known(first), self.known(second)
        is_known = left is not None and right is not None and left.size == right.size == 1
        return is_known and _is_same(left, right)  # type: ignore[arg-type]

    def _is_equal_call(self, first: object, second: object, depth: int) -> bool:
        one, other = getattr(first, "expr", None), getattr(second, "expr", None)
        if not (isinstance(one, CallFunction) and isinstance(other, CallFunction)):
            return False
        return (
            (one.function, one.kwargs) == (other.function, other.kwargs)
            and not self.catalogue[one.function].is_random
            and one.outputs.index(first) == other.outputs.index(second)
            and self._is_equal(one.args, other.args, depth - 1)
        )

    def _note_sizes(
        self, definition: OpDefinition, tensors: Any, attributes: dict[str, Any], nodes: list[TensorNode]
    ) -> None:
        """Computes shape arithmetic on Dims with the op's kernel, where the kernel supports them."""
        if any(node.type.dtype.kind not in "iuf" for node in nodes):
            return
        is_cast = definition.name == "aten::to"
        if definition.name == SIZES:
            results = [np.array(attributes["values"], object)]
        elif is_cast or any(leaf in self._sizes for leaf in _flat(tensors)):
            arrays = map_leaves(lambda leaf: None if leaf is None else _whole(self.sizes(leaf)), [*tensors])
            results = [arrays[0]] if is_cast else _computed(definition, arrays, attributes)
        else:
            return
        for node, result in zip(nodes, results, strict=False):
            if result is not None and result.shape == node.shape:
                self._sizes[node] = result

    def constant(self, value: Any, dtype: Any = None) -> TensorNode:
        if isinstance(value, np.ndarray) and value.dtype == object:
            value = value.tolist()
        if is_symbolic(value):
            return self._size_tensor(np.array(value, object), dtype)
        return self._constant(_array(value, dtype), f"{self.name}_const", None)

    def _size_tensor(self, sizes: np.ndarray, dtype: Any) -> TensorNode:
        vector = self.call(SIZES, list(sizes.reshape(-1)))
        if dtype is not None and np.dtype(dtype) != self.type(vector).dtype:
            vector = self.call("aten::to", vector, dtype=np.dtype(dtype).name)
        node = vector if sizes.ndim == 1 else self.call("aten::reshape", vector, list(sizes.shape))
        assert isinstance(node, TensorNode)
        return node

    def parameter(self, array: Array, name: str) -> TensorNode:
        """Returns one constant for equal arrays of one name."""
        node = self._parameters.get(id(array)) or self._parameters.get(name)
        if node is None or not isinstance(node.expr, Constant) or not _is_same(node.expr.stored, array):
            node = self._named_constant(array, name)
        self._parameters[id(array)] = self._parameters[name] = node
        return node

    def _named_constant(self, array: Array, name: str) -> TensorNode:
        return self._constant(array, re.sub(r"\W", "_", name, flags=re.ASCII), name)

    def _constant(self, array: Array, base: str, name: str | None) -> TensorNode:
        qparams = getattr(array, "qparams", None)
        array = array if isinstance(array, Lazy | RestoredArray) else np.asarray(array)
        node = TensorNode(self.graph.free_name(base), array.shape, array.dtype, qparams=qparams)
        self._insert(Constant(array, name, result=node, source=self.source, made_by=self.made_by))
        return node

    def body(self, module: TracedModule, given: Sequence[Any], around: Sequence[Any]) -> InternalGraph:
        return _body(self, module, given, around)

    def type(self, value: object) -> TensorType:
        if not isinstance(value, TensorNode):
            raise GraphError("TM3004", f"{value!r} is not a tensor of the graph")
        return value.type

    def stream(self) -> int:
        return stream_of(self.name)

    def known(self, value: object) -> np.ndarray | None:
        if isinstance(value, TensorNode) and isinstance(value.expr, Constant):
            return np.asarray(value.expr.value)
        return None

    def sizes(self, value: Any) -> np.ndarray | None:
        known = self.known(value)
        return self._sizes.get(value) if known is None else known

    def quantized(
        self, value: TensorNode, qparams: QParams, rounded: Rounding | None = fake_quantize
    ) -> TensorNode:
        """Annotates a result of the current expression; a value with other users gets a requantized copy."""
        _check_fit(qparams, self.type(value).shape)
        if value.qparams == qparams:
            return value
        if value.qparams is not None or value.uses or value not in self._fresh:
            value = self.call("tm::requantize", value)
        value.qparams = qparams
        return value

    def _folded(self, leaf: TensorNode) -> Any:
        value = self.known(leaf) if self.may_fold(leaf) else None
        return _UNKNOWN if value is None else value

    def may_fold(self, value: TensorNode) -> bool:
        """Whether calls on a constant are computed as they are emitted."""
        return True

    def _insert(self, expr: Expr) -> None:
        self.graph.insert(expr, before=self.before)
        self._fresh.update(node for node in expr.outputs if isinstance(node, TensorNode))


_UNKNOWN = object()


def _reshaped(node: object) -> object:
    """Returns the tensor whose elements a node has in another shape."""
    while isinstance(node, TensorNode) and getattr(node.expr, "function", "") == RESHAPE:
        node = node.expr.args[0]  # type: ignore[union-attr]
    return node


def stream_of(name: str) -> int:
    """Returns the number of the random numbers that the expression with the result ``name`` draws."""
    return zlib.crc32(name.encode())


def _check_growth(definition: OpDefinition, tensors: Any, attributes: dict[str, Any]) -> None:
    """Raises GraphError TM3004 where the attributes of a call make a very large result of small operands, as
    a padding of millions of rows does, which a damaged file may have.
    """
    arrays = [leaf for leaf in _flat(tensors) if leaf is not None]
    types = map_leaves(
        lambda leaf: None if leaf is None else TensorType(leaf.dtype, leaf.shape), list(tensors)
    )
    try:
        results = definition.infer(types, attributes)
    except TmconvertError:  # kernels may compute more than the rules of types allow
        return
    most = max(LARGE if arrays else 4 * LARGE, MAX_GROWTH * sum(array.size for array in arrays))
    for type_ in results:
        if example_count(type_.shape) > most:
            message = f"the result {type_} of {definition.name} is too large for what it is computed of"
            raise GraphError("TM3004", message)


def _whole(array: np.ndarray | None) -> np.ndarray | None:
    """Returns floats as integers, as which they are exact in arithmetic with sizes; None if some are not.

    It is also None for many floats, which are weights.
    """
    if array is None or array.dtype.kind != "f":
        return array
    if array.size > _MOST_FLOATS:
        return None
    is_whole = (np.abs(array) < 1 << 24) & (array == np.trunc(array))  # NaN is not, either
    return array.astype(np.int64) if is_whole.all() else None


def _computed(definition: OpDefinition, arrays: list[Any], attributes: dict[str, Any]) -> list[Any]:
    """Computes the results for arrays with Dims; none if the op does not support sizes."""
    if any(array is None for array in _flat(arrays)):
        return []
    trial = SizeJournal()
    try:
        with trial:
            result = definition.evaluate(arrays, attributes)
    except (ArithmeticError, TypeError, ValueError, IndexError, Refusal):  # of data-dependent sizes
        return []
    results = result if isinstance(result, list) else [result]
    return results if all(isinstance(each, np.ndarray) for each in results) and not trial.specialized else []


def _is_same(known: Array, array: Array) -> bool:
    if known is array:
        return True
    if isinstance(known, Lazy) or isinstance(array, Lazy):
        return False
    if (known.dtype, known.shape) != (array.dtype, array.shape):
        return False
    return np.shares_memory(known, array) or np.array_equal(known, array)


def _check_fit(qparams: QParams, shape: tuple[int, ...]) -> None:
    problem = qparams.problem(shape)
    if problem:
        raise GraphError("TM3004", problem)


def _array(value: Any, dtype: Any) -> np.ndarray:
    if isinstance(value, np.ndarray) and dtype is None:
        return value
    with np.errstate(all="ignore"):  # 1e300 is infinite in float32, as it is in the source
        return np.asarray(value, dtype)


def _parameter_name(leaves: list[Any]) -> str | None:
    """Returns the name of the only parameter that a constant is computed from."""
    if len(leaves) != 1 or leaves[0] is None:
        return None
    expr = leaves[0].expr
    return expr.name if isinstance(expr, Constant) else None


def _flat(tree: Iterable[object]) -> list[Any]:
    return [leaf for item in tree for leaf in (item if isinstance(item, list) else [item])]


def _is_small(types: Any, results: list[TensorType]) -> bool:
    sizes = [example_count(type_.shape) for type_ in [*_flat(types), *results] if type_ is not None]
    return all(size <= FOLD_ELEMENTS for size in sizes)


def empty_body(
    name: str, types: Sequence[TensorType], catalogue: Mapping[str, OpDefinition]
) -> tuple[GraphEmitter, list[TensorNode]]:
    """Returns an emitter for a new subgraph with inputs of these types, and the inputs."""
    graph = InternalGraph(name)
    inputs = [
        graph.add_input(TensorNode(graph.free_name(f"{name}_x"), type_.shape, type_.dtype), made_by="body")
        for type_ in types
    ]
    return GraphEmitter(graph, catalogue, made_by="body", name=name), [
        node for node in inputs if isinstance(node, TensorNode)
    ]


def _body(g: Emitter, module: TracedModule, given: Sequence[Any], around: Sequence[Any]) -> InternalGraph:
    name = re.sub(r"\W", "_", module.name.rpartition(".")[2]) or "body"
    keys = {id(value): g.type(value) for value in around}
    inner, inputs = empty_body(name, list(keys.values()), g.catalogue)
    return fill_body(inner, dict(zip(keys, inputs, strict=True)), module, given)
