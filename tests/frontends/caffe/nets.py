"""Makes Caffe nets: a text, and a caffemodel with random weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from tmconvert.formats.caffe.schema import schema

Shape = tuple[int, ...]


def declared(inputs: Mapping[str, Shape]) -> str:
    """Returns an Input layer for each of these."""
    return "".join(
        f'layer {{ name: "{name}" type: "Input" top: "{name}" input_param {{ shape {{ '
        f"{' '.join(f'dim: {extent}' for extent in shape)} }} }} }}\n"
        for name, shape in inputs.items()
    )


def layer(
    kind: str, parameters: str = "", bottoms: Sequence[str] = ("x",), tops: Sequence[str] = ("y",)
) -> str:
    """Returns the text of a layer, whose name is that of its type."""
    ends = " ".join(
        f'{end}: "{name}"' for end, names in (("bottom", bottoms), ("top", tops)) for name in names
    )
    return f'layer {{ name: "{kind}" type: "{kind}" {ends} {parameters} }}\n'


def arrays(shapes: Sequence[Shape], seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.uniform(-1, 2, shape).astype(np.float32) for shape in shapes]


def written(folder: Path, text: str, blobs: Mapping[str, Sequence[np.ndarray]], name: str = "net") -> Path:
    """Writes a net, and its weights by the names of layers; returns the path of the text."""
    net = schema().NetParameter()
    for owner, values in blobs.items():
        made = net.layer.add(name=owner)
        for array in values:
            made.blobs.add(data=array.ravel().tolist()).shape.dim.extend(array.shape)
    (folder / f"{name}.caffemodel").write_bytes(net.SerializeToString())
    path = folder / f"{name}.prototxt"
    path.write_text(text)
    return path
