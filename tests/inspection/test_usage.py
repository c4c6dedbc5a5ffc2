"""``--usage``: the Python programs run, and compute what the runtime computes."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.runner import run
from tests.inspection.conftest import Files
from tmconvert.errors import UsageError
from tmconvert.targets.registry import target_named
from tmconvert.targets.written_model import TensorInfo

KINDS = ("onnx", "tflite", "prototxt", "half", "int8", "qdq")


def executed(program: str) -> tuple[dict[str, Any], str]:
    names: dict[str, Any] = {}
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(program, "usage.py", "exec"), names)
    return names, said.getvalue()


@pytest.mark.parametrize("kind", KINDS)
def test_python_programs_run(kind: str, files: Files) -> None:
    program = files.reports[kind].usage("python")
    assert len(program.splitlines()) <= 10
    assert np.random.default_rng(0).random() and "np.zeros" in program
    names, said = executed(program.replace("np.zeros(", "np.full(").replace("), np.", "), 0.5, np."))
    output = files.reports[kind].outputs[0]["name"]
    assert said == f"{output} (1, 5)\n"
    expected = files.model(np.full((1, 3, 12, 16), 0.5, np.float32))
    np.testing.assert_allclose(names[output], expected, atol=1e-5 if kind in KINDS[:3] else 0.02)


@pytest.mark.parametrize("language", ["cpp", "kotlin"])
@pytest.mark.parametrize("kind", KINDS)
def test_other_languages_name_file_inputs_and_outputs(kind: str, language: str, files: Files) -> None:
    program = files.reports[kind].usage(language)
    assert str(files.paths[kind]) in program and len(program.splitlines()) <= 14
    assert ("image" in program and str(3 * 12 * 16) in program) or "12" in program


def test_cpp_programs_are_whole(files: Files) -> None:
    """Compiled by hand with the headers of ONNX Runtime 1.12 and of LiteRT; here is what they need."""
    for kind in KINDS:
        lines = files.reports[kind].usage("cpp").splitlines()
        main = lines.index("int main() {")
        assert all(line.startswith("#include ") for line in lines[:main]) and lines[-1] == "}"
    tensors = [TensorInfo("mask", "bool", (2, 3)), TensorInfo("y", "bfloat16", (2,))]
    program = "\n".join(target_named("onnx").usage("cpp", ["m.onnx"], tensors, tensors))
    assert "std::vector<bool>" not in program  # it has no data()
    assert (
        "reinterpret_cast<bool*>(mask.data())" in program and "std::vector<Ort::BFloat16_t> y(2)" in program
    )
    assert 'ORT_TSTR("m.onnx")' in program  # a wide text on Windows
    assert "* (q + " in files.reports["int8"].usage("cpp") and "- -" not in files.reports["int8"].usage("cpp")
    wide = [TensorInfo("z", "complex128", (2,)), TensorInfo("s", "string", (2,))]
    assert "allocateDirect(32)" in "\n".join(target_named("tflite").usage("kotlin", ["m"], wide, wide))


def test_commands(files: Files, tmp_path: Path) -> None:
    outcome = run("inspect", files.paths["int8"], "--usage", "python")
    assert outcome.stdout == files.reports["int8"].usage("python") + "\n"
    source = files.paths["onnx"].with_name("net.tm")
    outcome = run("onnx", source, tmp_path / "o.onnx", "--no-verify", "--usage", "python")
    assert outcome.stdout.endswith(".shape)\n") and "\n\nimport numpy as np\n" in outcome.stdout
    outcome = run("onnx", source, tmp_path / "o.onnx", "--no-verify", "--usage", "kotlin", "--json")
    assert outcome.json["usage"].startswith("import ai.onnxruntime.*\n")
    assert run("inspect", source, "--usage", "python").status == 2
    with pytest.raises(UsageError, match="language"):
        files.reports["onnx"].usage("rust")


def test_names_that_are_no_words() -> None:
    tensors = [TensorInfo('a"b\n$x', "float32", (2,)), TensorInfo("class", "int64", ("n", 3))]
    for language in ("python", "cpp", "kotlin"):
        for target in ("onnx", "tflite", "caffe"):
            lines = target_named(target).usage(language, ["o.x", "o.y"], tensors, tensors)
            assert all("\n" not in line for line in lines)
            if language == "python":
                compile("\n".join(lines), "usage.py", "exec")
