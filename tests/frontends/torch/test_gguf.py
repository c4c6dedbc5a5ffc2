"""GGUF files: ONNX files have their integers, and compute what PyTorch does with the dequantized weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import numpy_helper

import tmconvert
from tmconvert.errors import LoadError
from tmconvert.frontends.torch.gguf_blocks import BLOCK_TYPES, matrix_of

from .harness import run_onnx

WIDTH, HEADS, WORDS = 256, 4, 64
SCALES = {"Q4_0": [0], "Q4_1": [0, 2], "Q8_0": [0], "Q4_K": [0, 2], "Q6_K": [208]}
EXACT = {"session.qdq_matmulnbits_accuracy_level": "1"}


def blocks(kind: str, rows: int, columns: int, seed: int) -> np.ndarray:
    """Bytes of a tensor: all integers, and scales that give weights of about 1 / 16."""
    random, record = np.random.default_rng(seed), BLOCK_TYPES[kind]
    made = random.integers(0, 256, (rows * columns // record.size, record.bytes)).astype(np.uint8)
    unit = {"Q4_0": 8, "Q4_1": 8, "Q8_0": 128, "Q4_K": 8 * 32, "Q6_K": 32 * 64}[kind] * 16
    for place in SCALES[kind]:
        scale = (random.random((len(made), 1)) / unit).astype(np.float16)
        made[:, place : place + 2] = scale.view(np.uint8)
    return made.reshape(rows, -1)


@pytest.mark.parametrize("kind", BLOCK_TYPES)
def test_blocks(kind: str) -> None:
    gguf = pytest.importorskip("gguf")
    data = blocks(kind, 6, 512, 1)
    data[0] = 0  # scales of 0
    matrix = matrix_of(kind, data)
    assert matrix is not None
    wanted = gguf.dequantize(data, getattr(gguf.GGMLQuantizationType, kind))
    np.testing.assert_allclose(matrix.restored(), wanted, rtol=0, atol=2e-7 * np.abs(wanted).max())


def write(path: Path, kind: str) -> dict[str, np.ndarray]:
    """Writes a decoder of two layers; returns the bytes of its quantized tensors."""
    gguf = pytest.importorskip("gguf")
    writer, random = gguf.GGUFWriter(path, "llama"), np.random.default_rng(0)
    writer.add_name("tiny")
    writer.add_context_length(64)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(2)
    writer.add_feed_forward_length(WIDTH)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(2)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(WORDS)
    made: dict[str, np.ndarray] = {}
    for name in ("token_embd", "output", "output_norm"):
        shape = (WIDTH,) if name.endswith("norm") else (WORDS, WIDTH)
        writer.add_tensor(f"{name}.weight", random.standard_normal(shape).astype(np.float32))
    kinds = getattr(gguf.GGMLQuantizationType, kind)
    for layer in range(2):
        for name in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{layer}.{name}.weight", np.ones(WIDTH, np.float32))
        for number, name in enumerate(
            ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
        ):
            rows = WIDTH // 2 if name in ("attn_k", "attn_v") else WIDTH
            data = made[f"{name}{layer}"] = blocks(kind, rows, WIDTH, 10 * layer + number)
            writer.add_tensor(f"blk.{layer}.{name}.weight", data, raw_dtype=kinds)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return made


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["Q4_0", "Q8_0", "Q4_K", "Q6_K"])
def test_files_have_the_integers_of_the_file(kind: str, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    source, path = tmp_path / "tiny.gguf", tmp_path / "out.onnx"
    made = write(source, kind)
    ids = torch.randint(0, WORDS, (2, 7))
    given: dict[str, Any] = {"example_kwargs": {"input_ids": ids}, "integer_weights": "MatMulNBits"}
    report = tmconvert.to_onnx(source, path, **given)
    assert report.verified
    graph = onnx.load(path).graph
    constants = {each.name: numpy_helper.to_array(each) for each in graph.initializer}
    products = [node for node in graph.node if node.op_type == "MatMulNBits"]
    assert len(products) == 14
    found = []
    for node in products:
        packed = constants[node.input[1]]
        rows = packed.reshape(len(packed), -1)
        found.append(rows if kind[1] != "4" else np.stack([rows & 15, rows >> 4], -1).reshape(len(rows), -1))
    shift = 128 if kind == "Q8_0" else 0
    for data in made.values():
        matrix = matrix_of(kind, data)
        assert matrix is not None
        wanted = np.sort((matrix.values.astype(int) + shift).sum(1))  # rows of heads are in another order
        assert any(np.array_equal(np.sort(each.astype(int).sum(1)), wanted) for each in found)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        tmp_path, gguf_file=source.name, dtype=torch.float32
    ).eval()
    with torch.no_grad():
        expected = model(input_ids=ids).logits.numpy()
    (got,) = run_onnx(path, [ids.numpy()], EXACT)[:1]
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


def test_damaged_files(tmp_path: Path) -> None:
    path = tmp_path / "tiny.gguf"
    path.write_bytes(b"GGUF" + b"\xff" * 60)
    with pytest.raises(LoadError) as caught:
        tmconvert.load(path)
    assert caught.value.code == "TM1028"
