"""ONNX Runtime as we import it."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Any

_SWITCH = "ORT_DISABLE_TELEMETRY"  # read when the library is loaded, from release 1.29 on


def onnx_runtime() -> Any:
    """The module ``onnxruntime``, which sends nothing to its makers and stores nothing for them.

    Telemetry stays as it is where the program imported the module before, or set the variable itself.
    """
    if "onnxruntime" in sys.modules:
        return sys.modules["onnxruntime"]
    is_ours = _SWITCH not in os.environ
    os.environ.setdefault(_SWITCH, "1")
    try:
        import onnxruntime
    finally:
        if is_ours:
            os.environ.pop(_SWITCH, None)
    if is_ours:
        with contextlib.suppress(AttributeError):  # builds without telemetry
            onnxruntime.disable_telemetry_events()
    return onnxruntime
