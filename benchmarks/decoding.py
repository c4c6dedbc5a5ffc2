"""Greedy decoding with the cache of the file: compares the tokens of the runtime with PyTorch's.

    python benchmarks/decoding.py --markdown
    python benchmarks/decoding.py --only llama gemma3 --litert

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

import decoding_speech
import numpy as np
import torch
from decoding_families import FAMILIES, TINY, VOCABULARY
from decoding_runtimes import LiteRtFile, OrtFile

import tmconvert
from tmconvert.errors import TmconvertError

SPEECH = "whisper"
STEPS = 50
PROMPTS = ((9,), (6, 3, 11))  # lengths, by batch
BATCH, PAST, SEQUENCE = 2, 7, 5  # of the example


def convert(model: torch.nn.Module, path: Path) -> Any:
    """Converts a decoder with its cache to ONNX, or by the suffix to TFLite; returns the report."""
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
    options: dict[str, Any] = {"example_kwargs": example, "dynamic_shapes": sizes, "names": "optimum"}
    if path.suffix == ".tflite":
        return tmconvert.to_tflite(model, path, io_layout="source", **options)
    return tmconvert.to_onnx(model, path, **options)


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


def decoded(file: OrtFile | LiteRtFile, tokens: torch.Tensor, mask: torch.Tensor, steps: int) -> np.ndarray:
    """Returns the tokens that a file decodes with its own cache."""
    sizes = {"batch": len(tokens), "past": file.empty}
    cache = {
        name: np.zeros([sizes.get(extent, extent) for extent in shape], np.float32)
        for name, shape in file.shapes.items()
        if name.startswith("past_key_values.")
    }
    ids, hidden = tokens.numpy(), np.zeros((len(tokens), file.empty), np.int64)
    seen = np.concatenate([hidden, mask.numpy()], 1)
    found = []
    for _ in range(steps):
        places = np.maximum(np.cumsum(seen, 1) - 1, 0)[:, -ids.shape[1] :]
        made = file.run({"input_ids": ids, "attention_mask": seen, "position_ids": places, **cache})
        ids = made["logits"][:, -1].argmax(-1)[:, None]
        found.append(ids)
        seen = np.concatenate([seen, np.ones_like(ids)], 1)
        cache = {name: made[name.replace("past_key_values", "present")] for name in cache}
    return np.concatenate(found, 1)


def compared(name: str, folder: Path, steps: int = STEPS, suffix: str = ".onnx") -> str:
    """Converts and decodes a family; returns what differs, empty if nothing."""
    if name == SPEECH:
        return "; ".join(decoding_speech.compared(folder, steps))
    model, path = FAMILIES[name](), folder / f"{name}{suffix}"
    report = convert(model, path)
    problems = [note for note in report.notes if "specialized" in note]
    most = f"<= {TINY['max_position_embeddings']}"  # of a model with a table of positions
    problems += [f"range: {each}" for each in report.ranges if not each.endswith(most)]
    file = LiteRtFile(path) if suffix == ".tflite" else OrtFile(path)
    for lengths in PROMPTS:
        tokens, mask = prompt(lengths)
        wanted, found = expected(model, tokens, mask, steps), decoded(file, tokens, mask, steps)
        if not np.array_equal(wanted, found):
            count = int((wanted != found).any(0).argmax())
            problems.append(f"prompts of {lengths}: other tokens from {count} on")
    return "; ".join(problems)


def main() -> None:
    """Prints a line a family; the exit status is 1 where one is not right."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=[*FAMILIES, SPEECH])
    parser.add_argument("--litert", action="store_true", help="TFLite files, in LiteRT")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--markdown", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    failed, suffix = 0, ".tflite" if arguments.litert else ".onnx"
    for name in arguments.only:
        start = time.process_time()
        with tempfile.TemporaryDirectory() as folder:
            try:
                problem = compared(name, Path(folder), arguments.steps, suffix)
            except TmconvertError as error:
                problem = str(error).replace("\n", " / ")
        failed += bool(problem)
        cells = [name, problem or "equal", f"{time.process_time() - start:.1f} s"]
        print(f"| {' | '.join(cells)} |" if arguments.markdown else "  ".join(cells), flush=True)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
