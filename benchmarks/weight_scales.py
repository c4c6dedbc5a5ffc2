"""Measures the loss of a trained model with int4 weights, by scale rule, beside ONNX Runtime's quantizer.

    python benchmarks/weight_scales.py [SECONDS]

Trains a small decoder of characters on the text of Python's own help, and prints the table of
docs/how-to/precision.md: the loss on text that it was not trained on, of ONNX files in float32, and of files
whose products have int4 weights in blocks of 32, with the Kullback-Leibler divergence of their predictions
from those in float32. Embeddings stay float32, as in ONNX Runtime's quantizer.
"""

from __future__ import annotations

import logging
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from pydoc_data.topics import topics

import numpy as np
import onnx
import onnxruntime
import torch
from onnxruntime.quantization import matmul_nbits_quantizer as theirs
from torch import nn
from torch.nn.functional import cross_entropy, kl_div, nll_loss

import tmconvert

LENGTH, WIDTH, BATCH = 96, 128, 24
RULES = ("max", "mse", "asymmetric")
EXACT = {"session.qdq_matmulnbits_accuracy_level": "1"}  # activations are not rounded


class Decoder(nn.Module):
    """Three layers of causal attention over characters."""

    def __init__(self, characters: int) -> None:
        super().__init__()
        self.table = nn.Embedding(characters, WIDTH)
        self.places = nn.Parameter(torch.randn(LENGTH, WIDTH) / 50)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, 0, "gelu", batch_first=True, norm_first=True)
            for _ in range(3)
        )
        self.head = nn.Linear(WIDTH, characters)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(LENGTH))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.table(tokens) + self.places
        for layer in self.layers:
            x = layer(x, src_mask=self.mask)
        return self.head(x)


def corpus() -> tuple[torch.Tensor, torch.Tensor, int]:
    text = "\n".join(topics[name] for name in sorted(topics))
    characters = sorted(set(text))
    codes = torch.tensor([characters.index(each) for each in text])
    end = len(codes) * 9 // 10
    return codes[:end], codes[end:], len(characters)


def trained(codes: torch.Tensor, characters: int, seconds: float) -> Decoder:
    torch.manual_seed(0)
    model = Decoder(characters)
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    started = time.perf_counter()
    while (elapsed := time.perf_counter() - started) < seconds:
        optimizer.param_groups[0]["lr"] = 2e-3 * (1.02 - elapsed / seconds)
        starts = torch.randint(0, len(codes) - LENGTH - 1, (BATCH,))
        window = torch.stack([codes[start : start + LENGTH + 1] for start in starts.tolist()])
        loss = cross_entropy(model(window[:, :-1]).flatten(0, 1), window[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()


def windows(codes: torch.Tensor) -> torch.Tensor:
    count = min(400, (len(codes) - 1) // LENGTH)
    return torch.stack([codes[LENGTH * i : LENGTH * i + LENGTH + 1] for i in range(count)])


def logits_of(path: Path, held: torch.Tensor) -> torch.Tensor:
    options = onnxruntime.SessionOptions()
    for entry in EXACT.items():
        options.add_session_config_entry(*entry)
    session = onnxruntime.InferenceSession(str(path), options)
    name = session.get_inputs()[0].name
    made = [session.run(None, {name: each[None, :-1].numpy()})[0][0] for each in held]
    return torch.from_numpy(np.stack(made)).float().flatten(0, 1).log_softmax(-1)


def files(model: Decoder, held: torch.Tensor, folder: Path) -> Iterator[tuple[str, Path]]:
    traced = tmconvert.trace(model, held[:1, :-1])
    plain = folder / "plain.onnx"
    tmconvert.to_onnx(traced, plain, opset=21)
    yield "float32", plain
    own = {"weights": "int4", "opset": 21, "integer_weights": "MatMulNBits", "rules": {"table": "float32"}}
    for half in ({}, {"float_type": "float16"}):
        for rule in RULES:
            path = folder / f"{rule}{len(half)}.onnx"
            tmconvert.to_onnx(traced, path, weight_scales=rule, **own, **half)
            yield f"tmconvert, {rule}{', float16' * bool(half)}", path
    kinds = {
        "symmetric": {"is_symmetric": True},
        "asymmetric": {"is_symmetric": False},
        "HQQ": {"algo_config": theirs.HQQWeightOnlyQuantConfig(block_size=32)},
        "k-quant": {"algo_config": theirs.KQuantWeightOnlyQuantConfig()},
    }
    for name, settings in kinds.items():
        path = folder / f"{name}.onnx"
        quantizer = theirs.MatMulNBitsQuantizer(onnx.load(plain), block_size=32, **settings)
        quantizer.process()
        onnx.save(quantizer.model.model, path)
        yield f"ONNX Runtime, {name}", path


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 240
    logging.disable()  # of the other quantizer, a line a node
    codes, rest, characters = corpus()
    model = trained(codes, characters, seconds)
    held = windows(rest)
    print("| weights | loss | divergence from float32 | kB |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        plain = None
        for name, path in files(model, held, Path(folder)):
            found = logits_of(path, held)
            plain = found if plain is None else plain
            loss = float(nll_loss(found, held[:, 1:].flatten()))
            moved = float(kl_div(found, plain, reduction="batchmean", log_target=True))
            print(f"| {name} | {loss:.4f} | {moved:.5f} | {path.stat().st_size >> 10} |", flush=True)


if __name__ == "__main__":
    main()
