"""Detects the kind of a model file from its content, never from its name."""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path

from tmconvert.container.archive import is_container
from tmconvert.errors import LoadError, UsageError
from tmconvert.errors.source import Source
from tmconvert.frontends.torch.archives import Kind, kind_of
from tmconvert.frontends.torch.entry import (
    factories_of,
    is_factory,
    module_of,
    trace_factory,
    trace_file,
    trace_pretrained,
)
from tmconvert.frontends.torch.pretrained import is_pretrained
from tmconvert.frontends.torch.request import Tracing
from tmconvert.ir import TracedModule
from tmconvert.ir.editing.ids import number
from tmconvert.progress import begin

HEAD_BYTES = 4096
MOST_FACTORIES = 8  # in a message
HELP = (
    "pass a .tm file (megengine.save writes one from a TracedModule, `tmconvert save` from any "
    "model), an ONNX or TFLite model, the prototxt of a Caffe net, a .pt2 file of torch.export.save, a "
    "folder of transformers, or PACKAGE.MODULE:FACTORY, which returns a PyTorch module"
)
# (offset, bytes, what such a file is): for a telling message about a file we do not read
KNOWN = (
    (0, b"PK\x03\x04", "a ZIP archive"),
    (8, b'{"', "a safetensors file: it has weights, but not the computation"),
)


def is_traced(model: str | PathLike[str]) -> bool:
    """Whether the model already has a graph, so that it is not run in PyTorch."""
    if is_factory(model) or is_pretrained(model):
        return False
    return _kind(fspath(model), _head(fspath(model))) is None


def load_model(path: str | PathLike[str], tracing: Tracing | None = None, check: bool = True) -> TracedModule:
    """Loads a file, or calls a factory. Raises LoadError TM1001 or TM1002, or the loader's errors.

    ``tracing`` is for models that are traced; for others it raises UsageError TM6016. Without ``check`` the
    weights of a container are not compared with their checksums.
    """
    name = fspath(path)
    if is_factory(name):
        return trace_factory(name, tracing or Tracing())
    if is_pretrained(name):
        return trace_pretrained(name, tracing or Tracing())
    begin("read")
    head = _head(name)
    kind = _kind(name, head)
    if kind is not None:
        return trace_file(name, kind, tracing or Tracing())
    from tmconvert.formats.caffe.recognize import is_prototxt
    from tmconvert.formats.onnx.recognize import is_onnx
    from tmconvert.formats.tflite.recognize import is_tflite
    from tmconvert.frontends.megengine.unpickler import is_pickle
    from tmconvert.frontends.shared.registration import registered_reader

    is_ours, is_caffe = is_container(head), is_prototxt(head)
    other = None
    if not (is_ours or is_caffe or is_onnx(head) or is_tflite(head) or is_pickle(head)):
        other = registered_reader(head)
        if other is None:
            raise _unknown(name, head)
    if tracing not in (None, Tracing()):
        raise UsageError(
            "TM6016",
            f"{name} has a graph already: it cannot be traced",
            notes=[("help", "omit the example inputs and other tracing options")],
        )
    if other is not None:
        module = other.load(name)
        number(module)
        return module
    if is_ours:
        from tmconvert.container.reader import load_container

        return load_container(name, check)
    if is_caffe:
        return _caffe_model(name)
    if is_onnx(head):
        return _onnx_model(name)
    if is_tflite(head):
        return _tflite_model(name)
    from tmconvert.frontends.megengine.loader import load_megengine

    return load_megengine(name)


def _onnx_model(name: str) -> TracedModule:
    from tmconvert.conversion.original import OnnxOriginal
    from tmconvert.frontends.onnx.loader import load_onnx

    module, inputs, outputs = load_onnx(name)
    module.original = OnnxOriginal(name, inputs, outputs)
    return module


def _tflite_model(name: str) -> TracedModule:
    from tmconvert.conversion.original import TfliteOriginal
    from tmconvert.frontends.tflite.loader import load_tflite

    module, inputs, outputs = load_tflite(name)
    module.original = TfliteOriginal(name, inputs, outputs)
    return module


def _caffe_model(name: str) -> TracedModule:
    from tmconvert.conversion.original import CaffeOriginal
    from tmconvert.frontends.caffe.loader import load_caffe

    module, net, inputs, outputs = load_caffe(name)
    module.original = CaffeOriginal(name, inputs, outputs, net)
    return module


def _unknown(name: str, head: bytes) -> LoadError:
    known = next((what for offset, mark, what in KNOWN if head[offset:].startswith(mark)), None)
    notes = [("it is", known)] if known else []
    if not head:
        notes = [("it is", "empty")]
    if name.endswith(".py"):
        notes = [("it is", "a Python file")]
    if name.endswith(".caffemodel"):
        notes = [("it is", "the weights of a Caffe net: pass its prototxt, which is next to it")]
    return LoadError(
        "TM1002",
        "this is not a model file that tmconvert reads",
        source=Source(name),
        notes=[*notes, ("help", _factories_in(name) or HELP)],
    )


def _suggestion_for(name: str) -> str:
    """Suggests what to pass in place of a path that is not a file."""
    file, _, factory = name.rpartition(":")
    try:
        is_module, is_folder = bool(file) and Path(f"{file}.py").is_file(), Path(name).is_dir()
    except (OSError, ValueError):  # such as a name that is too long
        return ""
    if is_module:  # a path where the name of a module is needed
        return f"name the factory by its module: {module_of(file)}:{factory}"
    if is_folder:
        return f"pass a model in it, or convert all of them: tmconvert convert {name}"
    return _factories_in(name)


def _factories_in(name: str) -> str:
    """Suggests factories for a Python file, or for its name without ``.py``."""
    found = factories_of(name if name.endswith(".py") else f"{name}.py")
    more = f", or another of its {len(found)} functions and classes" if len(found) > MOST_FACTORIES else ""
    return (
        (f"name a function or class that creates the module: {', '.join(found[:MOST_FACTORIES])}{more}")
        if found
        else ""
    )


def _kind(name: str, head: bytes) -> Kind | None:
    return None if is_container(head) else kind_of(name, head)


def _head(name: str) -> bytes:
    try:
        with Path(name).open("rb") as file:
            return file.read(HEAD_BYTES)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        found = _suggestion_for(name)
        raise LoadError(
            "TM1001",
            f"cannot read the model file: {reason}",
            source=Source(name),
            notes=[("help", found)] if found else [],
        ) from error
