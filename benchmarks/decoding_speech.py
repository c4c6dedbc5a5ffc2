"""Greedy decoding of a speech model: an encoder, a decoder, and a decoder with a cache."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from decoding_families import VOCABULARY, whisper
from decoding_runtimes import Arrays, OrtFile

import tmconvert

BATCH, PAST, SEQUENCE = 2, 7, 5  # of the example
FILES = ("encoder", "decoder", "decoder_with_past")


class Step(torch.nn.Module):
    """A step of the decoder; with a cache, which has the keys and values of the encoder, too."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Any, encoder_hidden_states: Any = None, past_key_values: Any = None) -> Any:
        if encoder_hidden_states is None:  # the decoder requires one, and does not read it
            encoder_hidden_states = torch.zeros(1, 1, self.model.config.d_model)
        made = self.model(
            decoder_input_ids=input_ids,
            encoder_outputs=(encoder_hidden_states,),
            past_key_values=past_key_values,
            use_cache=True,
        )
        return {"logits": made.logits, "past_key_values": made.past_key_values}


def convert(model: Any, paths: list[Path]) -> list[str]:
    """Converts the model to the three files, as optimum has them; returns the notes and ranges."""
    features, ids = torch.randn(BATCH, 8, 40), torch.randint(4, VOCABULARY, (BATCH, SEQUENCE))
    step = Step(model).eval()
    with torch.no_grad():
        hidden = model.model.encoder(features).last_hidden_state
        past = step(torch.randint(4, VOCABULARY, (BATCH, PAST)), hidden)["past_key_values"]
    batch, tokens = {0: "batch"}, {0: "batch", 1: "sequence"}
    caches: dict[str, dict[int, str]] = {}
    for layer in range(len(past.self_attention_cache.layers)):
        for name in ("key", "value"):
            caches[f"past_key_values.self_attention_cache.{layer}.{name}"] = {0: "batch", 2: "past"}
            caches[f"past_key_values.cross_attention_cache.{layer}.{name}"] = batch
    wanted: list[tuple[Any, dict[str, Any], dict[str, dict[int, str]]]] = [
        (model.model.encoder, {"input_features": features}, {"input_features": batch}),
        (
            step,
            {"input_ids": ids, "encoder_hidden_states": hidden},
            {"input_ids": tokens, "encoder_hidden_states": batch},
        ),
        (step, {"input_ids": ids, "past_key_values": past}, {"input_ids": tokens, **caches}),
    ]
    notes: list[str] = []
    for path, (module, example, sizes) in zip(paths, wanted, strict=True):
        report = tmconvert.to_onnx(
            module, path, example_kwargs=example, dynamic_shapes=sizes, names="optimum"
        )
        notes += [*report.notes, *report.ranges]
    return notes


def expected(model: Any, features: torch.Tensor, ids: torch.Tensor, steps: int) -> np.ndarray:
    """Returns the tokens that PyTorch decodes, without a cache."""
    with torch.no_grad():
        hidden = model.model.encoder(features)
        for _ in range(steps):
            logits = model(decoder_input_ids=ids, encoder_outputs=hidden, use_cache=False).logits
            ids = torch.cat([ids, logits[:, -1:].argmax(-1)], 1)
    return ids[:, -steps:].numpy()


def decoded(files: list[OrtFile], features: torch.Tensor, ids: torch.Tensor, steps: int) -> np.ndarray:
    """Returns the tokens that the files decode."""
    encoder, file, further = files
    hidden = encoder.run({"input_features": features.numpy()})["last_hidden_state"]
    inputs: Arrays = {"input_ids": ids.numpy(), "encoder_hidden_states": hidden}
    found = []
    for _ in range(steps):
        made = file.run(inputs)
        inputs["input_ids"] = made["logits"][:, -1].argmax(-1)[:, None]
        found.append(inputs["input_ids"])
        for name, array in made.items():
            inputs[name.replace("present", "past_key_values")] = array
        file = further
    return np.concatenate(found, 1)


def compared(folder: Path, steps: int) -> list[str]:
    """Converts and decodes; returns what differs."""
    model, paths = whisper(), [folder / f"{name}.onnx" for name in FILES]
    problems = convert(model, paths)
    files = list(map(OrtFile, paths))
    for batch in (1, 3):
        features = torch.randn(batch, 8, 40, generator=torch.Generator().manual_seed(batch))
        ids = torch.arange(4, 4 + 3 * batch).reshape(batch, 3)
        wanted = expected(model, features, ids, steps)
        found = decoded(files, features, ids, steps)
        if not np.array_equal(wanted, found):
            problems.append(f"batch {batch}: other tokens")
    return problems
