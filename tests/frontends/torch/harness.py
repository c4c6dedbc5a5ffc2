"""How a call of torch is tested: traced, interpreted and converted, against what torch computes.

def test_roll():
    check(lambda x: torch.roll(x, 2, 1), torch.randn(3, 5))
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

import tmconvert
from tests.symbolics.ops.worst import worst_elements
from tmconvert.errors import VerificationError
from tmconvert.ir import TracedModule
from tmconvert.ir.tree import leaves, map_leaves
from tmconvert.verification.compare import check as check_close

OPSETS = (17,)


def arrays(tree: Any) -> list[np.ndarray]:
    """The tensors of a nested result as arrays."""
    from tmconvert.frontends.torch.tracing.recording.structure import plain_structure

    return [leaf.detach().numpy() for leaf in leaves(plain_structure(tree)) if isinstance(leaf, torch.Tensor)]


def other(tensor: torch.Tensor) -> torch.Tensor:
    """Another input of the same type, from the same range of values."""
    order = torch.randperm(tensor.numel(), generator=torch.Generator().manual_seed(1))
    return tensor.reshape(-1)[order].reshape(tensor.shape)


def _cloned(tree: Any) -> Any:
    """Arguments that a function may write to."""
    return map_leaves(lambda leaf: leaf.clone() if isinstance(leaf, torch.Tensor) else leaf, tree)


def check(
    function: Callable[..., Any],
    *inputs: Any,
    opsets: Sequence[int] = OPSETS,
    second: Sequence[Any] | None = None,
    tolerance: float | None = None,
    tflite: bool = False,
    **kwargs: Any,
) -> TracedModule:
    """Traces ``function`` (or a module) with ``inputs``, and compares with torch what comes of it.

    The interpreter, ONNX Runtime at each opset, and with ``tflite`` LiteRT compute on these inputs, and on
    others (``second``, by default the elements of the first in another order).
    """
    traced = tmconvert.trace(function, *inputs, training=True, **kwargs)
    flat = [leaf for leaf in leaves((inputs, kwargs)) if isinstance(leaf, torch.Tensor)]
    cases = [(inputs, flat)]
    if all(isinstance(given, torch.Tensor) for given in inputs) and not kwargs:
        others = tuple(second) if second is not None else tuple(other(tensor) for tensor in inputs)
        cases.append((others, list(others)))
    with torch.no_grad():
        expected = [arrays(function(*_cloned(given), **_cloned(kwargs))) for given, _ in cases]
    fed = [[tensor.numpy() for tensor in tensors] for _, tensors in cases]
    for given, wanted in zip(fed, expected, strict=True):
        result = [leaf for leaf in leaves(traced(*given)) if leaf is not None]
        assert [a.dtype for a in result] == [a.dtype for a in wanted]
        assert_close("interpreter", result, wanted, given, tolerance)
    for opset in opsets:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            tmconvert.to_onnx(traced, path, opset=opset, verify=False)
            for results, wanted, given in zip(run_onnx_on_each(path, fed), expected, fed, strict=True):
                assert_close(f"ONNX Runtime, opset {opset}", results, wanted, given, tolerance)
    if tflite:
        for results, wanted, given in zip(run_tflite(traced, fed), expected, fed, strict=True):
            assert_close("LiteRT", results, wanted, given, tolerance)
    return traced


def assert_close(
    where: str,
    results: Sequence[np.ndarray],
    expected: Sequence[np.ndarray],
    given: Sequence[np.ndarray],
    tolerance: float | None,
) -> None:
    """Fails, with the worst element and its operands, unless the results are PyTorch's."""
    names = [str(number) for number in range(len(expected))]
    tolerances = None if tolerance is None else [tolerance] * len(names)
    try:
        check_close(results, expected, names, tolerances=tolerances)
    except VerificationError as error:
        operands = {f"input {number}": array for number, array in enumerate(given)}
        raise AssertionError(f"{where}: {error}{worst_elements(results, expected, operands, {})}") from error


def run_tflite(traced: TracedModule, cases: Sequence[Sequence[np.ndarray]]) -> list[list[np.ndarray]]:
    """What LiteRT makes of each case, twice; one interpreter runs all, one after the other."""
    from ai_edge_litert.interpreter import Interpreter

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.tflite"
        report = tmconvert.to_tflite(traced, path, io_layout="source", verify=False)
        runner = Interpreter(model_path=str(path)).get_signature_runner()
        results = []
        for inputs in cases:
            fed = dict(zip((each["name"] for each in report.inputs), inputs, strict=True))
            for _ in range(2):
                made = runner(**fed)
            results.append([made[each["name"]] for each in report.outputs])
    return results


def run_onnx(
    path: Path, inputs: Sequence[np.ndarray], entries: Mapping[str, str] | None = None
) -> list[np.ndarray]:
    """What ONNX Runtime makes of the inputs, in order; ``entries`` configure its session."""
    return next(run_onnx_on_each(path, [inputs], entries))


def agrees(function: Any, path: Path, *inputs: torch.Tensor) -> None:
    """Compares ``model.onnx`` in the folder ``path`` with what the function computes of the inputs."""
    with torch.no_grad():
        wanted = arrays(function(*inputs))
    found = run_onnx(path / "model.onnx", [tensor.numpy() for tensor in inputs])
    check_close(found, wanted, [str(number) for number in range(len(wanted))])


def run_onnx_on_each(
    path: Path, cases: Iterable[Sequence[np.ndarray]], entries: Mapping[str, str] | None = None
) -> Iterator[list[np.ndarray]]:
    """What ONNX Runtime makes of each case; one session runs all, one after the other."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 3, 1
    for name, text in (entries or {}).items():
        options.add_session_config_entry(name, text)
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [node.name for node in session.get_inputs()]
    for inputs in cases:
        yield session.run(None, dict(zip(names, inputs, strict=True)))
