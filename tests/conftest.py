"""Options and marks of the test suite, and its default: the tests that run when none are named.

``python -m pytest`` runs the default, a sample of all behaviour that takes three minutes on two cores: the
first case of each test and one of ``EACH`` others, or of as many as its mark ``one_in`` says,
and no test marked slow. ``--all`` runs the whole suite; a path, a node id, ``-k`` or ``-m`` all it names.
"""

from __future__ import annotations

import gc
import os
import random
import shutil
import signal
import sys
import tempfile
import zlib
from collections.abc import Generator, Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).parent
OF_OPS = ("symbolics", "test_catalogue.py")
EACH = 50
# folders whose tests are more than a default needs: it takes one of so many of them
FOLDERS = {"tests/frontends/torch/": 4}
# Before NumPy or PyTorch is imported, and for the workers of xdist, which inherit it: there are as many
# workers as cores, and threads that wait for each other take more than half of the processor's time.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Files of tests are in memory where there is enough of it: a disk that tells its device which blocks are free
# takes milliseconds for each folder that is removed, and for each file that is flushed.
MEMORY = Path("/dev/shm")
if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > 4 << 30:
    os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)
# where the key of the records of ``tmconvert convert`` is kept
os.environ["XDG_STATE_HOME"] = str(ROOT.parent / ".pytest_cache" / "state")
os.environ["TMCONVERT_CHECK_PASSES"] = "1"  # each pass is to leave a valid graph, not only all of them
# A first example pays for imports, and other processes for their share of the processor.
settings.register_profile("tmconvert", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tmconvert")
# Tests start hundreds of processes. Where byte code is not stored, each of them compiles the package, which
# takes longer than most of the tests.
if sys.dont_write_bytecode:
    sys.dont_write_bytecode = False
    sys.pycache_prefix = str(ROOT.parent / ".pytest_cache" / "bytecode")
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
HAS_TORCH = find_spec("torch") is not None
WITHOUT_TORCH = "Skipped: PyTorch is not installed"
RUNTIMES = {"onnx": "onnxruntime", "tflite": "litert"}


def pytest_configure() -> None:
    """Lets all models of tests be those that users have, also where a test imports internals only."""
    import tmconvert.surgery  # noqa: F401


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--all", action="store_true", help="run the whole suite, not its default of three minutes"
    )
    parser.addoption("--update-golden", action="store_true", help="write golden files anew; review the diff")


@pytest.fixture(autouse=True)
def _seeded() -> None:
    """Lets a test draw the same numbers in each run: what depends on them cannot fail now and then."""
    random.seed(0)
    sys.modules["numpy"].random.seed(0)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)


@pytest.fixture
def is_default(request: pytest.FixtureRequest) -> bool:
    """Whether the test runs as one of the default, which takes less of what one test repeats."""
    return not runs_all(request.config)


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-golden"))


@cache
def op_names() -> frozenset[str]:
    from tmconvert.symbolics.ops import MODULES

    return frozenset(name.rpartition("::")[2] for names in MODULES.values() for name in names.split())


@cache
def names_tests(config: pytest.Config) -> bool:
    """Whether the command line names paths or node ids; without, ``testpaths`` is the whole suite."""
    return [Path(each).resolve() for each in config.args] != [ROOT]


def runs_all(config: pytest.Config) -> bool:
    """Whether all tests run: the whole suite, or all of those that the command line names."""
    options = config.option
    return bool(options.all or options.keyword or options.markexpr or names_tests(config))


def op_of(config: pytest.Config) -> str | None:
    """The op that ``pytest -k OP`` names, without paths; None where it names something else.

    Collecting the whole suite takes longer than running the tests of one op. Files that do not contain
    the name are then not collected, except those with a test for each op.
    """
    word = config.getoption("keyword")
    return word if word.isidentifier() and not names_tests(config) and word in op_names() else None


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
    if op := op_of(config):
        return f"{op} is an op: only files with this word are collected; name a path to collect all"
    return "" if runs_all(config) else "the default, a sample: --all runs the whole suite"


def pytest_sessionstart(session: pytest.Session) -> None:
    gc.disable()  # nothing that collection makes is garbage, and there is much of it
    if session.config.option.dist == "no":  # this process runs tests; it has no workers
        keep_ignored_signals_from_children()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def keep_ignored_signals_from_children() -> None:
    """Handles the signals that this process ignores, under ``nohup`` or in the background, by doing nothing.

    Processes inherit which signals are ignored, and tests send signals to those that they start. A handler is
    not inherited.
    """
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"):
        number = getattr(signal, name, None)  # Windows lacks two
        if number is not None and signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem(
    collector: pytest.Collector,
) -> Generator[None, object, object]:
    """Leaves the cases of a test that are not of the default."""
    made = yield
    if not isinstance(made, list) or runs_all(collector.config):
        return made
    return [item for number, item in enumerate(made) if is_of_default(item, number)]


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Skips files that import PyTorch where it is not installed."""
    report = yield
    if report.failed and not HAS_TORCH and "No module named 'torch'" in str(report.longrepr):
        report.outcome, report.longrepr = "skipped", (str(collector.path), 0, WITHOUT_TORCH)
    return report


def skip_what_is_missing() -> Generator[None, object, object]:
    """Skips tests that import PyTorch, or whose fixtures do, where it is not installed; and tests of what an
    older ONNX Runtime lacks, which is the newest for Python 3.10.
    """
    try:
        return (yield)
    except ModuleNotFoundError as error:
        if HAS_TORCH or error.name != "torch":
            raise
        pytest.skip(WITHOUT_TORCH)
    except Exception as error:
        if not is_of_old_runtime(error):
            raise
        pytest.skip(f"an older ONNX Runtime: {error}")


pytest_runtest_setup = pytest.hookimpl(wrapper=True)(skip_what_is_missing)
pytest_runtest_call = pytest.hookimpl(wrapper=True)(skip_what_is_missing)


def is_of_old_runtime(error: BaseException | None) -> bool:
    """Whether ONNX Runtime, in a release without all kernels, refused a file, or something that it caused."""
    from tests.opsets import is_full_runtime
    from tmconvert.errors import RuntimeTooOld

    if error is None or is_full_runtime():
        return False
    is_refused = isinstance(error, RuntimeTooOld) or type(error).__module__.startswith("onnxruntime")
    return is_refused or is_of_old_runtime(error.__cause__)


def is_of_default(item: pytest.Item, number: int) -> bool:
    """Whether the default runs a case, the ``number``-th of its test."""
    if item.get_closest_marker("slow") is not None:
        return False
    own = item.get_closest_marker("one_in")
    if number:
        return _is_one_of(own.args[0] if own else EACH, item.nodeid)
    test = item.nodeid.partition("[")[0]
    return all(_is_one_of(each, test) for folder, each in FOLDERS.items() if test.startswith(folder))


def _is_one_of(each: int, name: str) -> bool:
    """Whether a name is one of about ``1 / each`` of all names, the same ones on every machine."""
    return zlib.crc32(name.encode()) % each == 0


def pytest_collection_modifyitems(config: pytest.Config, items: Sequence[pytest.Item]) -> None:
    for item in items:
        if config.option.markexpr:  # nothing else reads them
            for runtime in _runtimes(item):
                item.add_marker(runtime)
        if item.get_closest_marker("opencv") and find_spec("cv2") is None:
            item.add_marker(pytest.mark.skip("OpenCV is not installed"))


def _runtimes(item: pytest.Item) -> Iterator[str]:
    """The marks for what a test runs, read off the target among its parameters and its folder."""
    call = getattr(item, "callspec", None)
    targets = set() if call is None else {value for value in call.params.values() if isinstance(value, str)}
    for target, runtime in RUNTIMES.items():
        if target in targets or f"tests/targets/{target}/" in item.nodeid:
            yield runtime
    if "tests/frontends/torch/" in item.nodeid:
        yield "torch"
