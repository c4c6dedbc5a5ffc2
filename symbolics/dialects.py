"""Caffe's dialects by number, the version by which symbolics of that target are looked up."""

from __future__ import annotations

DIALECTS = ("bvlc", "opencv", "nnie", "ascend", "mnn", "snpe", "trt", "ncnn")
