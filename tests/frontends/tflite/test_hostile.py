"""Damaged and hostile TFLite files are clean errors."""

from __future__ import annotations

import contextlib
import struct
import time

import numpy as np
import pytest
import tflite

import tmconvert
from tests.frontends.tflite.models import Call, Fixed, floats, network, saved
from tmconvert.errors import LoadError, TmconvertError, UnsupportedError


def data_of(tmp_path, graph):
    return saved(graph, tmp_path / "whole.tflite").read_bytes()


def load(tmp_path, data):
    path = tmp_path / "net.tflite"
    path.write_bytes(data)
    return tmconvert.load(path)


def error(tmp_path, data):
    with pytest.raises(LoadError) as caught:
        load(tmp_path, data)
    return caught.value


@pytest.mark.parametrize("share", [0.05, 0.3, 0.6, 0.8])
def test_a_truncated_file(tmp_path, share):
    data = data_of(tmp_path, network())
    assert error(tmp_path, data[: int(len(data) * share)]).code == "TM1041"


def test_a_wild_root(tmp_path):
    data = data_of(tmp_path, network())
    assert error(tmp_path, struct.pack("<I", 2**32 - 8) + data[4:]).code == "TM1041"


def opened(tmp_path, graph):
    """Returns the bytes of a file, and its accessors, by which numbers of vectors can be set."""
    data = bytearray(data_of(tmp_path, graph))
    return data, tflite.Model.GetRootAsModel(data, 0).Subgraphs(0)


def test_operators_in_a_circle(tmp_path):
    data, main = opened(tmp_path, network())
    main.Operators(0).InputsAsNumpy()[0] = main.Operators(3).OutputsAsNumpy()[0]
    found = error(tmp_path, data)
    assert found.code == "TM1041"
    assert "nothing computes the tensor" in str(found)
    assert "CONV_2D 0" in str(found)


def test_a_tensor_that_two_operators_compute(tmp_path):
    data, main = opened(tmp_path, network())
    main.Operators(3).OutputsAsNumpy()[0] = main.Operators(0).OutputsAsNumpy()[0]
    assert "is computed twice" in str(error(tmp_path, data))


@pytest.mark.parametrize("index", [-7, 99, 2**31 - 1])
def test_an_index_of_no_tensor(tmp_path, index):
    data, main = opened(tmp_path, network())
    main.Operators(1).InputsAsNumpy()[0] = index
    assert error(tmp_path, data).code == "TM1041"


@pytest.mark.parametrize("extent", [2**31 - 1, 6, -3])
def test_a_constant_with_other_bytes_than_its_shape(tmp_path, extent):
    data, main = opened(tmp_path, network())
    main.Tensors(main.Operators(3).Inputs(1)).ShapeAsNumpy()[0] = extent
    assert error(tmp_path, data).code == "TM1041"


def test_mutated_files_are_clean_errors_or_models(tmp_path):
    data = data_of(tmp_path, network())
    rng = np.random.default_rng(0)
    x = floats(1, 8, 8, 3)
    for _ in range(300):
        mutated = bytearray(data)
        for place in rng.integers(0, len(data), 4):
            mutated[place] = rng.integers(0, 256)
        before = time.perf_counter()
        with contextlib.suppress(TmconvertError, MemoryError):
            load(tmp_path, bytes(mutated))(x)
        assert time.perf_counter() - before < 2


@pytest.mark.parametrize("rows", [1 << 21, 1 << 26, (1 << 31) - 1])
def test_padding_by_millions_of_rows_is_not_computed(rows, tmp_path):
    amounts = Fixed(np.array([[0, 0], [rows, 0], [0, 0], [0, 0]], np.int32))
    module = tmconvert.load(
        saved(Call("PAD", [floats(1, 16, 16, 4), amounts]).graph(), tmp_path / "net.tflite")
    )
    since = time.process_time()
    with pytest.raises(UnsupportedError, match=r"TM2001.*aten::pad is too large for what it is computed of"):
        module(floats(1, 16, 16, 4))
    assert time.process_time() - since < 2


def test_padding_by_thousands_of_rows_is_computed(tmp_path):
    amounts = Fixed(np.array([[0, 0], [5000, 0], [0, 0], [0, 0]], np.int32))
    module = tmconvert.load(
        saved(Call("PAD", [floats(1, 16, 16, 4), amounts]).graph(), tmp_path / "net.tflite")
    )
    assert module(floats(1, 16, 16, 4)).shape == (1, 5016, 16, 4)
