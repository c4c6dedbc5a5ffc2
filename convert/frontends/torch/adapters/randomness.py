"""Random functions, which converted models cannot have."""

from __future__ import annotations

from typing import Any

from tmconvert.errors import Refusal
from tmconvert.frontends.shared.adapter_table import AdapterValue, Table
from tmconvert.ir.emitter import Emitter

ATEN = Table()

RANDOM = """rand randn randint randperm normal bernoulli multinomial poisson binomial rand_like randn_like
    randint_like uniform random exponential geometric cauchy log_normal normal_functional"""


def _declare(name: str) -> None:
    def adapter(g: Emitter, *args: AdapterValue, **kwargs: AdapterValue) -> Any:
        raise Refusal(f"{name} is random", "pass random values as an input")

    ATEN.add(name)(adapter)


for _name in RANDOM.split():
    _declare(_name)
