"""The program of a reduced graph: PyTorch code, made-up weights, and the command that fails."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from tmconvert.errors import TmconvertError
from tmconvert.frontends.torch.written_calls import CLASS, MODULE
from tmconvert.ir import TensorNode, TracedModule
from tmconvert.ir.symbolic.dims import example
from tmconvert.reduction.program_candidates import shown_command
from tmconvert.reduction.trials import Candidate
from tmconvert.symbolics.op import Op

FACTORY = f"{MODULE}:make"
_MAKE = f"\n\ndef make() -> nn.Module:\n    return {CLASS}().eval()\n"
_DRAWS = re.compile(r"torch\.(?:randn|empty)|\bnn\.(?!Module\b)")
_SEED = "    torch.manual_seed(0)\n"


def inputs_of(module: TracedModule) -> list[str]:
    """Returns the types of the inputs as ``--input`` takes them: ``float32[1,8]``, ..."""
    assert module.graph is not None
    return [
        f"{node.dtype.name}[{','.join(str(example(size)) for size in node.shape)}]"
        for node in module.graph.inputs
        if isinstance(node, TensorNode) and node.shape is not None and node.dtype is not None
    ]


def program_of(module: TracedModule, catalogue: Mapping[str, Op], command: Sequence[str]) -> str | None:
    """Returns the text of a Python file with a factory ``make``; None where calls have no form in PyTorch."""
    from tmconvert.torch_code.class_source import generate

    try:
        code = generate(module, catalogue, CLASS).text
    except TmconvertError:
        return None
    head = f'"""Fails with: {shown_command(command, Candidate(FACTORY, inputs_of(module)))}"""\n\n'
    before, mark, after = _MAKE.partition("    return")
    make = before + (_SEED if _DRAWS.search(code) else "") + mark + after
    return head + code.replace("from __future__ import annotations\n\n", "", 1) + make
