"""Programs that run a Caffe net in OpenCV."""

from __future__ import annotations

from collections.abc import Sequence

from tmconvert.targets.usage import cpp_main, literal, python_array, variables
from tmconvert.targets.written_model import TensorInfos


def caffe_usage(language: str, paths: Sequence[str], inputs: TensorInfos, outputs: TensorInfos) -> list[str]:
    """Returns the lines of a program in "python", "cpp" or "kotlin"."""
    return {"python": _python, "cpp": _cpp, "kotlin": _kotlin}[language](paths, inputs, outputs)


def _python(paths: Sequence[str], inputs: TensorInfos, outputs: TensorInfos) -> list[str]:
    names = variables([*inputs, *outputs], "t")
    fed, made = names[: len(inputs)], names[len(inputs) :]
    lines = ["import cv2", "import numpy as np", "", f"net = cv2.dnn.readNetFromCaffe({_listed(paths)})"]
    for each, name in zip(inputs, fed, strict=True):
        lines += [f"{name} = {python_array(each)}", f"net.setInput({name}, {literal(each.name)})"]
    wanted = ", ".join(literal(each.name) for each in outputs)
    return [
        *lines,
        f"{', '.join(made)}{',' if len(made) == 1 else ''} = net.forward([{wanted}])",
        *(f"print({literal(each.name)}, {name}.shape)" for each, name in zip(outputs, made, strict=True)),
    ]


def _cpp(paths: Sequence[str], inputs: TensorInfos, outputs: TensorInfos) -> list[str]:
    lines = [f"cv::dnn::Net net = cv::dnn::readNetFromCaffe({_listed(paths)});"]
    for each, name in zip(inputs, variables(inputs, "input"), strict=True):
        lines += [
            f"cv::Mat {name}(std::vector<int>{{{', '.join(map(str, each.example_shape))}}}, CV_32F, "
            f"cv::Scalar(0));  // {each.layout or each.type_text}",
            f"net.setInput({name}, {literal(each.name)});",
        ]
    wanted = ", ".join(literal(each.name) for each in outputs)
    lines += ["std::vector<cv::Mat> outputs;", f"net.forward(outputs, std::vector<cv::String>{{{wanted}}});"]
    return ["#include <opencv2/dnn.hpp>", *cpp_main(lines)]


def _kotlin(paths: Sequence[str], inputs: TensorInfos, outputs: TensorInfos) -> list[str]:
    lines = [
        "import org.opencv.core.*",
        "import org.opencv.dnn.Dnn",
        f"val net = Dnn.readNetFromCaffe({_listed(paths)})",
    ]
    for each, name in zip(inputs, variables(inputs, "input"), strict=True):
        lines += [
            f"val {name} = Mat(intArrayOf({', '.join(map(str, each.example_shape))}), CvType.CV_32F)"
            f"  // {each.layout or each.type_text}",
            f"net.setInput({name}, {literal(each.name)})",
        ]
    wanted = ", ".join(literal(each.name) for each in outputs)
    return [*lines, "val outputs = ArrayList<Mat>()", f"net.forward(outputs, listOf({wanted}))"]


def _listed(paths: Sequence[str]) -> str:
    return ", ".join(map(literal, paths))
