"""Programs that run an ONNX file in ONNX Runtime."""

from __future__ import annotations

from math import prod

from tmconvert.targets.usage import cpp_main, literal, python_array, variables
from tmconvert.targets.written_model import TensorInfos


def onnx_usage(language: str, path: str, inputs: TensorInfos, outputs: TensorInfos) -> list[str]:
    """Returns the lines of a program in "python", "cpp" or "kotlin"."""
    return {"python": _python, "cpp": _cpp, "kotlin": _kotlin}[language](path, inputs, outputs)


def _python(path: str, inputs: TensorInfos, outputs: TensorInfos) -> list[str]:
    names = variables([*inputs, *outputs], "t")
    fed, made = names[: len(inputs)], names[len(inputs) :]
    entries = ", ".join(f"{literal(each.name)}: {name}" for each, name in zip(inputs, fed, strict=True))
    wanted = ", ".join(literal(each.name) for each in outputs)
    return [
        "import numpy as np",
        "import onnxruntime",
        "",
        f"session = onnxruntime.InferenceSession({literal(path)})",
        *(f"{name} = {python_array(each)}" for each, name in zip(inputs, fed, strict=True)),
        f"{', '.join(made)}{',' if len(made) == 1 else ''} = session.run([{wanted}], {{{entries}}})",
        *(f"print({literal(each.name)}, {name}.shape)" for each, name in zip(outputs, made, strict=True)),
    ]


_CPP = {
    "float32": "float",
    "float64": "double",
    "bool": "bool",
    "float16": "Ort::Float16_t",
    "bfloat16": "Ort::BFloat16_t",
    **{f"{sign}int{bits}": f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}


def _cpp(path: str, inputs: TensorInfos, outputs: TensorInfos) -> list[str]:
    lines = [
        "Ort::Env env;",
        f"Ort::Session session(env, ORT_TSTR({literal(path)}), Ort::SessionOptions{{}});",
        "auto memory = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);",
        "std::vector<Ort::Value> inputs;",
    ]
    for each, name in zip(inputs, variables(inputs, "input"), strict=True):
        kind, shape = _CPP.get(each.dtype, "float"), each.example_shape
        layout = f"  // {each.layout}" if each.layout else ""
        is_bool = kind == "bool"  # std::vector<bool> holds bits
        data = f"reinterpret_cast<bool*>({name}.data())" if is_bool else f"{name}.data()"
        lines += [
            f"std::vector<{'char' if is_bool else kind}> {name}({prod(shape)});{layout}",
            f"std::vector<int64_t> {name}_shape{{{', '.join(map(str, shape))}}};",
            f"inputs.push_back(Ort::Value::CreateTensor<{kind}>(memory, {data}, {name}.size(), "
            f"{name}_shape.data(), {name}_shape.size()));",
        ]
    first = _CPP.get(outputs[0].dtype, "float")
    lines += [
        f"std::vector<const char*> input_names{{{', '.join(literal(each.name) for each in inputs)}}};",
        f"std::vector<const char*> output_names{{{', '.join(literal(each.name) for each in outputs)}}};",
        "auto outputs = session.Run(Ort::RunOptions{}, input_names.data(), inputs.data(), inputs.size(), "
        "output_names.data(), output_names.size());",
        f"const {first}* first = outputs[0].GetTensorData<{first}>();",
    ]
    return ["#include <onnxruntime_cxx_api.h>", *cpp_main(lines)]


_KOTLIN = {
    "float32": ("FloatBuffer", ""),
    "float64": ("DoubleBuffer", ""),
    "int32": ("IntBuffer", ""),
    "int64": ("LongBuffer", ""),
    "int8": ("ByteBuffer", ", OnnxJavaType.INT8"),
    "uint8": ("ByteBuffer", ", OnnxJavaType.UINT8"),
    "float16": ("ShortBuffer", ", OnnxJavaType.FLOAT16"),
    "int16": ("ShortBuffer", ""),
    "bfloat16": ("ShortBuffer", ", OnnxJavaType.BFLOAT16"),
    "bool": ("ByteBuffer", ", OnnxJavaType.BOOL"),
}


def _kotlin(path: str, inputs: TensorInfos, outputs: TensorInfos) -> list[str]:
    names = variables(inputs, "input")
    lines = [
        "import ai.onnxruntime.*",
        "import java.nio.*",
        "val env = OrtEnvironment.getEnvironment()",
        f"val session = env.createSession({literal(path)})",
    ]
    for each, name in zip(inputs, names, strict=True):
        buffer, kind = _KOTLIN.get(each.dtype, ("FloatBuffer", ""))
        layout = f"  // {each.layout}" if each.layout else ""
        shape = each.example_shape
        lines += [
            f"val {name} = {buffer}.allocate({prod(shape)}){layout}",
            f"val {name}Tensor = OnnxTensor.createTensor(env, {name}, "
            f"longArrayOf({', '.join(map(str, shape))}){kind})",
        ]
    entries = ", ".join(
        f"{literal(each.name)} to {name}Tensor" for each, name in zip(inputs, names, strict=True)
    )
    return [
        *lines,
        f"val outputs = session.run(mapOf({entries}))",
        f"val first = outputs.get({literal(outputs[0].name)}).get().value",
    ]
