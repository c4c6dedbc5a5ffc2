"""Checks configurations of transformers, which are hostile, before the library sees them.

Parts of a model are built by calls whose arguments the configuration sets. What such an argument may name
(code, files, downloads, native kernels) is refused here by its key, at every depth. This is for the message:
what holds for keys that are not known here, too, is that the library is confined while it builds the model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

CODE_KEY = "auto_map"
_NAME = re.compile(r"\w[\w.-]{0,199}", re.ASCII)  # of a class, a type of models, a model of timm
_MOST = 1 << 63  # of an integer
_MOST_CLASSES, _MOST_LAYERS = (1 << 20, 1 << 12)  # each takes time and memory, whatever the weights are
_LAYERS = re.compile(r".*(layers?|blocks?|depths?|stages?|experts?)")
_SHOWN = 60  # characters of a key or a value in a message
# keyword arguments of timm.create_model that describe the network, and nothing else
OPTIONS = frozenset(
    re.findall(
        r"\w+",
        "act_layer channels class_token depth depths dim dims drop_path_rate drop_rate "
        "dynamic_img_pad dynamic_img_size embed_dim exportable features_only fc_norm global_pool "
        "img_size in_chans inference_mode init_values mlp_ratio no_embed_class norm_layer "
        "num_channels num_classes num_heads out_indices output_stride patch_size pos_embed "
        "pre_norm qkv_bias reg_tokens scriptable window_size ",
    )
)


class Refusal(Exception):
    """A configuration would do what is not allowed. ``help`` is what the user can do."""

    def __init__(self, reason: str, help: str = "") -> None:
        super().__init__(reason)
        self.help = help


class Rule(NamedTuple):
    """Which values of a key are allowed, what others do, and what the user can do about it."""

    is_allowed: Callable[[Any], bool]
    reason: str
    help: str


def _is_unset(value: object) -> bool:
    return value is None or value is False


def _is_name(value: object) -> bool:
    return value is None or (isinstance(value, str) and bool(_NAME.fullmatch(value)))


def _is_type(value: object) -> bool:
    """Whether the value names a type of models, or is the empty name of a part such as attention."""
    return value == "" or _is_name(value)


def _is_network(value: object) -> bool:
    """Whether the value names no model, a model by a plain name, or is a part that is checked itself."""
    return isinstance(value, dict | list) or _is_name(value)


def _are_classes(value: object) -> bool:
    return value is None or (isinstance(value, list) and all(map(_is_class, value)))


def _is_class(value: Any) -> bool:
    return isinstance(value, str) and value.isidentifier() and _is_name(value)


def _is_attention(value: Any) -> bool:
    values = value.values() if isinstance(value, dict) else (value,)
    return all(each in (None, "eager", "sdpa", "batched_mm", "grouped_mm") for each in values)


def _are_options(value: Any) -> bool:
    return value is None or (
        isinstance(value, dict) and value.keys() <= OPTIONS and all(map(_is_plain, value.values()))
    )


def _is_plain(value: Any) -> bool:
    values = value if isinstance(value, list) else (value,)
    return all(isinstance(each, int | float) or _is_name(each) for each in values)


_FACTORY = (
    "if you trust its origin, write a function that returns the module, "
    "and name it as PACKAGE.MODULE:FUNCTION"
)
_CODE = Rule(_is_unset, "would run code that is not of transformers", _FACTORY)
_FILE = Rule(_is_unset, "names other files than the configuration and weights of the folder", _FACTORY)
_KERNELS = Rule(_is_unset, "would load native kernels", f"delete the key, or {_FACTORY}")
_QUANTIZED = Rule(
    _is_unset,
    "stores weights in the format of a quantization package",
    "save the model with float weights (model.dequantize(), model.save_pretrained(folder)); quantize here",
)
_ATTENTION = Rule(
    _is_attention, "may load native code; eager and sdpa do not", 'set it to "sdpa", or delete it'
)
_NETWORK = Rule(_is_network, "is not the plain name of a network of timm, but a path or a download", _FACTORY)
_OPTIONS = Rule(
    _are_options, "has options that are not plain settings of a network, such as img_size or depth", _FACTORY
)
_TYPE = Rule(_is_type, "is not the name of a type of models", "")
_CLASSES = Rule(_are_classes, "is not a list of names of classes", "")
RULES = {
    "trust_remote_code": _CODE,
    "checkpoint_path": _FILE,
    "configuration_files": _FILE,
    "pretrained_cfg_overlay": _FILE,
    "pretrained_model_name_or_path": _FILE,
    "transformers_weights": _FILE,
    "kernel_config": _KERNELS,
    "use_kernels": _KERNELS,
    "fusion_config": _KERNELS,
    "distributed_config": _KERNELS,
    "quantization_config": _QUANTIZED,
    "compression_config": _QUANTIZED,
    "attn_implementation": _ATTENTION,
    "_attn_implementation": _ATTENTION,
    "_attn_implementation_internal": _ATTENTION,
    "experts_implementation": _ATTENTION,
    "_experts_implementation": _ATTENTION,
    "_experts_implementation_internal": _ATTENTION,
    "backbone": _NETWORK,
    "architecture": _NETWORK,
    "backbone_kwargs": _OPTIONS,
    "model_args": _OPTIONS,
    "model_type": _TYPE,
    "architectures": _CLASSES,
}


def checked_configuration(document: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """Returns the configuration for transformers, and whether the document names code (``auto_map``).

    Two keys differ from the document: ``auto_map`` is left out, and ``use_pretrained_backbone`` is never
    set, since all weights come from the folder. Raises Refusal.
    """
    names_code = False
    for path, key, value in _items(document):
        names_code |= key == CODE_KEY
        _check(path, key, value)
    return _cleaned(document), names_code


def _check(path: str, key: str, value: Any) -> None:
    rule = RULES.get(key)
    if rule is not None and not rule.is_allowed(value):
        raise Refusal(f"{path} ({value!r:.{_SHOWN}}) {rule.reason}", rule.help)
    if key.startswith("__") and key != "__float__":
        raise Refusal(f"{path} is not an option of a model")
    most = _MOST_CLASSES if key == "num_labels" else _MOST_LAYERS if _LAYERS.fullmatch(key) else _MOST
    if any(isinstance(each, int) and each > most for each in (value if isinstance(value, list) else [value])):
        raise Refusal(f"{path} ({value!r:.{_SHOWN}}) is more than {most}")
    if isinstance(value, int) and abs(value) >= _MOST:
        raise Refusal(f"{path} has more than 63 bits")


def _items(document: dict[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Yields all values at every depth, with their paths and keys; elements of a list have no key."""
    waiting: list[tuple[str, str, Any]] = [("", "", document)]
    while waiting:
        path, key, value = waiting.pop()
        if value is not document:
            yield path, key, value
        if isinstance(value, dict):
            prefix = path and f"{path}."
            waiting += [
                (f"{prefix}{name:.{_SHOWN}}"[-4 * _SHOWN :], name, each) for name, each in value.items()
            ]
        elif isinstance(value, list):
            waiting += [(path, "", each) for each in value]


def _cleaned(value: Any) -> Any:
    if isinstance(value, list):
        return [_cleaned(each) for each in value]
    if not isinstance(value, dict):
        return value
    changed = {"use_pretrained_backbone": False} if value.get("use_pretrained_backbone") else {}
    return {name: _cleaned(each) for name, each in (value | changed).items() if name != CODE_KEY}
