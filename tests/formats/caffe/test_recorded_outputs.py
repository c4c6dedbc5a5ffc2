"""The NumPy definitions of Caffe's layers, compared with recorded outputs of OpenCV and MNN.

A file is verified by the definitions where no other runtime supports it, so each attribute of each layer is
proved here, or is in ``UNPROVED`` with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from google.protobuf import text_format
from google.protobuf.descriptor import FieldDescriptor

from tests.formats.caffe.layer_nets import NETS, LayerNet
from tests.formats.caffe.records import digest, load
from tmconvert.formats.caffe.layers import LAYERS
from tmconvert.formats.caffe.schema import schema
from tmconvert.targets.caffe.for_mnn import mnn_reads
from tmconvert.targets.caffe.lint import lint
from tmconvert.targets.caffe.opencv import OpenCvRuntime
from tmconvert.targets.caffe.runtimes import NumpyCaffeRuntime

RECORDS, DIGESTS = load()
TOLERANCE = 2e-5
# whether a runtime is to judge a net: its dialect has all layers, and no rule about what it computes wrongly
JUDGES = {"opencv": lambda prototxt: not lint(prototxt, "opencv"), "mnn": mnn_reads}

_ABSENT = "neither OpenCV nor MNN has this layer of Caffe; compared with PyTorch"
_FOREIGN = "OpenCV's layer of this name takes other weights and no marks, MNN drops it; compared with PyTorch"
_OLD = "OpenCV and MNN do not read the field, and compute what they do by default; compared with NumPy"
# a layer type, or an attribute of one: why no record proves it, and what it is compared with in
# test_layers_beside_torch.py
UNPROVED = {
    **dict.fromkeys(("BatchReindex", "Clip", "Im2col", "Parameter", "Reverse", "SPP", "Tile"), _ABSENT),
    **dict.fromkeys(("LSTM", "RNN"), _FOREIGN),
    "ArgMax": "OpenCV has no such layer, and MNN computes other indices; compared with PyTorch",
    "BatchNorm.use_global_stats=false": "OpenCV and MNN normalize with the stored statistics; compared with "
    "PyTorch",
    "Bias of more bottoms": "OpenCV has no Bias, MNN's has one bottom; compared with NumPy",
    "Concat.concat_dim": _OLD,
    "Convolution.axis": "OpenCV and MNN have axis 1 only; compared with PyTorch",
    "Deconvolution.axis": "OpenCV and MNN have axis 1 only; Convolution.axis is compared with PyTorch",
    "Embed.bias_term=true": "OpenCV has no Embed, MNN's has no bias; compared with NumPy",
    "Input": "its blobs are fed; every net has one",
    "Interp of more bottoms": "OpenCV and MNN refuse it; compared with PyTorch",
    "Interp.pad_beg": "refused: no public description says what it pads with",
    "Interp.pad_end": "refused: no public description says what it pads with",
    "Interp.shrink_factor": "OpenCV refuses it, MNN ignores it; compared with PyTorch",
    "LRN.k": "OpenCV and MNN take k for 1; compared with PyTorch",
    "MVN.eps": "OpenCV adds eps to the variance, MNN ignores it; compared with NumPy",
    "Pooling.pool=STOCHASTIC": "refused: it draws random numbers",
    "Pooling.round_mode=FLOOR": "OpenCV does not know the field, MNN ignores it; compared with PyTorch, and "
    "ceil_mode is proved",
    "Pooling.torch_pooling=true": "only TensorRT reads it; test_dialects.py compares it with NumPy",
    "Reduction.coeff": "OpenCV has no such layer, MNN ignores the field; compared with NumPy",
    "Silence": "it computes nothing",
    "Slice to one top": "OpenCV and MNN refuse it; it is the identity",
    "Slice.slice_dim": _OLD,
    "Swish.beta": "OpenCV takes beta for 1, MNN has no such layer; compared with PyTorch",
}
# Fields of training, of how a framework computes, or of dialects whose readers alone know their meaning.
UNREAD = {
    "bias_filler",
    "bias_from_blob",
    "debug_info",
    "engine",
    "filler",
    "force_nd_im2col",
    "moving_average_fraction",
    "scale_bias",
    "scale_filler",
    "scale_from_blob",
    "scale_train",
    "stable_prod_grad",
    "weight_filler",
}


@cache
def computed(name: str) -> list[np.ndarray]:
    return NETS[name].run(NumpyCaffeRuntime())


def agree(found: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> bool:
    return len(found) == len(expected) and all(
        a.shape == b.shape and np.allclose(a, b, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True)
        for a, b in zip(found, expected, strict=True)
    )


def proofs(name: str) -> set[str]:
    """Returns the runtimes that computed what the definitions compute."""
    return {
        runtime
        for runtime, records in RECORDS.items()
        if name in records.outputs and agree(records.outputs[name], computed(name))
    }


DEFINED = [name for name, net in NETS.items() if LAYERS[net.kind].run is not None]


def test_the_records_are_of_these_nets() -> None:
    assert {name: digest(net) for name, net in NETS.items()} == DIGESTS, "run tools/record_caffe_outputs.py"
    for records in RECORDS.values():
        assert records.outputs.keys() | records.refused.keys() == NETS.keys()


@pytest.mark.parametrize("name", DEFINED)
def test_judges_computed_what_the_definition_says(name: str, tmp_path: Path) -> None:
    """A runtime that computes something else has a rule in its dialect, and does not judge such nets."""
    prototxt, _ = NETS[name].written(tmp_path)
    judges = {runtime for runtime, is_judge in JUDGES.items() if is_judge(prototxt)}
    recorded = {runtime for runtime, records in RECORDS.items() if name in records.outputs}
    assert judges & recorded <= proofs(name)


def test_every_attribute_of_every_layer_is_proved() -> None:
    """By a record, unless it is in the table; and what is in the table has no record."""
    known = {each for kind in LAYERS if LAYERS[kind].run is not None for each in all_attributes(kind)}
    proved = {each for name in DEFINED if proofs(name) for each in attributes_of(NETS[name])}
    assert known - proved == UNPROVED.keys()


@pytest.mark.opencv
@pytest.mark.parametrize("name", RECORDS["opencv"].outputs)
def test_opencv_computes_what_is_recorded(name: str) -> None:
    expected = RECORDS["opencv"].outputs[name]
    assert agree(NETS[name].run(OpenCvRuntime(), [array.shape for array in expected]), expected)


def attributes_of(net: LayerNet) -> Iterator[str]:
    """Yields the type of the layer, the counts of blobs, the values of its flags, and other fields set."""
    layer = text_format.Parse(net.text, schema("merged").NetParameter()).layer[-1]
    yield net.kind
    yield f"{net.kind} of {_count(len(layer.bottom), 'bottom')}"
    yield f"{net.kind} to {_count(len(layer.top), 'top')}"
    for field in fields_of(net.kind):
        parameters = getattr(layer, LAYERS[net.kind].parameters or "")
        is_set = any(each is field for each, _ in parameters.ListFields())
        if values_of(field) and (is_set or field.has_default_value):
            yield f"{net.kind}.{field.name}={values_of(field)[getattr(parameters, field.name)]}"
        elif is_set:
            yield f"{net.kind}.{field.name}"


def all_attributes(kind: str) -> Iterator[str]:
    """Yields what ``attributes_of`` can; of a type in the table, and of one with another's definition, only
    the type.
    """
    yield kind
    if kind in UNPROVED or kind == "DepthwiseConv":
        return
    for words, word, (least, most) in (
        ("of", "bottom", LAYERS[kind].bottoms),
        ("to", "top", LAYERS[kind].tops),
    ):
        yield from {f"{kind} {words} {_count(number, word)}" for number in (least, most or least + 1)}
    for field in fields_of(kind):
        labels = values_of(field).values()
        yield from (f"{kind}.{field.name}={label}" for label in labels)
        if not labels:
            yield f"{kind}.{field.name}"


def _count(number: int, word: str) -> str:
    return f"one {word}" if number == 1 else f"more {word}s"


def fields_of(kind: str) -> list[FieldDescriptor]:
    name = LAYERS[kind].parameters
    if name is None:
        return []
    message = schema("merged").LayerParameter.DESCRIPTOR.fields_by_name[name].message_type
    return [field for field in message.fields if field.name not in UNREAD]


def values_of(field: FieldDescriptor) -> dict[int, str]:
    """Returns the values of a flag or an enum."""
    if field.enum_type is not None:
        return {number: value.name for number, value in field.enum_type.values_by_number.items()}
    return {0: "false", 1: "true"} if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL else {}
