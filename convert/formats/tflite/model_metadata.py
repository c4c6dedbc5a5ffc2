"""The metadata of TFLite files for the programs that use them, in the two forms that are read.

A zip archive after the flatbuffer has ``metadata.json``, which ultralytics reads, and files of labels. The
buffer ``TFLITE_METADATA`` is a flatbuffer that states which input is an image, how it is normalized, and
which output the labels are for; MediaPipe Tasks read it. Its format: metadata_schema.fbs of MediaPipe.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import numpy as np

from tmconvert.errors import LoadError
from tmconvert.formats.mapped_file import map_file, open_regular
from tmconvert.formats.tflite.faults import damaged
from tmconvert.formats.tflite.flatbuffer import Flatbuffer, Table
from tmconvert.formats.tflite.flatbuffer_writer import FlatbufferWriter

if TYPE_CHECKING:
    from tmconvert.output.metadata import Annotations, ImageInput

ENTRY, JSON_FILE, LABELS_FILE = "TFLITE_METADATA", "metadata.json", "labels.txt"
_IDENTIFIER = b"M001"
_AXIS_LABELS, _VALUE_LABELS = 2, 3  # types of associated files
_IMAGE, _NORMALIZATION = 2, 1  # members of the unions ContentProperties and ProcessUnitOptions
_COLOURS = {1: 2, 3: 1}  # channels -> GRAYSCALE, RGB
_PARSER = "1.0.0"  # the oldest one that knows these tables
_END_OF_ZIP, _MOST_AFTER_IT, _MOST_TEXT = b"PK\5\6", 65557, 1 << 24


class Tensor(NamedTuple):
    """An input or output: ``shape`` may have open sizes; ``is_index`` is an output that counts classes."""

    name: str
    shape: Sequence[object]
    is_index: bool = False


def metadata_buffer(
    name: str, inputs: Sequence[Tensor], outputs: Sequence[Tensor], annotations: Annotations
) -> bytes:
    """Returns the content of the buffer. Labels are for the first output with an axis of their number."""
    writer, labels = FlatbufferWriter(), annotations.labels
    fits = [each.is_index or (bool(each.shape) and each.shape[-1] == len(labels)) for each in outputs]
    labelled = fits.index(True) if labels and any(fits) else -1
    made_inputs = [_input(writer, each, annotations.images.get(each.name)) for each in inputs]
    made_outputs = [
        _output(writer, each, is_labelled=number == labelled) for number, each in enumerate(outputs)
    ]
    graph = writer.table(
        (2, "offset", writer.offsets(made_inputs)), (3, "offset", writer.offsets(made_outputs))
    )
    texts = [name, *(annotations.metadata.get(key, "") for key in ("description", "version"))]
    about = [(slot, "offset", writer.string(text)) for slot, text in enumerate(texts) if text]
    for slot, key in ((4, "author"), (5, "license")):
        if key in annotations.metadata:
            about.append((slot, "offset", writer.string(annotations.metadata[key])))
    root = writer.table(*about, (3, "offset", writer.offsets([graph])), (7, "offset", writer.string(_PARSER)))
    stream = io.BytesIO()
    writer.write(root, _IDENTIFIER, stream)
    return stream.getvalue()


def _input(writer: FlatbufferWriter, tensor: Tensor, image: ImageInput | None) -> int:
    named = (0, "offset", writer.string(tensor.name))
    colours = _COLOURS.get(tensor.shape[3]) if len(tensor.shape) == 4 else None  # type: ignore[call-overload]
    if image is None or colours is None:
        return writer.table(named)
    properties = writer.table((0, "int8", colours))
    content = writer.table((0, "uint8", _IMAGE), (1, "offset", properties))
    mean, std = (writer.float32s(np.array(each)) for each in (image.mean, image.std))
    options = writer.table((0, "offset", mean), (1, "offset", std))
    unit = writer.table((0, "uint8", _NORMALIZATION), (1, "offset", options))
    return writer.table(named, (3, "offset", content), (4, "offset", writer.offsets([unit])))


def _output(writer: FlatbufferWriter, tensor: Tensor, *, is_labelled: bool) -> int:
    named = (0, "offset", writer.string(tensor.name))
    if not is_labelled:
        return writer.table(named)
    kind = _VALUE_LABELS if tensor.is_index else _AXIS_LABELS
    file = writer.table((0, "offset", writer.string(LABELS_FILE)), (2, "int8", kind))
    return writer.table(named, (6, "offset", writer.offsets([file])))


def append_archive(file: BinaryIO, annotations: Annotations) -> None:
    """Appends the zip archive to a file whose position is its end; its entries are stored uncompressed."""
    import zipfile

    entries = {JSON_FILE: json.dumps(dict(annotations.metadata), ensure_ascii=False, indent=1)}
    if annotations.labels:
        entries[LABELS_FILE] = "".join(f"{label}\n" for label in annotations.labels)
    with zipfile.ZipFile(file, "w") as archive:
        for name, text in entries.items():
            archive.writestr(zipfile.ZipInfo(name), text)  # of 1980, whenever it is written


def metadata_of(path: str) -> dict[str, str]:
    """Returns the texts in a file's archive by key; empty if it has none. Raises LoadError TM1001."""
    data = map_file(path)
    if _END_OF_ZIP not in bytes(data[-_MOST_AFTER_IT:]):
        return {}
    import zipfile

    try:
        with open_regular(path) as file, zipfile.ZipFile(file) as archive:
            names = [each.filename for each in archive.infolist() if each.file_size < _MOST_TEXT]
            found = json.loads(archive.read(JSON_FILE)) if JSON_FILE in names else {}
    except (ValueError, OSError, RecursionError, NotImplementedError, RuntimeError, zipfile.BadZipFile):
        return {}
    if not isinstance(found, dict):
        return {}
    return {key: each if isinstance(each, str) else json.dumps(each) for key, each in found.items()}


def described(content: memoryview) -> dict[str, str]:
    """Returns what the buffer states about inputs and outputs, as texts by name; empty for a damaged one."""
    try:
        root = Flatbuffer(content, lambda cause: damaged(ENTRY, cause)).root()
        return {
            f"{side} {tensor.text(0)}": text
            for graph in root.tables(3)[:1]
            for side, slot in (("input", 2), ("output", 3))
            for tensor in graph.tables(slot)
            if (text := "; ".join((*_normalizations(tensor), *_files(tensor))))
        }
    except LoadError:
        return {}


def _normalizations(tensor: Table) -> list[str]:
    units = (unit for unit in tensor.tables(4) if unit.integer(0, "uint8") == _NORMALIZATION)
    options = (options for unit in units if (options := unit.table(1)) is not None)
    return [
        ", ".join(
            f"{word} {' '.join(f'{number:g}' for number in each.numbers(slot, 'float32'))}"
            for slot, word in enumerate(("mean", "std"))
        )
        for each in options
    ]


def _files(tensor: Table) -> list[str]:
    return [f"labels in {each.text(0)}" for each in tensor.tables(6)]
