"""Programs that run a TFLite file in LiteRT."""

from __future__ import annotations

from math import prod

from tmconvert.targets.usage import (
    cpp_main,
    literal,
    python_array,
    python_fed,
    python_read,
    real_value,
    variables,
)
from tmconvert.targets.written_model import TensorInfo, TensorInfos


def tflite_usage(language: str, path: str, inputs: TensorInfos, outputs: TensorInfos) -> list[str]:
    """Returns the lines of a program in "python", "cpp" or "kotlin"."""
    return {"python": _python, "cpp": _cpp, "kotlin": _kotlin}[language](path, inputs, outputs)


def _python(path: str, inputs: TensorInfos, outputs: TensorInfos) -> list[str]:
    names = variables([*inputs, *outputs], "t")
    fed, made = names[: len(inputs)], names[len(inputs) :]
    entries = ", ".join(
        f"{literal(each.name)}: {python_fed(each, name)}" for each, name in zip(inputs, fed, strict=True)
    )
    return [
        "import numpy as np",
        "from ai_edge_litert.interpreter import Interpreter",
        "",
        f"run = Interpreter(model_path={literal(path)}).get_signature_runner()",
        *(f"{name} = {python_array(each)}" for each, name in zip(inputs, fed, strict=True)),
        f"outputs = run(**{{{entries}}})",
        *(
            f"{name} = {python_read(each, f'outputs[{literal(each.name)}]')}"
            for each, name in zip(outputs, made, strict=True)
        ),
        *(f"print({literal(each.name)}, {name}.shape)" for each, name in zip(outputs, made, strict=True)),
    ]


_CPP = {
    "float32": "float",
    "float64": "double",
    "bool": "bool",
    "float16": "TfLiteFloat16",
    **{f"{sign}int{bits}": f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}


def _cpp(path: str, inputs: TensorInfos, outputs: TensorInfos) -> list[str]:
    includes = ("interpreter", "interpreter_builder", "kernels/register", "model_builder")
    lines = [
        f"auto model = tflite::FlatBufferModel::BuildFromFile({literal(path)});",
        "tflite::ops::builtin::BuiltinOpResolver resolver;",
        "std::unique_ptr<tflite::Interpreter> interpreter;",
        "tflite::InterpreterBuilder(*model, resolver)(&interpreter);",
        "interpreter->AllocateTensors();",
    ]
    for number, each in enumerate(inputs):
        kind = _CPP.get(each.dtype, "float")
        lines.append(
            f"{kind}* input{number} = interpreter->typed_input_tensor<{kind}>({number});"
            f"  // {_about(each)}: {prod(each.example_shape)} values"
        )
    lines.append("interpreter->Invoke();")
    for number, each in enumerate(outputs):
        kind = _CPP.get(each.dtype, "float")
        lines.append(
            f"const {kind}* output{number} = interpreter->typed_output_tensor<{kind}>({number});"
            f"  // {_about(each)}"
        )
    return [*(f'#include "tflite/{name}.h"' for name in includes), *cpp_main(lines)]


_BYTES = {"x128": 16, "8": 1, "16": 2, "32": 4, "64": 8, "bool": 1}


def _kotlin(path: str, inputs: TensorInfos, outputs: TensorInfos) -> list[str]:
    lines = [
        "import org.tensorflow.lite.Interpreter",
        "import java.nio.*",
        f"val interpreter = Interpreter(java.io.File({literal(path)}))",
    ]
    for kind, tensors in (("input", inputs), ("output", outputs)):
        for number, each in enumerate(tensors):
            size = next((size for end, size in _BYTES.items() if each.dtype.endswith(end)), 1)
            lines.append(
                f"val {kind}{number} = ByteBuffer.allocateDirect({prod(each.example_shape) * size})"
                f".order(ByteOrder.nativeOrder())  // {_about(each)}"
            )
    fed = ", ".join(f"input{number}" for number in range(len(inputs)))
    made = ", ".join(f"{number} to output{number}" for number in range(len(outputs)))
    return [*lines, f"interpreter.runForMultipleInputsOutputs(arrayOf({fed}), mapOf({made}))"]


def _about(tensor: TensorInfo) -> str:
    """Returns ``x int8[1,8,8,1] NHWC, real = 0.5 * (q - 3)``."""
    about = [" ".join(filter(None, (tensor.name, tensor.type_text, tensor.layout)))]
    return ", ".join(filter(None, (*about, real_value(tensor)))).replace("\n", " ")
