"""Options and marks of the test suite.

``pytest -m "not slow"`` runs a sample of all behaviour: the first case of each parametrized test and one of
``EACH`` others, the same ones on every machine. Tests that take seconds are marked slow by hand.
"""

from __future__ import annotations

import os
import sys
import zlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parent
OF_OPS = ("symbolics", "test_catalogue.py")
EACH = 25
# of tests whose cases take long
EACH_OF = {
    "test_every_element_type_is_right_or_refused": 60,
    "test_rule": 60,  # of the catalogue
    "test_containers_convert_to_the_same_files": 60,
    "test_right_or_refused": 60,  # ops in Caffe
    "test_clean_or_refused": 60,
    "test_images_of_any_size": 60,
}
# Before NumPy or PyTorch is imported, and for the workers of xdist, which inherit it: there are as many
# workers as cores, and threads that wait for each other take more than half of the processor's time.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["TMCONVERT_CHECK_PASSES"] = "1"  # each pass is to leave a valid graph, not only all of them
# Tests start hundreds of processes. Where byte code is not stored, each of them compiles the package, which
# takes longer than most of the tests.
if sys.dont_write_bytecode:
    sys.dont_write_bytecode = False
    sys.pycache_prefix = str(ROOT.parent / ".pytest_cache" / "bytecode")
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
RUNTIMES = {"onnx": "onnxruntime", "tflite": "litert"}


def pytest_configure() -> None:
    """Lets all models of tests be those that users have, also where a test imports internals only."""
    import tmconvert.surgery  # noqa: F401


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write golden files anew; review the diff")


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-golden"))


@cache
def op_names() -> frozenset[str]:
    from tmconvert.symbolics.ops import MODULES

    return frozenset(name.rpartition("::")[2] for names in MODULES.values() for name in names.split())


def op_of(config: pytest.Config) -> str | None:
    """The op that ``pytest -k OP`` names, without paths; None where it names something else.

    Collecting all 27,000 tests takes much longer than running the tests of one op. Files that do not contain
    the name are then not collected, except those with a test for each op.
    """
    word = config.getoption("keyword")
    is_whole_suite = [Path(each).resolve() for each in config.args] == [ROOT]
    return word if word.isidentifier() and is_whole_suite and word in op_names() else None


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    op, path = op_of(config), collection_path
    if op is None or path == ROOT or not path.is_relative_to(ROOT):
        return None
    is_of_ops = path.relative_to(ROOT).parts[0] in OF_OPS
    return None if path.is_dir() or is_of_ops or path in files_with(op) else True


@cache
def files_with(word: str) -> frozenset[Path]:
    """Files of tests that contain ``word``, or the name of a module of samples that contains it."""
    texts = {path: path.read_text("utf-8") for path in ROOT.rglob("*.py")}
    found = {path for path, text in texts.items() if word in path.name or word in text}
    samples = {
        name
        for path in found
        for name in (path.stem, path.parent.name)
        if name.endswith("samples") and path.relative_to(ROOT).parts[0] not in OF_OPS
    }
    return frozenset(found) | {
        path for path, text in texts.items() if any(f"{name} import" in text for name in samples)
    }


def pytest_report_header(config: pytest.Config) -> str:
    op = op_of(config)
    return f"{op} is an op: only files with this word are collected; name a path to collect all" if op else ""


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    families: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        families[item.nodeid.partition("[")[0]].append(item)
        for runtime in _runtimes(item):
            item.add_marker(runtime)
        if item.get_closest_marker("opencv") and find_spec("cv2") is None:
            item.add_marker(pytest.mark.skip("OpenCV is not installed"))
    for name, family in families.items():
        each = EACH_OF.get(name.rpartition("::")[2], EACH)
        for item in family[1:]:
            if zlib.crc32(item.nodeid.encode()) % each:
                item.add_marker("slow")


def _runtimes(item: pytest.Item) -> Iterator[str]:
    """The marks for what a test runs, read off the target among its parameters and its folder."""
    call = getattr(item, "callspec", None)
    targets = set() if call is None else {value for value in call.params.values() if isinstance(value, str)}
    for target, runtime in RUNTIMES.items():
        if target in targets or f"tests/targets/{target}/" in item.nodeid:
            yield runtime
    if "tests/frontends/torch/" in item.nodeid:
        yield "torch"
