"""Runs in MegEngine's Python: loads models that were saved for MegEngine, and computes them.

    run_in_megengine.py FOLDER

For each NAME.tm in the folder, NAME.npz has the inputs in0, in1, ... NAME.out.npz gets the outputs out0,
out1, ..., NAME.error the error, and MegEngine must be able to save the model again.
"""

import io
import sys
import traceback
from pathlib import Path

import megengine
import numpy as np
from megengine.traced_module.pytree import LeafDef


def leaves(value):
    """The tensors of a result in MegEngine's order."""
    if isinstance(value, megengine.Tensor):
        return [value.numpy()]
    if isinstance(value, dict):
        return [leaf for key in sorted(value) for leaf in leaves(value[key])]
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in leaves(item)]
    return []


def is_flat(module):
    """Whether the arguments are the module and tensors, without containers and constants."""
    (definition,) = module.argdef_graph_map
    args, kwargs = definition.children_defs
    leaves_only = all(isinstance(child, LeafDef) for child in args.children_defs)
    return leaves_only and not kwargs.children_defs and args.num_leaves == len(module.graph.inputs)


def computed(model, arrays):
    loaded = megengine.load(str(model))
    loaded.eval()
    inputs = [megengine.Tensor(arrays[f"in{i}"]) for i in range(len(loaded.graph.inputs) - 1)]
    megengine.save(loaded, io.BytesIO())
    return leaves(loaded(*inputs) if is_flat(loaded) else loaded.graph.eval(*inputs))


def main():
    for model in sorted(Path(sys.argv[1]).glob("*.tm")):
        try:
            with np.load(str(model.with_suffix(".npz"))) as arrays:
                made = computed(model, arrays)
        except Exception:
            model.with_suffix(".error").write_text(traceback.format_exc())
            continue
        np.savez(str(model.with_suffix(".out.npz")), **{f"out{i}": array for i, array in enumerate(made)})


main()
