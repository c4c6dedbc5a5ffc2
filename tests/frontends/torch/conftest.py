"""Tests of the tracer need torch. Random inputs are the same in every run, and in every worker."""

import importlib.util

import pytest

if importlib.util.find_spec("torch") is None:
    collect_ignore_glob = ["*.py"]
else:
    import torch

    torch.manual_seed(0)  # for inputs that are made when a module of tests is imported


@pytest.fixture(autouse=True)
def same_inputs() -> None:
    torch.manual_seed(1)


def pytest_make_parametrize_id(config: pytest.Config, val: object, argname: str) -> str | None:
    """Tensors by their shapes: their numbers make no name."""
    if type(val).__module__ == "torch" and type(val).__name__ == "Tensor":  # torch may not be there
        return f"{argname}-{'x'.join(map(str, val.shape))}-{val.dtype}"
    return None
