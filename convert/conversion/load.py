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
from tmconvert.frontends.torch.hub_cache import cache, cached_folder, is_hub_name
from tmconvert.frontends.torch.pretrained import CONFIG, is_pretrained
from tmconvert.frontends.torch.request import Tracing
from tmconvert.garbage_collection import no_collections
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


def is_traced(model: str | PathLike[str]) -> bool:
    """Whether the model already has a graph, so that it is not run in PyTorch."""
    if is_factory(model) or is_pretrained(model):
        return False
    name = fspath(model)
    return _from_cache(name) is None and _kind(name, _head(name)) is None


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
    cached = _from_cache(name)
    if cached is not None:
        return trace_pretrained(str(cached), tracing or Tracing())
    begin("read")
    head = _head(name)
    kind = _kind(name, head)
    if kind is not None:
        return trace_file(name, kind, tracing or Tracing())
    from tmconvert.formats.caffe.recognize import is_prototxt
    from tmconvert.formats.onnx.recognize import is_onnx
    from tmconvert.formats.tflite.recognize import is_tflite
    from tmconvert.frontends.megengine.recognize import is_pickle
    from tmconvert.frontends.shared.registration import read_by, registered_reader

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
        module = read_by(other, name)
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
    with no_collections():  # while seventy modules load
        from tmconvert.frontends.megengine.loader import load_megengine

    return load_megengine(name)


def _onnx_model(name: str) -> TracedModule:
    from tmconvert.conversion.source_runtime import OnnxOriginal
    from tmconvert.frontends.onnx.loader import load_onnx

    module, inputs, outputs = load_onnx(name)
    module.original = OnnxOriginal(name, inputs, outputs)
    return module


def _tflite_model(name: str) -> TracedModule:
    from tmconvert.conversion.source_runtime import TfliteOriginal
    from tmconvert.frontends.tflite.loader import load_tflite

    module, inputs, outputs = load_tflite(name)
    module.original = TfliteOriginal(name, inputs, outputs)
    return module


def _caffe_model(name: str) -> TracedModule:
    from tmconvert.conversion.source_runtime import CaffeOriginal
    from tmconvert.frontends.caffe.loader import load_caffe

    module, net, inputs, outputs = load_caffe(name)
    module.original = CaffeOriginal(name, inputs, outputs, net)
    return module


def _from_cache(name: str) -> Path | None:
    """Returns the folder of a model of Hugging Face by its name, unless there is a file of this name."""
    try:
        return None if Path(name).exists() else cached_folder(name)
    except (OSError, ValueError):  # such as a name that is too long
        return None


def _unknown(name: str, head: bytes) -> LoadError:
    known, help = _part_of_model(Path(name), head)
    return LoadError(
        "TM1002",
        "this is not a model file that tmconvert reads",
        source=Source(name),
        notes=[*([("it is", known)] if known else []), ("help", help or HELP)],
    )


def _part_of_model(path: Path, head: bytes) -> tuple[str, str]:
    """Returns what a part of a model is, and what to pass in its place; empty texts for other files."""
    if not head:
        return "empty", ""
    if path.suffix == ".py":
        return "a Python file", _factories_in(str(path))
    if path.suffix == ".caffemodel":
        net = path.with_suffix(".prototxt")
        return "the weights of a Caffe net", f"pass its prototxt{f': {net}' if net.is_file() else ''}"
    if head[8:].startswith(b'{"'):  # after the length of the header
        return "a safetensors file: it has weights, but not the computation", _folder_of(path)
    if path.name == CONFIG or path.name.endswith(".safetensors.index.json"):
        return "a part of a model of transformers", _folder_of(path)
    return ("a ZIP archive" if head.startswith(b"PK\x03\x04") else ""), ""


def _folder_of(path: Path) -> str:
    """Suggests the folder of transformers in which a file is, or a function that loads its weights."""
    if (path.parent / CONFIG).is_file():
        return f"pass the folder, in which {CONFIG} states the computation: {path.parent}"
    return (
        "write a function that makes the module and calls safetensors.torch.load_model(module, "
        f"{path.name!r}), and give it as PACKAGE.MODULE:FUNCTION in the place of the file"
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
    if is_hub_name(name):
        return (
            f"{name} is not in the cache of Hugging Face, {cache()}; tmconvert downloads nothing: run "
            f"`hf download {name}`, or pass a folder of transformers"
        )
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
