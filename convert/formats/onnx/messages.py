"""The message classes of ONNX files, which the package onnx has."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

MODULE = "onnx.onnx_ml_pb2"


def messages() -> ModuleType:
    """Returns the module with ``ModelProto`` and the other classes."""
    return sys.modules.get(MODULE) or import_module(MODULE)


def load_messages_alone() -> None:
    """Imports the classes without the other modules of onnx, which takes less than half of the time.

    A later ``import onnx`` takes the same classes, but the package then lacks the attribute ``onnx_ml_pb2``.
    So this is for processes of our own, where no other code can expect it.
    """
    package = find_spec("onnx")
    if "onnx" in sys.modules or package is None or not package.submodule_search_locations:
        return
    path = Path(package.submodule_search_locations[0], "onnx_ml_pb2.py")
    spec = spec_from_file_location(MODULE, path)
    if spec is None or spec.loader is None or not path.exists():
        return
    sys.modules[MODULE] = module = module_from_spec(spec)
    spec.loader.exec_module(module)
