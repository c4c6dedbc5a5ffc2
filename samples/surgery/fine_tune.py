"""Fine-tunes the digits CNN from its .tm, without MegEngine, and converts the result.

    python samples/surgery/fine_tune.py --out out/fine_tuned.onnx

Needs PyTorch, and ONNX Runtime to verify the file. 300 images that the CNN has not seen are for training, 150
others measure it before and after; the whole takes some seconds.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from torch import nn

import tmconvert

SAMPLES = Path(__file__).parents[1]
BRIGHTEST = 16  # the images have 0..16, the model takes 0..1
TRAINED = 300  # images; the others measure
EPOCHS, BATCH, RATE = 8, 50, 2e-4


def held_out() -> tuple[torch.Tensor, torch.Tensor]:
    """Images [450, 1, 8, 8] that were not in the training of ``digits.tm``, and their labels."""
    with np.load(SAMPLES / "digits_held_out.npz") as stored:
        images = stored["images"][:, None].astype(np.float32) / BRIGHTEST
        return torch.from_numpy(images), torch.from_numpy(stored["labels"].astype(np.int64))


def accuracy(net: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> float:
    """The share of images that the network reads right, in evaluation mode."""
    net.eval()
    with torch.no_grad():
        return float((net(images).argmax(dim=1) == labels).float().mean())


def train(net: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> None:
    """Fits all parameters. The statistics of batch norms stay: so few images say little of them."""
    torch.manual_seed(0)
    optimizer = torch.optim.AdamW(net.parameters(), lr=RATE)
    net.train()
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.eval()
    for _ in range(EPOCHS):
        for chosen in torch.randperm(len(images)).split(BATCH):
            loss = nn.functional.cross_entropy(net(images[chosen]), labels[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def fine_tuned() -> tuple[nn.Module, float, float]:
    """The trained network, and its accuracy before and after."""
    images, labels = held_out()
    net = tmconvert.load(SAMPLES / "digits.tm").to_torch()
    before = accuracy(net, images[TRAINED:], labels[TRAINED:])
    train(net, images[:TRAINED], labels[:TRAINED])
    return net, before, accuracy(net, images[TRAINED:], labels[TRAINED:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("fine_tuned.onnx"), help="the ONNX file to write")
    out = parser.parse_args().out
    net, before, after = fine_tuned()
    print(f"accuracy on {450 - TRAINED} other images: {before:.1%} before, {after:.1%} after")
    out.parent.mkdir(parents=True, exist_ok=True)
    example = held_out()[0][:2]
    print(tmconvert.to_onnx(net, out, example_inputs=example, dynamic_shapes={"x": {0: "batch"}}))


if __name__ == "__main__":
    main()
