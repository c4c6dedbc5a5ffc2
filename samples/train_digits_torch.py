"""Trains the transformer of ``digits_torch.py`` on scikit-learn's digits, split as in ``train_digits.py``.

Needs PyTorch and scikit-learn. Writes, beside this script or into --out: `digits_torch.pt` (weights) and
`digits_torch_logits.npy` (what it computes for the images of `digits_test.npz`).
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from digits_torch import DigitsTransformer
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

SEED = 20260  # of train_digits.py, whose 450 test images are held out here, too
TEST_SIZE = 450
EPOCHS = 150
BATCH = 64
PEAK_RATE = 4e-3
WEIGHT_DECAY = 1e-2
BRIGHTEST = 16


def to_input(images: np.ndarray) -> torch.Tensor:
    """The network's input, float32 [N, 1, 8, 8] in 0..1, of images [N, 8, 8] in 0..16."""
    return torch.from_numpy((images[:, None] / BRIGHTEST).astype(np.float32))


def shifted(images: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The images, each moved by up to one pixel up or down and left or right."""
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1)))
    offsets = rng.integers(0, 3, size=(len(images), 2))
    return np.stack([padded[i, top : top + 8, left : left + 8] for i, (top, left) in enumerate(offsets)])


def train(net: torch.nn.Module, images: np.ndarray, labels: np.ndarray, rng: np.random.Generator) -> None:
    """Fits the network for a fixed number of epochs; the test set chooses nothing."""
    net.train()
    optimizer = torch.optim.AdamW(net.parameters(), lr=PEAK_RATE, weight_decay=WEIGHT_DECAY)
    batches = len(images) // BATCH
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, PEAK_RATE, EPOCHS * batches)
    for epoch in range(EPOCHS):
        order, total = rng.permutation(len(images)), 0.0
        for batch in range(batches):
            chosen = order[batch * BATCH : (batch + 1) * BATCH]
            logits = net(to_input(shifted(images[chosen], rng)))
            loss = torch.nn.functional.cross_entropy(logits, torch.from_numpy(labels[chosen]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item()
        if (epoch + 1) % 30 == 0:
            print(f"epoch {epoch + 1:3d}  mean loss {total / batches:.4f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    here = Path(__file__).parent
    parser.add_argument("--out", type=Path, default=here, help="folder to write into")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)

    digits = load_digits()
    train_images, test_images, train_labels, test_labels = train_test_split(
        digits.images.astype(np.uint8),
        digits.target,
        test_size=TEST_SIZE,
        stratify=digits.target,
        random_state=SEED,
    )
    with np.load(here / "digits_test.npz") as stored:
        assert np.array_equal(stored["images"], test_images[: len(stored["images"])]), "another split"
        kept = len(stored["images"])

    torch.set_num_threads(1)  # the same numbers on every machine, as far as that goes
    torch.manual_seed(SEED)
    net = DigitsTransformer()
    print(f"{sum(p.numel() for p in net.parameters())} parameters, {len(train_images)} images")
    started = time.perf_counter()
    train(net, train_images, train_labels.astype(np.int64), np.random.default_rng(SEED))
    print(f"trained in {time.perf_counter() - started:.0f} s")

    net.eval()
    with torch.no_grad():
        logits = net(to_input(test_images)).numpy()
    right = int((logits.argmax(axis=1) == test_labels).sum())
    print(f"test accuracy {right / TEST_SIZE:.2%} ({right} of {TEST_SIZE})")
    print(f"of the {kept} stored: {int((logits[:kept].argmax(axis=1) == test_labels[:kept]).sum())}")
    torch.save(net.state_dict(), out / "digits_torch.pt")
    np.save(out / "digits_torch_logits.npy", logits[:kept])


if __name__ == "__main__":
    main()
