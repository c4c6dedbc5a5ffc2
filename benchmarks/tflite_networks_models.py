"""Twenty kinds of networks with random weights: name -> (module, inputs)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise

import torch
from torch import Tensor, nn

Example = tuple[nn.Module, tuple[Tensor, ...]]


def torchvision_model(name: str, **options: object) -> Example:
    from torchvision_ops import declare

    declare()
    import torchvision

    torch.manual_seed(0)
    model = getattr(torchvision.models, name)(weights=None, **options)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.running_mean, -0.1, 0.1)
            nn.init.uniform_(module.running_var, 0.8, 1.2)
        if isinstance(module, nn.Linear) and not module.weight.any():  # ViT's head
            nn.init.normal_(module.weight, std=0.02)
    return model.eval(), (torch.rand(1, 3, 224, 224),)


def own(make: Callable[[], nn.Module], *shapes: tuple[int, ...]) -> Example:
    torch.manual_seed(0)
    return make().eval(), tuple(torch.rand(shape) for shape in shapes)


def convolved(inputs: int, outputs: int, stride: int = 1) -> nn.Sequential:
    conv = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outputs), nn.ReLU())


class UNet(nn.Module):
    """Three levels, transposed convolutions, skip connections."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        widths = [width, 2 * width, 4 * width, 8 * width]
        self.down = nn.ModuleList(
            nn.Sequential(convolved(a, b), convolved(b, b)) for a, b in pairwise([3, *widths])
        )
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in reversed(list(pairwise(widths))))
        self.merge = nn.ModuleList(
            nn.Sequential(convolved(2 * a, a), convolved(a, a)) for a in reversed(widths[:-1])
        )
        self.head = nn.Conv2d(width, 4, 1)

    def forward(self, x: Tensor) -> Tensor:
        skips = []
        for level in self.down[:-1]:
            x = level(x)
            skips.append(x)
            x = nn.functional.max_pool2d(x, 2)
        x = self.down[-1](x)
        for up, merge in zip(self.up, self.merge, strict=True):
            x = merge(torch.cat([skips.pop(), up(x)], 1))
        return self.head(x)


class TextLstm(nn.Module):
    """A classifier of token numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(1000, 64)
        self.lstm = nn.LSTM(64, 128, batch_first=True)
        self.head = nn.Linear(128, 10)

    def forward(self, tokens: Tensor) -> Tensor:
        states, _ = self.lstm(self.embedding(tokens))
        return self.head(states[:, -1])


class BertLayer(nn.Module):
    """Attention and feed forward with norms behind, as in BERT."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def split(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        return x.view(batch, length, self.heads, width // self.heads).transpose(1, 2)

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        scores = torch.matmul(query, key.transpose(-1, -2)) / query.shape[-1] ** 0.5
        mixed = torch.matmul(scores.softmax(-1), value).transpose(1, 2).reshape(x.shape)
        x = self.norm1(x + self.out(mixed))
        return self.norm2(x + self.narrow(nn.functional.gelu(self.wide(x))))


class TinyBert(nn.Module):
    """Two layers of width 128 over 128 tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(1000, 128), nn.Embedding(128, 128)
        self.norm = nn.LayerNorm(128)
        self.layers = nn.Sequential(BertLayer(128, 2), BertLayer(128, 2))
        self.pooler = nn.Linear(128, 128)
        self.register_buffer("positions", torch.arange(128)[None])

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.layers(self.norm(self.words(tokens) + self.places(self.positions)))
        return torch.tanh(self.pooler(x[:, 0]))


class Backbone(nn.Module):
    """Feature maps at strides 8, 16 and 32."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(convolved(3, 16, 2), convolved(16, 32, 2), convolved(32, 64, 2))
        self.more = nn.ModuleList([convolved(64, 64, 2), convolved(64, 64, 2)])

    def forward(self, x: Tensor) -> list[Tensor]:
        maps = [self.stem(x)]
        for stage in self.more:
            maps.append(stage(maps[-1]))
        return maps


class Yolo(nn.Module):
    """Boxes of three anchors a place, decoded with grids as constants: [1, boxes, 5 + classes]."""

    def __init__(self, size: int = 256, classes: int = 10) -> None:
        super().__init__()
        self.backbone = Backbone()
        self.outputs = 5 + classes
        self.heads = nn.ModuleList(nn.Conv2d(64, 3 * self.outputs, 1) for _ in range(3))
        for level, stride in enumerate((8, 16, 32)):
            extent = size // stride
            y, x = torch.meshgrid(torch.arange(extent), torch.arange(extent), indexing="ij")
            self.register_buffer(f"grid{level}", torch.stack([x, y], -1)[None, None].float())
            self.register_buffer(f"anchors{level}", stride * torch.rand(1, 3, 1, 1, 2) * 4)

    def forward(self, x: Tensor) -> Tensor:
        found = []
        for level, (features, head) in enumerate(zip(self.backbone(x), self.heads, strict=True)):
            y = head(features)
            batch, _, height, width = y.shape
            y = y.view(batch, 3, self.outputs, height, width).permute(0, 1, 3, 4, 2).sigmoid()
            centre = (y[..., :2] * 2 - 0.5 + getattr(self, f"grid{level}")) * (8 << level)
            extent = (y[..., 2:4] * 2) * (y[..., 2:4] * 2) * getattr(self, f"anchors{level}")
            y = torch.cat([centre, extent, y[..., 4:]], -1)
            found.append(y.view(batch, -1, self.outputs))
        return torch.cat(found, 1)


class Ssd(nn.Module):
    """Class scores and boxes of all places."""

    def __init__(self, anchors: int = 6, classes: int = 21) -> None:
        super().__init__()
        self.backbone = Backbone()
        self.classes = classes
        self.scores = nn.ModuleList(nn.Conv2d(64, anchors * classes, 3, padding=1) for _ in range(3))
        self.boxes = nn.ModuleList(nn.Conv2d(64, anchors * 4, 3, padding=1) for _ in range(3))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        maps = self.backbone(x)
        scores = [self.flat(head(m), self.classes) for head, m in zip(self.scores, maps, strict=True)]
        boxes = [self.flat(head(m), 4) for head, m in zip(self.boxes, maps, strict=True)]
        return torch.cat(scores, 1).softmax(-1), torch.cat(boxes, 1)

    def flat(self, x: Tensor, last: int) -> Tensor:
        return x.permute(0, 2, 3, 1).reshape(x.shape[0], -1, last)


class Audio(nn.Module):
    """Samples -> a spectrogram by convolution -> residual conv1d blocks -> classes."""

    def __init__(self) -> None:
        super().__init__()
        self.spectrum = nn.Conv1d(1, 2 * 65, 128, 64, bias=False)
        self.first = nn.Conv1d(65, 64, 3, 1, 1)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Conv1d(64, 64, 3, 1, rate, rate), nn.BatchNorm1d(64), nn.ReLU())
            for rate in (1, 2, 4)
        )
        self.head = nn.Linear(64, 12)

    def forward(self, samples: Tensor) -> Tensor:
        real, imaginary = self.spectrum(samples).chunk(2, 1)
        x = self.first((real * real + imaginary * imaginary + 1e-6).log())
        for block in self.blocks:
            x = x + block(x)
        return self.head(x.mean(-1))


def tokens(make: Callable[[], nn.Module], length: int) -> Example:
    torch.manual_seed(0)
    return make().eval(), (torch.randint(0, 1000, (1, length)),)


NETWORKS: dict[str, Callable[[], Example]] = {
    **{
        name: partial(torchvision_model, name)
        for name in (
            *("resnet18", "resnet50", "mobilenet_v2", "mobilenet_v3_large", "efficientnet_b0"),
            *("shufflenet_v2_x1_0", "densenet121", "squeezenet1_1", "vgg11"),
        )
    },
    "googlenet": partial(torchvision_model, "googlenet", aux_logits=False, init_weights=True),
    **{
        name: partial(torchvision_model, name)
        for name in ("regnet_y_400mf", "convnext_tiny", "vit_b_32", "swin_t")
    },
    "unet": partial(own, UNet, (1, 3, 128, 128)),
    "lstm": partial(tokens, TextLstm, 32),
    "bert_tiny": partial(tokens, TinyBert, 128),
    "yolo": partial(own, Yolo, (1, 3, 256, 256)),
    "ssd": partial(own, Ssd, (1, 3, 256, 256)),
    "audio": partial(own, Audio, (1, 1, 16000)),
}
