"""LiteRT, which verifies TFLite files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tmconvert.ir.types import NamedArrays, Shapes
from tmconvert.targets.tflite.verify.observed import allocate, observed_here
from tmconvert.verification.file_edges import check_edges
from tmconvert.verification.observed import Observed
from tmconvert.verification.runtime import (
    THREADS,
    IsolatedRuntime,
    installed_version,
    refusals,
    silent_stderr,
)


class LiteRtRuntime(IsolatedRuntime):
    """LiteRT's interpreter: without ``delegates`` with its own kernels only, else with XNNPACK.

    Of a file with several signatures it runs ``signature``, or without one that with the names of the call.
    """

    name = "LiteRT"

    def __init__(self, *, delegates: bool = True, signature: str = "") -> None:
        self.delegates, self.signature = delegates, signature

    @property
    def settings(self) -> dict[str, Any]:
        return {"delegates": self.delegates, "signature": self.signature}

    @property
    def version_here(self) -> str:
        return installed_version("ai-edge-litert")

    version = version_here

    def load(self) -> None:
        from ai_edge_litert import interpreter  # noqa: F401

    def run_here(
        self, paths: Sequence[Path], inputs: NamedArrays, outputs: Sequence[str], shapes: Shapes | None
    ) -> list[np.ndarray]:
        with refusals(self.name), silent_stderr():
            interpreter = self._interpreter(paths[0])
            runner = _runner(interpreter, inputs, outputs, self.signature)
            if runner is not None:
                return _signature_results(runner, inputs, outputs)
            input_at, output_at = tflite_positions(interpreter, list(inputs), list(outputs))
            check_edges(inputs, outputs, dict.fromkeys(input_at), list(output_at))
            allocate(interpreter, {input_at[name]: array.shape for name, array in inputs.items()})
            taken = {each["index"]: np.dtype(each["dtype"]) for each in interpreter.get_input_details()}
            for name, array in inputs.items():
                fed = _as_taken(name, array, taken[input_at[name]])
                interpreter.set_tensor(input_at[name], np.ascontiguousarray(fed).reshape(array.shape))
            interpreter.invoke()
            described = {each["index"]: each for each in interpreter.get_output_details()}
            return [_tflite_result(interpreter, described[output_at[name]]) for name in outputs]

    def observe_here(self, path: Path, inputs: NamedArrays) -> dict[str, Observed]:
        return observed_here(path, inputs)

    def observe(self, path: Path, inputs: NamedArrays) -> dict[str, Observed]:
        """Returns all tensors of a file by name, dequantized; see ``observed_here``."""
        from tmconvert.verification.processes import worker

        try:
            found = worker.observe(self, path, inputs)
        except worker.Unavailable:
            return self.observe_here(path, inputs)
        return {name: Observed(array, *numbers) for name, array, numbers in found}

    def _interpreter(self, path: Path) -> Any:
        from ai_edge_litert import interpreter as litert

        resolver = litert.OpResolverType
        kind = resolver.AUTO if self.delegates else resolver.BUILTIN_WITHOUT_DEFAULT_DELEGATES
        return litert.Interpreter(
            model_path=os.fspath(path), num_threads=THREADS, experimental_op_resolver_type=kind
        )


def _as_taken(name: str, array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Converts an input to the file's type: int64 to int32, floats to float32. Raises ValueError."""
    if array.dtype.kind == "f" and dtype == np.float32:
        return array.astype(dtype)
    if array.dtype != np.int64 or dtype != np.int32:
        return array
    narrow = array.astype(dtype)
    if not np.array_equal(narrow, array):
        raise ValueError(
            f"the input {name} has values that exceed int32, the type of the file's input (--keep-int64)"
        )
    return narrow


def _tflite_result(interpreter: Any, described: dict[str, Any]) -> np.ndarray:
    """Copies an output; LiteRT 2.3 cannot read an empty one."""
    if 0 in described["shape"]:
        return np.zeros(described["shape"], described["dtype"])
    return np.array(interpreter.get_tensor(described["index"]))


def _runner(interpreter: Any, inputs: NamedArrays, outputs: Sequence[str], signature: str) -> Any:
    """Returns what runs ``signature``, else that with these names, and these shapes where several have them.

    None where the file has one signature, or none with these names.
    """
    signatures = interpreter.get_signature_list()
    if len(signatures) < 2:
        return None
    if signature:
        return interpreter.get_signature_runner(signature)
    names = {key: ({*own["inputs"]}, {*own["outputs"]}) for key, own in signatures.items()}
    fitting = [key for key, (own, made) in names.items() if own == {*inputs} and made >= {*outputs}]
    runners = [interpreter.get_signature_runner(key) for key in fitting]
    return next((each for each in runners if _has_shapes(each, inputs)), next(iter(runners), None))


def _has_shapes(runner: Any, inputs: NamedArrays) -> bool:
    details = runner.get_input_details()
    return all(tuple(details[name]["shape"]) == array.shape for name, array in inputs.items())


def _signature_results(runner: Any, inputs: NamedArrays, outputs: Sequence[str]) -> list[np.ndarray]:
    types = {name: np.dtype(each["dtype"]) for name, each in runner.get_input_details().items()}
    made = runner(**{name: _as_taken(name, array, types[name]) for name, array in inputs.items()})
    return [np.array(made[name]) for name in outputs]


def tflite_positions(
    interpreter: Any, inputs: list[str], outputs: list[str]
) -> tuple[dict[str, int], dict[str, int]]:
    """Returns tensor indices by the names of the signature; without one, by position."""
    signatures = interpreter.get_signature_list()
    if signatures:
        runner = interpreter.get_signature_runner(next(iter(signatures)))
        return _indices(runner.get_input_details()), _indices(runner.get_output_details())
    described_inputs, described_outputs = interpreter.get_input_details(), interpreter.get_output_details()
    return (
        _indices(dict(zip(inputs, described_inputs, strict=True))),
        _indices(dict(zip(outputs, described_outputs, strict=True))),
    )


def _indices(details: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
    return {name: detail["index"] for name, detail in details.items()}
