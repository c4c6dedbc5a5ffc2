"""Trains a small CNN on scikit-learn's digits and saves it as a MegEngine TracedModule.

Needs a Python with MegEngine 1.13 and scikit-learn; tmconvert itself needs neither. Writes, beside this
script or into --out: `digits.tm`, `digits_test.npz` (test images, labels, MegEngine's logits) and
`images/*.png`.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path

import cv2
import megengine
import megengine.functional as F
import megengine.module as M
import numpy as np
from megengine.autodiff import GradManager
from megengine.optimizer import AdamW
from megengine.traced_module import trace_module
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

SEED = 20260
TEST_SIZE = 450
SAVED_IMAGES = 100
EPOCHS = 40
BATCH = 64
PEAK_RATE = 4e-3
WEIGHT_DECAY = 1e-3
BRIGHTEST = 16  # scikit-learn's digits count the dark pixels of 4x4 cells: 0..16
PNG_SCALE = 8


class ConvBnRelu(M.Module):
    """A convolution without bias, batch norm, ReLU; the spatial size stays."""

    def __init__(self, in_channels: int, out_channels: int, kernel: int = 3, groups: int = 1) -> None:
        super().__init__()
        self.conv = M.Conv2d(
            in_channels, out_channels, kernel, padding=kernel // 2, groups=groups, bias=False
        )
        self.bn = M.BatchNorm2d(out_channels)

    def forward(self, x: megengine.Tensor) -> megengine.Tensor:
        return F.relu(self.bn(self.conv(x)))


class Residual(M.Module):
    """Two convolutions around which the input is added."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = ConvBnRelu(channels, channels)
        self.conv = M.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn = M.BatchNorm2d(channels)

    def forward(self, x: megengine.Tensor) -> megengine.Tensor:
        return F.relu(self.bn(self.conv(self.first(x))) + x)


class DigitsNet(M.Module):
    """Logits [N, 10] of images [N, 1, 8, 8] scaled to 0..1.

    The last feature map is 2x2, not 1x1, so that a converter which flattens NHWC data in the wrong order is
    caught by the accuracy.
    """

    def __init__(self) -> None:
        super().__init__()
        self.stem = ConvBnRelu(1, 24)
        self.residual = Residual(24)
        self.max_pool = M.MaxPool2d(2)
        self.depthwise = ConvBnRelu(24, 24, groups=24)
        self.pointwise = ConvBnRelu(24, 48, kernel=1)
        self.mix = ConvBnRelu(48, 48)
        self.avg_pool = M.AvgPool2d(2)
        self.classifier = M.Linear(48 * 2 * 2, 10)

    def forward(self, x: megengine.Tensor) -> megengine.Tensor:
        x = self.max_pool(self.residual(self.stem(x)))
        x = self.avg_pool(self.mix(self.pointwise(self.depthwise(x))))
        return self.classifier(F.flatten(x, 1))


def to_input(images: np.ndarray) -> np.ndarray:
    """The network's input, float32 [N, 1, 8, 8] in 0..1, of images [N, 8, 8] in 0..16."""
    return (images[:, None] / BRIGHTEST).astype(np.float32)


def shifted(images: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The images, each moved by up to one pixel up or down and left or right."""
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1)))
    offsets = rng.integers(0, 3, size=(len(images), 2))
    return np.stack([padded[i, top : top + 8, left : left + 8] for i, (top, left) in enumerate(offsets)])


def train(net: M.Module, images: np.ndarray, labels: np.ndarray, rng: np.random.Generator) -> None:
    """Fits the network; the learning rate falls from PEAK_RATE to zero along a half cosine.

    The number of epochs is fixed and the last weights are kept: the test set chooses nothing.
    """
    net.train()
    optimizer = AdamW(net.parameters(), lr=PEAK_RATE, weight_decay=WEIGHT_DECAY)
    gradients = GradManager().attach(net.parameters())
    batches = len(images) // BATCH
    for epoch in range(EPOCHS):
        order = rng.permutation(len(images))
        losses = []
        for batch in range(batches):
            progress = (epoch * batches + batch) / (EPOCHS * batches)
            for group in optimizer.param_groups:
                group["lr"] = PEAK_RATE * (1 + math.cos(math.pi * progress)) / 2
            chosen = order[batch * BATCH : (batch + 1) * BATCH]
            inputs = megengine.Tensor(to_input(shifted(images[chosen], rng)))
            targets = megengine.Tensor(labels[chosen].astype(np.int32))
            with gradients:
                loss = F.nn.cross_entropy(net(inputs), targets)
                gradients.backward(loss)
            optimizer.step().clear_grad()
            losses.append(float(loss.item()))
        if (epoch + 1) % 10 == 0:
            print(f"epoch {epoch + 1:2d}  mean loss {np.mean(losses):.4f}")


def logits_one_by_one(module: M.Module, images: np.ndarray) -> np.ndarray:
    """Logits, float32 [N, 10]; each image is a batch of its own, as in the traced module."""
    inputs = to_input(images)
    rows = [module(megengine.Tensor(inputs[i : i + 1])).numpy() for i in range(len(inputs))]
    return np.concatenate(rows).astype(np.float32)


def save_pngs(folder: Path, images: np.ndarray, labels: np.ndarray) -> None:
    """Writes the first image of each digit as `<label>_<index in the npz>.png`."""
    folder.mkdir(parents=True, exist_ok=True)
    for digit in range(10):
        index = int(np.flatnonzero(labels == digit)[0])
        grey = np.round(images[index] * (255 / BRIGHTEST)).astype(np.uint8)
        enlarged = grey.repeat(PNG_SCALE, axis=0).repeat(PNG_SCALE, axis=1)
        path = folder / f"{digit}_{index:04d}.png"
        if not cv2.imwrite(str(path), enlarged):
            raise OSError(f"cannot write {path}")


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
    net = DigitsNet()
    print(f"{sum(int(np.prod(p.shape)) for p in net.parameters())} parameters, {len(train_images)} images")
    started = time.perf_counter()
    train(net, train_images, train_labels, np.random.default_rng(SEED))
    print(f"trained in {time.perf_counter() - started:.0f} s")

    net.eval()
    traced = trace_module(net, megengine.Tensor(to_input(test_images[:1])))
    megengine.save(traced, str(out / "digits.tm"))

    # The figures and the stored logits come from the file, so they describe what a converter reads.
    logits = logits_one_by_one(megengine.load(str(out / "digits.tm")), test_images)
    right = int(np.sum(logits.argmax(axis=1) == test_labels))
    print(f"test accuracy {right / TEST_SIZE:.2%} ({right} of {TEST_SIZE})")

    saved = slice(0, SAVED_IMAGES)
    np.savez_compressed(
        out / "digits_test.npz",
        images=test_images[saved],
        labels=test_labels[saved].astype(np.uint8),
        logits=logits[saved],
    )
    save_pngs(out / "images", test_images[saved], test_labels[saved])


if __name__ == "__main__":
    main()
