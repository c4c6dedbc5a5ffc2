"""The vocabulary of Caffe: maps calls of layers to adapters."""

from __future__ import annotations

from tmconvert.frontends.caffe.adapters import LAYERS
from tmconvert.frontends.caffe.layer_calls import PREFIX
from tmconvert.frontends.caffe.refused import reason_of
from tmconvert.frontends.shared.vocabulary import Adapter, AdapterVocabulary
from tmconvert.ir import CallFunction, Expr


class CaffeVocabulary(AdapterVocabulary):
    """Converts layers such as ``caffe.Convolution``."""

    identifier = "caffe"
    framework = "Caffe"

    def find(self, expr: Expr, args: tuple[object, ...]) -> tuple[str, Adapter | None]:
        name = self.name(expr)
        return name, LAYERS.get(name) if isinstance(expr, CallFunction) else None

    def knows(self, name: str, is_method: bool) -> bool:
        return not is_method and name in LAYERS

    def help(self, name: str) -> str:
        return "register a conversion with register_symbolic, or convert the net without this layer"

    def reason(self, name: str) -> str | None:
        return reason_of(name.removeprefix(PREFIX))


VOCABULARY = CaffeVocabulary()
