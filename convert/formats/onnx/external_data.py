"""External data of tensors: bytes of other files in the folder of a model.

Source of the format: the page "External Data" of ONNX's documentation.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tmconvert.errors import LoadError
from tmconvert.formats.mapped_file import map_file
from tmconvert.formats.onnx.faults import damaged, outside
from tmconvert.formats.onnx.mapped_weights import OWN_FILE

EXTERNAL = 1  # TensorProto.DataLocation


class ExternalFiles:
    """The files of external data of the model file ``path``, which are mapped once each."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.folder = Path(path).resolve().parent
        self._files: dict[str, memoryview] = {}

    def content(self, proto: Any, size: int, place: str) -> memoryview:
        """Returns the bytes of a TensorProto, ``size`` if it does not state their number.

        Raises LoadError TM1031, and TM1032 for data that are missing or outside of the folder.
        """
        entries = {entry.key: entry.value for entry in proto.external_data}
        try:
            offset, length = int(entries.get("offset", 0)), int(entries.get("length", size))
        except ValueError as error:
            raise damaged(self.path, f"an offset of external data is not a number: {error}", place) from error
        data = self._file(entries.get("location", ""), place)
        if offset < 0 or length < 0 or offset + length > len(data):
            cause = f"{entries.get('location')!r} has {len(data)} bytes, not {offset + length}"
            raise outside(self.path, cause, place)
        return data[offset : offset + length]

    def _file(self, location: str, place: str) -> memoryview:
        if location == OWN_FILE and location not in self._files:
            self._files[location] = map_file(self.path)
        if location not in self._files:
            if not is_inside(location):
                raise outside(self.path, f"{location[:100]!r} is not in the folder of the model", place)
            try:
                found = (self.folder / location).resolve(strict=True)
                if not found.is_relative_to(self.folder):
                    raise outside(self.path, f"{location!r} leads out of the folder of the model", place)
                self._files[location] = map_file(str(found))
            except LoadError as error:
                if error.code == "TM1032":
                    raise
                raise outside(self.path, f"{location!r}: {error.message}", place) from error
            except (OSError, RuntimeError) as error:
                raise outside(self.path, f"{location!r} does not exist", place) from error
        return self._files[location]


def is_inside(location: str) -> bool:
    """Whether a location is a path within the folder of a model, apart from links."""
    path = Path(location)
    return bool(location) and "\0" not in location and not path.is_absolute() and ".." not in path.parts


def location_of(proto: Any) -> str | None:
    """Returns the file of a TensorProto's external data; None for one that has its data."""
    if proto.data_location != EXTERNAL:
        return None
    return next((entry.value for entry in proto.external_data if entry.key == "location"), "")


def tensors_of(graph: Any) -> Iterator[Any]:
    """Yields the TensorProtos of a graph: initializers and attributes, with those of subgraphs."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            yield from (attribute.t, *attribute.tensors)
            for inner in (attribute.g, *attribute.graphs):
                yield from tensors_of(inner)
