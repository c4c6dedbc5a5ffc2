"""Records of TFLite files that are inspected, and not converted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tmconvert
from tests.frontends.tflite.models import network, saved
from tmconvert.errors import LoadError
from tmconvert.formats.mapped_file import map_file
from tmconvert.formats.tflite.faults import damaged
from tmconvert.formats.tflite.flatbuffer import Flatbuffer
from tmconvert.formats.tflite.metadata import tflite_layouts, tflite_options
from tmconvert.formats.tflite.records import read_model
from tmconvert.formats.tflite.tap import tapped_tflite
from tmconvert.formats.tflite.tensors import TensorReader
from tmconvert.targets.tflite.written_model import written_tflite


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return saved(network(), tmp_path / "net.tflite")


def test_options_of_a_later_schema_are_no_obstacle_to_inspection(path: Path) -> None:
    data = bytearray(path.read_bytes())
    root = Flatbuffer(memoryview(data), lambda cause: damaged("net", cause)).root()
    at = root.tables(2)[0].tables(3)[0].field(3)
    assert at is not None
    data[at] = 255
    path.write_bytes(data)
    assert written_tflite(path).layers[0].type == "CONV_2D"
    with pytest.raises(LoadError, match="255 is not a type of BuiltinOptions"):
        tmconvert.load(path)


def test_constants_are_views_of_the_mapped_file(path: Path) -> None:
    main = read_model(str(path), map_file(str(path))).subgraphs[0]
    arrays = [TensorReader(str(path)).stored_array(each) for each in main.tensors if each.content is not None]
    assert arrays and not any(array.flags.owndata for array in arrays)
    assert any(array.dtype == np.float32 and array.ndim == 4 for array in arrays)


def test_damaged_files_are_clean_errors(path: Path) -> None:
    data = path.read_bytes()
    rng = np.random.default_rng(0)
    names = [each.name for each in read_model(str(path), memoryview(data)).subgraphs[0].tensors]
    readers = (written_tflite, tflite_layouts, tflite_options, lambda path: tapped_tflite(path, names[-1:]))
    for _ in range(100):
        mutated = bytearray(data)
        for position in rng.integers(0, len(data), 4):
            mutated[position] = rng.integers(0, 256)
        path.write_bytes(mutated)
        for read in readers:
            try:
                read(path)
            except LoadError as error:
                assert error.code in ("TM1009", "TM1041", "TM1042")
            except KeyError:  # a tensor of another name
                pass
