"""megengine.functional.nn."""

from __future__ import annotations

from tmconvert.errors import Refusal
from tmconvert.frontends.megengine.adapters.values import rank, static_ints
from tmconvert.frontends.shared.adapter_table import Table

FUNCTIONS = Table("megengine.functional.nn.")


@FUNCTIONS.add("dropout")
def dropout(g, inp, drop_prob, training=False):
    """The identity: a conversion is for inference, whatever training flag was recorded."""
    return inp


@FUNCTIONS.add("pad")
def pad(g, src, pad_width, mode="constant", constant_value=0.0):
    names = {"constant": "constant", "reflect": "reflect", "replicate": "replicate", "edge": "replicate"}
    if str(mode).lower() not in names:
        raise Refusal(f"the padding mode {mode!r} is not supported")
    amounts = [amount for row in pad_width for amount in static_ints(g, list(row), "a padding")]
    missing = 2 * rank(g, src) - len(amounts)  # pairs count from the first axis; the others are zero
    if missing < 0 or any(len(row) != 2 for row in pad_width):
        raise Refusal(f"pad_width {pad_width!r} does not fit {g.type(src)}")
    if not any(amounts):
        return src
    return g.call(
        "aten::pad", src, amounts + [0] * missing, mode=names[str(mode).lower()], value=float(constant_value)
    )
