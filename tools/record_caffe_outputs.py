"""Records what OpenCV and MNN compute of nets of one Caffe layer each: tests/data/caffe_layers.npz.

    python tools/record_caffe_outputs.py        # needs the extras opencv and mnn

``tests/formats/caffe/test_recorded_outputs.py`` compares the definitions of the layers with the records, so
that the definitions are proved where neither runtime is installed.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.formats.caffe.layer_nets import NETS
from tests.formats.caffe.records import PATH, Records, save
from tmconvert.formats.caffe.layers import LAYERS
from tmconvert.targets.caffe.mnn import MnnRuntime
from tmconvert.targets.caffe.opencv import OpenCvRuntime
from tmconvert.targets.caffe.runtimes import NumpyCaffeRuntime
from tmconvert.verification.runtime import Runtime

RUNTIMES: dict[str, Runtime] = {"opencv": OpenCvRuntime(), "mnn": MnnRuntime()}


def main() -> None:
    records = {name: recorded(runtime) for name, runtime in RUNTIMES.items()}
    save(records, NETS)
    for name, each in records.items():
        print(f"{name} {each.version}: {len(each.outputs)} nets recorded, {len(each.refused)} refused")
    print(f"{PATH}: {PATH.stat().st_size >> 10} kB")


def recorded(runtime: Runtime) -> Records:
    """Runs all nets; results have as many axes as Caffe's where the runtime has others of one element."""
    outputs: dict[str, list[np.ndarray]] = {}
    refused: dict[str, str] = {}
    for name, net in NETS.items():
        shapes = [array.shape for array in net.run(NumpyCaffeRuntime())] if LAYERS[net.kind].run else None
        try:
            outputs[name] = net.run(runtime, shapes)
        except Exception as error:  # each runtime, and the rewriting for it, has errors of its own
            refused[name] = str(error).splitlines()[0]
    return Records(runtime.version, outputs, refused)


if __name__ == "__main__":
    main()
