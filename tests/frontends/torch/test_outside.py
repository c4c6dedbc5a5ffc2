"""What forward takes from outside of a model: other generators, clocks, files, variables."""

from __future__ import annotations

import datetime
import os
import random
import secrets
import time
import uuid
from collections.abc import Callable
from datetime import datetime as imported_class
from os import urandom
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pytest
import torch
from numpy.random import randn

import tmconvert
from tmconvert.errors import UnsupportedError

GENERATOR = np.random.default_rng(0)
X = torch.ones(2, 3)

Compute = Callable[[Any, torch.Tensor], Any]


class Net(torch.nn.Module):
    def __init__(self, compute: Compute) -> None:
        super().__init__()
        self.compute = compute
        self.generator, self.of_python = np.random.default_rng(3), random.Random(4)
        self.kept = {"state": [np.random.RandomState(1)]}

    def forward(self, x: torch.Tensor) -> Any:
        return self.compute(self, x)


OUTSIDE: dict[str, Compute] = {
    "random": lambda self, x: x * random.random(),
    "gauss": lambda self, x: x * random.gauss(0, 1),
    "choice": lambda self, x: x * random.choice(range(1000)),
    "permutation": lambda self, x: x[0][list(np.random.permutation(30) % 3)],
    "numpy": lambda self, x: x + torch.from_numpy(np.random.rand(2, 3).astype(np.float32)),
    "numpy in a list": lambda self, x: x + torch.tensor([np.random.randn()] * 3),
    "imported": lambda self, x: x * randn(),
    "held": lambda self, x: x * self.generator.random(),
    "held, of Python": lambda self, x: x * self.of_python.random(),
    "held in a list": lambda self, x: x * self.kept["state"][0].rand(),
    "global": lambda self, x: x * GENERATOR.random(),
    "without a seed": lambda self, x: x * np.random.default_rng().random(),
    "state without a seed": lambda self, x: x * np.random.RandomState().rand(),
    "Random without a seed": lambda self, x: x * random.Random().random(),
    "SystemRandom": lambda self, x: x * random.SystemRandom().random(),
    "secrets": lambda self, x: x * secrets.randbelow(10**6),
    "uuid4": lambda self, x: x * (uuid.uuid4().int % 10**6),
    "uuid1": lambda self, x: x * (uuid.uuid1().int % 10**6),
    "urandom": lambda self, x: x * int.from_bytes(os.urandom(3), "big"),
    "urandom, imported": lambda self, x: x * int.from_bytes(urandom(3), "big"),
    "time": lambda self, x: x * time.time(),
    "time_ns": lambda self, x: x * (time.time_ns() % 10**15),
    "perf_counter": lambda self, x: x * perf_counter(),
    "localtime": lambda self, x: x * time.localtime().tm_min,
    "now": lambda self, x: x * datetime.datetime.now().year,
    "now, imported": lambda self, x: x * imported_class.now(datetime.timezone.utc).weekday(),
    "today": lambda self, x: x * datetime.date.today().weekday(),
    "branch": lambda self, x: (
        x.relu() if perf_counter() % 1e9 < 1 or np.random.rand() < 0 else x * random.random()
    ),
}
INDEPENDENT: dict[str, Compute] = {
    "seeded": lambda self, x: x * np.random.default_rng(0).random(),
    "state with a seed": lambda self, x: x * np.random.RandomState(0).rand(),
    "Random with a seed": lambda self, x: x * random.Random(3).random(),
    "seeded before": lambda self, x: (random.seed(1), x * random.random())[1],
    "log": lambda self, x: (time.perf_counter(), x * 2)[1],
    "unused": lambda self, x: (x * random.random(), x * 2)[1],
    "times zero": lambda self, x: x + 0 * random.random(),
    "instance": lambda self, x: x * isinstance(imported_class(2020, 1, 1), imported_class),
}


def _forms(compute: Compute) -> list[Any]:
    net = Net(compute)
    return [net, lambda x: compute(net, x)]


@pytest.mark.parametrize("name", OUTSIDE)
def test_values_from_outside_are_refused(name: str) -> None:
    for model in _forms(OUTSIDE[name]):
        states = random.getstate(), np.random.get_state()[1].tobytes(), GENERATOR.bit_generator.state
        with pytest.raises(UnsupportedError) as error:
            tmconvert.trace(model, X)
        assert error.value.code == "TM2022"
        assert Path(str(error.value.source.file)).name == Path(__file__).name
        assert states == (
            random.getstate(),
            np.random.get_state()[1].tobytes(),
            GENERATOR.bit_generator.state,
        )


@pytest.mark.parametrize("name", INDEPENDENT)
def test_what_does_not_depend_on_them_is_traced(name: str) -> None:
    for model in _forms(INDEPENDENT[name]):
        state = random.getstate()
        np.testing.assert_allclose(tmconvert.trace(model, X)(X.numpy()), model(X).numpy(), rtol=1e-6)
        random.setstate(state)


def test_open_sizes_are_compared_with_the_same_numbers() -> None:
    with pytest.raises(UnsupportedError, match="random number that is not torch's"):
        tmconvert.trace(lambda x: x * random.random(), X, dynamic_shapes={"x": {0: "batch"}})


def test_what_is_read_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCALE_OF_NET", "3")
    np.save(tmp_path / "w.npy", np.ones(3, np.float32))
    (tmp_path / "n.txt").write_text("4")

    def net(x: torch.Tensor) -> torch.Tensor:
        x = x * float(os.environ["SCALE_OF_NET"]) + torch.from_numpy(np.load(tmp_path / "w.npy"))
        return x * float((tmp_path / "n.txt").read_text())

    (note,) = tmconvert.trace(net, X).notes
    assert note.startswith("the environment variable SCALE_OF_NET, the file ")
    assert "w.npy" in note and "n.txt" in note and "constant of the file" in note
    assert not tmconvert.trace(lambda x: x * 2, X).notes
