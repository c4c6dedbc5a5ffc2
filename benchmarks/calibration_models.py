"""Three networks for benchmarks/calibration.py, in plain PyTorch, and data for them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn

DIGITS = Path(__file__).parent.parent / "samples"


def conv_bn(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> list[nn.Module]:
    return [
        nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
    ]


class Residual(nn.Module):
    """Two convolutions around which the input, or a projection of it, is added."""

    def __init__(self, inputs: int, outputs: int, stride: int = 1) -> None:
        super().__init__()
        self.first = nn.Sequential(*conv_bn(inputs, outputs, 3, stride), nn.ReLU())
        self.second = nn.Sequential(*conv_bn(outputs, outputs, 3))
        is_same = inputs == outputs and stride == 1
        self.beside = nn.Identity() if is_same else nn.Sequential(*conv_bn(inputs, outputs, 1, stride))
        self.relu = nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.relu(self.second(self.first(x)) + self.beside(x))


class Inverted(nn.Module):
    """MobileNetV2's block: wider, a filter for each channel, narrower."""

    def __init__(self, inputs: int, outputs: int, stride: int, ratio: int) -> None:
        super().__init__()
        inner = inputs * ratio
        wider = [*conv_bn(inputs, inner, 1), nn.ReLU6()] if ratio > 1 else []
        each = [*conv_bn(inner, inner, 3, stride, inner), nn.ReLU6()]
        self.layers = nn.Sequential(*wider, *each, *conv_bn(inner, outputs, 1))
        self.is_residual = stride == 1 and inputs == outputs

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.layers(x) if self.is_residual else self.layers(x)


class Chain(nn.Module):
    """One layer after the other, under a name that is no number, which TinyNN needs."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


class Digits(nn.Module):
    """The network of samples/digits.tm."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(*conv_bn(1, 24, 3), nn.ReLU())
        self.residual = Residual(24, 24)
        self.max_pool = nn.MaxPool2d(2)
        self.depthwise = nn.Sequential(*conv_bn(24, 24, 3, groups=24), nn.ReLU())
        self.pointwise = nn.Sequential(*conv_bn(24, 48, 1), nn.ReLU())
        self.mix = nn.Sequential(*conv_bn(48, 48, 3), nn.ReLU())
        self.avg_pool = nn.AvgPool2d(2)
        self.classifier = nn.Linear(192, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.max_pool(self.residual(self.stem(x)))
        x = self.avg_pool(self.mix(self.pointwise(self.depthwise(x))))
        return self.classifier(torch.flatten(x, 1))


def digits() -> nn.Module:
    import tmconvert

    arrays = {
        f"{path}.{name}": tensor
        for path, module in tmconvert.load(DIGITS / "digits.tm").modules()
        for name, tensor in module.tensors.items()
    }
    named = {
        **{f"{name}.": f"{name}." for name in ("stem", "depthwise", "pointwise", "mix")},
        "residual.first.": "residual.first.",
        "residual.second.": "residual.",
    }
    model = Digits()
    state = model.state_dict()
    for ours, theirs in named.items():
        for name in ("weight", "bias", "running_mean", "running_var"):
            state[f"{ours}1.{name}"] = torch.tensor(arrays[f"{theirs}bn.{name}"].reshape(-1))
        weight = torch.tensor(arrays[f"{theirs}conv.weight"])
        state[f"{ours}0.weight"] = weight.reshape(state[f"{ours}0.weight"].shape)
    for name in ("weight", "bias"):
        state[f"classifier.{name}"] = torch.tensor(arrays[f"classifier.{name}"])
    model.load_state_dict(state)
    return model


def resnet18() -> nn.Module:
    blocks, inputs = [], 64
    for outputs, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        blocks += [Residual(inputs, outputs, stride), Residual(outputs, outputs)]
        inputs = outputs
    stem = [*conv_bn(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    return Chain(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))


def mobilenet_v2() -> nn.Module:
    rows = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2))
    blocks, inputs = [], 32
    for ratio, outputs, count, stride in (*rows, (6, 320, 1, 1)):
        for number in range(count):
            blocks.append(Inverted(inputs, outputs, stride if number == 0 else 1, ratio))
            inputs = outputs
    stem = [*conv_bn(3, 32, 3, 2), nn.ReLU6()]
    head = [*conv_bn(320, 1280, 1), nn.ReLU6(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, 1000)]
    return Chain(*stem, *blocks, *head)


MODELS = {"digits": digits, "resnet18": resnet18, "mobilenet_v2": mobilenet_v2}


@dataclass(frozen=True)
class Split:
    """Seeds of the weights and of three sets of inputs: for the statistics of the batch norms, for the
    calibration, and for the comparison; ``digits`` has the first image of the latter two.
    """

    weights: int
    statistics: int
    calibration: int
    test: int
    digits: tuple[int, int]


# what is reported had no part in any choice
SPLITS = {"choice": Split(1, 2, 3, 4, (100, 150)), "report": Split(11, 12, 13, 14, (275, 325))}


def images(name: str, size: int, seed: int) -> np.ndarray:
    """``size`` inputs: held-out digits, from number ``seed`` on, or smooth coloured noise with an edge."""
    if name == "digits":
        found = np.load(DIGITS / "digits_held_out.npz")["images"]
        return (found[seed:][:size, None] / np.float32(16)).astype(np.float32)
    random = np.random.default_rng(seed)
    made = np.zeros((size, 3, 224, 224), np.float32)
    for cells in (7, 28, 112):
        made += random.normal(size=(size, 3, cells, cells)).repeat(224 // cells, 2).repeat(224 // cells, 3)
    slope = random.normal(size=(size, 3, 1, 1))
    return (made + slope * np.linspace(-2, 2, 224) > 0) * np.float32(0.8) + np.float32(0.2) * made


def data(name: str, split: Split, samples: int, tests: int) -> tuple[np.ndarray, np.ndarray]:
    """Inputs for the calibration and for the comparison."""
    seeds = split.digits if name == "digits" else (split.calibration, split.test)
    return images(name, samples, seeds[0]), images(name, tests, seeds[1])


def prepared(name: str, split: Split) -> nn.Module:
    """The model with the statistics of its data where its weights are random."""
    torch.manual_seed(split.weights)
    model = MODELS[name]()
    if name != "digits":
        for module in model.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.momentum = None
                nn.init.uniform_(module.weight, 0.5, 1.5)
                nn.init.normal_(module.bias, 0, 0.3)
        with torch.no_grad():
            model.train()(torch.from_numpy(images(name, 32, split.statistics)))
    return model.eval()
