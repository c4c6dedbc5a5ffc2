"""The records of Caffe's layer types: consistent, and known to the dialects."""

from __future__ import annotations

import pytest

from tmconvert.formats.caffe.dialects import DIALECTS, MERGED
from tmconvert.formats.caffe.layers import BVLC, LAYERS, TRAINING
from tmconvert.formats.caffe.schema import schema


@pytest.mark.parametrize("name", LAYERS)
def test_record_is_consistent(name: str) -> None:
    known = LAYERS[name]
    assert (known.shapes is None) == (known.run is None)
    assert known.run is not None or not known.overwrites
    assert not (known.trains and known.is_of_fork)
    dialects = [dialect for dialect in (*DIALECTS.values(), MERGED) if dialect.knows(name)]
    for dialect in dialects:
        fields = schema(dialect.name).LayerParameter.DESCRIPTOR.fields_by_name
        assert known.parameters is None or known.parameters in fields


def test_layers_of_bvlc() -> None:
    assert {"Convolution", "Softmax", "Python"} <= BVLC
    assert not BVLC & TRAINING
    assert {name for name, each in LAYERS.items() if each.is_of_fork} == LAYERS.keys() - BVLC - TRAINING


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_layer_of_a_dialect_has_a_record(dialect: str) -> None:
    assert DIALECTS[dialect].layers <= LAYERS.keys()
