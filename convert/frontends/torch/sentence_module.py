"""Modules that follow an encoder in a folder of sentence-transformers. Torch is not imported here."""

from __future__ import annotations

from typing import NamedTuple, TypedDict

TOKENS, SENTENCE = "token_embeddings", "sentence_embedding"  # what modules take and return


class Settings(TypedDict, total=False):
    """Settings of modules, as they are in their folders.

    ``modes`` are those of a Pooling, and ``activation`` of a Dense is a class of ``torch.nn``.
    """

    modes: tuple[str, ...]
    include_prompt: bool
    in_features: int
    out_features: int
    bias: bool
    activation: str
    module_input_name: str | None
    module_output_name: str | None
    dimension: int


class SentenceModule(NamedTuple):
    """A module that was checked: its kind, its settings, and the path of its weights.

    The path is empty for a module without weights.
    """

    kind: str
    settings: Settings
    weights: str = ""
