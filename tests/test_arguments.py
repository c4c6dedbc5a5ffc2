"""No argument of a public function, however wrong, ends in an error of Python's own."""

from __future__ import annotations

import contextlib
import copy
import inspect
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tmconvert
from tmconvert import api
from tmconvert.calibration.settings import Settings
from tmconvert.errors import CallError, InternalError, TmconvertError, UnsupportedError, UsageError
from tmconvert.ir import TracedModule
from tmconvert.passes.manager import PassOptions
from tmconvert.transform.named_passes import temporary_passes

MODEL = Path(__file__).parent.parent / "samples" / "digits.tm"


class Unwilling:
    """Whatever is asked of it raises."""

    def __fspath__(self) -> str:
        raise RuntimeError("no path")

    def __len__(self) -> int:
        raise RuntimeError("no length")

    def __bool__(self) -> bool:
        raise RuntimeError("neither true nor false")

    def __repr__(self) -> str:
        raise RuntimeError("no text")


class BytesPath:
    def __fspath__(self) -> bytes:
        return b"x"


# by a name for the test's id; each is made when it is needed
WRONG: dict[str, Callable[[], Any]] = {
    "none": lambda: None,
    "true": lambda: True,
    "zero": lambda: 0,
    "three": lambda: 3,
    "negative": lambda: -1,
    "huge": lambda: 10**30,
    "fraction": lambda: 1.5,
    "nan": lambda: float("nan"),
    "complex": lambda: 1j,
    "empty text": lambda: "",
    "text": lambda: "no such thing",
    "NUL": lambda: "a\0b.onnx",
    "surrogate": lambda: "\udc80.onnx",
    "long text": lambda: "x" * 5000,
    "bytes": lambda: b"x",
    "empty list": list,
    "list of None": lambda: [None],
    "list of numbers": lambda: [3, 4],
    "list of texts": lambda: ["a", "b"],
    "list of lists": lambda: [[[]]],
    "tuple": lambda: (1, "a", None),
    "empty dict": dict,
    "dict by number": lambda: {3: 3},
    "dict of None": lambda: {"x": None},
    "dict of numbers": lambda: {"x": 3},
    "dict of texts": lambda: {"x": "y"},
    "dict of lists": lambda: {"x": ["y", None]},
    "dict of dicts": lambda: {"x": {"y": {}}},
    "dict of objects": lambda: {"x": object()},
    "set": lambda: {1, "a"},
    "object": object,
    "unwilling": Unwilling,
    "path of bytes": BytesPath,
    "class": lambda: dict,
    "module": lambda: np,
    "function": lambda: lambda: None,
    "generator": lambda: (number for number in range(3)),
    "array": lambda: np.zeros((2, 3)),
    "array of objects": lambda: np.array([object(), None]),
    "array of texts": lambda: np.array(["a"]),
    "number of NumPy": lambda: np.float64(3),
}


STREAM = tmconvert.trace(torch.nn.ReLU(), torch.zeros(1, 2, 4))


def relu(g: Any, x: Any) -> Any:
    return g.call("aten::relu", x)


FUNCTIONS = (
    "bench",
    "calibrate",
    "check",
    "compare",
    "decompose",
    "diff",
    "evaluate",
    "findings",
    "forecast",
    "inspect",
    "lint",
    "load",
    "normalize",
    "optimize",
    "package",
    "params",
    "parse_graph",
    "quantization",
    "rebuild",
    "reduce",
    "register_pass",
    "register_symbolic",
    "replace_pattern",
    "run",
    "save",
    "score",
    "simplify",
    "split_module",
    "stream",
    "supported_ops",
    "to_caffe",
    "to_folder",
    "to_onnx",
    "to_target",
    "to_tflite",
    "trace",
    "verify",
    "view",
)
# of the user's own code, which may raise what it likes
OWN = {(function, "progress"): ("class", "function") for function in FUNCTIONS}


API_FILES = tuple(
    f"api_{part}"
    for part in ("convert", "diff", "inspect", "lock", "package", "reduce", "stream", "transform", "view")
)


def parameters(function: str) -> list[inspect.Parameter]:
    every = inspect.signature(getattr(api, function)).parameters.values()
    return [each for each in every if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]


def right_arguments(function: str, model: TracedModule, folder: Path) -> dict[str, Any]:
    """What a call needs that succeeds."""
    if function == "replace_pattern":  # which edits its model
        model = copy.deepcopy(model)
    given: dict[str, Any] = {
        "calibrate": {"model": model, "data": np.zeros((2, 1, 8, 8), np.float32)},
        "bench": {"seconds": 0.01},
        "check": {"model": model, "target": "onnx"},
        "compare": {"first": model, "second": model},
        "diff": {"first": model, "second": model},
        "reduce": {"model": model, "path": folder / "o.tm"},
        "rebuild": {"lock": folder / "written.lock"},
        "evaluate": {"first": model, "second": model, "data": np.zeros((2, 1, 8, 8), np.float32)},
        "to_folder": {"model": model, "output": folder / "net"},
        "findings": {"model": model, "target": "caffe"},
        "forecast": {"file": folder / "o.tflite", "profile": "tflm"},
        "lint": {"file": folder / "o.prototxt"},
        "load": {"path": MODEL},
        "params": {"file": folder / "o.json"},
        "package": {"source": "no such folder", "output": folder / "package", "kind": "optimum"},
        "parse_graph": {"text": "graph main(%x: f32[2]) -> (%x) {\n}\n"},
        "register_pass": {"name": "Own", "pass_": lambda graph: None},
        "register_symbolic": {"name": "aten::swish", "function": lambda g, x: x},
        "replace_pattern": {"model": model, "pattern": relu, "replacement": relu},
        "run": {"model": model, "inputs": [np.zeros((1, 1, 8, 8), np.float32)]},
        "save": {"model": model, "path": folder / "o.tm"},
        "score": {"data": folder, "task": "top-1"},
        "decompose": {"model": model, "table": {"aten::relu": relu}},
        "split_module": {"model": model, "by": lambda node: 0},
        "stream": {"model": STREAM, "output": folder / "o.tm"},
        "supported_ops": {"target": "onnx"},
        "to_caffe": {"model": model, "prototxt": folder / "o.prototxt"},
        "to_onnx": {"model": model, "path": folder / "o.onnx"},
        "to_target": {"model": model, "target": "onnx", "path": folder / "o.onnx"},
        "to_tflite": {"model": model, "path": folder / "o.tflite"},
        "trace": {"module": torch.nn.ReLU()},
        "verify": {"model": model, "path": folder / "written.onnx"},
    }
    converts = function.startswith("to_") and function != "to_folder"
    unverified = {"verify": False} if converts else {}
    return {**given.get(function, {"model": model}), **unverified}


@pytest.fixture(scope="module")
def model() -> TracedModule:
    return tmconvert.load(MODEL)


@contextlib.contextmanager
def only_our_errors() -> Iterator[None]:
    """Errors of tmconvert that say what is wrong, and no defects."""
    try:
        yield
    except InternalError:
        raise
    except TmconvertError as error:
        assert re.fullmatch("TM[0-9]{4}", error.code)
        assert str(error)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("written")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        tmconvert.to_onnx(MODEL, "written.onnx", verify=False, lock="written.lock")
    return folder


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: Path) -> Path:
    """The working folder, with a written model; other texts than paths may become files in it."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(written, tmp_path, dirs_exist_ok=True)
    return tmp_path


def test_every_public_function_is_tried() -> None:
    public = {
        name
        for name, each in vars(api).items()
        if not name.startswith("_")
        and inspect.isfunction(each)
        and each.__module__ in (api.__name__, *(f"tmconvert.{file}" for file in API_FILES))
    }
    assert public == set(FUNCTIONS)
    classes = {name for name in tmconvert.__all__ if inspect.isclass(getattr(tmconvert, name))}
    others = {
        "register_as_builtin",
        "register_supported_type",
        "observe",
        "temporary_symbolics",
        "trace_through",
        "wrap",
    }
    assert set(tmconvert.__all__) - classes <= {*FUNCTIONS, *others}


@pytest.mark.parametrize(
    ("function", "name"), [(function, each.name) for function in FUNCTIONS for each in parameters(function)]
)
def test_each_argument_with_wrong_values(function: str, name: str, model: TracedModule, folder: Path) -> None:
    for kind, make in WRONG.items():
        if kind in OWN.get((function, name), ()):
            continue
        given = {**right_arguments(function, model, folder), name: make()}
        with only_our_errors(), tmconvert.temporary_symbolics(), temporary_passes():
            inputs = [given.pop("module"), torch.ones(2)] if function == "trace" else []
            getattr(api, function)(*inputs, **given)


IMAGES = np.zeros((2, 1, 8, 8), np.float32)
INPUT = "x"
# arguments with a wrong value inside
NESTED: dict[str, Callable[[TracedModule, Any], object]] = {
    "a shape": lambda model, value: to_onnx(model, input_shapes={INPUT: value}),
    "a size": lambda model, value: to_onnx(model, input_shapes={INPUT: [value, 1, 8, 8]}),
    "dynamic axes": lambda model, value: to_onnx(model, dynamic_shapes={INPUT: value}),
    "a dynamic size": lambda model, value: to_onnx(model, dynamic_shapes={INPUT: {0: value}}),
    "a new name": lambda model, value: to_onnx(model, rename={INPUT: value}),
    "quantization parameters": lambda model, value: to_onnx(model, input_qparams={INPUT: value}),
    "a type": lambda model, value: to_onnx(model, input_qparams={INPUT: (value, 0.5, 1)}),
    "a scale": lambda model, value: to_onnx(model, input_qparams={INPUT: ("qint8", value, 1)}),
    "a zero point": lambda model, value: to_onnx(model, input_qparams={INPUT: ("qint8", 0.5, value)}),
    "a layout": lambda model, value: tmconvert.to_tflite(
        model, "o.tflite", io_layout={INPUT: value}, verify=False
    ),
    "passes": lambda model, value: to_onnx(model, pass_options=PassOptions(value)),
    "a folder of passes": lambda model, value: to_onnx(model, pass_options=PassOptions(("all",), value)),
    "a last pass": lambda model, value: to_onnx(model, pass_options=PassOptions((), None, value)),
    "an input": lambda model, value: tmconvert.to_onnx(model, "o.onnx", example_inputs=(value,)),
    "an input of verify": lambda model, value: tmconvert.verify(model, "written.onnx", [value]),
    "an input of a call": lambda model, value: model(value),
    "a path of a model": lambda model, value: model.save(value),
    "data by name": lambda model, value: tmconvert.calibrate(model, {INPUT: value}),
    "a sample": lambda model, value: tmconvert.calibrate(model, [value]),
    "an array of a sample": lambda model, value: tmconvert.calibrate(model, [[value]]),
    "an array by name": lambda model, value: tmconvert.calibrate(model, [{INPUT: value}]),
    "a rule": lambda model, value: tmconvert.calibrate(model, IMAGES, rules={"*": value}),
    "a mean": lambda model, value: tmconvert.calibrate(model, IMAGES, mean=[value]),
    "a deviation": lambda model, value: tmconvert.calibrate(model, IMAGES, std=[value]),
    "axes of a module": lambda model, value: tmconvert.trace(
        torch.nn.ReLU(), torch.ones(2), dynamic_shapes={"input": value}
    ),
    "an argument that forward has not": lambda model, value: tmconvert.trace(
        torch.nn.ReLU(), torch.ones(2), nonsense=value
    ),
    "a model to trace": lambda model, value: tmconvert.trace(value, torch.ones(2)),
}
# functions and classes are models, which may raise what they like
OWN_MODELS = {"a model to trace": ("function", "class")}


def to_onnx(model: TracedModule, **others: Any) -> None:
    tmconvert.to_onnx(model, "o.onnx", verify=False, **others)


@pytest.mark.slow
@pytest.mark.parametrize("name", NESTED)
def test_wrong_values_inside_of_arguments(name: str, model: TracedModule, folder: Path) -> None:
    assert model.graph is not None and str(model.graph.inputs[1].expr.name) == INPUT
    for kind, make in WRONG.items():
        if kind not in OWN_MODELS.get(name, ()):
            with only_our_errors():
                NESTED[name](model, make())


@pytest.mark.parametrize("name", [*Settings._fields, "progress", "nonsense"])
def test_wrong_settings_of_a_calibration(name: str, model: TracedModule, folder: Path) -> None:
    for kind, make in WRONG.items():
        if name == "progress" and kind in OWN["calibrate", "progress"]:
            continue
        with only_our_errors():
            to_onnx(model, quantized=True, calibration=IMAGES, calibration_settings={name: make()})


def test_wrong_paths_of_a_report(model: TracedModule, folder: Path) -> None:
    report = tmconvert.to_onnx(model, "o.onnx", quantized=True, calibration=IMAGES)
    for make in WRONG.values():
        with only_our_errors():
            report.write_layers(make())


@pytest.mark.parametrize(
    ("call", "code", "said"),
    [
        (lambda: tmconvert.load(3), "TM6009", r"path must be a str or a path .*, got int \(3\)"),
        (lambda: tmconvert.load(None), "TM6009", "got None"),
        (lambda: tmconvert.load([b"x"]), "TM6009", r"got list \(\[b'x'\]\)"),
        (lambda: tmconvert.to_onnx(MODEL, "a\0.onnx"), "TM6009", "without NUL"),
        (
            lambda: tmconvert.to_onnx(MODEL, "a.onnx", verify="no"),
            "TM6009",
            r"verify must be True or False, got str \('no'\)",
        ),
        (
            lambda: tmconvert.to_onnx(MODEL, "a.onnx", opset="17"),
            "TM6001",
            r"opset must be int or 'auto', got str",
        ),
        (lambda: tmconvert.to_onnx(MODEL, "a.onnx", pass_options={}), "TM6009", "must be PassOptions"),
        (
            lambda: tmconvert.to_onnx({}, "a.onnx"),
            "TM6008",
            r"model must be a TracedModule.*, got dict \({}\)",
        ),
        (lambda: tmconvert.to_caffe(MODEL, "."), "TM6002", "is a folder"),
        (lambda: tmconvert.verify(MODEL, 3), "TM6009", r"path must be"),
        (lambda: tmconvert.trace("a", torch.ones(2)), "TM6008", r"got str \('a'\)"),
        (
            lambda: tmconvert.trace(torch.nn.ReLU, torch.ones(2)),
            "TM6008",
            r"(?s)the class ReLU.*trace an instance of it: ReLU\(\.\.\.\)",
        ),
        (
            lambda: tmconvert.to_onnx(torch.nn.ReLU, "a.onnx", example_inputs=torch.ones(2)),
            "TM6008",
            "an instance",
        ),
        (
            lambda: tmconvert.trace(torch.nn.ReLU(), torch.ones(2), torch.ones(2)),
            "TM6008",
            "do not fit the model",
        ),
        (lambda: tmconvert.trace(tmconvert.load(MODEL), torch.ones(2)), "TM6008", "traced already"),
        (lambda: tmconvert.trace(torch.nn.ReLU(), np.array(["a"])), "TM6008", "no tensors of <U1"),
    ],
)
def test_what_is_said(call: Callable[[], object], code: str, said: str, folder: Path) -> None:
    with pytest.raises(UsageError, match=said) as error:
        call()
    assert error.value.code == code


@pytest.mark.parametrize(
    ("call", "help"),
    [
        (lambda: tmconvert.to_onnx(MODEL, "a.onnx", opsett=17), "use opset"),
        (
            lambda: tmconvert.to_onnx(MODEL, "a.onnx", dynamic_axes={"x": {0: "n"}}),
            'use dynamic_shapes={"x": {0: "batch"}}',
        ),
        (lambda: tmconvert.to_onnx(MODEL, "a.onnx", input_names=["x"]), 'use rename={"old": "new"}'),
        (lambda: tmconvert.to_onnx(MODEL, "a.onnx", do_constant_folding=True), "omit do_constant_folding"),
        (
            lambda: tmconvert.to_onnx(torch.nn.ReLU(), (torch.ones(2),), "a.onnx", opset_version=17),
            "use opset",
        ),
        (
            lambda: tmconvert.to_tflite(torch.nn.ReLU(), (torch.ones(2),), "a.tflite"),
            "to_tflite(model, 'a.tflite', example_inputs=...): the path comes second",
        ),
    ],
)
def test_arguments_of_other_tools(call: Callable[[], object], help: str) -> None:
    with pytest.raises(CallError, match="argument") as caught:
        call()
    assert caught.value.code == "TM6009"
    assert any(text.startswith(help) for _, text in caught.value.notes)


def test_unknown_keywords_are_a_type_error_as_of_any_function() -> None:
    functions: list[Callable[..., object]] = [getattr(api, name) for name in FUNCTIONS if name != "trace"]
    for function in functions:
        with pytest.raises(TypeError, match="argument"):
            function(nonsense=3)


# ---- calls of models


def test_an_unknown_input_of_a_model(model: TracedModule) -> None:
    with pytest.raises(UsageError, match="has no input nonsense") as error:
        model(nonsense=3)
    assert error.value.code == "TM6003"


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        ("a", "TM6003", r"the input 'x' must be an array of numbers, got str \('a'\)"),
        (None, "TM6003", "got None"),
        ([[1.0], [1.0, 2.0]], "TM6003", "must be an array of numbers, got list"),
        (
            np.zeros((1, 8), np.float32),
            "TM6003",
            r"the input 'x' is f32\[1,8\], and was recorded as f32\[1,1,8,8\]",
        ),
        (np.zeros((1, 3, 8, 8), np.float32), "TM6003", r"was recorded as"),
    ],
)
def test_inputs_of_a_call(given: Any, code: str, said: str, model: TracedModule) -> None:
    with pytest.raises(UsageError, match=said) as error:
        model(given)
    assert error.value.code == code


def test_a_tensor_that_requires_a_gradient_is_an_input(model: TracedModule) -> None:
    given = torch.zeros(1, 1, 8, 8)
    expected = model(given.numpy())
    np.testing.assert_array_equal(model(given.requires_grad_()), expected)


def test_a_defect_is_not_blamed_on_inputs_that_fit(model: TracedModule, monkeypatch: Any) -> None:
    def fails(*_: Any) -> None:
        raise ValueError("a defect")

    monkeypatch.setattr(type(model.vocabulary), "evaluate", fails)
    with pytest.raises(ValueError, match="a defect"):
        model(np.zeros((1, 1, 8, 8), np.float32))


# ---- the machine, and code of the user's


class Quits(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        raise SystemExit(0)


def test_a_module_that_ends_the_process(folder: Path) -> None:
    for call in (
        lambda: tmconvert.trace(Quits(), torch.ones(2)),
        lambda: tmconvert.to_onnx(Quits(), "o.onnx", example_inputs=torch.ones(2)),
    ):
        with pytest.raises(UnsupportedError, match="fails with the example inputs: SystemExit: 0") as error:
            call()
        assert (error.value.code, error.value.excerpt) == ("TM2014", "raise SystemExit(0)")


REMOVED = """
import os, tempfile, numpy, tmconvert
from tmconvert import api
from tmconvert.errors import TmconvertError
model = tmconvert.load({model!r})
folder = tempfile.mkdtemp()
os.chdir(folder)
os.rmdir(folder)
for call in (
    lambda: tmconvert.load("net:make"),
    lambda: tmconvert.load("a.tm"),
    lambda: tmconvert.to_onnx(model, "o.onnx"),
    lambda: tmconvert.to_tflite(model, "o.tflite"),
    lambda: tmconvert.to_caffe(model, "o.prototxt"),
    lambda: api.save(model, "o.tm"),
    lambda: tmconvert.verify(model, "o.onnx"),
    lambda: tmconvert.calibrate(model, "folder"),
    lambda: tmconvert.calibrate(model, numpy.zeros((1, 1, 8, 8), "float32"), output="o.tm"),
    lambda: api.lint("o.prototxt"),
):
    try:
        call()
    except TmconvertError as error:
        print(error.code)
"""


@pytest.mark.slow
def test_without_a_working_folder() -> None:
    program = REMOVED.format(model=str(MODEL))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.split()) == 10, done.stdout
