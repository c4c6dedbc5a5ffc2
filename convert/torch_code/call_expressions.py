"""Calls of ops as expressions in Python."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.ir import CallFunction, Constant, Node, TensorNode
from tmconvert.ir.symbolic.dims import Dim, same_size, sole_symbol
from tmconvert.symbolics.op import Attribute, Op, Tensors
from tmconvert.torch_code.literals import dtype_text, literal, number_text, size_text
from tmconvert.torch_code.op_expressions import BY_NAME, TAKE_INT64, TAKE_NUMBERS, text_of

_FIELD = re.compile(r"\{(\w+)(\*?)\}")
_OPERATOR = re.compile(r"\{x\} \S+ \{\w+\}")


@dataclass
class Scope:
    """The names at one point of the code: nodes and symbols of sizes, with their texts."""

    nodes: dict[Node, str] = field(default_factory=dict)
    symbols: dict[str, str] = field(default_factory=dict)

    def define(self, node: Node, text: str) -> None:
        """Adds a node, and the symbolic sizes that are extents of it."""
        self.nodes[node] = text
        for axis, size in enumerate(getattr(node, "shape", None) or ()):
            symbol = sole_symbol(size)
            if symbol is not None:
                self.symbols.setdefault(symbol.name, f"{text}.shape[{axis}]")

    def node(self, node: Node) -> str:
        return self.nodes[node]


class Call:
    """One call of an op; its arguments can be read as values or as text."""

    def __init__(self, expr: CallFunction, op: Op, scope: Scope) -> None:
        self.expr, self.op, self.scope = expr, op, scope
        self.values: Mapping[str, Any] = op.by_name(expr.args, expr.kwargs)
        self.takes_numbers = expr.function in TAKE_NUMBERS

    def text(self, name: str, *, spread: bool = False) -> str:
        """Returns an argument as text; ``spread`` omits the parentheses of a list."""
        value = self.values[name]
        if name == "dtype":
            return dtype_text(value)
        if isinstance(value, Node):
            return self._tensor(name, value)
        if isinstance(value, list) and any(isinstance(item, Node) for item in value):
            return f"[{', '.join('None' if item is None else self.scope.node(item) for item in value)}]"
        text = literal(value, self.size)
        return text[1:-1].rstrip(",") if spread else text

    def _tensor(self, name: str, node: Node) -> str:
        if self.takes_numbers and _is_number(node) and self.may_be_number(name, node):
            assert isinstance(node.expr, Constant)
            text = number_text(node.expr.value[()])
            return f"({text})" if name == "x" and text.startswith("-") else text
        text = self.scope.node(node)
        is_short = (
            name in ("x", "index", "indices")
            and self.op.name in TAKE_INT64
            and (name != "x" or self.op.name == "aten::one_hot")
        )
        return f"{text}.to(torch.int64)" if is_short and getattr(node, "dtype", None) == np.int32 else text

    def may_be_number(self, name: str, node: Node) -> bool:
        """Whether PyTorch takes a number of this type here: the other operand is a tensor of it."""
        others = [other for other in self.expr.args if isinstance(other, TensorNode) and other is not node]
        if not others or any(_is_number(other) for other in others):
            return False
        is_operator = bool(_OPERATOR.fullmatch(text_of(self.op.name) or ""))
        same = all(other.dtype == getattr(node, "dtype", None) for other in others[:1])
        return same and (name != "x" or is_operator)

    def size(self, size: Dim) -> str:
        """Returns a symbolic size as the extent of an operand, if one has it, or as an expression."""
        for node in self.expr.inputs:
            if isinstance(node, TensorNode) and node in self.scope.nodes:
                for axis, extent in enumerate(node.shape or ()):
                    if isinstance(extent, Dim) and same_size(extent, size):
                        return f"{self.scope.node(node)}.shape[{axis}]"
        return size_text(size, self.scope.symbols)

    def shape(self, name: str) -> tuple[Any, ...]:
        """Returns the shape of a tensor argument."""
        shape: tuple[Any, ...] = self.values[name].shape
        return shape

    def by_rule(self, function: str) -> str:
        """Returns ``function(...)`` with the arguments of the signature but those that have their default."""
        parts, by_name = [], False
        for argument in self.op.args:
            name, value = argument.name, self.values[argument.name]
            if isinstance(argument, Attribute):
                if not argument.is_required and value == argument.default:
                    by_name = True
                    continue
                by_name = by_name or name in BY_NAME or not argument.is_required
            elif value is None:
                by_name = True
                continue
            parts.append(f"{name}={self.text(name)}" if by_name else self.text(name))
        return f"{function}({', '.join(parts)})"

    def filled(self, text: str) -> str:
        """Returns ``text`` with the arguments in the place of their names in braces."""
        return _FIELD.sub(lambda match: self.text(match[1], spread=bool(match[2])), text)


def _is_number(node: Node) -> bool:
    expr = node.expr
    return isinstance(expr, Constant) and expr.name is None and np.ndim(expr.value) == 0


def expression(call: Call) -> str:
    """Returns the expression of a call. Raises Refusal for an op without a form."""
    name = call.op.name
    special = SPECIAL.get(name)
    if special is not None:
        return special(call)
    text = text_of(name)
    if text is None:
        raise Refusal(f"{name} cannot be written as PyTorch code")
    if call.values.get("lengths") is not None:
        raise Refusal(f"{name} of packed sequences cannot be written as PyTorch code")
    return call.filled(text) if "{" in text else call.by_rule(text)


def tensors_of(call: Call) -> set[Node]:
    """Returns the arguments that the expression takes as tensors; the other nodes appear as numbers."""
    needed: set[Node] = set()
    for argument in call.op.args:
        value = call.values[argument.name]
        if isinstance(argument, Tensors):
            needed.update(item for item in value if isinstance(item, Node))
        elif isinstance(value, Node) and not (
            call.takes_numbers and _is_number(value) and call.may_be_number(argument.name, value)
        ):
            needed.add(value)
    return needed


# ---- ops for which no text does


def _subscript(call: Call, axis: int, item: str) -> str:
    return f"{call.text('x')}[{', '.join([':'] * (axis % len(call.shape('x'))) + [item])}]"


def _slice(call: Call) -> str:
    dim, start, end, step = (call.values[name] for name in ("dim", "start", "end", "step"))
    extent = call.shape("x")[dim]
    is_whole = end == extent if isinstance(end, Dim) or isinstance(extent, Dim) else end >= extent
    first = "" if isinstance(start, int) and start == 0 else call.text("start")
    item = f"{first}:{'' if is_whole else call.text('end')}"
    return _subscript(call, dim, item if step == 1 else f"{item}:{call.text('step')}")


def _select(call: Call) -> str:
    return _subscript(call, call.values["dim"], call.text("index"))


def _index(call: Call) -> str:
    if any(item is not None and not item.shape for item in call.values["indices"]):
        return call.filled(
            "torch.ops.aten.index({x}, {indices})"
        )  # Python takes a tensor without axes as a number
    items = [":" if item is None else call.scope.node(item) for item in call.values["indices"]]
    while items and items[-1] == ":":
        items.pop()
    return f"{call.text('x')}[{', '.join(items)}]"


def _reshape(call: Call) -> str:
    shape = call.values["shape"]
    open_ = [size for size in shape if isinstance(size, Dim)]
    if len(open_) == 1 and 0 not in shape and not _has_extent(call, open_[0]):
        sizes = ["-1" if isinstance(size, Dim) else str(size) for size in shape]
        return f"{call.text('x')}.reshape({', '.join(sizes)})"
    return f"{call.text('x')}.reshape({call.text('shape', spread=bool(shape))})"


def _has_extent(call: Call, size: Dim) -> bool:
    return any(isinstance(extent, Dim) and same_size(extent, size) for extent in call.shape("x"))


def _embedding(call: Call) -> str:
    parts = [call.text("indices"), call.text("weight")]
    if call.values["padding_idx"] >= 0:
        parts.append(f"padding_idx={call.text('padding_idx')}")
    return f"F.embedding({', '.join(parts)})"


def _elu(call: Call) -> str:
    is_plain = call.values["scale"] == 1 and call.values["input_scale"] == 1
    return call.by_rule("F.elu" if is_plain else "torch.ops.aten.elu")


def _prod(call: Call) -> str:
    dims = call.values["dim"]
    if dims is None:
        return f"torch.prod({call.text('x')})" if not call.values["keepdim"] else _refused(call)
    keepdim, text, rank = call.values["keepdim"], call.text("x"), len(call.shape("x"))
    for dim in sorted((dim % rank for dim in dims), reverse=True):
        text = f"torch.prod({text}, dim={dim}{', keepdim=True' if keepdim else ''})"
    return text


def _refused(call: Call) -> str:
    raise Refusal(f"{call.op.name} with these arguments cannot be written as PyTorch code")


def _embedding_bag(call: Call) -> str:
    if call.values["padding_idx"] == -1:
        return call.by_rule("torch.embedding_bag") + "[0]"
    return f"torch.ops.aten.embedding_bag({', '.join(call.text(each.name) for each in call.op.args)})[0]"


def _pad(call: Call) -> str:
    amounts = call.values["pad"]
    pairs = [amounts[place : place + 2] for place in range(0, len(amounts), 2)]
    while len(pairs) > 1 and pairs[0] == [0, 0]:
        pairs.pop(0)
    parts = [call.text("x"), literal([amount for pair in reversed(pairs) for amount in pair], call.size)]
    parts += [
        f"{name}={call.text(name)}"
        for name, default in (("mode", "constant"), ("value", 0))
        if call.values[name] != default
    ]
    return f"F.pad({', '.join(parts)})"


def _logsumexp(call: Call) -> str:
    dims = call.values["dim"] if call.values["dim"] is not None else list(range(len(call.shape("x"))))
    keepdim = ", keepdim=True" if call.values["keepdim"] else ""
    return f"torch.logsumexp({call.text('x')}, dim={literal(dims, call.size)}{keepdim})"


def _interpolate(mode: str, **options: bool) -> Callable[[Call], str]:
    def expression(call: Call) -> str:
        scales = call.values["scales"]
        sizes = (
            f"size={call.text('output_size')}" if scales is None else f"scale_factor={call.text('scales')}"
        )
        parts = [call.text("x"), sizes, f'mode="{mode}"']
        if call.values.get("align_corners"):
            parts.append("align_corners=True")
        parts += [f"{name}={value}" for name, value in options.items()]
        return f"F.interpolate({', '.join(parts)})"

    return expression


SPECIAL: dict[str, Callable[[Call], str]] = {
    "aten::slice": _slice,
    "aten::select": _select,
    "aten::index": _index,
    "aten::reshape": _reshape,
    "aten::embedding": _embedding,
    "aten::embedding_bag": _embedding_bag,
    "aten::elu": _elu,
    "aten::prod": _prod,
    "aten::pad": _pad,
    "aten::logsumexp": _logsumexp,
    "aten::_upsample_bicubic2d_aa": _interpolate("bicubic", antialias=True),
    "aten::_upsample_bilinear2d_aa": _interpolate("bilinear", antialias=True),
    "aten::upsample_bicubic2d": _interpolate("bicubic"),
    "aten::upsample_bilinear2d": _interpolate("bilinear"),
    "aten::upsample_linear1d": _interpolate("linear"),
    "aten::upsample_trilinear3d": _interpolate("trilinear"),
    **{f"aten::upsample_nearest{axes}d": _interpolate("nearest") for axes in (1, 2, 3)},
    **{f"aten::_upsample_nearest_exact{axes}d": _interpolate("nearest-exact") for axes in (1, 2, 3)},
}
