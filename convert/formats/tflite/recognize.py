"""Recognizes TFLite files."""

from __future__ import annotations

MARK = b"TFL3"  # the file identifier of a flatbuffer, behind the offset of its root


def is_tflite(head: bytes) -> bool:
    """Whether a file that begins with ``head`` is a TFLite model."""
    return head[4:8] == MARK
