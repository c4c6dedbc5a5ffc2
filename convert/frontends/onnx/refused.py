"""Operators that are not converted, and why."""

from __future__ import annotations

_REASONS = {
    "no target has tensors of strings": (
        *("StringConcat", "StringNormalizer", "StringSplit", "RegexFullMatch", "LabelEncoder"),
        "TfIdfVectorizer",
    ),
    "it makes random numbers": ("Multinomial",),
    "it decodes an image, which belongs before the model": ("ImageDecoder",),
    "it trains a model": ("Adagrad", "Adam", "Gradient", "Momentum"),
}
_BY_NAME = {name: reason for reason, names in _REASONS.items() for name in names}
CLASSICAL = "trees, vectorizers and other classical models of ai.onnx.ml have no counterpart in the targets"


def reason_of(name: str) -> str | None:
    """Returns why the operator ``name``, such as ``onnx.Adam``, is not converted, if that is known."""
    domain, _, operator = name.rpartition(".")
    return CLASSICAL if domain == "ai.onnx.ml" else _BY_NAME.get(operator)
