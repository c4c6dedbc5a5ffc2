"""tmconvert: converts trained models to ONNX, TFLite and Caffe, and verifies the written files.

Importing this package loads nothing heavy: the public names come from ``tmconvert.api`` on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmconvert._version import __version__ as __version__

if TYPE_CHECKING:
    from types import ModuleType

    from tmconvert.api import (
        Interpreter,
        TracedModule,
        Tracer,
        Transformer,
        bench,
        calibrate,
        check,
        compare,
        decompose,
        evaluate,
        inspect,
        lint,
        load,
        normalize,
        observe,
        optimize,
        package,
        params,
        parse_graph,
        register_as_builtin,
        register_pass,
        register_supported_type,
        register_symbolic,
        replace_pattern,
        run,
        save,
        score,
        simplify,
        split_module,
        supported_ops,
        temporary_symbolics,
        to_caffe,
        to_onnx,
        to_target,
        to_tflite,
        trace,
        trace_through,
        verify,
        view,
        wrap,
    )

__all__ = [
    "Interpreter", "TracedModule", "Tracer", "Transformer", "bench", "calibrate", "check", "compare",
    "decompose", "diff", "evaluate", "inspect", "lint", "load", "normalize", "observe", "optimize", "package",
    "params", "parse_graph", "rebuild", "reduce", "register_as_builtin", "register_pass",
    "register_supported_type", "register_symbolic", "replace_pattern", "run", "save", "score", "simplify",
    "split_module", "stream", "supported_ops", "temporary_symbolics", "to_caffe", "to_onnx", "to_target",
    "to_tflite", "trace", "trace_through", "verify", "view", "wrap",
]  # fmt: skip


def __getattr__(name: str) -> object:
    if name in __all__:
        # conversions load without the classes of models that the other functions return
        home = "api_convert" if name.startswith(("to_", "simplify")) else "api"
        return getattr(globals().get(home) or _loaded(home), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _loaded(module: str) -> ModuleType:
    from importlib import import_module

    from tmconvert.garbage_collection import no_collections

    with no_collections():
        return import_module(f"tmconvert.{module}")


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
