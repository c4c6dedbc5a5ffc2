"""Old forms of Caffe nets, phases, shared weights, layers in place, and damaged files."""

from __future__ import annotations

import contextlib
import struct
import time

import numpy as np
import pytest

import tmconvert
from tests.frontends.caffe.nets import arrays, declared, layer, written
from tmconvert.errors import LoadError, TmconvertError, UnsupportedError
from tmconvert.formats.caffe.caffemodel import blobs_of
from tmconvert.formats.caffe.schema import schema
from tmconvert.targets.registry import runtime_for

IMAGE = (1, 3, 6, 5)
WEIGHTS = {"conv": arrays([(4, 3, 3, 3), (4,)]), "fc": arrays([(5, 64), (5,)])}
CONV = "num_output: 4 kernel_size: 3 pad: 1 stride: 2"
INPUT = declared({"x": IMAGE})
NET = (
    INPUT
    + f"""
layer {{ name: "conv" type: "Convolution" bottom: "x" top: "h" convolution_param {{ {CONV} }} }}
layer {{ name: "act" type: "ReLU" bottom: "h" top: "h" }}
layer {{ name: "pool" type: "Pooling" bottom: "h" top: "p" pooling_param {{ kernel_size: 1 }} }}
layer {{ name: "fc" type: "InnerProduct" bottom: "p" top: "y" inner_product_param {{ num_output: 5 }} }}
"""
)
NET = NET.replace("kernel_size: 1 }", "kernel_size: 2 stride: 1 pad: 1 }")
OLD = f"""# before 2015
name: 'old'; input: "x"
input_dim: 1 input_dim: 3 input_dim: 6 input_dim: 5
layers {{ name: "conv" type: CONVOLUTION bottom: "x" top: "h" blobs_lr: 1 convolution_param {{ {CONV} }} }}
layers {{ name: "act" type: RELU bottom: "h" top: "h" }}
layers {{ name: "pool" type: POOLING bottom: "h" top: "p"
  pooling_param {{ kernel_size: 2 stride: 1 pad: 1 }} }}
layers {{ name: "fc" type: INNER_PRODUCT bottom: "p" top: "y" inner_product_param {{ num_output: 5 }} }}
"""


def image():
    return arrays([IMAGE], 3)[0]


def error(folder, text, weights=WEIGHTS):
    with pytest.raises(LoadError) as caught:
        tmconvert.load(written(folder, text, weights))
    return caught.value


def test_a_net_and_its_old_form(tmp_path):
    new, old = written(tmp_path, NET, WEIGHTS), written(tmp_path, OLD, WEIGHTS, "old")
    x = image()
    (expected,) = runtime_for("caffe", new).run([new, new.with_suffix(".caffemodel")], {"x": x}, ["y"])
    model = tmconvert.load(new)
    np.testing.assert_allclose(model(x), expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(tmconvert.load(old)(x), model(x), rtol=1e-6)
    assert [str(node) for node in model.graph.outputs] == ["y"]
    assert tmconvert.to_onnx(old, tmp_path / "old.onnx").verified


def test_the_weights_of_old_files(tmp_path):
    """Layers of the format V1, blobs of four extents, elements one by one and as doubles."""
    expected = {name: [blob.copy() for blob in blobs] for name, blobs in WEIGHTS.items()}
    data = b""
    for name, blobs in WEIGHTS.items():
        body = b"\x22" + bytes([len(name)]) + name.encode()
        for number, blob in enumerate(blobs):
            shape = (*(1,) * (4 - blob.ndim), *blob.shape)
            content = b"".join(bytes([8 * at]) + varint(extent) for at, extent in enumerate(shape, 1))
            if number:
                content += b"".join(b"\x2d" + struct.pack("<f", each) for each in blob)
            else:
                content += b"\x42" + varint(8 * blob.size) + blob.astype("<f8").tobytes()
            body += b"\x32" + varint(len(content)) + content
        data += b"\x12" + varint(len(body)) + body
    path = written(tmp_path, NET, {})
    path.with_suffix(".caffemodel").write_bytes(data)
    x = image()
    found = tmconvert.load(path)(x)
    np.testing.assert_allclose(found, tmconvert.load(written(tmp_path, NET, expected))(x), rtol=1e-6)


def varint(number: int) -> bytes:
    parts = []
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes([*parts, number])


def test_the_caffemodel_may_have_another_name(tmp_path):
    path = written(tmp_path, NET, WEIGHTS)
    path.with_suffix(".caffemodel").rename(tmp_path / "other.caffemodel")
    assert tmconvert.load(path).tensors
    (tmp_path / "third.caffemodel").write_bytes(b"")
    with pytest.raises(LoadError, match=r"net.caffemodel; the folder has other.caffemodel, third.caffemodel"):
        tmconvert.load(path)


def test_missing_weights(tmp_path):
    found = error(tmp_path, NET, {"conv": WEIGHTS["conv"]})
    assert found.code == "TM1053"
    assert "'fc' needs 2 blobs, not 0" in str(found)
    assert "net.prototxt:6, in InnerProduct (fc)" in str(found)


def test_weights_of_another_net(tmp_path):
    path = written(tmp_path, NET, {**WEIGHTS, "fc": arrays([(5, 63), (5,)])})
    with pytest.raises(UnsupportedError, match=r"blob 0 has the shape \[5, 63\], and needs \[5, 64\]"):
        tmconvert.to_onnx(path, tmp_path / "net.onnx")


def test_phases_levels_and_stages(tmp_path):
    rules = {
        "a": "include { phase: TRAIN }",
        "b": "exclude { phase: TEST }",
        "c": "include { phase: TEST min_level: 1 }",
        "d": 'include { stage: "deploy" }',
        "e": 'exclude { not_stage: "deploy" }',
        "f": 'include { phase: TEST stage: "other" }',
    }
    text = 'state { stage: "deploy" }\n' + INPUT
    for name, rule in rules.items():
        text += f'layer {{ name: "{name}" type: "Power" bottom: "x" top: "{name}" {rule} }}\n'
    module = tmconvert.load(written(tmp_path, text, {}))
    assert [str(node) for node in module.graph.outputs] == ["d", "e"]


def test_shared_weights(tmp_path):
    sharing = 'param { name: "w" } param { name: "b" } inner_product_param { num_output: 3 }'
    text = declared({"x": (1, 3)}) + "".join(
        f'layer {{ name: "{name}" type: "InnerProduct" bottom: "x" top: "{name}" {sharing} }}\n'
        for name in "pq"
    )
    module = tmconvert.load(written(tmp_path, text, {"p": arrays([(3, 3), (3,)])}))
    assert sorted(module.tensors) == ["p/0", "p/1"]
    first, second = module(np.ones((1, 3), np.float32))
    np.testing.assert_array_equal(first, second)


def test_a_layer_in_place_is_named_by_its_blob_at_last(tmp_path):
    text = INPUT + layer("Sigmoid") + layer("ReLU", bottoms=["y"])
    module = tmconvert.load(written(tmp_path, text, {}))
    assert [str(node) for node in module.graph.outputs] == ["y"]
    assert "Sigmoid = caffe.Sigmoid(x" in str(module.graph)


@pytest.mark.parametrize(
    ("text", "code", "part"),
    [
        (NET.replace('bottom: "h"', 'bottom: "q"'), "TM1051", "no layer before computes the blob 'q'"),
        (NET.replace("dim: 5", "dim: -5"), "TM1051", "an input has the shape"),
        (
            NET.replace("kernel_size: 3", "kernel_sise: 3"),
            "TM1052",
            "ConvolutionParameter has no field 'kernel_sise'",
        ),
        (NET.replace("kernel_size: 3", "kernel_size: x"), "TM1016", "prototxt:3|parse integer: x"),
        (NET[:-4], "TM1016", "the end"),
        (INPUT, "", ""),
        (NET + layer("SoftmaxWithLoss", bottoms=["y"], tops=["z"]), "TM1052", "is for training"),
        ('input: "x"\n', "TM1051", "shape"),
        ("layer { name: '\\x1b[31m' type: 'Input' top: 'x' }", "TM1051", "0 shapes"),
        ("layers { layer { name: 'c' type: 'conv' } }", "TM1052", "V0"),
    ],
)
def test_damaged_texts(tmp_path, text, code, part):
    if not code:
        assert tmconvert.load(written(tmp_path, text, {})).graph.outputs
        return
    found = error(tmp_path, text)
    assert found.code == code
    assert any(each in str(found) for each in part.split("|"))
    assert "\x1b" not in str(found)


def test_an_unknown_layer_is_refused_with_its_line(tmp_path):
    text = INPUT + 'layer { name: "a" type: "Axpby" bottom: "x" top: "y" axpby_param { deep { er: 1 } } }\n'
    with pytest.raises(UnsupportedError, match=r"caffe.Axpby is not supported(.|\n)*net.prototxt:2"):
        tmconvert.to_onnx(written(tmp_path, text, {}), tmp_path / "net.onnx")


def test_layers_that_are_not_converted_have_a_reason(tmp_path):
    text = INPUT + layer("Python", 'python_param { module: "m" layer: "l" }')
    with pytest.raises(UnsupportedError, match="its code is in a Python module"):
        tmconvert.to_onnx(written(tmp_path, text, {}), tmp_path / "net.onnx")
    boxes = 'bottom: "x" bottom: "x" detection_output_param { num_classes: 2 }'
    with pytest.raises(UnsupportedError, match="how many elements it returns depends on the data"):
        tmconvert.to_onnx(
            written(tmp_path, INPUT + layer("DetectionOutput", boxes), {}), tmp_path / "net.onnx"
        )


def test_the_container_keeps_the_layers(tmp_path):
    module = tmconvert.load(written(tmp_path, NET, WEIGHTS))
    module.save(tmp_path / "net.tm")
    x = image()
    np.testing.assert_allclose(tmconvert.load(tmp_path / "net.tm")(x), module(x), rtol=1e-6)


@pytest.mark.parametrize(
    "data",
    [
        b"\xff" * 40,
        b"\x12\xff\xff\xff\xff\x0f",
        b"\xa2\x06\x04\x3a\x02\x2a\x09",
        b"\x2d" * 7,
        b"\x12\x02\x32\x05",
    ],
    ids=["endless", "long", "blob", "short", "inner"],
)
def test_damaged_weights(data):
    with pytest.raises(ValueError, match=r"."):
        blobs_of(memoryview(data), ValueError)


def test_elements_that_alternate_with_other_fields_take_no_longer():
    data = b"\x12" + varint(700_006) + b"\x32" + varint(700_000) + (b"\x2d\0\0\0\0\x08\x01" * 100_000)
    before = time.perf_counter()
    with contextlib.suppress(ValueError):
        blobs_of(memoryview(data), ValueError)
    assert time.perf_counter() - before < 2


@pytest.mark.slow
def test_mutated_files_are_clean_errors_or_models(tmp_path):
    path = written(tmp_path, NET, WEIGHTS)
    weights = path.with_suffix(".caffemodel")
    files = {path: path.read_bytes(), weights: weights.read_bytes()}
    rng, x = np.random.default_rng(0), image()
    for number in range(200):
        changed = path if number % 2 else weights
        mutated = bytearray(files[changed])
        for place in rng.integers(0, len(mutated), 3):
            mutated[place] = rng.integers(0, 256)
        for name, data in files.items():
            name.write_bytes(bytes(mutated) if name is changed else data)
        before = time.perf_counter()
        with contextlib.suppress(TmconvertError):
            tmconvert.load(path)(x)
        assert time.perf_counter() - before < 2


def test_the_messages_of_all_dialects_in_one():
    fields = schema("merged").parameter_fields
    assert all(fields[name] for name in ("Convolution", "Interp", "PriorBox", "Upsample"))
