"""The dialects, by name. To add one, write a file like ``ascend.py``, and list it here and in
``symbolics/dialects.py``."""

from __future__ import annotations

from tmconvert.formats.caffe.dialects import bvlc
from tmconvert.formats.caffe.dialects.ascend import ASCEND
from tmconvert.formats.caffe.dialects.dialect import Dialect
from tmconvert.formats.caffe.dialects.merged import merged
from tmconvert.formats.caffe.dialects.mnn import MNN
from tmconvert.formats.caffe.dialects.nnie import NNIE
from tmconvert.formats.caffe.dialects.opencv import OPENCV
from tmconvert.formats.caffe.layers import BVLC as LAYERS

BVLC = Dialect("bvlc", "BVLC Caffe", LAYERS, bvlc.MESSAGES, bvlc.ENUMS, trains=True, outputs_are_unread=True)

DIALECTS = {dialect.name: dialect for dialect in (BVLC, OPENCV, NNIE, ASCEND, MNN)}
MERGED = merged(tuple(DIALECTS.values()))
