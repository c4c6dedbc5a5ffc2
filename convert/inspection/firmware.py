"""Sources for firmware with TFLite Micro: the model as an array, its operators, the arena, a test vector."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from tmconvert.errors import UsageError, VerificationError
from tmconvert.output.atomic import commit_together, staged_outputs, temporary_folder
from tmconvert.profiles.files import operations_of_file
from tmconvert.targets.registry import target_named
from tmconvert.verification.accelerators.accelerator import is_installed

_SCRIPT = Path(__file__).with_name("arena_script.py")
_VARIABLE = "TMCONVERT_TFLM_PYTHON"
_SECONDS = 600
# methods of MicroMutableOpResolver whose names are not those of the schema in camel case
_NAMES = {
    "BATCH_MATMUL": "BatchMatMul",
    "CUMSUM": "CumSum",
    "PADV2": "PadV2",
    "UNIDIRECTIONAL_SEQUENCE_LSTM": "UnidirectionalSequenceLSTM",
    "custom.ethos-u": "EthosU",
}
_TYPES = {"float32": "float", "bool": "bool", **{f"int{bits}": f"int{bits}_t" for bits in (8, 16, 32, 64)}}


def write_firmware(path: Path, folder: Path, npu: str = "") -> list[str]:
    """Writes the sources for a TFLite file to a folder, and returns notes.

    ``model_data.h`` has the file as an array, ``op_resolver.h`` the operators, ``arena.h`` the size of the
    arena as TFLite Micro measures it where it is installed, ``test_vector.h`` inputs with the outputs of
    LiteRT. With ``npu``, an accelerator configuration of Vela such as "ethos-u55-128", Vela compiles the
    model where it is installed. Raises UsageError TM6002 for a file of another target, VerificationError
    TM4003 without LiteRT.
    """
    if operations_of_file(path).target != "tflite":
        raise UsageError("TM6002", f"{path} is not a TFLite file, which firmware runs")
    inputs, outputs = _vector(path)
    notes = list[str]()
    with temporary_folder() as scratch:
        model = _compiled(path, npu, scratch, notes) if npu else path
        file = operations_of_file(model)
        types = list(dict.fromkeys(each.type for each in (*file.main, *file.inner)))
        arena = _arena(model, notes)
        data = model.read_bytes()
    folder.mkdir(parents=True, exist_ok=True)
    texts = {
        "model_data.h": _array("unsigned char", "model_data", np.frombuffer(data, np.uint8), aligned=True),
        "op_resolver.h": _resolver(types),
        "arena.h": f"constexpr int kArenaSize = {arena};\n" if arena else "// not measured\n",
        "test_vector.h": "".join(_vector_lines(inputs, outputs)),
    }
    with staged_outputs(*(folder / name for name in texts)) as staged:
        for each, text in zip(staged, texts.values(), strict=True):
            each.file.write(f"#pragma once\n\n{text}".encode())
            each.finish()
        commit_together(staged)
    return [*notes, f"wrote {', '.join(texts)} to {folder}"]


def npu_of(profile: str) -> str:
    """Returns the accelerator configuration of Vela for a profile: a common one; empty without an NPU."""
    sizes = {"ethos-u55": 128, "ethos-u65": 256, "ethos-u85": 256}
    return f"{profile}-{sizes[profile]}" if profile in sizes else ""


def method_of(type: str) -> str:
    """Returns the method of MicroMutableOpResolver that adds an operator.

    >>> method_of("DEPTHWISE_CONV_2D")
    'AddDepthwiseConv2D'
    """
    words = "".join(part.capitalize() for part in type.split("_")).replace("2d", "2D")
    return f"Add{_NAMES.get(type, words)}"


def _resolver(types: Sequence[str]) -> str:
    lines = [f"  resolver.{method_of(each)}();" for each in sorted(types)]
    return "\n".join(
        [
            '#include "tensorflow/lite/micro/micro_mutable_op_resolver.h"',
            "",
            f"inline tflite::MicroMutableOpResolver<{len(types)}> MakeOpResolver() {{",
            f"  tflite::MicroMutableOpResolver<{len(types)}> resolver;",
            *lines,
            "  return resolver;",
            "}",
            "",
        ]
    )


def _array(kind: str, name: str, array: np.ndarray, *, aligned: bool = False) -> str:
    numbers = [_literal(each) for each in np.ravel(array)]
    rows = [", ".join(numbers[at : at + 16]) for at in range(0, len(numbers), 16)]
    body = ",\n  ".join(rows)
    start = "alignas(16) " if aligned else ""
    size = f"constexpr unsigned int {name}_size = {len(numbers)};\n"
    return f"{start}inline const {kind} {name}[] = {{\n  {body}}};\n{size}"


def _literal(number: np.generic) -> str:
    if number.dtype.kind == "f":
        return f"{float(number):.9g}f" if "." in f"{float(number):.9g}" else f"{float(number):.9g}.0f"
    return str(int(number))


def _vector(path: Path) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Returns random inputs, and the outputs of LiteRT, in the order of the file."""
    target = target_named("tflite")
    model, runtime = target.written_model(path), target.runtime(path)
    if runtime is None:
        raise VerificationError("TM4003", "LiteRT, which computes the test vector, is not installed")
    random = np.random.default_rng(0)
    inputs = [_numbers(random, each.example_shape, np.dtype(each.dtype)) for each in model.input_tensors]
    names = [each.name for each in model.input_tensors]
    fed = dict(zip(names, inputs, strict=True))
    return inputs, list(runtime.run([path], fed, [each.name for each in model.output_tensors]))


def _numbers(random: np.random.Generator, shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
    """Returns numbers of the whole range of a type of up to 16 bits; 0 and 1 of others, as of indices."""
    if dtype.kind == "f":
        return random.standard_normal(shape).astype(dtype)
    if dtype.kind == "b" or dtype.itemsize > 2:
        return random.integers(0, 2, shape).astype(dtype)
    ends = np.iinfo(dtype)
    return random.integers(ends.min, ends.max, shape, endpoint=True).astype(dtype)


def _vector_lines(inputs: Iterable[np.ndarray], outputs: Iterable[np.ndarray]) -> Iterable[str]:
    for kind, arrays in (("input", inputs), ("output", outputs)):
        for number, array in enumerate(arrays):
            yield _array(_TYPES.get(array.dtype.name, array.dtype.name), f"test_{kind}_{number}", array)


def _arena(path: Path, notes: list[str]) -> int:
    """Returns the bytes that TFLite Micro needs; 0, with a note, where it is not installed or fails."""
    python = os.environ.get(_VARIABLE) or (sys.executable if is_installed("tflite-micro") else "")
    if not python:
        help = f"pip install tflite-micro, or set {_VARIABLE}=/path/to/python"
        notes.append(f"the arena is not measured: {help}")
        return 0
    done = _run([python, os.fspath(_SCRIPT), os.fspath(path.absolute())])
    if done is None or done.returncode or not done.stdout.strip().isdigit():
        notes.append(f"the arena is not measured: TFLite Micro does not run the file ({_last_line(done)})")
        return 0
    return int(done.stdout)


def _compiled(path: Path, npu: str, folder: Path, notes: list[str]) -> Path:
    """Returns the file that Vela makes; ``path``, with a note, where it is not installed or fails."""
    vela = os.environ.get("TMCONVERT_VELA") or shutil.which("vela")
    if vela is None:
        help = "pip install ethos-u-vela, or set TMCONVERT_VELA=/path/to/vela"
        notes.append(f"not compiled for the NPU: {help}")
        return path
    done = _run([vela, "--accelerator-config", npu, "--output-dir", os.fspath(folder), os.fspath(path)])
    made = folder / f"{path.stem}_vela.tflite"
    if done is None or done.returncode or not made.is_file():
        notes.append(f"not compiled for the NPU: Vela fails ({_last_line(done)})")
        return path
    counts = dict(re.findall(r"^(CPU|NPU) operators = (\d+)", done.stdout, re.MULTILINE))
    on_npu, left = (counts.get(side, "?") for side in ("NPU", "CPU"))
    notes.append(f"Vela: {on_npu} operators on the NPU, {left} on the processor")
    return made


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str] | None:
    """Runs a program; None where it cannot be started, or takes too long."""
    try:
        return subprocess.run(
            command, capture_output=True, text=True, timeout=_SECONDS, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return None


def _last_line(done: subprocess.CompletedProcess[str] | None) -> str:
    if done is None:
        return "it did not finish"
    return (done.stderr.strip().splitlines() or ["it states no reason"])[-1][:160]
