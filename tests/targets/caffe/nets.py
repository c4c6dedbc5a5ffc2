"""Caffe nets as text, with weights by the names of layers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from google.protobuf import text_format

from tmconvert.formats.caffe.interpreter import run_net
from tmconvert.formats.caffe.reader import net_of
from tmconvert.formats.caffe.schema import schema

Blobs = dict[str, list[np.ndarray]]


def normal(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def text_of(inputs: dict[str, np.ndarray], layers: str) -> str:
    """The text of a net: an Input layer for each input, then ``layers``."""
    heads = [
        f'layer {{ name: "{name}" type: "Input" top: "{name}" input_param {{ shape {{ '
        + " ".join(f"dim: {extent}" for extent in array.shape)
        + " } } }"
        for name, array in inputs.items()
    ]
    return "\n".join([*heads, layers])


def layer(kind: str, parameters: str = "", bottoms: str = "x", tops: str = "y") -> str:
    """One layer called as its first top."""
    names = [f'bottom: "{name}"' for name in bottoms.split()] + [f'top: "{name}"' for name in tops.split()]
    return f'layer {{ name: "{tops.split()[0]}" type: "{kind}" {" ".join(names)} {parameters} }}'


def defined(
    inputs: dict[str, np.ndarray],
    layers: str,
    blobs: Blobs | None = None,
    *,
    dialect: str = "bvlc",
    outputs: str = "y",
) -> list[np.ndarray]:
    """What the definitions give."""
    net = text_format.Parse(text_of(inputs, layers), schema(dialect).NetParameter())
    return run_net(net_of(net, blobs or {}, dialect), inputs, outputs.split())


def written(folder: Path, text: str) -> Path:
    path = folder / "net.prototxt"
    path.write_text(text, encoding="utf-8")
    return path
