"""Maps calls of ops to modules of ``torch.nn``: calls whose parameters are all tensors of their module."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from tmconvert.ir import CallFunction, Constant, Node, TensorNode
from tmconvert.torch_code.literals import dtype_text, literal
from tmconvert.torch_code.module_tree import Holder, ModuleTree

Arguments = Mapping[str, Any]


class NnModule(NamedTuple):
    """A class of ``torch.nn`` for an op: its tensors by argument of the op, and its constructor.

    ``operand`` is the argument that ``forward`` takes; ``optional`` tensors may be None. ``make`` returns the
    name of the class, positional and keyword arguments; None if the call does not correspond to such a
    module.
    """

    tensors: Mapping[str, str]
    make: Callable[[Arguments, Holder, bool], str | None]
    operand: str = "x"
    optional: tuple[str, ...] = ("bias",)


def _made(cls: str, *args: object, **keywords: object) -> str:
    parts = [literal(arg, str) for arg in args]
    parts += [
        f"{name}={value if name == 'dtype' else literal(value, str)}" for name, value in keywords.items()
    ]
    return f"nn.{cls}({', '.join(parts)})"


def _options(arguments: Arguments, **usual: object) -> dict[str, Any]:
    """Returns the settings that differ from the usual ones, and the element type."""
    chosen = {
        name: arguments[name]
        for name, value in usual.items()
        if arguments[name] != value and arguments[name] != [value] * np.size(arguments[name])
    }
    dtype = arguments["weight"].dtype.name
    return chosen if dtype == "float32" else {**chosen, "dtype": dtype_text(dtype)}


def _bias(arguments: Arguments) -> dict[str, bool]:
    return {} if arguments["bias"] is not None else {"bias": False}


def _convolution(arguments: Arguments, holder: Holder, is_megengine: bool) -> str:
    outputs, inputs, *kernel = arguments["weight"].shape
    options = _options(arguments, stride=1, padding=0, dilation=1, groups=1)
    cls = f"Conv{len(kernel)}d"
    return _made(cls, inputs * arguments["groups"], outputs, kernel, **options, **_bias(arguments))


def _transposed(arguments: Arguments, holder: Holder, is_megengine: bool) -> str:
    inputs, outputs, *kernel = arguments["weight"].shape
    options = _options(arguments, stride=1, padding=0, output_padding=0, groups=1, dilation=1)
    cls = f"ConvTranspose{len(kernel)}d"
    return _made(cls, inputs, outputs * arguments["groups"], kernel, **options, **_bias(arguments))


def _linear(arguments: Arguments, holder: Holder, is_megengine: bool) -> str | None:
    outputs, inputs = arguments["weight"].shape if len(arguments["weight"].shape) == 2 else (None, None)
    if inputs is None:
        return None
    return _made("Linear", inputs, outputs, **_options(arguments), **_bias(arguments))


def _batch_norm(arguments: Arguments, holder: Holder, is_megengine: bool) -> str | None:
    settings = {} if holder.settings is None else holder.settings.attributes
    if settings.get("freeze") or settings.get("track_running_stats") is False:
        return None
    momentum = settings.get("momentum", 0.1)
    if momentum is not None and not isinstance(momentum, (int, float)):
        return None
    if is_megengine and momentum is not None:
        momentum = round(1 - momentum, 12)
    options: dict[str, Any] = {"eps": arguments["eps"]} if arguments["eps"] != 1e-5 else {}
    if momentum != 0.1:
        options["momentum"] = momentum
    axes = max(len(arguments["x"].shape) - 2, 1)
    return _made(f"BatchNorm{axes}d", arguments["weight"].shape[0], **options, **_options(arguments))


def _layer_norm(arguments: Arguments, holder: Holder, is_megengine: bool) -> str:
    options = {"eps": arguments["eps"]} if arguments["eps"] != 1e-5 else {}
    return _made(
        "LayerNorm", arguments["normalized_shape"], **options, **_bias(arguments), **_options(arguments)
    )


def _group_norm(arguments: Arguments, holder: Holder, is_megengine: bool) -> str:
    options = {"eps": arguments["eps"]} if arguments["eps"] != 1e-5 else {}
    channels = arguments["weight"].shape[0]
    return _made("GroupNorm", arguments["num_groups"], channels, **options, **_options(arguments))


def _embedding(arguments: Arguments, holder: Holder, is_megengine: bool) -> str | None:
    if arguments["scale_grad_by_freq"] or arguments["sparse"]:
        return None
    options = {"padding_idx": arguments["padding_idx"]} if arguments["padding_idx"] >= 0 else {}
    return _made("Embedding", *arguments["weight"].shape, **options, **_options(arguments))


def _prelu(arguments: Arguments, holder: Holder, is_megengine: bool) -> str:
    return _made("PReLU", arguments["weight"].shape[0], **_options(arguments))


_WEIGHTS = {"weight": "weight", "bias": "bias"}
_STATISTICS = {**_WEIGHTS, "running_mean": "running_mean", "running_var": "running_var"}
NN_MODULES = {
    **{f"aten::conv{axes}d": NnModule(_WEIGHTS, _convolution) for axes in (1, 2, 3)},
    **{f"aten::conv_transpose{axes}d": NnModule(_WEIGHTS, _transposed) for axes in (1, 2, 3)},
    "aten::linear": NnModule(_WEIGHTS, _linear),
    "aten::batch_norm": NnModule(_STATISTICS, _batch_norm, optional=()),
    "aten::layer_norm": NnModule(_WEIGHTS, _layer_norm),
    "aten::group_norm": NnModule(_WEIGHTS, _group_norm, optional=()),
    "aten::embedding": NnModule({"weight": "weight"}, _embedding, operand="indices"),
    "aten::prelu": NnModule({"weight": "weight"}, _prelu),
}
COUNTER = "num_batches_tracked"


def module_call(
    expr: CallFunction, arguments: Arguments, tree: ModuleTree, is_megengine: bool
) -> tuple[str, ...] | None:
    """Returns the path of the module of ``torch.nn`` that computes the call, if one does.

    The module that holds the tensors becomes a module of that class at the first such call.
    """
    form = NN_MODULES.get(expr.function)
    if form is None:
        return None
    path = home(arguments, form, tree)
    holder = None if not path else tree.holder(path)
    if holder is None or path is None:
        return None
    held = [form.tensors[name] for name in form.tensors if arguments[name] is not None]
    if (
        set(holder.slots) - {COUNTER} != set(held)
        or holder.children
        or not _is_only_use(expr, arguments, form)
    ):
        return None
    if any(target[: len(path)] == path for target in tree.aliases if target != path):
        return None
    made = form.make(arguments, holder, is_megengine)
    if made is None or any(not holder.slots[name].is_parameter for name in held if name in _WEIGHTS):
        return None
    holder.made_by, holder.own = made, frozenset({*held, COUNTER})
    return path


def home(arguments: Arguments, form: NnModule, tree: ModuleTree) -> tuple[str, ...] | None:
    """Returns the path of the module that holds all tensors of a call under their names in ``torch.nn``."""
    homes = set()
    for name, attribute in form.tensors.items():
        node = arguments[name]
        if node is None and name in form.optional:
            continue
        place = tree.paths.get(node) if isinstance(node, Node) else None
        if place is None or place[-1] != attribute:
            return None
        homes.add(place[:-1])
    return homes.pop() if len(homes) == 1 else None


def _is_only_use(expr: CallFunction, arguments: Arguments, form: NnModule) -> bool:
    for name in form.tensors:
        node = arguments[name]
        for user in node.users if isinstance(node, TensorNode) else ():
            assert isinstance(node.expr, Constant)
            if not isinstance(user, CallFunction) or user.function != expr.function:
                return False
            if user.kwargs != expr.kwargs or _constants(user) != _constants(expr):
                return False
    return True


def _constants(expr: CallFunction) -> list[object]:
    return [arg if isinstance(getattr(arg, "expr", None), Constant) else None for arg in expr.args]
