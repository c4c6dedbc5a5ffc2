"""Writes float_exports.npz: what MegEngine computes for quantization-aware models, fake quantization off.

Runs with MegEngine 1.13 (Python 3.8), not with tmconvert:

    python make_float_exports.py

``NAME.I`` is output I of ../NAME.tm for the inputs in ../NAME.npz.
"""

from pathlib import Path

import megengine as mge
import numpy as np
from megengine.traced_module import TracedModule

DATA = Path(__file__).resolve().parents[2] / "tests/data"


def parts(module):
    """Every module below, builtin ones and what they hold included."""
    found, waiting = {}, [module]
    while waiting:
        part = waiting.pop()
        if id(part) not in found:
            found[id(part)] = part
            waiting += [value for value in vars(part).values() if isinstance(value, mge.module.Module)]
    return found.values()


def outputs(name):
    module = mge.load(str(DATA / (name + ".tm")))
    for part in parts(module):
        if hasattr(part, "enabled"):
            part.enabled = False
    with np.load(str(DATA / (name + ".npz"))) as arrays:
        inputs = [mge.Tensor(arrays[key]) for key in sorted(arrays.files) if key.startswith("in")]
    result = module(*inputs)
    return result if isinstance(result, (list, tuple)) else [result]


if __name__ == "__main__":
    mge.config.async_level = 0
    made = {}
    for path in sorted(DATA.glob("*qat*.tm")):
        if isinstance(mge.load(str(path)), TracedModule):
            for i, tensor in enumerate(outputs(path.stem)):
                made[f"{path.stem}.{i}"] = tensor.numpy()
    np.savez_compressed(str(DATA / "made/float_exports.npz"), **made)
