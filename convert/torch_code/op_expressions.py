"""Maps each op of the catalogue to an expression in PyTorch.

The rule: ``aten::name`` is ``torch.name``, with the arguments of the op's signature in order, without those
that have their default. ``data/op_expressions.txt`` has the exceptions. A text without braces is a name;
one with braces is the whole expression, where ``{x}`` is an argument of the op. ``call_expressions.py``
has the ops that need code; ``runtime_functions.py`` the functions whose names begin with ``_``.
"""

from __future__ import annotations

from pathlib import Path

from tmconvert.torch_code.names import words

_DATA = Path(__file__).parent / "data/op_expressions.txt"
_LINES = _DATA.read_text(encoding="utf-8").splitlines()
TEXTS = dict(line.split(" | ", 1) for line in _LINES if not line.startswith("#"))
# arguments that PyTorch takes by name only, or that read better so
BY_NAME = frozenset({"dim", "keepdim", "upper"})
# ops that take a Python number where an argument is a constant without axes
TAKE_NUMBERS = frozenset(
    f"aten::{name}"
    for name in words(
        """
    add sub mul div pow eq ne lt le gt ge masked_fill remainder floor_divide fmod
    """
    )
)
# ops with indices that PyTorch takes and gives as int64 only
GIVE_INT64 = frozenset(
    f"aten::{name}"
    for name in words(
        """
    argmax argmin argsort bucketize count_nonzero cummax cummin kthvalue max median min mode nanmedian
    searchsorted sort topk adaptive_max_pool1d_with_indices adaptive_max_pool2d_with_indices
    adaptive_max_pool3d_with_indices max_pool1d_with_indices max_pool2d_with_indices
    max_pool3d_with_indices nonzero argwhere
    """
    )
)
TAKE_INT64 = frozenset(
    f"aten::{name}"
    for name in words("one_hot index_copy index_fill take max_unpool1d max_unpool2d max_unpool3d")
)
# prefixes of names that have a namespace of their own
NAMESPACES = {"linalg_": "torch.linalg.", "special_": "torch.special."}


def text_of(op: str) -> str | None:
    """Returns the text of an op, by the table or by the rule; None for ``tm::`` ops without one."""
    if op in TEXTS:
        return TEXTS[op]
    namespace, _, name = op.partition("::")
    if namespace != "aten":
        return None
    for prefix, home in NAMESPACES.items():
        if name.startswith(prefix):
            return home + name.removeprefix(prefix)
    return f"torch.{name}"
