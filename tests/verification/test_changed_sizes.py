"""Files in which a size, a stride, an index or a row is changed: each is TM4001."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import tmconvert
from tests.models import corpus
from tmconvert.errors import VerificationError

lite = pytest.importorskip("ai_edge_litert.schema_py_generated")
GATHER, CONV_2D, MAX_POOL_2D = 36, 3, 17


def edited_tflite(path: Path, edit: Callable[[Any], None]) -> None:
    import flatbuffers

    model = lite.ModelT.InitFromPackedBuf(path.read_bytes(), 0)
    edit(model)
    builder = flatbuffers.Builder(1 << 16)
    builder.Finish(model.Pack(builder), b"TFL3")
    path.write_bytes(builder.Output())


def operators(model: Any, code: int) -> list[Any]:
    wanted = [index for index, each in enumerate(model.operatorCodes) if each.builtinCode == code]
    return [each for each in model.subgraphs[0].operators if each.opcodeIndex in wanted]


def content(model: Any, tensor: Any, dtype: str) -> np.ndarray:
    """What a constant holds, to be written to."""
    buffer = model.buffers[tensor.buffer]
    buffer.data = np.array(buffer.data, np.uint8)
    data: np.ndarray = buffer.data.view(dtype)
    return data


def refused(model: Any, path: Path, said: str | None = None) -> None:
    with pytest.raises(VerificationError, match=said) as caught:
        tmconvert.verify(model, path)
    assert caught.value.code == "TM4001", caught.value.message


# ---- Caffe


@pytest.mark.parametrize("axis", range(4))
@pytest.mark.parametrize("by", [1, 2])
def test_another_size_of_the_input_in_a_prototxt(axis: int, by: int, tmp_path: Path) -> None:
    """A runtime takes what it is fed: the size in the file is compared by itself."""
    _, (path, _) = corpus.converted("op_pooling", "caffe", tmp_path)
    tmconvert.verify(corpus.model("op_pooling"), path)
    text = path.read_text()
    found = list(re.finditer(r"dim: (\d+)", text))[axis]
    path.write_text(f"{text[: found.start(1)]}{int(found[1]) + by}{text[found.end(1) :]}")
    said = r"the input x has shape \[.*\] in the file, but \[.*\] in the model"
    refused(corpus.model("op_pooling"), path, said)


# ---- TFLite in integers


@pytest.mark.parametrize(
    "change",
    [
        {"strideH": 2},
        {"strideW": 2},
        {"strideH": 2, "strideW": 2},
        {"dilationHFactor": 2},
        {"padding": "other"},
    ],
    ids=str,
)
def test_another_stride_padding_or_dilation_of_an_integer_file(
    change: dict[str, Any], tmp_path: Path
) -> None:
    """The file runs, and its tensors have other shapes, or other numbers: neither is a ValueError."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 4, 3, padding=1)).eval()
    data = [[torch.randn(1, 3, 8, 8).numpy()] for _ in range(2)]
    model = tmconvert.calibrate(net, data, example_inputs=torch.randn(1, 3, 8, 8))
    path = tmp_path / "m.tflite"
    tmconvert.to_tflite(model, path, quantized=True)
    tmconvert.verify(model, path)

    def edit(written: Any) -> None:
        first, *_ = operators(written, CONV_2D)
        for attribute, value in change.items():
            before = getattr(first.builtinOptions, attribute)
            setattr(first.builtinOptions, attribute, 1 - before if value == "other" else before * value)

    edited_tflite(path, edit)
    refused(model, path)


# ---- indices and rows in TFLite


TABLE = torch.randn(40, 3, generator=torch.Generator().manual_seed(0))


def test_a_row_of_an_embedding_in_tflite(tmp_path: Path) -> None:
    ids = torch.tensor([[0, 1]])  # 17 is in none of two draws
    traced = tmconvert.trace(lambda ids: F.embedding(ids, TABLE), ids)
    path = tmp_path / "m.tflite"
    tmconvert.to_tflite(traced, path)
    tmconvert.verify(traced, path)

    def edit(model: Any) -> None:
        table = next(each for each in model.subgraphs[0].tensors if list(each.shape) == [40, 3])
        content(model, table, "float32").reshape(40, 3)[17] += 0.5

    edited_tflite(path, edit)
    refused(traced, path)


@pytest.mark.parametrize("at", range(3))
def test_an_index_of_a_gather_in_tflite(at: int, tmp_path: Path) -> None:
    picked = torch.tensor([5, 0, 2])
    traced = tmconvert.trace(lambda x: x[:, picked], torch.randn(2, 7))
    path = tmp_path / "m.tflite"
    tmconvert.to_tflite(traced, path)
    tmconvert.verify(traced, path)

    def edit(model: Any) -> None:
        (call,) = operators(model, GATHER)
        content(model, model.subgraphs[0].tensors[call.inputs[1]], "int32")[at] += 1

    edited_tflite(path, edit)
    refused(traced, path)


def test_the_element_that_a_model_of_ids_picks(tmp_path: Path) -> None:
    """Ids of 0 and 1 alone do not tell its rows apart."""
    name = "op_mha_rnncell"
    _, (path,) = corpus.converted(name, "tflite", tmp_path)
    tmconvert.verify(corpus.model(name), path)

    def edit(model: Any) -> None:
        tensors = model.subgraphs[0].tensors
        call = next(each for each in operators(model, GATHER) if len(tensors[each.inputs[0]].shape) == 2)
        table = tensors[call.inputs[0]]
        content(model, table, "float32").reshape(list(table.shape))[5] += 0.5

    edited_tflite(path, edit)
    refused(corpus.model(name), path)
