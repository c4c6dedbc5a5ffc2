"""Layers that are not converted, and why."""

from __future__ import annotations

_REASONS = {
    "its code is in a Python module of the user, which is not run": ("Python",),
    "it runs on a device of the vendor, by code that is not in the file": ("Custom",),
    "no public source states in which order it moves channels": ("PassThrough", "Reorg"),
    "the forks of Caffe that have it give it different meanings": ("BN", "Upsample"),
    "no public source states how it samples at the borders of regions": ("ROIAlign",),
    "aten has no pooling of position-sensitive scores by bins of whole elements": ("PSROIPooling",),
    "its numbers of boxes and its anchors differ between the forks of Caffe": ("Proposal",),
    "how many elements it returns depends on the data": ("Filter", "DetectionOutput"),
}
_BY_NAME = {name: reason for reason, names in _REASONS.items() for name in names}


def reason_of(kind: str) -> str | None:
    """Returns why layers of a type, such as ``Python``, are not converted, if that is known."""
    return _BY_NAME.get(kind)
