"""Recognizes ONNX files."""

from __future__ import annotations

IR_VERSIONS = range(3, 100)
HEAD = b"\x08"  # of the field ir_version, which all exporters write first
MODEL_VERSION = 0x28  # the head of the one other field that is a number


def is_onnx(head: bytes) -> bool:
    """Whether a file that begins with ``head`` may be an ONNX model: its first field is an ir_version."""
    if len(head) < 3 or head[:1] != HEAD or head[1] not in IR_VERSIONS:
        return False
    return head[2] & 7 == 2 or head[2] == MODEL_VERSION
