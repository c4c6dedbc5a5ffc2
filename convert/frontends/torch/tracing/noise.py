"""Random numbers that become inputs: the module runs with functions that compute with given noise.

``noisy`` returns the module as one whose random tensors are keyword arguments. What draws them computes with
them in the same way in each run, so that the file is compared with what PyTorch computes of the same noise.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from tmconvert.errors import UnsupportedError, UsageError
from tmconvert.frontends.torch.tracing.recording.source_lines import user_place
from tmconvert.frontends.torch.tracing.recording.state_guard import same_randomness
from tmconvert.frontends.torch.tracing.sizes.integers import untraced
from tmconvert.frontends.torch.tracing.streaming import like_module, restored

TINY = float(torch.finfo(torch.float32).tiny)
_MASKED = {"dropout": 99, "dropout1d": 2, "dropout2d": 2, "dropout3d": 2, "feature_dropout": 2}
_DROPOUTS = {*_MASKED, "native_dropout"}

Clone = Callable[[], tuple[tuple[Any, ...], dict[str, Any]]]
Draw = Callable[..., torch.Tensor]
Number = torch.Tensor | float


class Drawn(NamedTuple):
    """A random tensor: its values in the example, its distribution, and the function that draws it."""

    tensor: torch.Tensor
    distribution: str
    function: str


class Noise(TorchFunctionMode):
    """Has functions take their random numbers from ``given``, in order; without it they are drawn."""

    def __init__(self, given: Sequence[Tensor] | None = None) -> None:
        super().__init__()
        self.given = given
        self.drawn: list[Drawn] = []
        self.taken = 0
        self.function = ""

    def __torch_function__(
        self, func: Draw, types: object, args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:  # fmt: skip
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "").partition(".")[0]  # that of an operator is "rand.default"
        compute = _FUNCTIONS.get(name)
        self.function = name
        if compute is None or (name in _DROPOUTS and not _is_training(args, kwargs)):
            return func(*args, **kwargs)
        kwargs.pop("generator", None)
        return compute(self, *args, **kwargs)

    def take(self, size: Sequence[int], kind: str, low: int = 0, high: int = 1) -> Tensor:
        """Returns the next random tensor: ``normal``, ``uniform``, ``exponential`` or ``integers``."""
        shape = tuple(untraced(each) for each in size)
        if self.given is None:
            plain = torch.empty(shape)
            made = {
                "normal": lambda: plain.normal_(),
                "uniform": lambda: plain.uniform_(),
                "exponential": lambda: plain.exponential_().clamp(min=TINY),
                "integers": lambda: torch.randint(low, high, shape),
            }[kind]()
            self.drawn.append(Drawn(made, _SHOWN[kind].format(low=low, high=high), self.function))
            return made.clone()
        self.taken += 1
        if (
            self.taken > len(self.given)
            or tuple(untraced(n) for n in self.given[self.taken - 1].shape) != shape
        ):
            raise UnsupportedError(
                "TM2022",
                "the module draws other random numbers than in the first run",
                source=user_place(),
                notes=[
                    ("help", "make the size of the input noise dynamic like that of the input it follows")
                ],
            )
        return self.given[self.taken - 1].clone()


_SHOWN = {
    "normal": "normal(0, 1)",
    "uniform": "uniform [0, 1)",
    "exponential": "exponential(1)",
    "integers": "integers [{low}, {high})",
}


def drawn_by(module: Callable[..., object], clone: Clone) -> list[Drawn]:
    """Returns the random tensors that a module draws."""
    mode = Noise()
    modules = list(module.named_modules()) if isinstance(module, torch.nn.Module) else []
    args, kwargs = clone()
    with same_randomness(), torch.no_grad(), restored(modules), mode:
        module(*args, **kwargs)
    return mode.drawn


def follows(one: Tensor, other: Tensor, size: str, number: int, other_number: int) -> dict[int, str]:
    """Returns the axes whose extent is a multiple of a size and a number, by runs at two sizes."""
    axes = {}
    for axis, (extent, at_other) in enumerate(zip(one.shape, other.shape, strict=True)):
        factor = (at_other - extent) // (other_number - number)
        more = extent - factor * number
        if factor:
            axes[axis] = f"{factor}*{size}" * (factor != 1) + size * (factor == 1) + f"{more:+}" * bool(more)
    return axes


def noisy(
    module: Callable[..., object], clone: Clone, names: Collection[str]
) -> tuple[Any, dict[str, Tensor], list[str]]:
    """Returns the module with its random tensors as arguments, examples of them, and notes.

    Raises UsageError TM6016 for a script, whose functions run where no mode sees them.
    """
    if isinstance(module, (torch.jit.ScriptModule, torch.jit.ScriptFunction)):
        why = "noise='input' applies to modules of Python and programs of torch.export, not to TorchScript"
        raise UsageError("TM6016", f"{why}: noise='operator' writes operators that draw the numbers")
    drawn = drawn_by(module, clone)
    if not drawn:
        return module, {}, ["noise: the module draws no random numbers"]
    base = "noise" if not any(name.startswith("noise") for name in names) else "drawn_noise"
    examples = {base if len(drawn) == 1 else f"{base}_{number}": each for number, each in enumerate(drawn)}

    def call(self: object, /, *args: object, **kwargs: Tensor) -> object:
        with Noise([kwargs.pop(name) for name in examples]):
            return module(*args, **kwargs)

    notes = [
        f"the input {name}, {str(each.tensor.dtype).removeprefix('torch.')}{list(each.tensor.shape)}, "
        f"is noise for {each.function}: {each.distribution}"
        for name, each in examples.items()
    ]
    if isinstance(module, torch.nn.Module):
        made: Any = like_module(module, call)
    else:
        made = functools.wraps(module)(functools.partial(call, None))
    return made, {name: each.tensor for name, each in examples.items()}, notes


# ---- what functions compute of noise


def _is_training(args: Sequence[object], kwargs: Mapping[str, object]) -> bool:
    named = dict(zip(("input", "p", "training"), args, strict=False)) | dict(kwargs)
    return bool(named.get("training", named.get("train", True))) and named.get("p", 0.5) != 0


def _cast(tensor: Tensor, dtype: torch.dtype | None, default: torch.dtype | None = None) -> Tensor:
    wanted = dtype or default
    return tensor if wanted is None or wanted == tensor.dtype else tensor.to(wanted)


def _sizes(size: Sequence[Any]) -> Sequence[int]:
    return size[0] if len(size) == 1 and isinstance(size[0], (tuple, list)) else size


def _made(kind: str) -> Draw:
    def made(
        mode: Noise, *size: int | Sequence[int], dtype: torch.dtype | None = None, **options: Any
    ) -> Tensor:
        sizes = options["size"] if "size" in options else _sizes(size)
        return _cast(mode.take(sizes, kind), dtype, torch.get_default_dtype())

    return made


def _like(kind: str) -> Draw:
    def made(mode: Noise, input: Tensor, *, dtype: torch.dtype | None = None, **_: object) -> Tensor:
        return _cast(mode.take(input.shape, kind), dtype, input.dtype)

    return made


def _randint(
    mode: Noise,
    *bounds: Any, size: Sequence[int] | None = None, dtype: torch.dtype | None = None, **options: int,
) -> Tensor:  # fmt: skip
    given = list(bounds)
    size = given.pop() if size is None else size
    high = options["high"] if "high" in options else given.pop()
    low = given[0] if given else options.get("low", 0)
    return _cast(mode.take(size, "integers", untraced(low), untraced(high)), dtype)


def _randint_like(
    mode: Noise, input: Tensor, *bounds: int, dtype: torch.dtype | None = None, **options: int
) -> Tensor:
    return _randint(mode, *bounds, size=input.shape, dtype=dtype or input.dtype, **options)


def _normal(
    mode: Noise, mean: Number = 0.0, std: Number = 1.0, size: Sequence[int] | None = None,
    *, dtype: torch.dtype | None = None, **_: object,
) -> Tensor:  # fmt: skip
    if size is None:
        tensors = [each for each in (mean, std) if isinstance(each, torch.Tensor)]
        size = torch.broadcast_shapes(*(tuple(each.shape) for each in tensors))
        return _cast(mode.take(size, "normal"), dtype, tensors[0].dtype) * std + mean
    return _cast(mode.take(size, "normal"), dtype) * std + mean


def _bernoulli(mode: Noise, input: Tensor, p: Number | None = None) -> Tensor:
    return (mode.take(input.shape, "uniform") < (input if p is None else p)).to(input.dtype)


def _multinomial(mode: Noise, input: Tensor, num_samples: int, replacement: bool = False) -> Tensor:
    if replacement:
        sums = input.cumsum(-1)
        part = mode.take((*input.shape[:-1], num_samples), "uniform") * sums[..., -1:]
        return (
            (sums.unsqueeze(-2) <= part.unsqueeze(-1)).to(torch.int64).sum(-1).clamp(max=input.shape[-1] - 1)
        )
    noise = mode.take(input.shape, "exponential").clamp(min=TINY).log()
    return torch.topk(input.clamp(min=0).log() - noise, num_samples)[1]


def _dropout(axes: int) -> Draw:
    def dropped(
        mode: Noise, input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False, **_: object
    ) -> Tensor:
        shape = [*input.shape[:axes], *[1] * len(input.shape[axes:])]
        kept = (mode.take(shape, "uniform") >= p).to(input.dtype)
        made = input * kept * (1 / (1 - p) if p < 1 else 0.0)
        return input.copy_(made) if inplace else made

    return dropped


def _gumbel(
    mode: Noise, logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 0, dim: int = -1
) -> Tensor:
    noise = mode.take(logits.shape, "exponential").clamp(min=TINY).log()
    soft = ((logits - noise) / tau).softmax(dim)
    if not hard:
        return soft
    return torch.zeros_like(soft).scatter_(dim, soft.argmax(dim, keepdim=True), 1.0)


def _rrelu(
    mode: Noise, input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False,
    inplace: bool = False,
) -> Tensor:  # fmt: skip
    if not training:
        return torch.nn.functional.leaky_relu(input, (lower + upper) / 2)
    slopes = mode.take(input.shape, "uniform") * (upper - lower) + lower
    made = torch.where(input >= 0, input, input * slopes)
    return input.copy_(made) if inplace else made


def _filled(kind: str, compute: Draw) -> Draw:
    def filled(mode: Noise, x: Tensor, *args: object, **options: object) -> Tensor:
        words = {{"from": "low", "to": "high"}.get(name, name): value for name, value in options.items()}
        return x.copy_(compute(mode.take(x.shape, kind), *args, **words))

    return filled


def _native_dropout(mode: Noise, input: Tensor, p: float, train: bool = True) -> tuple[Tensor, Tensor]:
    kept = mode.take(input.shape, "uniform") >= p
    return input * kept * (1 / (1 - p) if p < 1 else 0.0), kept


def _functional(filled: Draw) -> Draw:
    """Returns what programs of ``torch.export`` call for a function that fills a tensor in place."""
    return lambda mode, x, *args, **options: filled(mode, torch.empty_like(x), *args, **options)


_FILLED: dict[str, Draw] = {
    "normal_": _filled("normal", lambda noise, mean=0.0, std=1.0: noise * std + mean),
    "uniform_": _filled("uniform", lambda noise, low=0.0, high=1.0: noise * (high - low) + low),
    "bernoulli_": _filled("uniform", lambda noise, p=0.5: noise < p),
    "exponential_": _filled("exponential", lambda noise, lambd=1.0: noise / lambd),
    "log_normal_": _filled("normal", lambda noise, mean=1.0, std=2.0: (noise * std + mean).exp()),
}
_OWN = ("normal_", "bernoulli_")  # whose names without the underscore are functions of their own
_FUNCTIONS: dict[str, Callable[..., object]] = {
    "randn": _made("normal"),
    "rand": _made("uniform"),
    "randn_like": _like("normal"),
    "rand_like": _like("uniform"),
    "randint": _randint,
    "randint_like": _randint_like,
    "randperm": lambda mode, n, *, dtype=None, **_: _cast(mode.take([n], "uniform").argsort(), dtype),
    "normal": _normal,
    "bernoulli": _bernoulli,
    "multinomial": _multinomial,
    "gumbel_softmax": _gumbel,
    "rrelu": _rrelu,
    "native_dropout": _native_dropout,
    **_FILLED,
    **{name.rstrip("_"): _functional(fill) for name, fill in _FILLED.items() if name not in _OWN},
    "normal_functional": _functional(_FILLED["normal_"]),
    **{name: _dropout(axes) for name, axes in _MASKED.items()},
}
