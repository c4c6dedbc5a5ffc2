"""A few ops of torch's own test database, as benchmarks/torch_op_db.py runs all of them.

What does not fit in a unit test: the many samples of each op. Here are the first of each element type.
"""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("expecttest", reason="torch's op_db needs it")
OPS = [
    "add",
    "addmm",
    "cat",
    "clamp",
    "cumsum",
    "gather",
    "index_add",
    "linspace",
    "narrow",
    "sum",
    "var_mean",
]
OPS += ["nn.functional.bilinear", "nn.functional.conv1d", "frexp", "native_batch_norm"]


@pytest.fixture(scope="module")
def run() -> ModuleType:
    path = Path(__file__).parents[3] / "benchmarks" / "torch_op_db.py"
    spec = importlib.util.spec_from_file_location("torch_op_db", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize("name", OPS)
def test_first_samples(run: ModuleType, name: str) -> None:
    for op in run.ops([f"^{name}$"]):
        outcome = run.tried(op, limit=3)
        assert outcome.state == "right", outcome.reasons()


def test_what_is_outside(run: ModuleType) -> None:
    assert run.outside("linalg.svd") and run.outside("nn.functional.dropout2d") and run.outside("sparse.mm")
    assert not any(map(run.outside, ("norm", "nn.functional.normalize", "masked.normalize", "linalg.inv")))
