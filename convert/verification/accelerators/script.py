"""Runs one file on one accelerator: ``python script.py NAME FOLDER``.

The folder has ``request.json`` and ``inputs.npz``, and gets ``outputs.npz`` and ``report.json``. The
interpreter may be one without tmconvert, so that nothing of it is imported here.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

NO_DEVICE = (
    "No adapters found",
    "Failed to get or create delegate WebGPU environment",
    "Failed to get a WebGPU",
)
Arrays = dict[str, np.ndarray]


def by_name(names: list[str], wanted: list[str]) -> list[int]:
    """Returns the positions of the wanted names; as they come where the file has others."""
    return [names.index(name) for name in wanted] if set(wanted) <= set(names) else list(range(len(wanted)))


def litert_gpu(path: str, inputs: Arrays, outputs: list[str]) -> tuple[list[np.ndarray], dict[str, Any]]:
    from ai_edge_litert.compiled_model import CompiledModel
    from ai_edge_litert.hardware_accelerator import HardwareAccelerator

    gpu, cpu = HardwareAccelerator.GPU, HardwareAccelerator.CPU
    is_alone = True
    try:
        model = CompiledModel.from_file(path, hardware_accel=gpu)
    except RuntimeError:  # it has operators that the GPU refuses; XNNPACK counts as an accelerator then, too
        model, is_alone = CompiledModel.from_file(path, hardware_accel=gpu | cpu), False
    known = [model.get_signature_by_index(each) for each in range(model.get_num_signatures())]
    fitting = [each for each, own in enumerate(known) if {*own["inputs"]} == {*inputs}]
    at = fitting[0] if fitting else 0
    details = model.get_output_tensor_details(known[at]["key"])
    fed, made = model.create_input_buffers(at), model.create_output_buffers(at)
    for position, array in zip(by_name(known[at]["inputs"], list(inputs)), inputs.values()):  # noqa: B905
        fed[position].write(array)
    model.run_by_index(at, fed, made)
    found = []
    for position in by_name(known[at]["outputs"], outputs):
        described = details[known[at]["outputs"][position]]
        shape, dtype = described["shape"], np.dtype(described["dtype"])
        found.append(made[position].read(int(np.prod(shape)), dtype.type).reshape(shape))
    return found, {"is_whole": is_alone and bool(model.is_fully_accelerated())}


def openvino(path: str, inputs: Arrays, outputs: list[str]) -> tuple[list[np.ndarray], dict[str, Any]]:
    import openvino as ov  # type: ignore[import-not-found, unused-ignore]

    core = ov.Core()
    # the default on some processors is bfloat16
    model = core.compile_model(core.read_model(path), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    taken = by_name([min(each.get_names(), default="") for each in model.inputs], list(inputs))
    for each in list(inputs):
        if any(each in own.get_names() for own in model.inputs):
            taken = [at for name in inputs for at, own in enumerate(model.inputs) if name in own.get_names()]
            break
    result = model({at: array for at, array in zip(taken, inputs.values())})  # noqa: B905, C416
    named = {name: at for at, own in enumerate(model.outputs) for name in own.get_names()}
    return [result[named.get(name, at)] for at, name in enumerate(outputs)], {"is_whole": True}


def tflm(path: str, inputs: Arrays, outputs: list[str]) -> tuple[list[np.ndarray], dict[str, Any]]:
    """Its tensors have no names; inputs and outputs are those of the file in order."""
    from tflite_micro.python.tflite_micro import runtime  # type: ignore[import-not-found, unused-ignore]

    arena = 4 * Path(path).stat().st_size + (64 << 20)
    model = runtime.Interpreter.from_file(path, arena_size=arena)
    for position, array in enumerate(inputs.values()):
        model.set_input(array, position)
    model.invoke()
    return [model.get_output(position) for position in range(len(outputs))], {"is_whole": True}


def webgpu(path: str, inputs: Arrays, outputs: list[str]) -> tuple[list[np.ndarray], dict[str, Any]]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(Path(sys.argv[2]) / "profile")
    session = onnxruntime.InferenceSession(path, options, ["WebGpuExecutionProvider", "CPUExecutionProvider"])
    found = session.run(outputs, inputs)
    events = json.loads(Path(session.end_profiling()).read_text("utf-8"))
    ran = [event["args"] for event in events if event.get("args", {}).get("provider")]
    elsewhere = sorted({each["op_name"] for each in ran if each["provider"] == "CPUExecutionProvider"})
    return found, {"is_whole": not elsewhere, "elsewhere": elsewhere}


def main() -> None:
    name, folder = sys.argv[1], Path(sys.argv[2])
    sys.path.pop(0)  # the folder of this script, whose modules have names of packages
    request = json.loads((folder / "request.json").read_text("utf-8"))
    with np.load(folder / "inputs.npz") as stored:
        inputs = {each: stored[f"arr_{at}"] for at, each in enumerate(request["inputs"])}
    run = {"litert-gpu": litert_gpu, "openvino": openvino, "tflm": tflm, "webgpu": webgpu}[name]
    report: dict[str, Any] = {}
    try:
        found, report = run(request["path"], inputs, request["outputs"])
        np.savez(folder / "outputs.npz", *map(np.asarray, found))
    except Exception as error:
        said = f"{error}\n{(folder / 'stderr').read_text('utf-8', 'replace')}"
        lines = [each.strip(" └") for each in str(error).splitlines()]
        report = {"refused": next(filter(None, lines), type(error).__name__)[:200]}
        report["no_device"] = isinstance(error, ImportError) or any(each in said for each in NO_DEVICE)
    (folder / "report.json").write_text(json.dumps(report), "utf-8")


main()
