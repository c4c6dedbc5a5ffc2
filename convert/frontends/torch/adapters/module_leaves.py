"""Modules of torch.nn that are recorded as one call, as torch.fx has them: the function of each."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from tmconvert.errors import Refusal
from tmconvert.frontends.shared.vocabulary import Adapter
from tmconvert.ir.emitter import Emitter
from tmconvert.ir.traced_module import TracedModule

_CONV = "@ .weight .bias stride padding dilation groups"
_TRANSPOSED = "@ .weight .bias stride padding output_padding groups dilation"
_NORM = "@ .running_mean .running_var .weight .bias training momentum eps"
_MAX = "@ kernel_size stride padding dilation ceil_mode"
_AVERAGE = "@ kernel_size stride padding ceil_mode count_include_pad"
# By class in torch.nn.modules: a function of torch.nn.functional, or of torch, and its arguments: "@" is the
# input, ".name" a parameter or buffer, another name an attribute. Source: the forward of each class.
_MODULES: dict[str, tuple[str, str]] = {
    "linear.Linear": ("linear", "@ .weight .bias"),
    "sparse.Embedding": ("embedding", "@ .weight"),
    **{f"conv.Conv{n}d": (f"conv{n}d", _CONV) for n in (1, 2, 3)},
    **{f"conv.ConvTranspose{n}d": (f"conv_transpose{n}d", _TRANSPOSED) for n in (1, 2, 3)},
    **{f"batchnorm.BatchNorm{n}d": ("batch_norm", _NORM) for n in (1, 2, 3)},
    "normalization.LayerNorm": ("layer_norm", "@ normalized_shape .weight .bias eps"),
    "normalization.GroupNorm": ("group_norm", "@ num_groups .weight .bias eps"),
    **{f"pooling.MaxPool{n}d": (f"max_pool{n}d", _MAX) for n in (1, 2, 3)},
    **{f"pooling.AvgPool{n}d": (f"avg_pool{n}d", _AVERAGE) for n in (1, 2, 3)},
    **{f"pooling.AdaptiveAvgPool{n}d": (f"adaptive_avg_pool{n}d", "@ output_size") for n in (1, 2, 3)},
    "flatten.Flatten": ("flatten", "@ start_dim end_dim"),
    **{
        f"activation.{name}": (name.lower(), "@")
        for name in (
            "ReLU",
            "ReLU6",
            "Sigmoid",
            "Tanh",
            "SiLU",
            "Mish",
            "Hardswish",
            "Hardsigmoid",
            "Softsign",
        )
    },
    "activation.GELU": ("gelu", "@ approximate=approximate"),
    "activation.LeakyReLU": ("leaky_relu", "@ negative_slope"),
    "activation.ELU": ("elu", "@ alpha"),
    "activation.PReLU": ("prelu", "@ .weight"),
    "activation.Softplus": ("softplus", "@ beta threshold"),
    "activation.Softmax": ("softmax", "@ dim"),
    "activation.LogSoftmax": ("log_softmax", "@ dim"),
    **{f"dropout.{name}": ("dropout", "@ p training") for name in ("Dropout", "Dropout1d", "Dropout2d")},
}
_PLAIN = {"padding_mode": "zeros", "return_indices": False, "divisor_override": None, "max_norm": None}


@cache
def leaf_adapter(class_name: str, function_adapter: Callable[[str], Adapter | None]) -> Adapter | None:
    """Returns the adapter of a call of a module, from its qualified class; None for other classes.

    ``function_adapter`` finds the adapter of a function by its qualified name.
    """
    prefix = "torch.nn.modules."
    if class_name == f"{prefix}linear.Identity":
        return lambda g, module, x: x
    found = _MODULES.get(class_name.removeprefix(prefix)) if class_name.startswith(prefix) else None
    if found is None:
        return None
    function = function_adapter(f"torch.nn.functional.{found[0]}") or function_adapter(f"torch.{found[0]}")
    if function is None:
        return None

    def called(g: Emitter, module: TracedModule, input: Any) -> Any:
        for name, usual in _PLAIN.items():
            if module.attributes.get(name, usual) != usual:
                raise Refusal(f"{class_name} as one call has {name}={module.attributes[name]!r}")
        args, kwargs = [], {}
        for word in found[1].split():
            name, _, attribute = word.rpartition("=")
            value = input if word == "@" else _part(g, module, attribute)
            if name:
                kwargs[name] = value
            else:
                args.append(value)
        return function(g, *args, **kwargs)

    return called


def _part(g: Emitter, module: TracedModule, name: str) -> Any:
    if not name.startswith("."):
        return module.attributes[name]
    array = module.tensors.get(name[1:])
    return None if array is None else g.constant(array)
