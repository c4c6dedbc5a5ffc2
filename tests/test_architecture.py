"""The rules of the source tree: who imports whom, what is public, how large things may be."""

from __future__ import annotations

import ast
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tmconvert
from tests.source_tree import FILES, ROOT, Import, all_imports, module_name, nodes, parsed
from tmconvert.errors import InternalError
from tmconvert.symbolics import ops
from tmconvert.symbolics.op import Op, Tensor
from tmconvert.symbolics.registry import Catalogue
from tmconvert.symbolics.results import same_as

FORMATS = ("onnx", "google", "flatbuffers", "tflite")
RUNTIMES = ("onnxruntime", "ai_edge_litert", "cv2", "MNN")
TERMINAL = ("click", "rich")
TERMINAL_CALLS = {"print", "input", "breakpoint", "eval", "exec"}
_WRITES = "it writes files of this format"
_CAFFE_TEXT = "a text of Caffe is compared with its messages, field by field"
# The modules outside of convert/formats that use a library of a file format: the reason
USES_OF_FORMATS = {
    "convert/frontends/caffe/text.py": _CAFFE_TEXT,
    "convert/frontends/onnx/standard_functions.py": "the package onnx defines operators by functions",
    "convert/packaging/shared_cache.py": "it writes a model with other operators",
    "convert/packaging/rounded_activations.py": "it marks operators of a written model",
    "convert/targets/caffe/for_mnn.py": "it writes copies of a text for MNN",
    "convert/targets/caffe/lint.py": _CAFFE_TEXT,
    "convert/targets/caffe/writer.py": _WRITES,
    "convert/targets/onnx/bfloat16_runtime.py": "it writes a copy of a model in float32",
    "convert/targets/onnx/passes/narrow_floats.py": "the package onnx knows the types of operators",
    "convert/targets/onnx/verify/saturation_probe.py": "it writes a model of one operator",
    "convert/targets/onnx/writer.py": _WRITES,
    "convert/targets/tflite/writer.py": "it writes the options of custom operators",
}
# Of these, the modules that parse: the reason
PARSERS = {
    "convert/frontends/caffe/text.py": _CAFFE_TEXT,
    "convert/frontends/onnx/standard_functions.py": "the package onnx returns functions as bytes",
    "convert/targets/onnx/writer.py": "it parses what it has just encoded",
}
PARSING = ("ParseFromString", "FromString", "MergeFromString", "GetRootAs", "InitFromPackedBuf")
PUBLIC = [
    "Interpreter",
    "TracedModule",
    "Tracer",
    "Transformer",
    "bench",
    "calibrate",
    "check",
    "compare",
    "decompose",
    "diff",
    "evaluate",
    "inspect",
    "lint",
    "load",
    "normalize",
    "observe",
    "optimize",
    "package",
    "params",
    "parse_graph",
    "rebuild",
    "reduce",
    "register_as_builtin",
    "register_pass",
    "register_supported_type",
    "register_symbolic",
    "replace_pattern",
    "run",
    "save",
    "score",
    "simplify",
    "split_module",
    "stream",
    "supported_ops",
    "temporary_symbolics",
    "to_caffe",
    "to_onnx",
    "to_target",
    "to_tflite",
    "trace",
    "trace_through",
    "verify",
    "view",
    "wrap",
]

# of a file below its imports
OP_LINES, FILE_LINES, FUNCTION_LINES = 240, 480, 60


def of(folder: str) -> list[Import]:
    return [item for item in all_imports() if item.path.is_relative_to(ROOT / folder)]


def offending(items: list[Import]) -> list[str]:
    return [str(item) for item in items]


def test_every_package_is_installed() -> None:
    """The folders of the wheel are found; the links that lead editors to them add none."""
    made: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        patch.setattr("setuptools.setup", made.update)
        runpy.run_path("setup.py")
    data = {"tmconvert.samples"}  # models and scripts for users
    assert set(made["packages"]) - data == {module_name(path.parent / "__init__.py") for path in FILES}


def test_the_reader_of_imports_sees_them() -> None:
    """A test of rules that finds nothing must not be a test that looks at nothing."""
    assert len(FILES) > 80
    seen = {str(item) for item in all_imports()}
    assert any("convert/ir/graph.py" in text and text.endswith("imports tmconvert.errors") for text in seen)
    assert any(text.endswith("imports flatbuffers") or " flatbuffers" in text for text in seen)
    assert any(item.for_types_only for item in of("convert/ir"))


# ---- who imports whom


def test_no_framework_is_imported() -> None:
    tracing, modules = ROOT / "convert/frontends/torch/tracing", ROOT / "convert/torch_code/build.py"
    others = [
        item for item in all_imports() if not item.path.is_relative_to(tracing) and item.path != modules
    ]
    assert not offending([item for item in others if item.is_of("torch")])
    assert not offending([item for item in all_imports() if item.is_of("megengine")])
    assert not offending([item for item in of("symbolics") if item.is_of(*FORMATS, "ml_dtypes")])


def outside_of_formats() -> list[Path]:
    return [path for path in FILES if not path.is_relative_to(ROOT / "convert/formats")]


def test_few_modules_use_libraries_of_file_formats() -> None:
    """Beside the formats only writers, and those with a reason."""
    using = {item.path for item in all_imports() if item.is_of(*FORMATS)} & {*outside_of_formats()}
    assert {str(path.relative_to(ROOT)) for path in using} == set(USES_OF_FORMATS)


def parsing(path: Path) -> Iterator[str]:
    """Calls that parse the bytes or the text of a file format."""
    for node in nodes(path):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            of = ast.unparse(node.func.value)
            is_loading = node.func.attr == "load" and of == "onnx"
            if node.func.attr in PARSING or is_loading or (of == "text_format" and "Parse" in node.func.attr):
                yield f"{path.relative_to(ROOT)}"


def test_only_formats_parse_files() -> None:
    found = {each for path in outside_of_formats() for each in parsing(path)}
    assert found == set(PARSERS)


def test_the_search_for_parsers_finds_them() -> None:
    own = {each for path in FILES for each in parsing(path)} - set(PARSERS)
    assert "convert/formats/onnx/model.py" in own and "convert/formats/caffe/reader.py" in own
    assert len([each for each in own if each.startswith("convert/formats/onnx/")]) == 1


def test_formats_know_no_graph_and_no_runtime() -> None:
    graphs = ("tmconvert.ir.graph", "tmconvert.ir.expr", "tmconvert.ir.traced_module")
    assert not offending([item for item in of("convert/formats") if item.is_of(*graphs, *RUNTIMES)])


def test_the_terminal_is_the_command_lines_business() -> None:
    others = [item for item in all_imports() if not item.path.is_relative_to(ROOT / "cli")]
    assert not offending([item for item in others if item.is_of(*TERMINAL)])


def test_only_the_command_line_imports_the_command_line() -> None:
    entry = ROOT / "convert/__main__.py"  # python -m tmconvert
    others = [
        item for item in all_imports() if item.path != entry and not item.path.is_relative_to(ROOT / "cli")
    ]
    assert not offending([item for item in others if item.is_of("tmconvert.cli")])


def test_the_library_never_prints_unless_its_name_says_so() -> None:
    # to_torch() makes a class of the code that it generates, in which all names and literals are checked
    allowed = {(ROOT / "convert/torch_code/build.py", "exec")}
    found = [
        f"{path.relative_to(ROOT)}:{line} calls {name}"
        for path in FILES
        if not path.is_relative_to(ROOT / "cli")
        for line, name in _terminal_calls(path)
        if (path, name) not in allowed
    ]
    assert found == []


def _terminal_calls(path: Path) -> Iterator[tuple[int, str]]:
    """The line and name of each call of ``TERMINAL_CALLS``, outside of functions named ``print_*``."""
    functions = [node for node in nodes(path) if isinstance(node, ast.FunctionDef)]
    named = {id(node) for each in functions if each.name.startswith("print_") for node in ast.walk(each)}
    for node in nodes(path):
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in TERMINAL_CALLS and id(node) not in named:
                yield node.lineno, name


# ---- the public surface


def test_the_public_names() -> None:
    assert sorted(tmconvert.__all__) == PUBLIC
    assert all(callable(getattr(tmconvert, name)) for name in PUBLIC)
    assert [name for name in dir(tmconvert) if not name.startswith("__")] == PUBLIC
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        tmconvert.nonsense  # noqa: B018


def test_the_package_imports_nothing_eagerly() -> None:
    root = ROOT / "convert/__init__.py"
    top = [node for node in parsed(root).body if isinstance(node, (ast.Import, ast.ImportFrom))]
    assert {getattr(node, "module", None) for node in top} <= {"__future__", "typing", "tmconvert._version"}
    code = (
        "import sys, tmconvert\n"
        "print([name for name in sys.modules if name.startswith('tmconvert.') or name == 'numpy'])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "['tmconvert._version']"


# ---- sizes and names


def test_sizes() -> None:
    assert [each for path in FILES for each in _too_long(path)] == []


def _too_long(path: Path) -> Iterator[str]:
    name, limit = path.relative_to(ROOT), FILE_LINES
    if path.is_relative_to(ROOT / "symbolics/ops"):
        limit = OP_LINES
    if (lines := _lines(path)) >= limit:
        yield f"{name} has {lines} lines, at most {limit - 1}"
    for node in nodes(path):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        if (lines := _body_lines(node)) >= FUNCTION_LINES:
            yield f"{name}:{node.lineno} {node.name} has {lines} lines, at most {FUNCTION_LINES - 1}"


def _body_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The lines of a function without its decorators, signature and docstring, which documents it."""
    statements = node.body[1:] if ast.get_docstring(node) is not None else node.body
    if not statements:
        return 0
    last = statements[-1].end_lineno
    assert last is not None
    return last - statements[0].lineno + 1


def test_lines_of_a_body_are_counted() -> None:
    """Signatures and docstrings do not count; comments within the body, and functions in it, do."""
    body = "y = x\n    # why\n\n    def g():\n        return y\n\n    return g"
    text = f'def f(\n    x,\n):\n    """A.\n\n    B.\n    """\n    {body}\n'
    (node,) = ast.parse(text).body
    assert isinstance(node, ast.FunctionDef)
    assert _body_lines(node) == 7
    (empty,) = ast.parse('def f():\n    """A."""\n').body
    assert isinstance(empty, ast.FunctionDef)
    assert _body_lines(empty) == 0


def _lines(path: Path) -> int:
    """The lines of a file below its last import on top."""
    top = [node for node in parsed(path).body if isinstance(node, (ast.Import, ast.ImportFrom))]
    first = max((node.end_lineno or 0 for node in top), default=0)
    return len(path.read_text(encoding="utf-8").splitlines()) - first


def test_no_file_is_called_after_nothing() -> None:
    vague = {"utils", "util", "common", "misc", "helpers", "helper"}
    assert not [path for path in FILES if path.stem in vague]


def test_every_file_has_a_docstring() -> None:
    assert [path for path in FILES if parsed(path).body and not ast.get_docstring(parsed(path))] == []


# ---- the catalogue


def test_nothing_is_registered_twice() -> None:
    op = Op("t::op", args=[Tensor("x")], result=same_as("x"))
    op.onnx(since=7)(lambda g, x: x)
    with pytest.raises(InternalError, match="two symbolics for onnx 7"):
        op.onnx(since=7)(lambda g, x: x)
    with pytest.raises(InternalError, match="t::op is registered twice"):
        Catalogue([op, op])
    names = [name for path in (ROOT / "symbolics/ops").rglob("*.py") for name in _declared(path)]
    assert len(names) == len(set(names))
    listed = " ".join(ops.MODULES.values()).split()
    assert len(listed) == len(set(listed))


def test_the_list_of_ops_is_what_their_files_hold() -> None:
    files = {f"{path.parent.name}.{path.stem}" for path in (ROOT / "symbolics/ops").glob("*/*.py")}
    files = {name for name in files if not name.endswith("__init__")}
    assert sorted(ops.MODULES) == sorted(files)
    for module, names in ops.MODULES.items():
        assert [name.removeprefix("aten::") for name in ops.ops_of(module)] == names.split(), module


def test_ops_are_imported_when_they_are_asked_for() -> None:
    asked = (
        "from tmconvert.symbolics.registry import catalogue as ops; ops()['aten::relu'], 'aten::x' in ops()"
    )
    seen = f"import sys; {asked}; print(*(name for name in sys.modules if '.symbolics.ops.' in name))"
    done = subprocess.run([sys.executable, "-c", seen], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [
        "tmconvert.symbolics.ops.elementwise",
        "tmconvert.symbolics.ops.elementwise.unary",
    ]


def _declared(path: Path) -> list[str]:
    """Names of ops that a file declares as literals."""
    return [
        node.args[0].value
        for node in nodes(path)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "Op"
        and node.args
        and isinstance(node.args[0], ast.Constant)
    ]


def test_passes_are_called_like_their_files() -> None:
    for path in (path for path in FILES if path.parent.name == "passes"):
        for node in nodes(path):
            if isinstance(node, ast.ClassDef) and any(
                isinstance(item, ast.Assign) and ast.unparse(item.targets[0]) == "name" for item in node.body
            ):
                assert node.name == "".join(word.title() for word in path.stem.split("_"))


TAKING_APART = ("endswith", "startswith", "removesuffix", "removeprefix", "partition", "rpartition", "split")
FORMS = ("quantized", "requantized", "dequantized", "computed", "unrounded", "unlimited")


def names_taken_apart(path: Path) -> Iterator[str]:
    """Calls that read parts of the name of a tensor or node, and names of forms outside of names.py."""
    for node in nodes(path):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            text = ast.unparse(node.func.value)
            is_name = text == "name" or text.endswith((".name", "_name"))
            if is_name and node.func.attr in TAKING_APART:
                yield f"{path.relative_to(ROOT)}:{node.lineno} {ast.unparse(node)}"
        is_sum = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)
        if is_sum and ast.unparse(node.left).endswith("node.name"):
            yield f"{path.relative_to(ROOT)}:{node.lineno} {ast.unparse(node)}"
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str) and "_" in node.value
        if is_text and node.value.strip("_") in FORMS and path.parent.name == "verification":
            yield f"{path.relative_to(ROOT)}:{node.lineno} {node.value!r}"


@pytest.mark.parametrize("folder", ["lowering", "targets/onnx", "targets/tflite", "verification"])
def test_names_of_tensors_are_not_taken_apart(folder: str) -> None:
    """What a tensor of a file stands for is in ``TargetGraph.origins``."""
    found = [
        each for path in sorted((ROOT / "convert" / folder).rglob("*.py")) for each in names_taken_apart(path)
    ]
    assert found == []
