"""Models of one node, computed by our reference and by ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

import tmconvert

RNG = np.random.default_rng(0)
STATE = RNG.bit_generator.state


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def integers(low: int, high: int, *shape: int, dtype: Any = np.int64) -> np.ndarray:
    return RNG.integers(low, high, shape).astype(dtype)


def value(number: Any, dtype: Any = np.float32) -> np.ndarray:
    return np.array(number, dtype)


def model_of(
    op: str,
    inputs: Sequence[np.ndarray | None],
    outputs: int = 1,
    *,
    opset: int = 17,
    domain: str = "",
    constant: Sequence[int] = (),
    skipped: Sequence[int] = (),
    **attributes: Any,
) -> onnx.ModelProto:
    """Returns a model of one node. ``constant`` inputs are initializers; ``skipped`` outputs have no name."""
    names = [f"i{place}" if array is not None else "" for place, array in enumerate(inputs)]
    results = ["" if place in skipped else f"y{place}" for place in range(outputs)]
    given, stored = [], []
    for place, (name, array) in enumerate(zip(names, inputs, strict=True)):
        if array is None:
            continue
        if place in constant:
            stored.append(numpy_helper.from_array(array, name))
        else:
            type_ = helper.np_dtype_to_tensor_dtype(array.dtype)
            given.append(helper.make_tensor_value_info(name, type_, array.shape))
    graph = helper.make_graph(
        [helper.make_node(op, names, results, domain=domain, **attributes)],
        "one",
        given,
        [onnx.ValueInfoProto(name=name) for name in results if name],
        stored,
    )
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def computed(model: onnx.ModelProto, path: Path, arrays: Sequence[np.ndarray]) -> tuple[Any, Any]:
    """Returns what our reference and ONNX Runtime compute, as two lists."""
    import onnxruntime

    onnx.save(model, str(path))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.add_session_config_entry("session.x64quantprecision", "1")  # without saturation in 16 bits
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_inputs()]
    theirs = session.run(None, dict(zip(names, arrays, strict=True)))
    ours = tmconvert.load(path)(*arrays)
    return list(ours) if isinstance(ours, (tuple, list)) else [ours], theirs


def check(
    tmp_path: Path,
    op: str,
    inputs: Sequence[np.ndarray | None],
    *,
    steps: int = 0,
    tolerance: float = 1e-4,
    constant: Sequence[int] = (),
    **options: Any,
) -> None:
    """Compares a node with ONNX Runtime; integers may differ by ``steps``."""
    model = model_of(op, inputs, constant=constant, **options)
    arrays = [array for place, array in enumerate(inputs) if array is not None and place not in constant]
    ours, theirs = computed(model, tmp_path / "one.onnx", arrays)
    for our, their in zip(ours, theirs, strict=True):
        our = np.asarray(our)
        assert (our.dtype, our.shape) == (their.dtype, their.shape)
        if our.dtype.kind == "f":
            np.testing.assert_allclose(our, their, rtol=tolerance, atol=tolerance)
        else:
            assert np.abs(our.astype(np.int64) - their.astype(np.int64)).max(initial=0) <= steps
