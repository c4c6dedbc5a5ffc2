"""One reader of written files, run by the Python of its own environment; see ``readers.py``.

    PYTHON reader_programs.py READER CASE...

A case is a folder with ``case.json`` (the file, inputs and outputs, each with dtype and shape) and an
``inK.bin`` for each input. For each case one line of JSON goes to stdout: {"case": ..., "stage": "loading"},
then {"case": ..., "outputs": [[dtype, shape], ...]} with ``READER-outK.bin`` beside, or {"case": ...,
"error": ...}; ``readers.py`` starts again behind a case that ended the process.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray


def openvino(model: Path, inputs: Sequence[Array], outputs: int) -> list[Array]:
    import openvino

    # its default on some processors is bfloat16
    compiled = openvino.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    results = compiled(list(inputs))
    return [results[i] for i in range(outputs)]


def tract(model: Path, inputs: Sequence[Array], outputs: int) -> list[Array]:
    import tract

    loaded = tract.onnx().load(str(model))
    for i, array in enumerate(inputs):
        kinds = {"f": "F", "i": "I", "u": "U"}
        kind = "bool" if array.dtype == bool else f"{kinds[array.dtype.kind]}{8 * array.itemsize}"
        loaded.set_input_fact(i, ",".join([*map(str, array.shape), kind]))
    return [each.to_numpy() for each in loaded.into_model().into_runnable().run(list(inputs))]


def onnxslim(model: Path, inputs: Sequence[Array], outputs: int) -> list[Array]:
    import onnxruntime
    from onnxslim import slim

    session = onnxruntime.InferenceSession(slim(str(model)).SerializeToString())
    names = [each.name for each in session.get_inputs()]
    return list(session.run(None, dict(zip(names, inputs, strict=True))))


def tvm(model: Path, inputs: Sequence[Array], outputs: int) -> list[Array]:
    import onnx
    import tvm
    from tvm import relax
    from tvm.relax.frontend.onnx import from_onnx

    loaded = onnx.load(model)
    module = from_onnx(loaded, keep_params_in_input=False)
    module = relax.transform.LegalizeOps()(relax.transform.DecomposeOpsForInference()(module))
    machine = relax.VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())
    made = machine["main"](*(tvm.runtime.tensor(array) for array in inputs))
    return [each.numpy() for each in (made if outputs > 1 or not hasattr(made, "numpy") else [made])]


def ncnn(model: Path, inputs: Sequence[Array], outputs: int) -> list[Array]:
    """By pnnx. ncnn has no batch: that of 1 is left out, another is refused."""
    import ncnn
    import pnnx

    if any(array.ndim > 1 and array.shape[0] != 1 for array in inputs):
        raise NotImplementedError("ncnn has no batch")
    with tempfile.TemporaryDirectory() as folder:
        kinds = {"float32": "f32", "int64": "i64", "int32": "i32", "bool": "bool", "uint8": "u8"}
        shapes = ",".join(f"[{','.join(map(str, each.shape))}]{kinds[each.dtype.name]}" for each in inputs)
        out = Path(folder) / "net"
        command = [pnnx.EXEC_PATH, str(model), f"inputshape={shapes}", "fp16=0"]
        command += [f"ncnnparam={out}.param", f"ncnnbin={out}.bin", f"ncnnpy={out}.py", f"pnnxparam={out}.p"]
        command += [f"pnnxbin={out}.b", f"pnnxpy={out}.pp", f"pnnxonnx={out}.o"]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
        net = ncnn.Net()
        net.opt.use_fp16_packed = net.opt.use_fp16_storage = net.opt.use_fp16_arithmetic = False
        net.opt.use_bf16_storage = False
        if net.load_param(f"{out}.param") or net.load_model(f"{out}.bin"):
            raise NotImplementedError("ncnn does not load what pnnx has written")
        extractor = net.create_extractor()
        for i, array in enumerate(inputs):
            extractor.input(f"in{i}", ncnn.Mat(np.ascontiguousarray(array[0] if array.ndim > 1 else array)))
        made = [extractor.extract(f"out{i}") for i in range(outputs)]
        if any(status for status, _ in made):
            raise NotImplementedError("ncnn gives no output")
        return [np.array(each) for _, each in made]


def _interpreted(interpreter: Any, inputs: Sequence[Array]) -> list[Array]:
    interpreter.allocate_tensors()
    for detail, array in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


def tensorflow(model: Path, inputs: Sequence[Array], outputs: int) -> list[Array]:
    import tensorflow

    return _interpreted(tensorflow.lite.Interpreter(str(model)), inputs)


def tflite_runtime(model: Path, inputs: Sequence[Array], outputs: int) -> list[Array]:
    from tflite_runtime.interpreter import Interpreter

    return _interpreted(Interpreter(str(model)), inputs)


def tflite_micro(model: Path, inputs: Sequence[Array], outputs: int) -> list[Array]:
    from tflite_micro import runtime

    interpreter = runtime.Interpreter.from_file(str(model), arena_size=256 << 20)
    for i, array in enumerate(inputs):
        interpreter.set_input(array, i)
    interpreter.invoke()
    return [interpreter.get_output(i) for i in range(outputs)]


def vela(model: Path, inputs: Sequence[Array], outputs: int) -> list[Array]:
    """Vela runs nothing: the one result is how many operators stay on the CPU."""
    import shutil

    with tempfile.TemporaryDirectory() as folder:
        program = shutil.which("vela", path=str(Path(sys.executable).parent))
        command = [str(program), str(model), "--accelerator-config", "ethos-u55-128", "--output-dir", folder]
        done = subprocess.run(command, check=True, capture_output=True, timeout=300, text=True)
        lines = [line for line in done.stdout.splitlines() if line.startswith("CPU operators")]
        return [np.array(int(lines[0].split("=")[1].split()[0]), np.int64)] if lines else [np.array(0)]


def opencv(model: Path, inputs: Sequence[Array], outputs: int) -> list[Array]:
    import cv2

    described = json.loads((model.parent / "case.json").read_text("utf-8"))
    weights = model.with_suffix(".caffemodel")
    is_caffe = model.suffix == ".prototxt"
    net = (
        cv2.dnn.readNetFromCaffe(str(model), str(weights))
        if is_caffe
        else cv2.dnn.readNetFromONNX(str(model))
    )
    for name, array in zip(described["input_names"], inputs, strict=True):
        net.setInput(array, name)
    return list(net.forward(described["output_names"]))


READERS: dict[str, Callable[[Path, Sequence[Array], int], list[Array]]] = {
    each.__name__: each
    for each in (openvino, tract, onnxslim, tvm, ncnn, tensorflow, tflite_runtime, tflite_micro, vela, opencv)
}


def _tell(**told: Any) -> None:
    sys.stdout.write(f"\n@{json.dumps(told)}\n")
    sys.stdout.flush()


def _run(reader: str, folder: Path) -> None:
    described = json.loads((folder / "case.json").read_text("utf-8"))
    inputs = [
        np.fromfile(folder / f"in{i}.bin", dtype).reshape(shape)
        for i, (dtype, shape) in enumerate(described["inputs"])
    ]
    made = READERS[reader](folder / described["file"], inputs, len(described["outputs"]))
    for i, array in enumerate(made):
        np.ascontiguousarray(array).tofile(folder / f"{reader}-out{i}.bin")
    _tell(
        case=folder.name, outputs=[[array.dtype.name, list(array.shape)] for array in map(np.asarray, made)]
    )


def main() -> None:
    reader, *cases = sys.argv[1:]
    for case in map(Path, cases):
        _tell(case=case.name, stage="loading")
        try:
            _run(reader, case)
        except subprocess.CalledProcessError as error:
            lines = [line for line in (error.stderr or b"" or error.stdout or b"").splitlines() if line]
            _tell(case=case.name, error=f"exit {error.returncode}: {str(lines[-1:])[:200]}")
        except Exception as error:  # whatever a reader raises is its answer
            _tell(case=case.name, error=f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")


if __name__ == "__main__":
    main()
