"""Greedy decoding with the cache of the file: tokens of ONNX Runtime beside those of PyTorch.

    python benchmarks/decoding.py --only llama gemma3 --markdown

Each decoder is converted once, with batch, past and sequence open and the names of optimum. Then prompts of
different lengths (padded on the left in a batch) are decoded for 50 tokens: the first step has an empty cache
and the whole prompt, each further one a token and the cache that the step before gave.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from decoding_families import FAMILIES, VOCABULARY

import tmconvert
from tmconvert.errors import TmconvertError

STEPS = 50
PROMPTS = ((9,), (6, 3, 11))  # lengths, by batch
BATCH, PAST, SEQUENCE = 2, 7, 5  # of the example


def convert(model: torch.nn.Module, path: Path, **options: Any) -> Any:
    """Converts a decoder with its cache; returns the report."""
    from transformers import DynamicCache

    tokens = torch.randint(1, VOCABULARY, (BATCH, PAST + SEQUENCE))
    with torch.no_grad():
        past = model(tokens[:, :PAST], past_key_values=DynamicCache(), use_cache=True).past_key_values
    sizes = {
        "input_ids": {0: "batch", 1: "sequence"},
        "attention_mask": {0: "batch", 1: "past+sequence"},
        "position_ids": {0: "batch", 1: "sequence"},
    }
    for layer in range(len(past.layers)):
        for name in ("key", "value"):
            sizes[f"past_key_values.{layer}.{name}"] = {0: "batch", 2: "past"}
    example = {
        "input_ids": tokens[:, PAST:],
        "attention_mask": torch.ones_like(tokens),
        "position_ids": torch.arange(PAST, PAST + SEQUENCE).repeat(BATCH, 1),
        "past_key_values": past,
        "use_cache": True,
    }
    return tmconvert.to_onnx(
        model, path, example_kwargs=example, dynamic_shapes=sizes, names="optimum", **options
    )


def prompt(lengths: tuple[int, ...]) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns tokens, padded on the left, and their mask."""
    generator = torch.Generator().manual_seed(sum(lengths))
    tokens = torch.randint(1, VOCABULARY, (len(lengths), max(lengths)), generator=generator)
    places = torch.arange(max(lengths))
    mask = (places >= max(lengths) - torch.tensor(lengths)[:, None]).long()
    return tokens * mask, mask


def expected(model: Any, tokens: torch.Tensor, mask: torch.Tensor, steps: int) -> np.ndarray:
    """Returns the tokens that PyTorch decodes."""
    made = model.generate(
        tokens, attention_mask=mask, max_new_tokens=steps, min_new_tokens=steps, do_sample=False
    )
    return made[:, tokens.shape[1] :].numpy()


def decoded(path: Path, tokens: torch.Tensor, mask: torch.Tensor, steps: int) -> np.ndarray:
    """Returns the tokens that the file decodes in ONNX Runtime."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    outputs = [each.name for each in session.get_outputs()]
    cache = {
        each.name: np.zeros([_extent(each.shape, axis, len(tokens)) for axis in range(4)], np.float32)
        for each in session.get_inputs()
        if each.name.startswith("past_key_values.")
    }
    ids, seen = tokens.numpy(), mask.numpy()
    found = []
    for _ in range(steps):
        places = np.maximum(np.cumsum(seen, 1) - 1, 0)[:, -ids.shape[1] :]
        fed = {"input_ids": ids, "attention_mask": seen, "position_ids": places, **cache}
        made = dict(zip(outputs, session.run(None, fed), strict=True))
        ids = made["logits"][:, -1].argmax(-1)[:, None]
        found.append(ids)
        seen = np.concatenate([seen, np.ones_like(ids)], 1)
        cache = {name: made[name.replace("past_key_values", "present")] for name in cache}
    return np.concatenate(found, 1)


def _extent(shape: list[Any], axis: int, batch: int) -> int:
    return {"batch": batch, "past": 0}.get(shape[axis], shape[axis])


def compared(name: str, folder: Path, steps: int = STEPS) -> str:
    """Converts and decodes a family; returns what differs, empty if nothing."""
    model, path = FAMILIES[name](), folder / f"{name}.onnx"
    report = convert(model, path)
    problems = list(report.notes) + [f"range: {each}" for each in report.ranges]
    for lengths in PROMPTS:
        tokens, mask = prompt(lengths)
        wanted, found = expected(model, tokens, mask, steps), decoded(path, tokens, mask, steps)
        if not np.array_equal(wanted, found):
            count = int((wanted != found).any(0).argmax())
            problems.append(f"prompts of {lengths}: other tokens from {count} on")
    return "; ".join(problems)


def main() -> None:
    """Prints a line a family; the exit status is 1 where one is not right."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", choices=FAMILIES, default=list(FAMILIES))
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--markdown", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    failed = 0
    for name in arguments.only:
        start = time.process_time()
        with tempfile.TemporaryDirectory() as folder:
            try:
                problem = compared(name, Path(folder), arguments.steps)
            except TmconvertError as error:
                problem = str(error).replace("\n", " / ")
        failed += bool(problem)
        cells = [name, problem or "equal", f"{time.process_time() - start:.1f} s"]
        print(f"| {' | '.join(cells)} |" if arguments.markdown else "  ".join(cells), flush=True)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
