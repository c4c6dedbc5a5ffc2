"""Python names for names of a model, which may be any text."""

from __future__ import annotations

import keyword
import re
from collections.abc import Collection, Iterable


def words(text: str) -> list[str]:
    """Returns the words of a text, for tables of names."""
    return text.split()


_RESERVED = frozenset(
    words(
        """
    self torch nn F Tensor torchvision int float bool max min getattr super tuple list type cls weights
    """
    )
)

# attributes of every torch.nn.Module, which its children and tensors may not have as names
MODULE_NAMES = frozenset(
    words(
        """
    T_destination add_module apply bfloat16 buffers call_super_init children compile cpu cuda double
    dump_patches eval extra_repr float forward get_buffer get_extra_state get_parameter get_submodule
    half ipu load_state_dict modules mtia named_buffers named_children named_modules named_parameters
    parameters register_backward_hook register_buffer register_forward_hook register_forward_pre_hook
    register_full_backward_hook register_full_backward_pre_hook register_load_state_dict_post_hook
    register_load_state_dict_pre_hook register_module register_parameter register_state_dict_post_hook
    register_state_dict_pre_hook requires_grad_ set_extra_state set_submodule share_memory state_dict to
    to_empty train training type xpu zero_grad
    """
    )
)


def is_plain(name: str) -> bool:
    """Whether a name can be written after a dot, in plain characters."""
    is_private = name.startswith("__")  # which Python would mangle
    return name.isascii() and name.isidentifier() and not keyword.iskeyword(name) and not is_private


def identifier(name: str, fallback: str = "x") -> str:
    """Returns an identifier that resembles ``name``: other characters become underscores.

    >>> identifier('"); import os'), identifier("class"), identifier("3x"), identifier("_fft")
    ('import_os', 'class_', 'x3x', 'fft')
    """
    text = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or fallback
    if text[0].isdigit():
        text = fallback + text
    return f"{text}_" if keyword.iskeyword(text) or keyword.issoftkeyword(text) else text


def name_in(name: str, prefix: str, other: str) -> str:
    """Returns the name that a value has in a module whose values have names that begin with ``prefix``.

    Values that have not are named by a caller, as results are; in the module they are called ``other``.

    >>> name_in("layer1_0_relu_out_2", "layer1_0", "out"), name_in("y", "layer1", "out"), name_in("y", "", "")
    ('relu_out', 'out', 'y')
    """
    if not prefix:
        return name
    if not name.startswith(f"{prefix}_"):
        return other
    return re.sub(r"_\d+$", "", name.removeprefix(f"{prefix}_")) or other


def attribute_name(name: str, taken: Collection[str]) -> str:
    """Returns ``name`` as the name of a child, parameter or buffer of a module.

    Any text without dots is one, unless ``torch.nn.Module`` has an attribute of that name.
    """
    if not name or "." in name or name in MODULE_NAMES or name.startswith("_"):
        name = f"{identifier(name)}_"
    while name in taken:
        name = f"{name}_"
    return name


class Names:
    """Generates unique names: a requested name, or a variant of it that is not in use."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.taken = {*_RESERVED, *taken}

    def new(self, wanted: str, fallback: str = "x") -> str:
        """Returns an identifier like ``wanted`` that was not returned before."""
        base = identifier(wanted, fallback)
        name, number = base, 1
        while name in self.taken:
            name, number = f"{base}_{number}", number + 1
        self.taken.add(name)
        return name
