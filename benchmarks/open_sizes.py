"""Random PyTorch programs with open sizes, converted and compared with PyTorch at other sizes.

    python benchmarks/open_sizes.py [COUNT] [FIRST SEED]

Examples have 1, 2, 3 or 5 rows; every third file is TFLite. Each file runs at the example's size and at
six others. Prints what became of each program:
open (right at all sizes), fixed, in a range (TM2030), refused, wrong.
"""

from __future__ import annotations

import collections
import math
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch.nn.utils import rnn

import tmconvert
from tmconvert.errors import InternalError, TmconvertError
from tmconvert.targets.registry import runtime_for

ROWS = (1, 2, 3, 5)
MOST_SCALED = 6  # times that inputs are divided by 8 whose outputs overflow
OTHERS = (1, 2, 3, 4, 7, 11, 23)
ROUNDINGS: dict[str, Callable[[float], int]] = {
    "ceil": lambda number: math.ceil(number),
    "floor": lambda number: math.floor(number),
    "trunc": lambda number: math.trunc(number),
    "round": lambda number: round(number),
    "int": lambda number: int(number),
}
Step = tuple[str, Callable[[torch.Tensor], torch.Tensor]]


def _rows_written(x: torch.Tensor, rows: slice) -> torch.Tensor:
    x = x.clone()
    x[rows] = x.mean()
    return x


def _steps(draw: random.Random) -> list[Step]:
    """The steps to choose from, with numbers drawn for this program."""
    k, low, high = draw.randint(1, 6), draw.randint(-4, 3), draw.randint(-3, 12)
    return [
        (f"x[:{k}]", lambda x: x[:k]),
        (f"x[-{k}:]", lambda x: x[-k:]),
        (f"x[{low}:{high}]", lambda x: x[low:high]),
        ("x[::2]", lambda x: x[::2]),
        (f"x[{low}:{high}] = mean", lambda x: _rows_written(x, slice(low, high))),
        ("x[0]", lambda x: x[0].expand_as(x)),
        ("x[-1]", lambda x: x - x[-1]),
        ("x[[0, -1]]", lambda x: x[[0, -1]]),
        ("squeeze", lambda x: x.unsqueeze(0).squeeze()),
        ("reshape", lambda x: x.reshape(x.shape[0], 2, -1).transpose(1, 2).flatten(1)),
        ("view", lambda x: x.contiguous().view(-1, 2).repeat(1, 2)),
        ("matmul", lambda x: x @ x.mT @ x),
        ("softmax", lambda x: x.softmax(0)),
        ("cumsum", lambda x: x.cumsum(0)),
        ("cumprod", lambda x: x.cumprod(0)),
        ("logcumsumexp", lambda x: x.logcumsumexp(0)),
        ("flip", lambda x: x.flip(0)),
        (f"roll {k}", lambda x: x.roll(k, 0)),
        ("cat", lambda x: torch.cat([x, x[:1]])),
        ("mean", lambda x: x - x.mean(0, keepdim=True)),
        ("/ n", lambda x: x / x.shape[0]),
        ("float(n)", lambda x: x / float(x.shape[0])),
        (f"if n > {k}", lambda x: x * 2 if x.shape[0] > k else x * 3),
        ("if n == 1", lambda x: x * 2 if x.shape[0] == 1 else x * 3),
        ("range(n)", lambda x: sum((x[i] for i in range(x.shape[0])), x)),
        (f"min(n, {k})", lambda x: x[: min(x.shape[0], k)]),
        ("arange", lambda x: x + torch.arange(x.shape[0])[:, None]),
        ("triu", lambda x: torch.triu(x @ x.mT) @ x),
        ("split", lambda x: torch.split(x, 2)[0]),
        ("chunk", lambda x: x.chunk(2)[-1]),
        ("pad", lambda x: torch.nn.functional.pad(x, (0, 0, k, 1))),
        ("relu", lambda x: x.relu()),
        *_floats_of_sizes(draw, k),
        *_images(k),
        *_arrays(k),
    ]


def _floats_of_sizes(draw: random.Random, k: int) -> list[Step]:
    """Steps that compute sizes by floats of Python and NumPy."""
    share, name = draw.choice((0.3, 0.5, 0.75, 1.5)), draw.choice(list(ROUNDINGS))
    rounded = ROUNDINGS[name]
    return [
        (f"x[: {name}(n * {share})]", lambda x: x[: rounded(x.shape[0] * share)]),
        (f"{name}(n / {k})", lambda x: x * rounded(x.shape[0] / k)),
        (f"{name}(n)", lambda x: x[: rounded(x.shape[0])] / rounded(x.shape[0])),
        ("np.ceil", lambda x: x[: int(np.ceil(x.shape[0] / k))]),
        ("n ** 0.5", lambda x: x * x.shape[0] ** -0.5),
        ("n ** 0.5 rows", lambda x: x[: int(x.shape[0] ** 0.5)]),
        ("log2", lambda x: _padded(x, 2 ** int(np.ceil(np.log2(x.shape[0] + 10))))),
        ("bit_length", lambda x: _padded(x, 1 << (x.shape[0] - 1).bit_length())),
        (f"log n / {k}", lambda x: x * (math.log(x.shape[0] + 1) / math.log(k + 1))),
        (f"pad to {k}", lambda x: F.pad(x, (0, 0, 0, -x.shape[0] % k))),
        (f"pad to {k}, cut", lambda x: _in_blocks(x, k, (x.shape[0] + k - 1) // k * k)),
        (f"pad to {k} by ceil, cut", lambda x: _in_blocks(x, k, math.ceil(x.shape[0] / k) * k)),
        (f"if n % {k}: pad", lambda x: F.pad(x, (0, 0, 0, k - x.shape[0] % k)) if x.shape[0] % k else x),
        (f"pad by max({k} - n, 0)", lambda x: _padded(x, max(k + 3, x.shape[0]))),
        ("halves", lambda x: torch.cat([x[x.shape[0] // 2 :], x[: x.shape[0] // 2]])),
    ]


def _images(k: int) -> list[Step]:
    """Steps on the rows as an image or as a sequence."""
    return [
        ("aspect", lambda x: _resized(x, lambda h, w: (int(h * (k + 2) / max(h, w)) + 1, w))),
        ("aspect, round", lambda x: _resized(x, lambda h, w: (round(h * ((k + 2) / min(h, w))), w))),
        ("half", lambda x: _resized(x, lambda h, w: (max(h // 2, 1), w), "nearest")),
        ("scale_factor", lambda x: F.interpolate(x.mT[None], scale_factor=1.5)[0].mT),
        (f"{k + 1} / n", lambda x: F.interpolate(x.mT[None], scale_factor=(k + 1) / x.shape[0])[0].mT),
        (f"adaptive {k}", lambda x: F.adaptive_avg_pool1d(x.mT[None], k)[0].mT),
        ("pool, crop", lambda x: _cropped(x, F.max_pool1d(x.mT[None], 2, ceil_mode=True)[0].mT)),
        ("pool n % 2", lambda x: F.avg_pool1d(x.mT[None], 2, padding=x.shape[0] % 2)[0].mT),
        ("conv_transpose", lambda x: _TRANSPOSED(x.mT[None, :, ::2], output_size=[x.shape[0]])[0].mT),
        ("unfold", lambda x: x.unfold(0, 2, 1).mean(2)),
        ("as_strided", lambda x: x.contiguous().as_strided((x.shape[0] - 1, 2, 4), (4, 4, 1)).sum(1)),
        ("packed", lambda x: _packed(x[None], [x.shape[0]])[0]),
        ("packed rows", lambda x: _packed(torch.stack([x, x * 2]), [x.shape[0]] * 2)[1]),
        ("lstm", lambda x: _LSTM(x[None])[0][0]),
        ("reflect", lambda x: F.pad(x.mT[None], (1, 1), "reflect")[0].mT),
        (f"topk {k}", lambda x: x.topk(min(k, x.shape[0]), 0).values),
    ]


def _arrays(k: int) -> list[Step]:
    """Steps with arrays and tensors as long as the rows."""
    return [
        ("np.arange", lambda x: x + torch.from_numpy(np.arange(x.shape[0], dtype=np.float32))[:, None]),
        ("np.sin", lambda x: x + torch.from_numpy(np.sin(np.arange(x.shape[0]) / 9)).float()[:, None]),
        ("np.linspace", lambda x: x * torch.tensor(np.linspace(0, 1, x.shape[0]), dtype=x.dtype)[:, None]),
        ("np.hanning", lambda x: x * torch.from_numpy(np.hanning(x.shape[0])).float()[:, None]),
        ("np.tril", lambda x: torch.from_numpy(np.tril(np.ones((x.shape[0],) * 2, np.float32))) @ x),
        ("np.eye", lambda x: torch.from_numpy(np.eye(x.shape[0], k=1, dtype=np.float32)) @ x),
        ("table", lambda x: x + _TABLE[: x.shape[0]]),
        ("np table", lambda x: x + torch.from_numpy(_TABLE.numpy()[: x.shape[0]])),
        ("linspace", lambda x: x * torch.linspace(-1, 1, x.shape[0])[:, None]),
        ("hann", lambda x: x * torch.hann_window(x.shape[0])[:, None]),
        ("zeros, write", lambda x: _written(x, torch.zeros(x.shape[0], 4))),
        ("Variable, write", lambda x: _written(x, torch.autograd.Variable(torch.zeros(x.shape[0], 4)))),
        ("new_zeros, write", lambda x: _written(x, x.new(x.shape[0], 4).zero_())),
        ("pdist", lambda x: x + F.pdist(x).sum()),
        ("combinations", lambda x: x + torch.combinations(x[:, 0]).prod(1).sum()),
        ("vander", lambda x: torch.vander(x[:, 0] / 2) @ x),
        ("list", lambda x: x[list(range(x.shape[0]))[::-1]]),
        (f"mask < {k}", lambda x: x.masked_fill(torch.arange(x.shape[0])[:, None] < k, 0.5)),
        ("one_hot", lambda x: F.one_hot(torch.arange(x.shape[0]) % 4, 4).float() + x),
        ("repeat_interleave", lambda x: x.repeat_interleave(2, 0)[: x.shape[0]]),
        ("fft", lambda x: torch.fft.rfft(x, dim=0).abs()),
        ("einsum", lambda x: torch.einsum("ij,kj,kl->il", x, x, x)),
    ]


_PARAMETERS = torch.Generator().manual_seed(0)
_TABLE = torch.rand(64, 4, generator=_PARAMETERS)
_LSTM = torch.nn.LSTM(4, 4, batch_first=True).eval().requires_grad_(False)
_TRANSPOSED = torch.nn.ConvTranspose1d(4, 4, 3, stride=2, padding=1).eval().requires_grad_(False)


def _padded(x: torch.Tensor, rows: int) -> torch.Tensor:
    return F.pad(x, (0, 0, 0, rows - x.shape[0]))


def _in_blocks(x: torch.Tensor, k: int, rows: int) -> torch.Tensor:
    blocks = _padded(x, rows).reshape(-1, k, 4)
    return (blocks - blocks.mean(1, keepdim=True)).reshape(-1, 4)[: x.shape[0]]


def _resized(
    x: torch.Tensor, size: Callable[[int, int], tuple[int, int]], mode: str = "bilinear"
) -> torch.Tensor:
    return F.interpolate(x[None, None], size=size(*x.shape), mode=mode)[0, 0]


def _cropped(x: torch.Tensor, pooled: torch.Tensor) -> torch.Tensor:
    rows = min(x.shape[0] - 1, 2 * pooled.shape[0])
    return pooled.repeat_interleave(2, 0)[:rows] + x[:rows]


def _packed(x: torch.Tensor, lengths: list[int]) -> torch.Tensor:
    packed = rnn.pack_padded_sequence(x, lengths, batch_first=True)
    return rnn.pad_packed_sequence(_LSTM(packed)[0], batch_first=True, total_length=x.shape[1])[0]


def _written(x: torch.Tensor, zeros: torch.Tensor) -> torch.Tensor:
    zeros[:, 0] = x[:, 1]
    zeros[1:, 2] = x[:-1, 3]
    return zeros


def program(seed: int) -> tuple[str, Callable[[torch.Tensor], torch.Tensor], int]:
    """(its steps in words, the function, the rows of its example)."""
    draw = random.Random(seed)
    chosen = [draw.choice(_steps(draw)) for _ in range(draw.randint(1, 4))]

    def function(x: torch.Tensor) -> torch.Tensor:
        for _, step in chosen:
            x = step(x)
        return x

    return " > ".join(name for name, _ in chosen), function, draw.choice(ROWS)


def outcome(seed: int, folder: Path) -> tuple[str, str]:
    """What became of the program, and more on it."""
    words, function, rows = program(seed)
    target = "tflite" if seed % 3 == 2 else "onnx"
    generator = torch.Generator().manual_seed(seed)
    about = f"{seed} {target} {rows} rows: {words}"
    try:
        example = torch.rand(rows, 4, generator=generator) + 0.5
        function(example)
    except (RuntimeError, IndexError, TypeError, ValueError, ArithmeticError):
        return "no program", about
    path = folder / f"model.{target}"
    try:
        traced = tmconvert.trace(function, example, dynamic_shapes={"x": {0: "n"}})
        report = getattr(tmconvert, f"to_{target}")(traced, path)
    except TmconvertError as error:
        kind = "defect" if isinstance(error, InternalError) or error.code == "TM4001" else "refused"
        return {"TM2030": "in a range", "TM2031": "fixed"}.get(error.code, kind), f"{about}: {error!s:.300}"
    except Exception as error:
        return "defect", f"{about}: {type(error).__name__}: {error}"
    is_open = report.inputs[0]["shape"][0] == "n"
    for size in dict.fromkeys((rows, *(OTHERS if is_open else ()))):
        wrong = _wrong(function, torch.rand(size, 4, generator=generator) + 0.5, path, target, report)
        if wrong:
            return wrong, f"{about} at {size}"
    return ("open", about) if is_open else ("fixed", f"{about}: {'; '.join([*traced.notes, *report.notes])}")


def _wrong(
    function: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor, path: Path, target: str, report: object
) -> str:
    try:
        wanted = function(x).numpy()
        for _ in range(MOST_SCALED):  # PyTorch accumulates in float64: what follows an infinity may be finite
            if np.isfinite(wanted).all():
                break
            x = x / 8
            wanted = function(x).numpy()
    except (RuntimeError, IndexError, TypeError, ValueError, ArithmeticError):
        return ""
    runtime = runtime_for(target, path)
    assert runtime is not None
    try:
        (found,) = runtime.run([path], {"x": x.numpy()}, [report.outputs[0]["name"]])  # type: ignore[attr-defined]
    except TmconvertError:
        return "does not run"
    # elements that cancel are off by the rounding of the largest; products may overflow, to the same NaN
    largest = float(np.max(np.abs(wanted), initial=1, where=np.isfinite(wanted)))
    equal = found.shape == wanted.shape and np.allclose(
        found, wanted, rtol=0, atol=1e-4 * largest, equal_nan=True
    )
    return "" if equal else "WRONG"


def main(count: int = 2000, first: int = 0) -> dict[str, int]:
    found: collections.Counter[str] = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, first + count):
            kind, about = outcome(seed, Path(folder))
            found[kind] += 1
            if kind in ("WRONG", "defect", "does not run"):
                print(kind, about, flush=True)
    print(dict(found.most_common()))
    return dict(found)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
