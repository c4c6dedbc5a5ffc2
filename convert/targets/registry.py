"""The targets by name: the built-in ones, and those of packages with entry points in the group
``tmconvert.targets``.

A module is imported when its target is first requested.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from tmconvert.errors import UsageError
from tmconvert.ir import InternalGraph
from tmconvert.lowering.lower import Lowering
from tmconvert.lowering.target_graph import TargetGraph
from tmconvert.output.atomic import written
from tmconvert.passes.manager import Pass
from tmconvert.symbolics.op import Op
from tmconvert.symbolics.target_names import add_target, installed_targets
from tmconvert.targets.options import TargetOptions
from tmconvert.targets.target import Target

if TYPE_CHECKING:
    from tmconvert.verification.runtime import Runtime

_BUILT_IN = {
    "onnx": "tmconvert.targets.onnx.target:OnnxTarget",
    "tflite": "tmconvert.targets.tflite.target:TfliteTarget",
    "caffe": "tmconvert.targets.caffe.target:CaffeTarget",
}
_registered: dict[str, Target] = {}


def register_target(target: Target) -> None:
    """Adds a target for this process. Raises UsageError TM6001 for a name that is taken."""
    if target.name in target_names():
        raise UsageError("TM6001", f"the target {target.name!r} is already registered")
    _registered[target.name] = target
    add_target(target.name, target.title)


def target_names() -> list[str]:
    """Returns the names of all targets, the built-in ones first."""
    return [*_BUILT_IN, *installed_targets(), *_registered]


def target_named(name: str) -> Target:
    """The target of this name. Raises UsageError TM6001."""
    return _registered.get(name) or _loaded(name)


def target_version(target: str, version: int | str | None) -> int:
    """Returns the number by which symbolics of ``target`` are looked up. Raises UsageError TM6001."""
    return target_named(target).version_number(version)


def passes_for(options: TargetOptions, catalogue: Mapping[str, Op]) -> list[Pass]:
    """Returns new passes for one conversion, in order."""
    return target_named(options.target).passes(options, catalogue)


def lower(graph: InternalGraph, catalogue: Mapping[str, Op], target: str, version: int) -> Lowering:
    """Lowers a graph that went through the passes of ``target``; see ``Target.lower``."""
    return target_named(target).lower(graph, catalogue, TargetOptions(target, version))


def write(graph: TargetGraph, files: Sequence[BinaryIO], names: Sequence[str] = ("",)) -> None:
    """Writes a graph to its open files: one, or two for Caffe, or for ONNX with external data."""
    target_named(graph.target).write(graph, files, names)


def write_files(graph: TargetGraph, paths: Sequence[Path]) -> None:
    """Writes a graph to the files at ``paths``, which get their names when they are whole."""
    with ExitStack() as stack:
        files = [stack.enter_context(written(path)) for path in paths]
        write(graph, files, [path.name for path in paths])


def runtime_for(target: str, path: Path | None = None) -> Runtime | None:
    """Returns the runtime that verifies files of a target, or the one at ``path``; None if not installed."""
    return target_named(target).runtime(path)


def runtime_of(graph: TargetGraph, path: Path) -> Runtime | None:
    """Returns the runtime that verifies a graph, which may be a signature of the file at ``path``."""
    return target_named(graph.target).signature_runtime(path, graph.signature)


@cache
def _loaded(name: str) -> Target:
    if name in _BUILT_IN:
        module, _, attribute = _BUILT_IN[name].partition(":")
        return getattr(import_module(module), attribute)()
    if name in installed_targets():
        target = installed_targets()[name].load()()
        add_target(name, target.title)
        return target
    raise UsageError(
        "TM6001", f"unknown target {name!r}", notes=[("help", f"targets: {', '.join(target_names())}")]
    )
