"""The dialects, by name. To add one: a file like ``ascend.py``, its line here and in ``targets.DIALECTS``."""

from __future__ import annotations

from . import bvlc
from .ascend import ASCEND
from .dialect import Dialect
from .mnn import MNN
from .nnie import NNIE
from .opencv import OPENCV

BVLC = Dialect(
    "bvlc", "BVLC Caffe", bvlc.LAYERS, bvlc.MESSAGES, bvlc.ENUMS, trains=True, outputs_are_unread=True
)

DIALECTS = {dialect.name: dialect for dialect in (BVLC, OPENCV, NNIE, ASCEND, MNN)}
