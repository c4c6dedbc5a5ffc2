"""Models of ``transformers`` with tiny configurations and random weights: name -> (module, args, kwargs).

Their classes and settings are rows of ``torch_models_transformers.json``; ``base`` names settings that many
share.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from rows import table
from torchvision_ops import declare

Example = tuple[torch.nn.Module, tuple[Any, ...], dict[str, Any]]
Factory = Callable[[], Example]

VOCABULARY, BATCH, LENGTH = 96, 2, 7


def ids(length: int = LENGTH) -> torch.Tensor:
    return torch.randint(3, VOCABULARY, (BATCH, length))


def mask(length: int = LENGTH) -> torch.Tensor:
    """All of the first sequence, all but two of the second."""
    rows = torch.ones(BATCH, length, dtype=torch.int64)
    rows[1, -2:] = 0
    return rows


def pixels(size: int = 32) -> dict[str, torch.Tensor]:
    return {"pixel_values": torch.randn(BATCH, 3, size, size)}


def text() -> dict[str, torch.Tensor]:
    return {"input_ids": ids(), "attention_mask": mask()}


def both() -> dict[str, torch.Tensor]:
    return {**text(), "decoder_input_ids": ids(5)}


def clip_inputs() -> dict[str, torch.Tensor]:
    texts = ids()
    texts[:, -1] = VOCABULARY - 1
    return {"input_ids": texts, "attention_mask": torch.ones_like(texts), **pixels()}


def layout_inputs() -> dict[str, torch.Tensor]:
    corner = torch.full((BATCH, LENGTH, 4), 7)  # any order of the numbers is a box
    return {**text(), "bbox": corner}


# by the ``inputs`` of a row
INPUTS: dict[str, Callable[[], dict[str, torch.Tensor]]] = table(__file__, globals())


def model(name: str, inputs: Callable[[], dict[str, Any]], *, config: str = "", **settings: Any) -> Factory:
    """The class ``name`` with its configuration class, or the one called ``config``."""

    def factory() -> Example:
        declare()
        import transformers

        torch.manual_seed(0)
        cls = getattr(transformers, name)
        made = getattr(transformers, config)(**settings) if config else cls.config_class(**settings)
        example = cls(made).eval(), (), inputs()
        for buffer_name, buffer in example[0].named_buffers():
            if buffer_name.endswith(
                "codebook.embed"
            ):  # an untrained one is all zeros, and every sound the same code
                buffer.normal_(std=0.05)  # as far apart as what the encoder gives
        return example

    return factory


def rows() -> Iterator[tuple[str, Factory]]:
    """Yields the models of the table by their names."""
    groups = json.loads(Path(__file__).with_suffix(".json").read_text())
    bases = groups.pop("bases")
    for group in groups.values():
        for name, row in group.items():
            base = bases[row["base"]] if "base" in row else {}
            settings = {**base, **row.get("settings", {})}
            yield name, model(row["class"], INPUTS[row["inputs"]], config=row.get("config", ""), **settings)


MODELS = dict(rows())
