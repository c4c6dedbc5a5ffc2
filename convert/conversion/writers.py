"""The writer of each target."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from tmconvert.errors import InternalError, UnsupportedError
from tmconvert.lowering.target_graph import TargetGraph
from tmconvert.targets.onnx.external_data import MOST_INLINE, external_bytes, weights_path
from tmconvert.targets.options import DIALECTS

if TYPE_CHECKING:
    from tmconvert.targets.caffe.violation import Violation


def paths_of(graph: TargetGraph, paths: Sequence[Path], *, external_data: bool) -> list[Path]:
    """The files to write: for ONNX ``paths`` and, when asked for or needed, one for the weights."""
    if graph.target != "onnx" or not (size := external_bytes(graph)):
        return list(paths)
    return [*paths, weights_path(paths[0])] if external_data or size > MOST_INLINE else list(paths)


def write(
    graph: TargetGraph, files: Sequence[BinaryIO], weights_name: str = "", *, value_info: bool = True
) -> None:
    """Writes the graph to its open files: one, or prototxt and caffemodel.

    For ONNX a second file takes the weights; the first one refers to it as ``weights_name``. ``value_info``
    stores the types of intermediate results in it, too.
    """
    if graph.target == "onnx":
        from tmconvert.targets.onnx.writer import write_onnx

        weights = files[1] if len(files) > 1 else None
        write_onnx(graph, files[0], weights, weights_name, value_info=value_info)
    elif graph.target == "tflite":
        from tmconvert.targets.tflite.writer import write_tflite

        write_tflite(graph, files[0])
    else:
        from tmconvert.targets.caffe.writer import write_caffe

        write_caffe(graph, files[0], files[1])


def check_written(graph: TargetGraph, paths: Sequence[Path]) -> list[str]:
    """The format's own checker, where there is one, and the rules of a Caffe dialect.

    Returns the limits that no document confirms and the net is beyond. Raises UnsupportedError TM2019 for
    the others, and InternalError TM9001 for a net that is not sound.
    """
    if graph.target == "onnx":
        from tmconvert.targets.onnx.writer import check_onnx

        check_onnx(paths[0], graph)
    if graph.target != "caffe":
        return []
    found = limits_broken(graph, paths[0])
    broken = [violation for violation in found if violation.confirmed]
    if broken:
        raise _beyond(graph, broken)
    return [f"{DIALECTS[_number(graph)]}: {violation}" for violation in found]


def _beyond(graph: TargetGraph, broken: Sequence[Violation]) -> UnsupportedError:
    """The first violation in full, the others in a line for each rule."""
    from tmconvert.targets.caffe.dialects import DIALECTS as CAFFE

    first, dialect = broken[0], DIALECTS[_number(graph)]
    sources = {operator.name: operator.source for operator in graph.operators}
    more = Counter(violation.rule for violation in broken[1:])
    return UnsupportedError(
        "TM2019",
        f"the net is beyond the limits of {CAFFE[dialect].title}: {first}",
        source=sources.get(first.layer),
        notes=[
            ("help", first.help),
            *(("also", f"{rule} ({count} more)") for rule, count in more.items()),
            ("see", f"`tmconvert check MODEL --target caffe --dialect {dialect}` lists all of them"),
        ],
    )


def limits_broken(graph: TargetGraph, prototxt: Path) -> list[Violation]:
    """What the dialect of a net just written does not take; see ``check_written``."""
    from tmconvert.targets.caffe.dialects import DIALECTS as CAFFE
    from tmconvert.targets.caffe.lint import lint

    dialect = DIALECTS[_number(graph)]
    limits = {rule.name for rule in CAFFE[dialect].rules}
    found = lint(prototxt, dialect)
    for violation in found:
        if violation.rule not in limits:
            raise InternalError("TM9001", f"the net is not sound: {violation}")
    return found


def _number(graph: TargetGraph) -> int:
    assert isinstance(graph.version, int)
    return graph.version
