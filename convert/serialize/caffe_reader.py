"""What a reader of Caffe nets needs to know of a .prototxt."""

from __future__ import annotations

from pathlib import Path

from google.protobuf import text_format

from .caffe_schema import NetParameter


def caffe_tops(prototxt: Path) -> dict[str, tuple[str, int]]:
    """For each blob of the net, the layer that has the last word on it, and which of its tops it is.

    Parameters that our schema does not know (a vendor's) are passed over.
    Raises: text_format.ParseError when the file is not a net in text form.
    """
    net = NetParameter()
    text_format.Parse(prototxt.read_text("utf-8"), net, allow_unknown_field=True)
    return {top: (layer.name, index) for layer in net.layer for index, top in enumerate(layer.top)}
