"""Writes adapters/FAMILY.npz, what MegEngine computes for the adapters' samples.

The samples are those of tests/frontends/megengine/adapter_samples/.

Runs with MegEngine 1.13 (Python 3.8), not with tmconvert; without a family it makes all:

    python make_adapters.py [FAMILY ...]

``index`` is a JSON list of [key, dtype, shape] for each result in turn, ``values`` all their elements
one after the other in float64. ``modules`` is JSON: for the key of each call of a module, the constants
(as Python writes them) and the shapes of the tensors of the module and its children, by path; of modules
with quantization the values of the tensors, too (``values``), and under ``key/float`` what they give with
their fake quantization disabled.
"""

import importlib
import json
import sys
from pathlib import Path

import megengine as mge
import numpy as np
from megengine.core._imperative_rt.core2 import apply
from megengine.core.ops import builtin
from megengine.core.tensor import dtype as dtypes
from megengine.module.qat import QATModule
from megengine.quantization.utils import QParams, QuantMode, create_qparams
from megengine.random.rng import _get_global_rng_seed

TESTS = Path(__file__).resolve().parents[2] / "tests"
sys.path.insert(0, str(TESTS / "frontends/megengine"))
import adapter_samples as samples  # noqa: E402

PLAIN = (int, float, str, bool, dict, type(None))
FAKE_QUANTIZATION = ("opdef.FakeQuant", "opdef.TQT", "opdef.LSQ")
QUANTIZED = ("opdef.BatchConvBias",)
# of operators, the results that only training needs: memory, places of the largest elements
UNUSED = {
    "BatchNorm": [2],
    "LSTM": [3],
    "DeformablePSROIPooling": [1],
    "Dropout": [1],
    "LSTMCell": [2],
    "MultiHeadAttn": [2, 3],
    "RNN": [2],
    "ROIAlign": [1],
    "ROIPooling": [1],
}
MODES = {"symmetric": QuantMode.SYMMERTIC, "asymmetric": QuantMode.ASYMMERTIC}


def tensors(tree, integers=False):
    if isinstance(tree, (list, tuple)):
        return type(tree)(tensors(item, integers) for item in tree)
    if isinstance(tree, dict):
        return {key: tensors(item, integers) for key, item in tree.items()}
    if isinstance(tree, slice):
        return slice(*tensors((tree.start, tree.stop, tree.step)))
    if isinstance(tree, samples.Grid):
        tensor = mge.Tensor(tree.array).astype(getattr(dtypes, tree.dtype)(tree.scale))
        if not integers:
            tensor = tensor.astype("float32")
            tensor.qparams.update(create_qparams(dtype_meta="qint8", scale=mge.Tensor(tree.scale)))
        return tensor
    if isinstance(tree, samples.Int8):
        return dtypes.qint8(tree.scale)
    if isinstance(tree, samples.Known):
        return mge.Tensor(tree.array)
    return mge.Tensor(tree) if isinstance(tree, np.ndarray) else tree


def result(row, call, made):
    args, kwargs = tensors(call.args, ".quantized." in row or row in QUANTIZED), tensors(call.kwargs)
    folder, _, name = row.rpartition(".")
    if name == "_apply_fakequant_with_observer":
        return made._apply_fakequant_with_observer(*args, made.act_fake_quant, made.act_observer)
    if folder == "opdef":
        return applied(name, args, kwargs)
    if folder == "Tensor":
        made = getattr(mge.Tensor, name)(*args, **kwargs)
        return args[0] if made is None else made  # what a tensor is after x[...] = value
    if made is not None:
        return made(*args, **kwargs)
    return getattr(importlib.import_module(folder), name)(*args, **kwargs)


def applied(name, args, kwargs):
    """The results of an operator; None for what inference has no use for."""
    op = getattr(builtin, name)(**kwargs)
    if hasattr(op, "comp_node"):
        op.comp_node = args[0].device
    if hasattr(op, "seed"):
        op.seed = _get_global_rng_seed()
    found = list(apply(op, *args))
    for place in UNUSED.get(name, ()):
        found[place] = None
    return found


def module(row, call):
    folder, _, name = row.rpartition(".")
    if name == "_apply_fakequant_with_observer":
        folder, name = "megengine.module.qat", "QuantStub"
    args, kwargs = call.made
    of_floats = importlib.import_module(folder.replace(".quantized", ".qat"))
    made = getattr(of_floats, name)(*args, **kwargs)
    made.eval()
    for path, tensor in [*made.named_parameters(), *made.named_buffers()]:
        tensor[...] = mge.Tensor(samples.parameter(path, tensor.shape))
    for key, part in (call.parts or {}).items():
        setattr(made, key, None if part is None else built(part))
    if ".quantized." in folder:
        made = getattr(importlib.import_module(folder), name).from_qat_module(made)
        made.eval()
    return made


def built(part):
    """The observer or fake quant that a Part describes."""
    folder, _, name = part.class_name.rpartition(".")
    mode = {} if part.mode is None else {"mode": MODES[part.mode]}
    takes_mode = {} if part.qparams is not None else mode
    made = getattr(importlib.import_module("megengine." + folder), name)(**part.kwargs, **takes_mode)
    made.eval()
    if part.qparams is not None:
        scale, zero = (None if value is None else mge.Tensor(value, "float32") for value in part.qparams)
        made.set_qparams(
            create_qparams(dtype_meta=part.kwargs["dtype"], scale=scale, zero_point=zero, **mode)
        )
    for name, value in part.values.items():
        known = getattr(made, name)
        setattr(
            made, name, type(known)(np.array(value, "float32")) if isinstance(known, mge.Tensor) else value
        )
    return made


def described(made, with_values):
    """{path: {"class", "attributes", "tensors" and "values"}} of a module and its children."""
    found = {}
    for path, part in made.named_modules():
        if path and path.rpartition(".")[0] not in found:  # in a list, which holds copies
            continue
        own = {key: plain(value) for key, value in vars(part).items() if not key.startswith("_")}
        found[path] = {
            "class": type(part).__module__ + "." + type(part).__name__,
            "attributes": {key: repr(value) for key, value in own.items() if is_plain(value)},
            "tensors": {
                key: value.shape for key, value in vars(part).items() if isinstance(value, mge.Tensor)
            },
        }
        if with_values:
            held = {key: value for key, value in own.items() if isinstance(value, mge.Tensor)}
            found[path]["values"] = {
                key: {"data": value.numpy().tolist(), "dtype": plain(value.dtype)}
                for key, value in held.items()
            }
    return found


def is_plain(value):
    """Whether it is a constant, or a list of constants."""
    if isinstance(value, (tuple, list)):
        return all(is_plain(item) for item in value)
    return isinstance(value, PLAIN)


def plain(value):
    """Records of quantization as dicts and texts."""
    if isinstance(value, dtypes.QuantDtypeMeta):
        return {key: getattr(value, key) for key in ("name", "np_dtype_str", "qmin", "qmax")}
    if isinstance(value, QuantMode):
        return {mode: name for name, mode in MODES.items()}[value]
    if isinstance(value, QParams):
        parts = {key: plain(getattr(value, key)) for key in ("mode", "dtype_meta", "scale", "zero_point")}
        return {
            key: part.numpy().tolist() if isinstance(part, mge.Tensor) else part
            for key, part in parts.items()
        }
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        dtype = np.dtype(value)
        return {"storage": dtype.name, **(dtype.metadata or {})}
    return value


def arrays(result):
    """The results of a call, in order; quantized ones as the numbers that they stand for."""
    if result is None or isinstance(result, (list, tuple)):
        return [array for part in result or () if part is not None for array in arrays(part)]
    return [(result.astype("float32") if result.dtype.metadata else result).numpy()]


def write(family):
    """Makes the truth of one family; returns what failed."""
    index, values, modules, failed = [], [], {}, []
    for row, key, call in samples.calls_of(family):
        try:
            made = module(row, call) if call.made else None
            if made is not None:
                modules[key] = described(made, call.parts is not None)
            found = [(key, array) for array in arrays(result(row, call, made))]
            if isinstance(made, QATModule):
                made.set_fake_quant(False)
                found += [(key + "/float", array) for array in arrays(result(row, call, made))]
            if row in FAKE_QUANTIZATION:
                found.append((key + "/float", call.args[0]))
        except Exception as error:
            failed.append((key, repr(error).splitlines()[0]))
            continue
        for name, array in found:
            index.append([name, array.dtype.name, array.shape])
            values.append(array.astype("float64").reshape(-1))
    np.savez_compressed(
        str(TESTS / "data/made/adapters" / (family + ".npz")),
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
