"""Recognizes ONNX files."""

from __future__ import annotations

IR_VERSIONS = range(3, 100)
HEAD = b"\x08"  # of the field ir_version, which all exporters write first


def is_onnx(head: bytes) -> bool:
    """Whether a file that begins with ``head`` may be an ONNX model: its first field is an ir_version."""
    return (
        len(head) > 2 and head[:1] == HEAD and head[1] in IR_VERSIONS and head[1] < 128 and head[2] & 7 == 2
    )
