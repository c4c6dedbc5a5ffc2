"""Runs converted digits models on the test images and compares them with the logits of their source.

    python samples/run_digits.py out/digits.onnx out/digits.tflite out/digits.prototxt
    python samples/run_digits.py out/digits_torch.onnx --logits samples/digits_torch_logits.npy

Needs numpy and, for each kind of file given, its runtime; not tmconvert. Prints one line a model.
Exit status: 0 if each model reaches 97 %, 1 if one does not or could not be run, 2 for wrong usage.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

Classifier = Callable[[np.ndarray], np.ndarray]

TEST_DATA = Path(__file__).parent / "digits_test.npz"
LOWEST_ACCURACY = 0.97
CLASSES = 10
BRIGHTEST = 16  # the test images hold 0..16, the model takes 0..1
INPUT_NCHW = (1, 1, 8, 8)
INPUT_NHWC = (1, 8, 8, 1)


class CannotRun(Exception):
    """A model that was not run, with the reason in one line."""


def open_onnx(path: Path) -> Classifier:
    """A function from an NCHW image to logits, computed by ONNX Runtime."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return lambda image_nchw: session.run(None, {name: image_nchw})[0]


def open_tflite(path: Path) -> Classifier:
    """A function from an NCHW image to logits, computed by LiteRT.

    Raises: CannotRun if the model's input is neither NCHW nor NHWC.
    """
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_path=str(path))
    source = interpreter.get_input_details()[0]
    shape = (1, *(int(size) for size in source["shape"][1:]))  # an open batch is written as 2
    interpreter.resize_tensor_input(source["index"], shape)
    interpreter.allocate_tensors()
    result = interpreter.get_output_details()[0]
    if shape not in (INPUT_NHWC, INPUT_NCHW):
        raise CannotRun(f"its input is {shape}, not {INPUT_NHWC} or {INPUT_NCHW}")

    def classify(image_nchw: np.ndarray) -> np.ndarray:
        image = image_nchw.transpose(0, 2, 3, 1) if shape == INPUT_NHWC else image_nchw
        interpreter.set_tensor(source["index"], np.ascontiguousarray(image))
        interpreter.invoke()
        return interpreter.get_tensor(result["index"])

    return classify


def open_caffe(path: Path) -> Classifier:
    """A function from an NCHW image to logits, computed by OpenCV; the weights lie beside the .prototxt.

    Raises: CannotRun if the .caffemodel is missing, or ImportError if this OpenCV has no Caffe reader.
    """
    import cv2

    weights = path.with_suffix(".caffemodel")
    if not weights.is_file():
        raise CannotRun(f"no such file: {weights}")
    if not hasattr(cv2.dnn, "readNetFromCaffe"):  # OpenCV 5 dropped it
        raise ImportError("cv2.dnn has no readNetFromCaffe", name="cv2")
    network = cv2.dnn.readNetFromCaffe(str(path), str(weights))

    def classify(image_nchw: np.ndarray) -> np.ndarray:
        network.setInput(image_nchw)
        return network.forward()

    return classify


# By suffix: how to open the file, the module imported for it, and the requirement that pip installs.
RUNTIMES: dict[str, tuple[Callable[[Path], Classifier], str, str]] = {
    ".onnx": (open_onnx, "onnxruntime", "onnxruntime"),
    ".tflite": (open_tflite, "ai_edge_litert", "ai-edge-litert"),
    ".prototxt": (open_caffe, "cv2", "opencv-python-headless<5"),
}


def all_logits(path: Path, images: np.ndarray) -> np.ndarray:
    """Logits [N, 10] that the model gives for images [N, 8, 8], one image at a time.

    Raises: CannotRun, for any reason that the runtime may have.
    """
    if not path.is_file():
        raise CannotRun(f"no such file: {path}")
    opener, module, requirement = RUNTIMES[path.suffix]
    inputs_nchw = (images / BRIGHTEST).astype(np.float32).reshape(len(images), *INPUT_NCHW)
    try:
        classify = opener(path)
        rows = [np.asarray(classify(image)) for image in inputs_nchw]
    except CannotRun:
        raise
    except ImportError as error:
        raise CannotRun(f"needs {module} ({error}): pip install '{requirement}'") from error
    except Exception as error:  # each runtime has exceptions of its own
        reason = " ".join(str(error).split()) or type(error).__name__
        raise CannotRun(f"{module} failed: {reason}") from error
    if rows[0].size != CLASSES:
        raise CannotRun(f"its output is {rows[0].shape}, not {CLASSES} logits")
    return np.stack([row.reshape(CLASSES) for row in rows])


def runtime_name(suffix: str) -> str:
    """The runtime's module and, where an installed package tells it, its version."""
    _, module, requirement = RUNTIMES[suffix]
    package = requirement.split("<")[0]
    try:
        return f"{module} {version(package)}"
    except PackageNotFoundError:  # OpenCV comes in several packages
        return module


def check(path: Path, images: np.ndarray, labels: np.ndarray, expected: np.ndarray) -> bool:
    """Whether the model is accurate enough; prints its line."""
    try:
        logits = all_logits(path, images)
    except CannotRun as error:
        print(f"{path}: {error}", file=sys.stderr)
        return False
    accuracy = float(np.mean(logits.argmax(axis=1) == labels))
    difference = float(np.abs(logits - expected).max())
    good = accuracy >= LOWEST_ACCURACY
    figures = f"accuracy {accuracy:.1%}  max difference {difference:.2e}"
    verdict = "" if good else f"  below {LOWEST_ACCURACY:.0%}"
    print(f"{path}  {runtime_name(path.suffix)}  {figures}{verdict}")
    return good


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Runs converted digits models on the test images; compares with their source's logits.",
        epilog="Exit status: 0 all models reach 97 %; 1 one does not, or cannot be run; 2 wrong usage.",
    )
    parser.add_argument(
        "models",
        nargs="+",
        type=Path,
        metavar="MODEL",
        help=".onnx, .tflite, or .prototxt with its .caffemodel beside it",
    )
    parser.add_argument(
        "--logits", type=Path, metavar="FILE.npy", help="compare with these  [default: MegEngine's]"
    )
    arguments = parser.parse_args()
    models: list[Path] = arguments.models
    for path in models:
        if path.suffix not in RUNTIMES:
            parser.error(f"{path}: not a .onnx, .tflite or .prototxt file")
    if not TEST_DATA.is_file():
        print(f"no such file: {TEST_DATA}", file=sys.stderr)
        return 1

    with np.load(TEST_DATA) as data:
        images, labels, logits = data["images"], data["labels"], data["logits"]
    if arguments.logits is not None:
        logits = np.load(arguments.logits)
    results = [check(path, images, labels, logits) for path in models]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
