"""Rewrites Caffe nets so that MNN's converter reads them correctly."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from google.protobuf import text_format

from tmconvert.formats.caffe.reader import parse_net
from tmconvert.formats.caffe.schema import schema
from tmconvert.targets.caffe.lint import lint_text

DIALECT = "mnn"


def mnn_reads(prototxt: Path) -> bool:
    """Whether MNN supports all layers of the net, after it is rewritten."""
    try:
        net = _net(prototxt)
    except (text_format.ParseError, UnicodeDecodeError):
        return False
    return not lint_text(text_format.MessageToString(net), DIALECT)


def parts_for_mnn(prototxt: Path, outputs: Sequence[str]) -> list[str]:
    """Returns the text of a net per output. Raises text_format.ParseError."""
    net = _net(prototxt)
    return [text_format.MessageToString(_part(net, output)) for output in outputs]


def _net(prototxt: Path) -> Any:
    """Returns the net with explicit base e for -1, and an axis for blobs of rank 0."""
    net = parse_net(prototxt.read_text("utf-8"), DIALECT)
    for layer in net.layer:
        if layer.type == "Log" and layer.log_param.base == -1:
            layer.log_param.base = math.e
        elif layer.type == "Reshape" and not layer.reshape_param.shape.dim:
            layer.reshape_param.shape.dim.append(1)
    return net


def _part(net: Any, output: str) -> Any:
    """Returns the layers that ``output`` needs: MNN loses the names of others, and of one of two equal
    layers.

    A Split that makes it is written as a Power, since MNN leaves copies out.
    """
    part = schema(DIALECT).NetParameter(name=net.name)
    needed, kept = {output}, []
    for layer in reversed(net.layer):
        if needed & set(layer.top):
            kept.append(layer)
            needed.update(layer.bottom)
    part.layer.extend(reversed(kept))
    _name_each_blob_once(part)
    last = part.layer[-1]
    if last.type == "Split":
        last.type, last.top[:] = "Power", [output]
    return part


def _name_each_blob_once(part: Any) -> None:
    """Gives in-place layers their own tops: only the last one keeps the name."""
    writers = Counter(top for layer in part.layer for top in layer.top)
    written: Counter[str] = Counter()

    def current(name: str) -> str:
        return name if written[name] == writers[name] else f"{name}/{written[name]}"

    for layer in part.layer:
        layer.bottom[:] = [current(name) for name in layer.bottom]
        written.update(layer.top)
        layer.top[:] = [current(name) for name in layer.top]
