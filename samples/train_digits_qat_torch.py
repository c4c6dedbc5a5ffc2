"""Trains the CNN of ``train_digits.py`` for integers, by PyTorch's quantization-aware training.

Needs PyTorch, scikit-learn and tmconvert. Writes, beside this script or into --out: `digits_qat_torch.tm`,
what ``tmconvert.trace`` recorded of the trained module; tmconvert reads it without PyTorch.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
import torch.ao.quantization as quantization
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.ao.nn.quantized import FloatFunctional
from train_digits_torch import BATCH, SEED, TEST_SIZE, shifted, to_input

import tmconvert

FLOAT_EPOCHS, FLOAT_RATE = 30, 4e-3
QAT_EPOCHS, QAT_RATE = 10, 3e-4


def conv_bn_relu(channels: int, out: int, kernel: int = 3, groups: int = 1) -> nn.Sequential:
    conv = nn.Conv2d(channels, out, kernel, padding=kernel // 2, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(out), nn.ReLU())


class DigitsNet(nn.Module):
    """Logits [N, 10] of images [N, 1, 8, 8] scaled to 0..1."""

    def __init__(self) -> None:
        super().__init__()
        self.quant, self.dequant = quantization.QuantStub(), quantization.DeQuantStub()
        self.stem = conv_bn_relu(1, 24)
        self.first, self.second = conv_bn_relu(24, 24), conv_bn_relu(24, 24)[:2]
        self.add = FloatFunctional()
        self.max_pool = nn.MaxPool2d(2)
        self.depthwise, self.pointwise = conv_bn_relu(24, 24, groups=24), conv_bn_relu(24, 48, kernel=1)
        self.mix = conv_bn_relu(48, 48)
        self.avg_pool = nn.AvgPool2d(2)
        self.classifier = nn.Linear(48 * 2 * 2, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(self.quant(x))
        x = self.max_pool(self.add.add_relu(self.second(self.first(x)), x))
        x = self.avg_pool(self.mix(self.pointwise(self.depthwise(x))))
        return self.dequant(self.classifier(torch.flatten(x, 1)))

    def prepared(self) -> nn.Module:
        """With fake quantization: 8 bits, a scale for each channel of a weight."""
        layers = [name for name, each in self.named_children() if isinstance(each, nn.Sequential)]
        parts = [[f"{name}.{i}" for i in range(len(getattr(self, name)))] for name in layers]
        self.qconfig = quantization.QConfig(
            activation=quantization.FusedMovingAvgObsFakeQuantize.with_args(quant_min=0, quant_max=255),
            weight=quantization.default_fused_per_channel_wt_fake_quant,
        )
        fused = quantization.fuse_modules_qat(self.train(), parts)
        return quantization.prepare_qat(fused)


def train(
    net: nn.Module,
    images: np.ndarray,
    labels: np.ndarray,
    rng: np.random.Generator,
    epochs: int,
    peak: float,
) -> None:
    """Fits the network for a fixed number of epochs; the test set chooses nothing."""
    net.train()
    optimizer = torch.optim.AdamW(net.parameters(), lr=peak, weight_decay=1e-3)
    batches = len(images) // BATCH
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * batches)
    for epoch in range(epochs):
        if epoch == epochs - 2:  # the last two with the statistics and scales that will stay
            net.apply(quantization.disable_observer)
            net.apply(nn.intrinsic.qat.freeze_bn_stats)
        order = rng.permutation(len(images))
        for batch in range(batches):
            chosen = order[batch * BATCH : (batch + 1) * BATCH]
            logits = net(to_input(shifted(images[chosen], rng)))
            loss = nn.functional.cross_entropy(logits, torch.from_numpy(labels[chosen]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()


def accuracy(net: nn.Module, images: np.ndarray, labels: np.ndarray) -> str:
    with torch.no_grad():
        right = int((net.eval()(to_input(images)).argmax(1).numpy() == labels).sum())
    return f"test accuracy {right / TEST_SIZE:.2%} ({right} of {TEST_SIZE})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="folder to write into")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)

    digits = load_digits()
    train_images, test_images, train_labels, test_labels = train_test_split(
        digits.images.astype(np.uint8),
        digits.target.astype(np.int64),
        test_size=TEST_SIZE,
        stratify=digits.target,
        random_state=SEED,
    )
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    rng = np.random.default_rng(SEED)
    net: nn.Module = DigitsNet()
    train(net, train_images, train_labels, rng, FLOAT_EPOCHS, FLOAT_RATE)
    print("in float:", accuracy(net, test_images, test_labels))
    net = net.prepared()
    train(net, train_images, train_labels, rng, QAT_EPOCHS, QAT_RATE)
    print("fake-quantized:", accuracy(net, test_images, test_labels))
    tmconvert.trace(net.eval(), to_input(test_images[:1])).save(out / "digits_qat_torch.tm")


if __name__ == "__main__":
    main()
