"""The file of outputs that other runtimes computed of the nets in ``layer_nets.py``."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.formats.caffe.layer_nets import LayerNet

PATH = Path(__file__).parents[2] / "data/caffe_layers.npz"


@dataclass(frozen=True)
class Records:
    """What one release of a runtime computed, by the name of the net; ``refused`` has its messages."""

    version: str
    outputs: Mapping[str, list[np.ndarray]]
    refused: Mapping[str, str]


def save(records: Mapping[str, Records], nets: Mapping[str, LayerNet], path: Path = PATH) -> None:
    """Writes the records by the names of runtimes. Shapes are in ``index``, elements in ``values``."""
    index = {
        runtime: {
            "version": each.version,
            "shapes": {name: [array.shape for array in arrays] for name, arrays in each.outputs.items()},
            "refused": dict(each.refused),
        }
        for runtime, each in records.items()
    }
    digests = {name: digest(net) for name, net in nets.items()}
    arrays = [array for each in records.values() for outputs in each.outputs.values() for array in outputs]
    text = json.dumps({"runtimes": index, "digests": digests}).encode()
    values = np.concatenate([array.ravel() for array in arrays]).astype(np.float32)
    np.savez_compressed(path, index=np.frombuffer(text, np.uint8), values=values)


def load(path: Path = PATH) -> tuple[dict[str, Records], dict[str, int]]:
    """Returns the records by the names of runtimes, and the digests of the nets of which they are."""
    with np.load(path) as file:
        index, values = json.loads(file["index"].tobytes()), file["values"]
    found, at = {}, 0
    for runtime, each in index["runtimes"].items():
        outputs: dict[str, list[np.ndarray]] = {}
        for name, shapes in each["shapes"].items():
            outputs[name] = []
            for shape in shapes:
                size = math.prod(shape)
                outputs[name].append(values[at : at + size].reshape(shape))
                at += size
        found[runtime] = Records(each["version"], outputs, each["refused"])
    return found, index["digests"]


def digest(net: LayerNet) -> int:
    """Returns a number that is another one for another text, other blobs or other inputs."""
    arrays = [*net.weights, *net.feeds.values()]
    return zlib.crc32(b"".join([net.text.encode(), *(array.tobytes() for array in arrays)]))
