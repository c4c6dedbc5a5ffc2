"""Folders of transformers, each converted by one command: `tmconvert onnx FOLDER OUT.onnx`.

    python benchmarks/pretrained_folders.py [NAME...] [--target tflite]

The folders have small configurations of known architectures with random weights, as `save_pretrained` writes
them: encoders, decoders with a cache, encoder-decoders, vision and speech. A row is right if the command ends
with status 0 and verifies the file, and if the file, run in ONNX Runtime on other inputs than the example,
computes what PyTorch does (not for TFLite).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rows import table

SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
DECODER = {**SIZES, "num_key_value_heads": 2, "vocab_size": 61, "max_position_embeddings": 128}
ENCODER = {**SIZES, "vocab_size": 61, "max_position_embeddings": 64}
VISION = {**SIZES, "image_size": 32, "patch_size": 8}
HALVES = {
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "vocab_size": 61,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
}
IDS = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
STAGES = {"depths": [1, 1], "hidden_sizes": [8, 16]}
# name -> (kind, model class, configuration class, its settings)
MODELS: dict[str, tuple[str, str, str, dict[str, Any]]] = table(__file__, globals())


def saved(name: str, folder: Path) -> None:
    """Writes the folder of a model with random weights."""
    import torch
    import transformers

    _, model, config, settings = MODELS[name]
    torch.manual_seed(0)
    made = getattr(transformers, model)(getattr(transformers, config)(**settings))
    made.eval().save_pretrained(folder)


class Sizes(dict[str, int]):
    """Open sizes by name: 3 where nothing else is given."""

    def __missing__(self, name: str) -> int:
        return 3


def expected(folder: Path, described: list[dict[str, Any]], sizes: Sizes) -> Any:
    """Inputs of other sizes, and what PyTorch computes for them; the example where no size is open."""
    import tmconvert

    model = tmconvert.load(str(folder))
    if model.rerun is None:
        return model.example
    shapes = [
        tuple(eval(str(size), {"__builtins__": {}}, sizes) for size in each["shape"]) for each in described
    ]
    return model.rerun.at(shapes)


def row(name: str, target: str, compare: Callable[[Path, Path, dict[str, Any]], float]) -> bool:
    """Converts a model in a process, and prints what came of it."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / name
        saved(name, folder)
        out = Path(temporary) / f"{name}.{target}"
        start = time.perf_counter()
        program = [sys.executable, "-m", "tmconvert", target, str(folder), str(out), "--json"]
        done = subprocess.run(program, capture_output=True, text=True, check=False)
        seconds = time.perf_counter() - start
        if done.returncode:
            print(f"| {name} | {MODELS[name][0]} | status {done.returncode}: {done.stderr.strip()[:200]} |")
            return False
        report = json.loads(done.stdout)
        error = compare(folder, out, report)
        is_right = bool(report["verified"]) and error < 1e-3
        sizes = sorted({size for each in report["inputs"] for size in each["shape"] if isinstance(size, str)})
        print(
            f"| {name} | {MODELS[name][0]} | {report['max_error']:.1e} | {error:.1e} | "
            f"{len(report['inputs'])} to {len(report['outputs'])} | {', '.join(sizes)} | {seconds:.0f} s |",
            flush=True,
        )
        return is_right


def in_onnx_runtime(folder: Path, out: Path, report: dict[str, Any]) -> float:
    """The largest difference to PyTorch at other sizes, by the largest value."""
    import onnxruntime

    described = report["inputs"]
    found = expected(folder, described, Sizes(batch=2, past=5, sequence=4, samples=800))
    session = onnxruntime.InferenceSession(str(out), providers=["CPUExecutionProvider"])
    made = session.run(
        None, {each["name"]: array for each, array in zip(described, found.inputs, strict=True)}
    )
    return max(
        float(np.abs(one - other).max() / max(np.abs(other).max(), 1e-6))
        for one, other in zip(made, found.outputs, strict=True)
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(MODELS), metavar="NAME")
    parser.add_argument("--target", default="onnx", choices=("onnx", "tflite"))
    given = parser.parse_args()
    compare = in_onnx_runtime if given.target == "onnx" else lambda *_: 0.0
    print("| model | kind | error, verified | error at other sizes | inputs to outputs | open sizes | time |")
    print("|---|---|---|---|---|---|---|")
    right = sum(row(name, given.target, compare) for name in given.names)
    print(f"{right} of {len(given.names)} are right")
    return 0 if right == len(given.names) else 1


if __name__ == "__main__":
    sys.exit(main())
