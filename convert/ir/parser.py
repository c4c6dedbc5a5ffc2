"""Parses the typed text form of a graph."""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

import numpy as np

from tmconvert.errors import LoadError
from tmconvert.errors.source import Source
from tmconvert.ir.expr import CallFunction, Constant, Expr
from tmconvert.ir.graph import InternalGraph
from tmconvert.ir.node import Node, TensorNode
from tmconvert.ir.symbolic.dims import Dim, Symbol
from tmconvert.ir.symbolic.text import is_size_name, parse_size
from tmconvert.ir.text import digest
from tmconvert.ir.types import DTYPES_BY_NAME, NamedArrays, QParams, TensorType

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<string>"(?:[^"\\]|\\.)*")
      | (?P<value>%(?:[A-Za-z_0-9.]+|"(?:[^"\\]|\\.)*"))
      | (?P<number>-?(?:inf|nan)\b|-?[0-9]+(?:\.[0-9]*)?(?:e[+-]?[0-9]+)?)
      | (?P<name>[A-Za-z_][\w.]*(?:::[A-Za-z_]\w*)?)
      | (?P<mark>->|[()\[\]{}=:,?])
    )""",
    re.VERBOSE,
)
# sizes have no commas, brackets or quotes; a float has a letter only in its exponent
_SIZE = re.compile(
    r"(?![-+]?(?:inf|nan|[0-9]+(?:\.[0-9]*)?(?:e[-+]?[0-9]+)?)\s*[,\]})])"
    r"[A-Za-z0-9_+\-*/() ]+?(?=\s*[,\]}])"
)
_EXAMPLE = re.compile(r"\s*([0-9]{1,18})(?:/([0-9]{1,18}))?(\?)?")
_INTEGER = re.compile(r"-?[0-9]+")
_WORDS = {"none": None, "true": True, "false": False, "inf": float("inf"), "nan": float("nan")}
MAX_DEPTH = 50
MAX_DIGITS = 640  # of an integer: as many as any Python reads in


def parse_graph(text: str, constants: NamedArrays | None = None, file: str = "") -> InternalGraph:
    """Parses the output of ``graph.to_text()``.

    ``constants`` maps digests to the arrays that the text names by digest only (see
    ``text.graph_constants``). With ``file`` an expression without a location gets its own line there.
    Raises LoadError TM1101 with line and column for anything malformed.
    """
    return _Parser(text, constants or {}, file).graph()


class _Parser:
    def __init__(self, text: str, constants: NamedArrays, file: str) -> None:
        self.text, self.file = text, file
        self.constants = constants
        self.position = 0
        self.start = 0  # of the token at hand
        self.nodes: dict[str, Node] = {}
        self.symbols: dict[str, Symbol] = {}
        self.kind, self.token = "", ""
        self.advance()

    # ---- tokens

    def advance(self) -> str:
        """Moves to the next token and returns the current one."""
        previous = self.token
        match = _TOKEN.match(self.text, self.position)
        if match is None:
            rest = self.text[self.position :].lstrip()
            if rest:
                self.start = len(self.text) - len(rest)
                self.fail("unexpected character")
            self.kind, self.token, self.start = "end", "", len(self.text)
        else:
            self.kind = match.lastgroup or ""
            self.token, self.start = match.group(self.kind), match.start(self.kind)
            self.position = match.end()
        return previous

    def expect(self, token: str) -> None:
        if self.token != token:
            self.fail(f"expected {token!r}, found {self.token or 'the end'!r}")
        self.advance()

    def accept(self, token: str) -> bool:
        if self.token != token or self.kind == "string":
            return False
        self.advance()
        return True

    def fail(self, message: str) -> NoReturn:
        before = self.text[: self.start]
        line = before.count("\n") + 1
        column = len(before) - before.rfind("\n")
        excerpt = self.text.split("\n")[line - 1]
        raise LoadError("TM1101", f"graph text, line {line}, column {column}: {message}", excerpt=excerpt)

    # ---- grammar

    def graph(self) -> InternalGraph:
        graph = self.whole_graph()
        if self.kind != "end":
            self.fail(f"expected the end, found {self.token!r}")
        return graph

    def body(self) -> InternalGraph:
        """Parses a subgraph, which has its own names and sizes."""
        around = self.nodes, self.symbols
        self.nodes, self.symbols = {}, {}
        graph = self.whole_graph()
        self.nodes, self.symbols = around
        return graph

    def whole_graph(self) -> InternalGraph:
        self.expect("graph")
        graph = InternalGraph(self.string() if self.kind == "string" else self.word("the name of the graph"))
        if self.accept("{"):
            self.declare_symbols()
        self.expect("(")
        while not self.accept(")"):
            self.input(graph)
            self.accept(",")
        self.expect("->")
        result_position = self.position, self.start, self.kind, self.token
        self.skip_result()
        self.expect("{")
        while not self.accept("}"):
            graph.insert(self.expr())
        end = self.position, self.start, self.kind, self.token
        self.position, self.start, self.kind, self.token = result_position
        graph.set_result(self.tree())
        self.position, self.start, self.kind, self.token = end
        return graph

    def declare_symbols(self) -> None:
        """``batch=2, height=64/32, found_1=8?}``."""
        while not self.accept("}"):
            name = self.word("the name of a size")
            start = self.position if self.token == "=" else self.fail("a size must have an example")
            declared = _EXAMPLE.match(self.text, start)
            if declared is None or not is_size_name(name) or name in self.symbols:
                self.fail("a size must be declared by a new name, =, and its example")
            size, unit = int(declared[1]), int(declared[2] or 1)
            if not unit or size % unit:
                self.fail(f"the example {size} is not a multiple of {unit}")
            self.symbols[name] = Symbol(name, size // unit, unit, from_data=declared[3] is not None)
            self.move(declared.end())
            self.accept(",")

    def move(self, position: int) -> None:
        """Continues at ``position``."""
        self.position = position
        self.advance()

    def size(self) -> Any:
        """Parses a size, an expression of symbols."""
        expression = _SIZE.match(self.text, self.start)
        assert expression is not None
        try:
            size = parse_size(expression[0].strip(), self.symbols)
        except ValueError as error:
            self.fail(str(error))
        self.move(expression.end())
        return size

    def input(self, graph: InternalGraph) -> None:
        start = self.start
        node = self.new_node(self.value_name())
        self.expect(":")
        self.type_of(node)
        source, made_by = self.place(start)
        graph.add_input(node, source=source, made_by=made_by)

    def expr(self) -> Expr:
        start = self.start
        names = [self.value_name()]
        while self.accept(","):
            names.append(self.value_name())
        self.expect("=")
        function = self.word("an op")
        args = self.arguments()
        attributes = self.attributes() if self.token == "{" else {}
        nodes = [self.new_node(name) for name in names]
        self.expect(":")
        self.types(nodes)
        source, made_by = self.place(start)
        result = nodes[0] if len(nodes) == 1 else tuple(nodes)
        if function == "aten::constant" and len(nodes) > 1:
            self.fail("a constant must have one result")
        if function == "aten::constant":
            value = self.constant(attributes, nodes[0])
            return Constant(value, attributes.get("name"), result=result, source=source, made_by=made_by)
        return CallFunction(function, args, attributes, result=result, source=source, made_by=made_by)

    def arguments(self) -> tuple[Any, ...]:
        self.expect("(")
        args = []
        while not self.accept(")"):
            args.append(self.tree())
            self.accept(",")
        return tuple(args)

    def attributes(self) -> dict[str, Any]:
        self.expect("{")
        attributes = {}
        while not self.accept("}"):
            name = self.word("the name of an attribute")
            self.expect("=")
            attributes[name] = self.tree()
            self.accept(",")
        return attributes

    def types(self, nodes: list[TensorNode]) -> None:
        if len(nodes) == 1:
            return self.type_of(nodes[0])
        self.expect("(")
        for node in nodes:
            self.type_of(node)
            self.accept(",")
        return self.expect(")")

    def type_of(self, node: TensorNode) -> None:
        if not self.accept("?"):
            if self.token not in DTYPES_BY_NAME:
                self.fail(f"unknown element type {self.token!r}")
            name = self.advance()
            shape = self.tree()
            if not isinstance(shape, list) or not all(_is_count(extent) for extent in shape):
                self.fail("a shape must be a list of non-negative integers")
            node.type = TensorType(DTYPES_BY_NAME[name], tuple(shape))
        if self.accept("nhwc"):
            node.layout = "nhwc"
        if self.accept("q"):
            node.qparams = self.qparams()

    def qparams(self) -> QParams:
        fields = self.attributes()
        try:
            low, high = fields["range"]
            return QParams(
                str(fields["dtype"]),
                tuple(map(float, fields["scale"])),
                tuple(map(int, fields["zero_point"])),
                int(low),
                int(high),
                None if fields["channel_axis"] is None else int(fields["channel_axis"]),
                bool(fields.get("symmetric", False)),
                str(fields.get("source", "")),
            )
        except (KeyError, TypeError, ValueError, OverflowError):
            self.fail("quantization must have dtype, scale, zero_point, range and channel_axis")

    def place(self, start: int) -> tuple[Source | None, str | None]:
        source = made_by = None
        if self.accept("loc"):
            self.expect("(")
            file, line, words = self.string(), None, []
            if self.accept(":"):
                line = self.integer()
            while self.accept(","):
                words.append(self.string())
            if len(words) > 2:
                self.fail("a location must have a file, a line, a module path and a class")
            self.expect(")")
            source = Source(file, line, *words)
        if self.accept("by"):
            self.expect("(")
            made_by = self.string()
            self.expect(")")
        if self.file and source is None and made_by is None:
            source = Source(self.file, self.text.count("\n", 0, start) + 1)
        return source, made_by

    def constant(self, attributes: dict[str, Any], node: TensorNode) -> np.ndarray:
        if "value" in attributes:
            return self.inline_constant(attributes["value"], node)
        key = attributes.get("digest")
        value = self.constants.get(key) if isinstance(key, str) else None
        if value is None:
            self.fail(f"the constant with digest {key!r} is missing: pass the model or arrays that have it")
        if digest(value) != key or value.shape != node.shape:
            self.fail(f"the constant passed for {key!r} has another type or other values")
        return value

    def inline_constant(self, items: Any, node: TensorNode) -> np.ndarray:
        if node.dtype is None or node.shape is None:
            self.fail("a constant must have a type")
        kinds = {"f": (int, float), "b": (bool,)}.get(node.dtype.kind, (int,))
        if not isinstance(items, list) or not all(type(item) in kinds for item in items):
            self.fail(f"the values of a constant must be a list of {node.dtype.name}")
        try:
            with np.errstate(all="ignore"):
                return np.array(items, node.dtype).reshape(node.shape)
        except (ValueError, OverflowError) as error:
            self.fail(str(error))

    # ---- leaves

    def tree(self, depth: int = 0) -> Any:
        if depth > MAX_DEPTH:
            self.fail("nested too deeply")
        if self.token == "(" and self.kind == "mark":
            return self.tuple(depth)
        if self.accept("["):
            items = []
            while not self.accept("]"):
                items.append(self.tree(depth + 1))
                self.accept(",")
            return items
        if self.accept("{"):
            return self.dict(depth)
        return self.leaf()

    def tuple(self, depth: int) -> Any:
        self.expect("(")
        items, commas = [], 0
        while not self.accept(")"):
            items.append(self.tree(depth + 1))
            commas += self.accept(",")
        return items[0] if len(items) == 1 and not commas else tuple(items)

    def dict(self, depth: int) -> dict[Any, Any]:
        entries: dict[Any, Any] = {}
        while not self.accept("}"):
            key = self.string() if self.kind == "string" else self.integer()
            self.expect(":")
            entries[key] = self.tree(depth + 1)
            self.accept(",")
        return entries

    def leaf(self) -> Any:
        kind, token = self.kind, self.token
        if kind == "value":
            name = self.unquoted(token[1:])
            if name not in self.nodes:
                self.fail(f"{token} is not defined before this line")
            self.advance()
            return self.nodes[name]
        if kind == "string":
            return self.string()
        if kind == "name" and token == "graph":
            return self.body()
        if token in _WORDS:
            self.advance()
            return _WORDS[token]
        if self.symbols and _is_size(self.text, self.start):
            return self.size()
        if kind == "number":
            if _INTEGER.fullmatch(token):
                return self.integer()
            self.advance()
            return float(token)
        self.fail(f"expected a value, found {token or 'the end'!r}")

    def string(self) -> str:
        if self.kind != "string":
            self.fail(f"expected a string, found {self.token or 'the end'!r}")
        return self.unquoted(self.advance())

    def unquoted(self, text: str) -> str:
        if not text.startswith('"'):
            return text
        try:
            return str(json.loads(text))
        except ValueError as error:
            self.fail(str(error))

    def integer(self) -> int:
        if not _INTEGER.fullmatch(self.token) or len(self.token) > MAX_DIGITS:
            self.fail(f"expected an integer, found {self.token[:40] or 'the end'!r}")
        return int(self.advance())

    def word(self, what: str) -> str:
        if self.kind != "name":
            self.fail(f"expected {what}, found {self.token or 'the end'!r}")
        return self.advance()

    def value_name(self) -> str:
        if self.kind != "value":
            self.fail(f"expected a value such as %x, found {self.token or 'the end'!r}")
        return self.unquoted(self.advance()[1:])

    def new_node(self, name: str) -> TensorNode:
        if name in self.nodes:
            self.fail(f"%{name} is defined twice")
        node = self.nodes[name] = TensorNode(name)
        return node

    def skip_result(self) -> None:
        """Skips the result, whose nodes are defined further down."""
        depth = 0
        while True:
            if self.kind == "end":
                self.fail("the graph has no expressions in braces")
            if self.kind == "mark":
                depth += (self.token in ("(", "[", "{")) - (self.token in (")", "]", "}"))
            self.advance()
            if depth <= 0:
                return


def _is_count(value: Any) -> bool:
    return isinstance(value, Dim) or (type(value) is int and value >= 0)


def _is_size(text: str, start: int) -> bool:
    """Whether the current token starts a size expression, not a plain number."""
    expression = _SIZE.match(text, start)
    return expression is not None and any(char.isalpha() for char in expression[0])
