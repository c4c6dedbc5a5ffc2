"""Trains the CNN of ``train_digits.py`` for integers, by MegEngine's quantization-aware training.

Needs a Python with MegEngine 1.13 and scikit-learn. Writes, beside this script or into --out:
`digits_qat.tm` and `digits_held_out.npz` (the 450 images that no training here sees, and their labels).
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import megengine
import megengine.functional as F
import megengine.module as M
import numpy as np
from megengine.autodiff import GradManager
from megengine.optimizer import AdamW
from megengine.quantization import disable_observer, ema_fakequant_qconfig, quantize_qat
from megengine.traced_module import trace_module
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from train_digits import BATCH, SEED, TEST_SIZE, logits_one_by_one, shifted, to_input

FLOAT_EPOCHS, FLOAT_RATE = 30, 4e-3
QAT_EPOCHS, QAT_RATE = 10, 3e-4


class Residual(M.Module):
    """Two convolutions around which the input is added."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = M.ConvBnRelu2d(channels, channels, 3, padding=1, bias=False)
        self.second = M.ConvBn2d(channels, channels, 3, padding=1, bias=False)
        self.add = M.Elemwise("FUSE_ADD_RELU")

    def forward(self, x: megengine.Tensor) -> megengine.Tensor:
        return self.add(self.second(self.first(x)), x)


class DigitsNet(M.Module):
    """The network of ``train_digits.py`` in modules that MegEngine quantizes."""

    def __init__(self) -> None:
        super().__init__()
        self.quant, self.dequant = M.QuantStub(), M.DequantStub()
        self.stem = M.ConvBnRelu2d(1, 24, 3, padding=1, bias=False)
        self.residual = Residual(24)
        self.max_pool = M.MaxPool2d(2)
        self.depthwise = M.ConvBnRelu2d(24, 24, 3, padding=1, groups=24, bias=False)
        self.pointwise = M.ConvBnRelu2d(24, 48, 1, bias=False)
        self.mix = M.ConvBnRelu2d(48, 48, 3, padding=1, bias=False)
        self.avg_pool = M.AvgPool2d(2)
        self.classifier = M.Linear(48 * 2 * 2, 10)

    def forward(self, x: megengine.Tensor) -> megengine.Tensor:
        x = self.max_pool(self.residual(self.stem(self.quant(x))))
        x = self.avg_pool(self.mix(self.pointwise(self.depthwise(x))))
        return self.dequant(self.classifier(F.flatten(x, 1)))


def train(
    net: M.Module,
    images: np.ndarray,
    labels: np.ndarray,
    rng: np.random.Generator,
    epochs: int,
    peak: float,
) -> None:
    """Fits the network; the learning rate falls from ``peak`` to zero along a half cosine."""
    net.train()
    optimizer = AdamW(net.parameters(), lr=peak, weight_decay=1e-3)
    gradients = GradManager().attach(net.parameters())
    batches = len(images) // BATCH
    for epoch in range(epochs):
        order = rng.permutation(len(images))
        for batch in range(batches):
            progress = (epoch * batches + batch) / (epochs * batches)
            for group in optimizer.param_groups:
                group["lr"] = peak * (1 + math.cos(math.pi * progress)) / 2
            chosen = order[batch * BATCH : (batch + 1) * BATCH]
            inputs = megengine.Tensor(to_input(shifted(images[chosen], rng)))
            targets = megengine.Tensor(labels[chosen].astype(np.int32))
            with gradients:
                loss = F.nn.cross_entropy(net(inputs), targets)
                gradients.backward(loss)
            optimizer.step().clear_grad()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="folder to write into")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)

    digits = load_digits()
    images = digits.images.astype(np.uint8)
    train_images, test_images, train_labels, test_labels = train_test_split(
        images, digits.target, test_size=TEST_SIZE, stratify=digits.target, random_state=SEED
    )
    megengine.random.seed(SEED)
    rng = np.random.default_rng(SEED)
    net = DigitsNet()
    train(net, train_images, train_labels, rng, FLOAT_EPOCHS, FLOAT_RATE)
    net.eval()
    right = np.sum(logits_one_by_one(net, test_images).argmax(axis=1) == test_labels)
    print(f"in float: test accuracy {right / TEST_SIZE:.2%} ({right} of {TEST_SIZE})")

    quantize_qat(net, qconfig=ema_fakequant_qconfig)
    train(net, train_images, train_labels, rng, QAT_EPOCHS, QAT_RATE)
    net.eval()
    disable_observer(net)
    traced = trace_module(net, megengine.Tensor(to_input(test_images[:1])))
    megengine.save(traced, str(out / "digits_qat.tm"))
    logits = logits_one_by_one(megengine.load(str(out / "digits_qat.tm")), test_images)
    right = np.sum(logits.argmax(axis=1) == test_labels)
    print(f"fake-quantized: test accuracy {right / TEST_SIZE:.2%} ({right} of {TEST_SIZE})")
    np.savez_compressed(out / "digits_held_out.npz", images=test_images, labels=test_labels.astype(np.uint8))


if __name__ == "__main__":
    main()
