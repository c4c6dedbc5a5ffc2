"""Runtimes that we did not write, as judges of the files that we write.

Each is imported only when a file is run in it, so this module loads nothing heavy.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from tmconvert.errors import VerificationError
from tmconvert.targets.caffe.mnn import MnnRuntime
from tmconvert.targets.onnx.runtime import onnx_runtime
from tmconvert.verification import worker
from tmconvert.verification.file_edges import check_edges

is_apart = False  # whether this is the process of a worker

# More threads than this change the order of sums from machine to machine.
THREADS = 2


# What ONNX Runtime says of a sound file of an opset or IR version that is newer than itself.
TOO_NEW = ("is under development and support for this is limited", "Unsupported model IR version")


# What runtimes say of an operator of the user's, which is in none of their libraries.
NOT_REGISTERED = ("is not a registered function/op", "Encountered unresolved custom op")


# What ONNX Runtime says of sound files that it cannot run, and the way out.
HELPS = {
    # element types that the standard has and it has not, or operators that newer releases have
    "Could not find an implementation for": (
        "this release lacks the operator, or computes it in float32 only: install a newer one, write an "
        "older --opset, convert the model in float32 (of PyTorch: module.float()), or write the file "
        "without verification"
    ),
    # its optimizer makes int8 uint8, but for the attribute with the type, from opset 21 on:
    # https://github.com/microsoft/onnxruntime/issues/25526
    "output_dtype INT8 does not match y_zero_point type UINT8": (
        "it fails to bring int8 to uint8, which it computes with on this processor: use --activations uint8, "
        "or --opset 20, or write the file without verification"
    ),
}


class RuntimeTooOld(VerificationError):
    """The installed runtime is older than the version that the file was written for."""


class UnknownOperator(VerificationError):
    """The runtime has not the library of the user's that an operator of the file is in."""


class Runtime(Protocol):
    """Runs a written file.

    ``name`` and ``version`` are those of the software, for the report.
    """

    name: str

    @property
    def version(self) -> str: ...

    def run(
        self,
        paths: Sequence[Path],
        inputs: Mapping[str, np.ndarray],
        outputs: Sequence[str],
        *,
        shapes: Sequence[Sequence[int]] | None = None,
    ) -> list[np.ndarray]:
        """The arrays of ``outputs``, in that order.

        ``paths`` are the files that make up the model, the one with the structure first. ``shapes``
        are those expected of the outputs, for runtimes that do not keep ranks below 2.
        Raises: VerificationError TM4002 when the runtime does not load or run the file, and
        RuntimeTooOld TM4004 when the file is for a later version of it.
        """


def _installed(package: str) -> str:
    """The version of a package."""
    from importlib.metadata import version

    return version(package)


class OnnxRuntime:
    """ONNX Runtime on the CPU."""

    name = "ONNX Runtime"

    @property
    def version(self) -> str:
        return _installed("onnxruntime")

    def run(
        self,
        paths: Sequence[Path],
        inputs: Mapping[str, np.ndarray],
        outputs: Sequence[str],
        *,
        shapes: Sequence[Sequence[int]] | None = None,
    ) -> list[np.ndarray]:
        onnxruntime = onnx_runtime()

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = THREADS
        options.inter_op_num_threads = 1
        options.use_deterministic_compute = True
        # Packing weights, a copy of them, pays in later runs only; mapped ones stay mapped without.
        options.add_session_config_entry("session.disable_prepacking", "1")
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # it waits on the processor
        with refusals(self.name):
            session = onnxruntime.InferenceSession(
                os.fspath(paths[0]), options, providers=["CPUExecutionProvider"]
            )
            shapes_of = {described.name: described.shape for described in session.get_inputs()}
            known = set(shapes_of)
            check_edges(inputs, outputs, shapes_of, [each.name for each in session.get_outputs()])
            fed = {name: array for name, array in inputs.items() if name in known}
            return [np.asarray(array) for array in session.run(list(outputs), fed)]


class ApartRuntime:
    """A runtime that may abort, so it runs in a worker (``worker.py``), or here where there can be none."""

    name = ""

    @property
    def version_here(self) -> str:
        raise NotImplementedError

    def load(self) -> None:
        """Imports what it needs."""
        raise NotImplementedError

    def run_here(
        self,
        paths: Sequence[Path],
        inputs: Mapping[str, np.ndarray],
        outputs: Sequence[str],
        shapes: Sequence[Sequence[int]] | None,
    ) -> list[np.ndarray]:
        raise NotImplementedError

    @property
    def version(self) -> str:
        try:
            return worker.version(self)
        except worker.Unavailable:
            return self.version_here

    def run(
        self,
        paths: Sequence[Path],
        inputs: Mapping[str, np.ndarray],
        outputs: Sequence[str],
        *,
        shapes: Sequence[Sequence[int]] | None = None,
    ) -> list[np.ndarray]:
        try:
            return worker.run(self, paths, inputs, outputs, shapes)
        except worker.Unavailable:
            return self.run_here(paths, inputs, outputs, shapes)


class LiteRtRuntime(ApartRuntime):
    """LiteRT's interpreter; without ``delegates`` its own kernels only, else XNNPACK where it can."""

    name = "LiteRT"

    def __init__(self, *, delegates: bool = True) -> None:
        self.delegates = delegates

    @property
    def version_here(self) -> str:
        return _installed("ai-edge-litert")

    version = version_here

    def load(self) -> None:
        from ai_edge_litert import interpreter  # noqa: F401

    def run_here(
        self,
        paths: Sequence[Path],
        inputs: Mapping[str, np.ndarray],
        outputs: Sequence[str],
        shapes: Sequence[Sequence[int]] | None,
    ) -> list[np.ndarray]:
        with refusals(self.name), silent_stderr():
            interpreter = self._interpreter(paths[0])
            input_at, output_at = _tflite_positions(interpreter, list(inputs), list(outputs))
            check_edges(inputs, outputs, dict.fromkeys(input_at), list(output_at))
            allocate(interpreter, {input_at[name]: array.shape for name, array in inputs.items()})
            taken = {each["index"]: np.dtype(each["dtype"]) for each in interpreter.get_input_details()}
            for name, array in inputs.items():
                fed = _as_taken(name, array, taken[input_at[name]])
                interpreter.set_tensor(input_at[name], np.ascontiguousarray(fed).reshape(array.shape))
            interpreter.invoke()
            described = {each["index"]: each for each in interpreter.get_output_details()}
            return [_tflite_result(interpreter, described[output_at[name]]) for name in outputs]

    def _interpreter(self, path: Path) -> Any:
        from ai_edge_litert import interpreter as litert

        resolver = litert.OpResolverType
        kind = resolver.AUTO if self.delegates else resolver.BUILTIN_WITHOUT_DEFAULT_DELEGATES
        return litert.Interpreter(
            model_path=os.fspath(path), num_threads=THREADS, experimental_op_resolver_type=kind
        )


def allocate(interpreter: Any, shapes: Mapping[int, tuple[int, ...]]) -> None:
    """Allocates LiteRT's tensors for inputs of these shapes, by index.

    Inputs that have their shape are not resized: on 64-bit ARM LiteRT crashes where the shape is ().
    """
    for described in interpreter.get_input_details():
        index = described["index"]
        if index in shapes and tuple(described["shape"]) != shapes[index]:
            interpreter.resize_tensor_input(index, shapes[index])
    interpreter.allocate_tensors()


def _as_taken(name: str, array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """An input as the file takes it: int32 in the place of int64. Raises ValueError where that cannot be."""
    if array.dtype != np.int64 or dtype != np.int32:
        return array
    narrow = array.astype(dtype)
    if not np.array_equal(narrow, array):
        raise ValueError(f"the input {name} has numbers beyond int32, which the file takes (--keep-int64)")
    return narrow


def _tflite_result(interpreter: Any, described: dict[str, Any]) -> np.ndarray:
    """A copy of an output; LiteRT 2.3 cannot read one that turned out to be empty."""
    if 0 in described["shape"]:
        return np.zeros(described["shape"], described["dtype"])
    return np.array(interpreter.get_tensor(described["index"]))


class OpenCvRuntime(ApartRuntime):
    """OpenCV's dnn module, which reads Caffe nets and computes in float32."""

    name = "OpenCV"

    @property
    def version_here(self) -> str:
        import cv2

        return str(cv2.__version__)

    def load(self) -> None:
        import cv2  # noqa: F401

    def run_here(
        self,
        paths: Sequence[Path],
        inputs: Mapping[str, np.ndarray],
        outputs: Sequence[str],
        shapes: Sequence[Sequence[int]] | None,
    ) -> list[np.ndarray]:
        import cv2

        from tmconvert.targets.caffe.reader import caffe_tops

        with refusals(self.name), silent_stderr():
            tops = caffe_tops(paths[0])
            net = cv2.dnn.readNetFromCaffe(*map(os.fspath, paths))
            for name, array in inputs.items():
                net.setInput(np.ascontiguousarray(array, np.float32), name)
            places = [_opencv_place(net, name, *tops[name]) for name in outputs]
            made = net.forwardAndRetrieve([layer for layer, _ in places])
            arrays = [blobs[index] for blobs, (_, index) in zip(made, places, strict=True)]
        if shapes is None:
            return [np.array(array) for array in arrays]
        return [_with_low_rank(array, shape) for array, shape in zip(arrays, shapes, strict=True)]


class NumpyCaffeRuntime:
    """The definitions of Caffe's layers, for nets that no runtime at hand has all the layers of."""

    name = "Caffe's layers by definition, in NumPy"

    @property
    def version(self) -> str:
        return np.__version__

    def run(
        self,
        paths: Sequence[Path],
        inputs: Mapping[str, np.ndarray],
        outputs: Sequence[str],
        *,
        shapes: Sequence[Sequence[int]] | None = None,
    ) -> list[np.ndarray]:
        from tmconvert.targets.caffe.interpreter import run_net
        from tmconvert.targets.caffe.reader import dialects_of, read_net

        with refusals(self.name):
            dialects = dialects_of(paths[0])
            net = read_net(paths[0], paths[1], (dialects or ["bvlc"])[0])
            return run_net(net, inputs, outputs)


_PACKAGES: dict[str, tuple[str, Callable[[], Runtime]]] = {
    "onnx": ("onnxruntime", OnnxRuntime),
    "tflite": ("ai_edge_litert", LiteRtRuntime),
    "caffe": ("cv2", OpenCvRuntime),
}


class FirstToTakeIt:
    """The first of several runtimes that takes the file; ``name`` and ``version`` are that one's."""

    def __init__(self, *runtimes: Runtime) -> None:
        self._runtimes = list(runtimes)
        self.name = runtimes[0].name

    @property
    def version(self) -> str:
        return self._runtimes[0].version

    def run(
        self,
        paths: Sequence[Path],
        inputs: Mapping[str, np.ndarray],
        outputs: Sequence[str],
        *,
        shapes: Sequence[Sequence[int]] | None = None,
    ) -> list[np.ndarray]:
        while len(self._runtimes) > 1:
            try:
                return self._runtimes[0].run(paths, inputs, outputs, shapes=shapes)
            except VerificationError:
                self._runtimes.pop(0)
                self.name = self._runtimes[0].name
        return self._runtimes[0].run(paths, inputs, outputs, shapes=shapes)


def runtime_for(target: str, path: Path | None = None) -> Runtime | None:
    """The runtime that judges files of ``target``; None when its package is not installed.

    Of a Caffe net at ``path`` that is OpenCV only where it has all the layers, as they are meant, else
    MNN where it has; the definitions of these are always at hand.
    """
    package, make = _PACKAGES[target]
    installed = importlib.util.find_spec(package) is not None
    if target == "caffe" and not (installed and (path is None or _opencv_runs(path))):
        defined = NumpyCaffeRuntime()
        return FirstToTakeIt(MnnRuntime(), defined) if path is not None and _mnn_runs(path) else defined
    return make() if installed else None


def start_runtime(target: str) -> None:
    """Starts what a later run of a file of ``target`` would have to wait for."""
    package, make = _PACKAGES[target]
    if target != "onnx" and importlib.util.find_spec(package) is not None:
        worker.start(make())


def _mnn_runs(prototxt: Path) -> bool:
    from tmconvert.targets.caffe.for_mnn import mnn_reads

    return importlib.util.find_spec("MNN") is not None and mnn_reads(prototxt)


def _opencv_runs(prototxt: Path) -> bool:
    from tmconvert.targets.caffe.lint import lint

    return not lint(prototxt, "opencv")


def _tflite_positions(
    interpreter: Any, inputs: list[str], outputs: list[str]
) -> tuple[dict[str, int], dict[str, int]]:
    """Tensor indices by the names of the signature; without one, by position."""
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


def _opencv_place(net: Any, name: str, layer: str, index: int) -> tuple[str, int]:
    """OpenCV finds a blob by its layer and position, but calls some convolutions by their blob."""
    return (layer, index) if net.getLayerId(layer) >= 0 else (name, index)


def _with_low_rank(array: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """OpenCV's matrices have two axes or more: [5] comes out as [5, 1]."""
    if len(shape) < 2 and array.ndim == 2 and array.size == np.prod(shape, dtype=int):
        return array.reshape(shape)
    return np.array(array)


@contextlib.contextmanager
def refusals(name: str) -> Iterator[None]:
    """Turns whatever a runtime raises into a VerificationError."""
    try:
        yield
    except (MemoryError, VerificationError):
        raise
    except KeyError as error:
        raise VerificationError("TM4002", f"{name} refused the file: it has no tensor {error}") from error
    except Exception as error:  # each runtime has exceptions of its own, some of them plain RuntimeErrors
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        if any(phrase in first for phrase in TOO_NEW):
            raise RuntimeTooOld("TM4004", f"the installed {name} is too old for this file") from error
        if any(phrase in str(error) for phrase in NOT_REGISTERED):
            unknown = f"{name} does not know an operator of the file: {first}"
            raise UnknownOperator("TM4002", unknown) from error
        notes = [("help", help) for phrase, help in HELPS.items() if phrase in first]
        raise VerificationError("TM4002", f"{name} refused the file: {first}", notes=notes) from error


@contextlib.contextmanager
def silent_stderr() -> Iterator[None]:
    """Keeps what C++ code logs to file descriptor 2 off the terminal; in a worker it goes to a file."""
    if is_apart:
        yield
        return
    try:
        kept = os.dup(2)
    except OSError:  # there is no stderr
        yield
        return
    sink = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(sink, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(sink)
