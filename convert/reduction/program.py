"""The program of a reduced model: PyTorch code, made-up weights, and the command that fails."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

import numpy as np

from tmconvert.errors import TmconvertError
from tmconvert.ir import CallFunction, CallMethod, Node, TensorNode, TracedModule
from tmconvert.ir.expr import Constant, Expr, Input
from tmconvert.ir.flatten import flatten_module
from tmconvert.ir.symbolic.dims import example
from tmconvert.ir.tree import map_leaves
from tmconvert.symbolics.op import Op

_PROPERTIES = frozenset(("real", "imag", "T", "mT", "H", "mH"))  # of tensors, recorded as methods
FACTORY = "reduced:make"
_MAKE = "\n\ndef make() -> nn.Module:\n    return Reduced().eval()\n"
_DRAWS = re.compile(r"torch\.(?:randn|empty)|\bnn\.(?!Module\b)")
_SEED = "    torch.manual_seed(0)\n"


def inputs_of(module: TracedModule) -> list[str]:
    """Returns the arguments of the command line for the inputs: ``--input``, ``float32[1,8]``, ..."""
    assert module.graph is not None
    texts = [
        f"{node.dtype.name}[{','.join(str(example(size)) for size in node.shape)}]"
        for node in module.graph.inputs
        if isinstance(node, TensorNode) and node.shape is not None and node.dtype is not None
    ]
    return [part for text in texts for part in ("--input", text)]


def program_of(module: TracedModule, catalogue: Mapping[str, Op], command: Sequence[str]) -> str | None:
    """Returns the text of a Python file with a factory ``make`` and the command; None where calls have no
    form in PyTorch.
    """
    from tmconvert.torch_code.class_source import generate

    shown = shlex.join(
        each.replace("{}.out", "reduced").replace("{}", FACTORY) for each in [*command, *inputs_of(module)]
    )
    head = f'"""Fails with: {shown}"""\n\n'
    try:
        code = generate(module, catalogue, "Reduced").text
    except TmconvertError:  # the calls that fail may be those that have no op
        try:
            code = _calls(module)
        except _NoForm:
            return None
    before, mark, after = _MAKE.partition("    return")
    make = before + (_SEED if _DRAWS.search(code) else "") + mark + after
    return head + code.replace("from __future__ import annotations\n\n", "", 1) + make


class _NoForm(ValueError):
    """A call that is not of a function of PyTorch or a method of tensors."""


def _calls(module: TracedModule) -> str:
    """Returns a class that repeats the recorded calls of PyTorch. Raises _NoForm."""
    graph = flatten_module(module).graph
    assert graph is not None
    names: dict[Node, str] = {}
    inputs: list[Node] = [node for node in graph.inputs if isinstance(node, TensorNode)]
    names.update({node: f"x{number}" for number, node in enumerate(inputs)})
    lines = []
    for expr in graph:
        if isinstance(expr, Input):
            continue
        for node in expr.outputs:
            names[node] = f"t{len(names) - len(inputs)}"
        results = ", ".join(names[node] for node in expr.outputs)
        lines.append(f"        {results} = {_text(expr, names)}")
    returned = ", ".join(names[node] for node in graph.outputs)
    arguments = ", ".join(names[node] for node in inputs)
    body = "\n".join([f"    def forward(self, {arguments}):", *lines, f"        return {returned}"])
    return f"import torch\nfrom torch import nn\n\n\nclass Reduced(nn.Module):\n{body}\n"


def _text(expr: Expr, names: Mapping[Node, str]) -> str:
    if isinstance(expr, Constant) and isinstance(expr.value, np.ndarray):
        value = expr.value
        if value.size <= 16 or value.dtype.kind != "f":
            return f"torch.tensor({value.tolist()}, dtype=torch.{value.dtype.name})"
        return f"torch.randn({list(value.shape)}, dtype=torch.{value.dtype.name})"
    keywords = [f"{name}={_literal(value, names)}" for name, value in expr.kwargs.items()]
    arguments = [_literal(value, names) for value in expr.args]
    if isinstance(expr, CallFunction) and expr.function.startswith("torch."):
        return f"{expr.function}({', '.join([*arguments, *keywords])})"
    if isinstance(expr, CallMethod) and expr.args and isinstance(expr.args[0], TensorNode):
        if expr.method in _PROPERTIES:
            return f"{arguments[0]}.{expr.method}"
        return f"{arguments[0]}.{expr.method}({', '.join([*arguments[1:], *keywords])})"
    raise _NoForm


def _literal(value: object, names: Mapping[Node, str]) -> str:
    """Returns an argument as code; tensors are names."""

    class Name(str):
        def __repr__(self) -> str:
            return str(self)

    def leaf(each: object) -> object:
        if isinstance(each, Node):
            if each not in names:
                raise _NoForm
            return Name(names[each])
        if each is None or isinstance(each, (bool, int, float, str)):
            return each
        if isinstance(each, np.dtype) or type(each).__name__ == "dtype":
            return Name(f"torch.{np.dtype(each).name}" if isinstance(each, np.dtype) else str(each))
        raise _NoForm

    return repr(map_leaves(leaf, value))
