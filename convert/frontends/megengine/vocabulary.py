"""MegEngine's vocabulary: maps calls to adapters."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.megengine.adapters import FUNCTIONS, METHODS, MODULES
from tmconvert.frontends.megengine.refused import refusal_of
from tmconvert.frontends.megengine.release_differences import NEWEST, Release, as_of
from tmconvert.frontends.shared.recorded_qparams import with_recorded_qparams
from tmconvert.frontends.shared.vocabulary import Adapter, AdapterVocabulary
from tmconvert.ir import CallFunction, CallMethod, Expr, QParams, TracedModule
from tmconvert.ir.emitter import Emitter
from tmconvert.ir.fake_quant import fake_quantize, with_clear_ties


class MegEngineVocabulary(AdapterVocabulary):
    """Converts calls recorded by a release of MegEngine; see ``ir.traced_module.Vocabulary``."""

    framework = "MegEngine"

    def __init__(self, release: Release) -> None:
        self.release = release
        self.identifier = f"megengine-{'.'.join(map(str, release))}"

    def find(self, expr: Expr, args: tuple[object, ...]) -> tuple[str, Adapter | None]:
        name = self.name(expr)
        if isinstance(expr, CallFunction):
            adapter = FUNCTIONS.get(name)
            return name, adapter and as_of(self.release, name, adapter)
        assert isinstance(expr, CallMethod)
        if isinstance(args[0], TracedModule):
            called = expr.method == "__call__"
            return args[0].class_name, MODULES.get(args[0].class_name) if called else None
        return name, METHODS.get(expr.method)

    def knows(self, name: str, is_method: bool) -> bool:
        return name in (METHODS if is_method else FUNCTIONS)

    def help(self, name: str) -> str:
        if name.startswith(("megengine.", "opdef.", "Tensor.")):
            return "write this part of the model with functions that `tmconvert ops` lists"
        return "it is your own code: trace through it, or register a conversion with register_symbolic"

    def refusal(self, name: str) -> Refusal:
        return refusal_of(name) or super().refusal(name)

    def resolved(self, g: Emitter, expr: Expr, args: tuple[object, ...], result: object) -> Any:
        return with_recorded_qparams(g, expr, args, result, _requantized)


def _requantized(array: np.ndarray, qparams: QParams) -> np.ndarray:
    return fake_quantize(with_clear_ties(array, qparams), qparams)


@cache
def vocabulary_of(release: Release) -> MegEngineVocabulary:
    """Returns the vocabulary of a release, such as (1, 12, 4)."""
    return MegEngineVocabulary(release)


VOCABULARY = vocabulary_of(NEWEST)
