"""The dialects of Caffe, by number: the version of that target which symbolics are looked up by."""

from __future__ import annotations

DIALECTS = ("bvlc", "opencv", "nnie", "ascend", "mnn")
