"""Writes adapters/FAMILY.npz, what MegEngine computes for the calls in tests/frontends/adapter_samples/.

Runs with MegEngine 1.13 (Python 3.8), not with tmconvert; without a family it makes all:

    python make_adapters.py [FAMILY ...]

``index`` is a JSON list of [key, dtype, shape] for each result in turn, ``values`` all their elements
one after the other in float64. ``modules`` is JSON: for the key of each call of a module, the constants
(as Python writes them) and the shapes of the tensors of the module and its children, by path.
"""

import importlib
import json
import sys
from pathlib import Path

import megengine as mge
import numpy as np
from megengine.core._imperative_rt.core2 import apply
from megengine.core.ops import builtin

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "frontends"))
import adapter_samples as samples  # noqa: E402

PLAIN = (int, float, str, bool, tuple, list, type(None))


def tensors(tree):
    if isinstance(tree, (list, tuple)):
        return type(tree)(tensors(item) for item in tree)
    if isinstance(tree, dict):
        return {key: tensors(item) for key, item in tree.items()}
    if isinstance(tree, slice):
        return slice(*tensors((tree.start, tree.stop, tree.step)))
    if isinstance(tree, samples.Known):
        return mge.Tensor(tree.array)
    return mge.Tensor(tree) if isinstance(tree, np.ndarray) else tree


def result(row, call, made):
    args, kwargs = tensors(call.args), tensors(call.kwargs)
    folder, _, name = row.rpartition(".")
    if folder == "opdef":
        return apply(getattr(builtin, name)(**kwargs), *args)[0]
    if folder == "Tensor":
        made = getattr(mge.Tensor, name)(*args, **kwargs)
        return args[0] if made is None else made  # what a tensor is after x[...] = value
    if made is not None:
        return made(*args, **kwargs)
    return getattr(importlib.import_module(folder), name)(*args, **kwargs)


def module(row, call):
    folder, _, name = row.rpartition(".")
    args, kwargs = call.made
    made = getattr(importlib.import_module(folder), name)(*args, **kwargs)
    made.eval()
    for name, tensor in [*made.named_parameters(), *made.named_buffers()]:
        tensor[...] = mge.Tensor(samples.parameter(name, tensor.shape))
    return made


def described(made):
    """{path: {"class", "attributes", "tensors"}} of a module and its children."""
    found = {}
    for path, part in made.named_modules():
        own = {key: value for key, value in vars(part).items() if not key.startswith("_")}
        found[path] = {
            "class": type(part).__module__ + "." + type(part).__name__,
            "attributes": {key: repr(value) for key, value in own.items() if isinstance(value, PLAIN)},
            "tensors": {key: value.shape for key, value in own.items() if isinstance(value, mge.Tensor)},
        }
    return found


def write(family):
    """Makes the truth of one family; returns what failed."""
    index, values, modules, failed = [], [], {}, []
    for row, key, call in samples.calls_of(family):
        try:
            made = module(row, call) if call.made else None
            if made is not None:
                modules[key] = described(made)
            parts = result(row, call, made)
            parts = parts if isinstance(parts, (list, tuple)) else [parts]
            arrays = [part.numpy() for part in parts]
        except Exception as error:
            failed.append((key, repr(error).splitlines()[0]))
            continue
        for array in arrays:
            index.append([key, array.dtype.name, array.shape])
            values.append(array.astype("float64").reshape(-1))
    np.savez_compressed(
        str(HERE / "adapters" / (family + ".npz")),
        index=np.array(json.dumps(index)),
        modules=np.array(json.dumps(modules)),
        values=np.concatenate(values),
    )
    return failed


def main(families):
    mge.config.async_level = 0  # errors where they happen
    failed = [row for family in families for row in write(family)]
    for key, reason in failed:
        print(key, reason)
    return len(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or samples.FAMILIES))
