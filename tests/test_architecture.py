"""The rules of the source tree: who imports whom, what is public, how large things may be."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

import tmconvert
from tmconvert.errors import InternalError
from tmconvert.symbolics import ops
from tmconvert.symbolics.op import Op, Tensor
from tmconvert.symbolics.registry import Catalogue, catalogue
from tmconvert.symbolics.results import same_as
from tmconvert.symbolics.target_names import TARGETS

ROOT = Path(__file__).parent.parent
FOLDERS = {"convert": "tmconvert", "symbolics": "tmconvert.symbolics", "cli": "tmconvert.cli"}
FILES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
FORMATS = ("onnx", "google", "flatbuffers", "tflite")
TERMINAL = ("click", "rich")
PUBLIC = [
    "calibrate",
    "load",
    "register_symbolic",
    "supported_ops",
    "temporary_symbolics",
    "to_caffe",
    "to_onnx",
    "to_tflite",
    "trace",
    "verify",
]

OP_LINES, FILE_LINES, FUNCTION_LINES = 250, 500, 60


@dataclass(frozen=True)
class Import:
    """One imported module, with the place of the statement."""

    path: Path
    line: int
    module: str
    for_types_only: bool

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line} imports {self.module}"

    def is_of(self, *packages: str) -> bool:
        return any(self.module == package or self.module.startswith(f"{package}.") for package in packages)


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def module_name(path: Path) -> str:
    folder, *parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join([FOLDERS[folder], *(part for part in parts if part != "__init__")])


def imports(path: Path) -> Iterator[Import]:
    tree = parsed(path)
    guarded = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = _from(path, node)
        else:
            continue
        for name in names:
            yield Import(path, node.lineno, name, id(node) in guarded)


def _from(path: Path, node: ast.ImportFrom) -> list[str]:
    """The modules that a from-import reaches, written out."""
    base = node.module or ""
    if node.level:
        package = module_name(path).split(".")
        if path.name != "__init__.py":
            package.pop()
        package = package[: len(package) - node.level + 1]
        base = ".".join([*package, *filter(None, [node.module])])
    known = {module_name(file) for file in FILES}
    inner = [f"{base}.{alias.name}" for alias in node.names]
    return [name if name in known else base for name in inner]


ALL = [item for path in FILES for item in imports(path)]


def of(folder: str) -> list[Import]:
    return [item for item in ALL if item.path.is_relative_to(ROOT / folder)]


def offending(items: list[Import]) -> list[str]:
    return [str(item) for item in items]


def test_every_package_is_installed() -> None:
    """An editable install finds packages that the list does not have; a wheel does not."""
    tomllib = pytest.importorskip("tomllib")  # of Python 3.11
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    assert sorted(listed) == sorted({module_name(path.parent / "__init__.py") for path in FILES})


def test_the_reader_of_imports_sees_them() -> None:
    """A test of rules that finds nothing must not be a test that looks at nothing."""
    assert len(FILES) > 80
    seen = {str(item) for item in ALL}
    assert any("convert/ir/graph.py" in text and text.endswith("imports tmconvert.errors") for text in seen)
    assert any(text.endswith("imports flatbuffers") or " flatbuffers" in text for text in seen)
    assert any(item.for_types_only for item in of("convert/ir"))


# ---- who imports whom


def test_the_ir_imports_errors_and_source_only() -> None:
    allowed = ("tmconvert.ir", "tmconvert.errors", "tmconvert.source")
    door = ("traced_module.py", "tmconvert.container.writer")  # TracedModule.save
    assert not offending(
        [
            item
            for item in of("convert/ir")
            if item.is_of("tmconvert") and not item.is_of(*allowed) and (item.path.name, item.module) != door
        ]
    )


def test_caffe_as_such_imports_nothing_of_ours() -> None:
    assert not offending(
        [
            item
            for item in of("convert/caffe")
            if item.is_of("tmconvert") and not item.is_of("tmconvert.targets.caffe")
        ]
    )


def test_symbolics_import_the_ir_errors_and_source_only() -> None:
    allowed = ("tmconvert.symbolics", "tmconvert.ir", "tmconvert.errors", "tmconvert.source")
    lower = ("builder", "onnx_builder", "tflite_builder", "target_graph")
    for_types = tuple(f"tmconvert.lowering.{name}" for name in lower)
    assert not offending(
        [
            item
            for item in of("symbolics")
            if item.is_of("tmconvert")
            and not item.is_of(*allowed)
            and not (item.for_types_only and item.is_of(*for_types))
        ]
    )


def test_no_framework_is_imported() -> None:
    others = [item for item in ALL if not item.path.is_relative_to(ROOT / "convert/frontends/torch/tracing")]
    assert not offending([item for item in others if item.is_of("torch")])
    assert not offending([item for item in ALL if item.is_of("megengine")])
    assert not offending([item for item in of("symbolics") if item.is_of(*FORMATS, "ml_dtypes")])


def test_file_formats_are_the_serializers_business() -> None:
    others = [item for item in ALL if not item.path.is_relative_to(ROOT / "convert/serialize")]
    assert not offending([item for item in others if item.is_of(*FORMATS)])


def test_the_terminal_is_the_command_lines_business() -> None:
    others = [item for item in ALL if not item.path.is_relative_to(ROOT / "cli")]
    assert not offending([item for item in others if item.is_of(*TERMINAL)])


def test_only_the_command_line_imports_the_command_line() -> None:
    entry = ROOT / "convert/__main__.py"  # python -m tmconvert
    others = [item for item in ALL if item.path != entry and not item.path.is_relative_to(ROOT / "cli")]
    assert not offending([item for item in others if item.is_of("tmconvert.cli")])


def test_the_frontends_know_no_target_and_the_passes_no_frontend() -> None:
    later = ("tmconvert.passes", "tmconvert.lowering", "tmconvert.output", "tmconvert.verification")
    assert not offending([item for item in of("convert/frontends") if item.is_of(*later)])
    assert not offending([item for item in of("convert/passes") if item.is_of("tmconvert.frontends")])
    assert not offending([item for item in of("convert/serialize") if item.is_of("tmconvert.frontends")])


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_library_never_prints(path: Path) -> None:
    if path.is_relative_to(ROOT / "cli"):
        return
    calls = [node for node in ast.walk(parsed(path)) if isinstance(node, ast.Call)]
    names = {node.func.id for node in calls if isinstance(node.func, ast.Name)}
    assert not names & {"print", "input", "breakpoint", "eval", "exec"}


# ---- the public surface


def test_the_public_names() -> None:
    assert sorted(tmconvert.__all__) == PUBLIC
    assert all(callable(getattr(tmconvert, name)) for name in PUBLIC)
    assert set(PUBLIC) <= set(dir(tmconvert))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        tmconvert.nonsense  # noqa: B018


def test_the_package_imports_nothing_eagerly() -> None:
    root = ROOT / "convert/__init__.py"
    top = [node for node in parsed(root).body if isinstance(node, (ast.Import, ast.ImportFrom))]
    assert {getattr(node, "module", None) for node in top} <= {"__future__", "typing"}
    code = (
        "import sys, tmconvert\n"
        "print([name for name in sys.modules if name.startswith('tmconvert.') or name == 'numpy'])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


# ---- sizes and names


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_sizes(path: Path) -> None:
    is_op = path.parent == ROOT / "symbolics/ops"
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines < (OP_LINES if is_op else FILE_LINES)
    for node in ast.walk(parsed(path)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            assert node.end_lineno is not None
            assert node.end_lineno - node.lineno + 1 < FUNCTION_LINES, f"{node.name} is too long"


def test_no_file_is_called_after_nothing() -> None:
    vague = {"utils", "util", "common", "misc", "helpers", "helper"}
    assert not [path for path in FILES if path.stem in vague]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_file_says_what_it_is(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    assert not source.strip() or ast.get_docstring(parsed(path))


# ---- the catalogue


def test_every_op_has_a_rule_or_a_reason_for_every_target() -> None:
    assert catalogue().incomplete() == []
    assert all(target in ("onnx", "tflite", "caffe") for target in TARGETS)
    for op in catalogue().values():
        assert set(op.symbolics) | set(op.reasons) <= set(TARGETS), op.name
        for target in op.reasons:
            assert not op.symbolics.get(target), f"{op.name} has both a rule and a reason for {target}"


def test_nothing_is_registered_twice() -> None:
    op = Op("t::op", args=[Tensor("x")], result=same_as("x"))
    op.onnx(since=7)(lambda g, x: x)
    with pytest.raises(InternalError, match="two symbolics for onnx 7"):
        op.onnx(since=7)(lambda g, x: x)
    with pytest.raises(InternalError, match="t::op is registered twice"):
        Catalogue([op, op])
    names = [name for path in (ROOT / "symbolics/ops").glob("*.py") for name in _declared(path)]
    assert len(names) == len(set(names))
    listed = " ".join(ops.MODULES.values()).split()
    assert len(listed) == len(set(listed))


def test_the_list_of_ops_is_what_their_files_hold() -> None:
    files = {path.stem for path in (ROOT / "symbolics/ops").glob("*.py")} - {"__init__"}
    assert sorted(ops.MODULES) == sorted(files)
    for module, names in ops.MODULES.items():
        assert [name.removeprefix("aten::") for name in ops.ops_of(module)] == names.split(), module


def test_ops_are_imported_when_they_are_asked_for() -> None:
    asked = (
        "from tmconvert.symbolics.registry import catalogue as ops; ops()['aten::relu'], 'aten::x' in ops()"
    )
    seen = f"import sys; {asked}; print(*(name for name in sys.modules if '.symbolics.ops.' in name))"
    done = subprocess.run([sys.executable, "-c", seen], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["tmconvert.symbolics.ops.unary"]


def _declared(path: Path) -> list[str]:
    """Names of ops that a file declares as literals."""
    return [
        node.args[0].value
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "Op"
        and node.args
        and isinstance(node.args[0], ast.Constant)
    ]


def test_passes_are_called_like_their_files() -> None:
    for path in (ROOT / "convert/passes").glob("*.py"):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef) and any(
                isinstance(item, ast.Assign) and ast.unparse(item.targets[0]) == "name" for item in node.body
            ):
                assert node.name == "".join(word.title() for word in path.stem.split("_"))


TAKING_APART = ("endswith", "startswith", "removesuffix", "removeprefix", "partition", "rpartition", "split")
FORMS = ("quantized", "requantized", "dequantized", "computed", "unrounded", "unlimited")


def names_taken_apart(path: Path) -> Iterator[str]:
    """Calls that read parts of the name of a tensor or node, and names of forms outside of names.py."""
    for node in ast.walk(parsed(path)):
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


@pytest.mark.parametrize("folder", ["lower", "verification"])
def test_names_of_tensors_are_not_taken_apart(folder: str) -> None:
    """What a tensor of a file stands for is in ``TargetGraph.origins``."""
    found = [
        each for path in sorted((ROOT / "convert" / folder).rglob("*.py")) for each in names_taken_apart(path)
    ]
    assert found == []
