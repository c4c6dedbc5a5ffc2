"""Float files with weights on their grids: right ones pass ``verify``, those with one other number do not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
import onnx
import pytest
from onnx.numpy_helper import from_array, to_array

import tmconvert
from tests.models import corpus
from tmconvert.errors import VerificationError
from tmconvert.formats.caffe.schema import schema as caffe_schema

schema = pytest.importorskip("ai_edge_litert.schema_py_generated")
NAME = "qat_small_ema"  # a ReLU keeps a layer of it from all outputs, for the example
Put = Callable[[np.ndarray], None]


def weights_onnx(path: Path) -> tuple[list[tuple[str, np.ndarray, Put]], Callable[[], None]]:
    model = onnx.load(path)
    found = []
    for tensor in model.graph.initializer:

        def put(array: np.ndarray, tensor: onnx.TensorProto = tensor) -> None:
            tensor.CopyFrom(from_array(array, tensor.name))

        found.append((tensor.name, to_array(tensor), put))
    return found, lambda: onnx.save(model, path)


def weights_tflite(path: Path) -> tuple[list[tuple[str, np.ndarray, Put]], Callable[[], None]]:
    model = schema.ModelT.InitFromPackedBuf(path.read_bytes(), 0)
    found = []
    for tensor in model.subgraphs[0].tensors:
        buffer = model.buffers[tensor.buffer]
        if tensor.type or buffer.data is None or not len(buffer.data):
            continue

        def put(array: np.ndarray, buffer: Any = buffer) -> None:
            buffer.data = array.view(np.uint8)

        found.append((tensor.name.decode(), np.array(buffer.data, np.uint8).view(np.float32), put))

    def save() -> None:
        builder = flatbuffers.Builder(1 << 16)
        builder.Finish(model.Pack(builder), b"TFL3")
        path.write_bytes(builder.Output())

    return found, save


def weights_caffe(path: Path) -> tuple[list[tuple[str, np.ndarray, Put]], Callable[[], None]]:
    weights = path.with_suffix(".caffemodel")
    net = caffe_schema("bvlc").NetParameter()
    net.ParseFromString(weights.read_bytes())
    found = []
    for layer in net.layer:
        for blob in layer.blobs:

            def put(array: np.ndarray, blob: Any = blob) -> None:
                blob.data[:] = array.tolist()

            found.append((layer.name, np.array(blob.data, np.float32), put))
    return found, lambda: bool(weights.write_bytes(net.SerializeToString()))  # type: ignore[return-value]


TARGETS = {"onnx": weights_onnx, "tflite": weights_tflite, "caffe": weights_caffe}


def wrong(array: np.ndarray) -> Iterator[np.ndarray]:
    """Another sign of the smallest number but 0, and the last one twice."""
    sizes = np.abs(array.reshape(-1))
    for at, factor in ((int(np.argmin(np.where(sizes, sizes, np.inf))), -1), (-1, 2)):
        changed = array.copy()
        changed.reshape(-1)[at] *= factor
        if not np.array_equal(changed, array):
            yield changed


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_one_other_number(target: str, tmp_path: Path) -> None:
    _, paths = corpus.converted(NAME, target, tmp_path, fake_quant_weights=True)
    source, count = tmconvert.load(corpus.model(NAME)), 0
    assert tmconvert.verify(source, paths[0])
    found, save = TARGETS[target](paths[0])
    for name, array, put in found:
        for changed in wrong(array) if array.dtype == np.float32 else ():
            put(changed)
            save()
            put(array)
            count += 1
            with pytest.raises(VerificationError, match="TM4001"):
                tmconvert.verify(source, paths[0])
                raise AssertionError(name)
    assert count >= 15
    save()
    assert tmconvert.verify(source, paths[0])


def test_a_net_says_what_was_asked(tmp_path: Path) -> None:
    _, paths = corpus.converted(NAME, "caffe", tmp_path, fake_quant_weights=True)
    first = paths[0].read_text().splitlines()[0]
    assert first.startswith("# tmconvert.options: {") and '"fake_quant_weights": true' in first
    # without the comment it is compared with the source's own weights
    paths[0].write_text(paths[0].read_text().removeprefix(first))
    with pytest.raises(VerificationError, match="TM4001"):
        tmconvert.verify(corpus.model(NAME), paths[0])
    paths[0].write_text("# tmconvert.options: no JSON\n" + paths[0].read_text())
    with pytest.raises(VerificationError, match="TM4001"):
        tmconvert.verify(corpus.model(NAME), paths[0])
