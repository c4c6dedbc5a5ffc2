"""The dialects, by name. To add one, write a file like ``data/ascend.toml``, and list its name in
``symbolics/dialects.py``."""

from __future__ import annotations

from tmconvert.formats.caffe.dialects.dialect import read
from tmconvert.formats.caffe.dialects.merged import merged
from tmconvert.symbolics.dialects import DIALECTS as NAMES

BVLC = read("bvlc")
DIALECTS = {"bvlc": BVLC, **{name: read(name, BVLC) for name in NAMES if name != "bvlc"}}
MERGED = merged(tuple(DIALECTS.values()))
