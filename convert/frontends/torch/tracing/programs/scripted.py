"""Calls of TorchScript: records the ATen ops of the script instead of the call."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

from tmconvert.errors import TmconvertError
from tmconvert.errors.source import Source
from tmconvert.frontends.torch.names import Name, aten_name, name_of
from tmconvert.frontends.torch.tracing.recording.source_lines import STAND_INS
from tmconvert.frontends.torch.tracing.recording.state_guard import marked_as_exported
from tmconvert.ir.types import AnyCallable, Args, Kwargs

if TYPE_CHECKING:
    from tmconvert.frontends.torch.tracing.recording.recorder import Recorder

# what TorchScript calls an op that reads a number
_READS = {"local_scalar_dense": ("Bool", "Int", "Float", "item")}
_LINE = re.compile(r'File "([^"]+)", line (\d+)')


def _line_in_script(frame: FrameType) -> Source:
    """Returns the current line in the source of a script, for its call ``frame``.

    TorchScript runs without frames of Python: the op that is recorded tells which of the script's calls it
    is, where there is one of that name only; else the script's first line stands for all.
    """
    script, lines = frame.f_locals["script"], frame.f_locals["lines"]
    if not lines:
        lines += _located(script.inlined_graph)
    wanted = _op_within(frame)
    own = {line for name, line in lines if name in _READS.get(wanted, (wanted,))}
    return own.pop() if len(own) == 1 else lines[0][1] if lines else Source("")


def _op_within(call: FrameType) -> str:
    """Returns the name of the op that is recorded in a call of a script."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame is not call:
        func = frame.f_locals.get("func")
        if frame.f_code.co_name == "__torch_dispatch__" and func is not None:
            return aten_name(name_of(func).text, False).lstrip("_")
        frame = frame.f_back
    return ""


def _be_at(node: object, lines: list[tuple[str, Source]]) -> None:
    """Makes the line of a node that is run by itself the current one, if it has any."""
    own = _line_of(node)
    if own is not None:
        lines[:] = [("", own)]


def _line_of(node: Any) -> Source | None:
    lines = [match for match in _LINE.finditer(node.sourceRange()) if match[1].endswith(".py")]
    own = [match for match in lines if not match[1].startswith("code/")] or lines
    return Source(own[-1][1], int(own[-1][2])) if own else None


def _located(block: Any) -> Iterator[tuple[str, Source]]:
    """Returns the ops of a script's graph that have source lines, with their calls."""
    for node in block.nodes():
        own = _line_of(node)
        if own is not None:
            yield node.kind().rpartition("::")[2].lstrip("_"), own
        for inner in node.blocks():
            yield from _located(inner)


def called_script(recorder: Recorder, original: AnyCallable, script: Any, args: Args, kwargs: Kwargs) -> Any:
    """Records the calls inside of a script instead of the call, which is that of ``original``."""
    from tmconvert.frontends.torch.tracing.programs.script_graphs import (
        decides_by_data,
        hides_sizes,
        run_script,
    )
    from tmconvert.frontends.torch.tracing.sizes.script_arithmetic import fills_tensors

    lines: list[tuple[str, Source]] = []  # for _line_in_script
    name = Name(f"torch.jit.{script.name}", False)
    try:
        with marked_as_exported(False):  # else torch takes the Python function that was scripted
            by_data = not recorder.freeze_control_flow and decides_by_data(script)
            if by_data or hides_sizes(recorder, script):
                return run_script(recorder, script, args, kwargs, lambda n: _be_at(n, lines))
            recorder.fills_unseen = fills_tensors(script)
            return recorder.traced_through(name, original, (script, *args), kwargs)
    except TmconvertError:
        raise
    except Exception:
        if recorder.failure is not None:  # which TorchScript has put into words of its own
            raise recorder.failure from None
        raise
    finally:
        recorder.fills_unseen = False


STAND_INS[called_script.__code__] = _line_in_script
