"""Integers of quantized checkpoints: ONNX files have the same, and compute what PyTorch does with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from onnx import numpy_helper

import tmconvert
from tmconvert.errors import LoadError
from tmconvert.frontends.torch.checkpoint_layouts import matrix_of, scheme_of

from .harness import run_onnx

GROUP, EXACT = 16, {"session.qdq_matmulnbits_accuracy_level": "1"}
AWQ = (0, 2, 4, 6, 1, 3, 5, 7)  # the column of each half of a byte, from the lowest bits on


def packed(values: np.ndarray, axis: int, bits: int = 4, places: Any = None) -> np.ndarray:
    """Packs unsigned integers in words of 32 bits, as the packages document it."""
    parts = np.moveaxis(values, axis, -1).astype(np.uint32)
    count = 32 // bits
    parts = np.pad(parts, [(0, 0)] * (parts.ndim - 1) + [(0, -parts.shape[-1] % count)])
    parts = parts.reshape(*parts.shape[:-1], -1, count)
    words = np.zeros(parts.shape[:-1], np.uint32)
    for number, place in enumerate(places or range(count)):
        words |= parts[..., place] << np.uint32(bits * number)
    return np.moveaxis(words, -1, axis).view(np.int32).copy()


class Quantized:
    """A matrix [N, K] as a package stores it, and the same in float32."""

    def __init__(self, kind: str, shape: tuple[int, int], seed: int) -> None:
        random, (rows, columns) = np.random.default_rng(seed), shape
        groups, bits = columns // GROUP, 8 if kind.endswith("8") else 4
        q = random.integers(0, 1 << bits, shape)
        zero = random.integers(1, (1 << bits) - 1, (rows, groups))
        if "symmetric" in kind:
            zero[...] = 1 << (bits - 1)
        scale = (random.random((rows, groups)) / (8 << bits) + 0.001).astype(np.float16)
        index = np.arange(columns) // GROUP
        if "order" in kind:
            random.shuffle(index)
        self.values, self.plain = q, ((q - zero[:, index]) * scale[:, index].astype(np.float32))
        self.plain = self.plain.astype(np.float32)
        if kind.startswith("gptq"):
            stored = zero if "v2" in kind else zero - 1
            self.tensors = {
                "qweight": packed(q.T, 0, bits),
                "qzeros": packed(stored.T, 1, bits),
                "scales": scale.T.copy(),
                "g_idx": index.astype(np.int32),
            }
        elif kind.startswith("awq"):
            self.tensors = {
                "qweight": packed(q.T, 1, places=AWQ),
                "qzeros": packed(zero.T, 1, places=AWQ),
                "scales": scale.T.copy(),
            }
        elif kind.startswith("packed"):
            self.tensors = {
                "weight_packed": packed(q, 1, bits),
                "weight_scale": scale,
                "weight_shape": np.array(shape),
            }
            if "symmetric" not in kind:
                self.tensors["weight_zero_point"] = packed(zero, 0, bits)
        else:
            half = 1 << (bits - 1)
            self.tensors = {"weight": (q - half).astype(np.int8), "weight_scale": scale}
            self.tensors["weight_zero_point"] = (zero - half).astype(np.int8)
        if kind.startswith(("packed", "int")) and "order" in kind:
            self.tensors["weight_g_idx"] = index.astype(np.int32)


def compressed(format: str, bits: int, **more: Any) -> dict[str, Any]:
    weights = {"num_bits": bits, "type": "int", "group_size": GROUP, **more}
    groups = {"group_0": {"weights": weights, "input_activations": None, "targets": ["Linear"]}}
    return {"quant_method": "compressed-tensors", "format": format, "config_groups": groups}


GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": GROUP}
CONFIGS: dict[str, dict[str, Any]] = {
    "gptq": GPTQ,
    "gptq order": {**GPTQ, "desc_act": True},
    "gptq v2 symmetric": {**GPTQ, "checkpoint_format": "gptq_v2"},
    "gptq 8": {**GPTQ, "bits": 8},
    "awq": {"quant_method": "awq", "bits": 4, "version": "gemm"},
    "gptq of AutoRound": {**GPTQ, "quant_method": "auto-round", "packing_format": "auto_round:auto_gptq"},
    "awq of AutoRound": {"quant_method": "auto-round", "bits": 4, "packing_format": "auto_round:auto_awq"},
    "packed": compressed("pack-quantized", 4),
    "packed symmetric": compressed("pack-quantized", 4),
    "packed order": compressed("pack-quantized", 4),
    "packed 8": compressed("pack-quantized", 8),
    "int 8": compressed("int-quantized", 8),
}


@pytest.mark.parametrize("kind", CONFIGS)
def test_matrices(kind: str) -> None:
    made = Quantized(kind, (24, 64), 1)
    scheme = scheme_of(CONFIGS[kind])
    assert not isinstance(scheme, str)
    matrix = matrix_of(scheme, made.tensors)
    assert not isinstance(matrix, str)
    np.testing.assert_array_equal(matrix.restored(), made.plain)
    columns = slice(None) if matrix.order is None else matrix.order
    shift = 0 if matrix.values.dtype == np.uint8 else 1 << (scheme.bits - 1)
    np.testing.assert_array_equal(matrix.values.astype(int) + shift, made.values[:, columns])


@given(st.data())
def test_damaged_tensors_are_refused(data: st.DataObject) -> None:
    """A tensor of another shape or type gives a reason, or a matrix whose parts fit."""
    kind = data.draw(st.sampled_from(list(CONFIGS)))
    tensors = dict(Quantized(kind, (24, 64), 1).tensors)
    name = data.draw(st.sampled_from(list(tensors)))
    shape = data.draw(st.lists(st.integers(0, 40), max_size=2))
    dtype = data.draw(st.sampled_from(["int32", "int64", "float16", "int8", "bool"]))
    tensors[name] = np.ones(shape, dtype)
    scheme = scheme_of(CONFIGS[kind])
    assert not isinstance(scheme, str)
    found = matrix_of(scheme, tensors)
    if not isinstance(found, str):
        assert found.restored().shape == found.values.shape


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("bits", [4, 8])
def test_what_compressed_tensors_packs(bits: int, symmetric: bool) -> None:
    helpers = pytest.importorskip("compressed_tensors.compressors.pack_quantized.helpers")
    random = np.random.default_rng(bits)
    low = -(1 << (bits - 1))
    values = random.integers(low, -low, (20, 64)).astype(np.int8)
    zeros = random.integers(low, -low, (20, 4)).astype(np.int8)
    scale = random.random((20, 4)).astype(np.float32)
    tensors = {
        "weight_packed": helpers.pack_to_int32(torch.from_numpy(values), bits).numpy(),
        "weight_scale": scale,
        "weight_shape": np.array(values.shape),
    }
    if not symmetric:
        tensors["weight_zero_point"] = helpers.pack_to_int32(torch.from_numpy(zeros), bits, 0).numpy()
    scheme = scheme_of(compressed("pack-quantized", bits))
    assert not isinstance(scheme, str)
    matrix = matrix_of(scheme, tensors)
    assert not isinstance(matrix, str)
    np.testing.assert_array_equal(matrix.values, values)
    if not symmetric:
        np.testing.assert_array_equal(matrix.zero_point, zeros)


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"quant_method": "bitsandbytes"}, "no layout of the method 'bitsandbytes'"),
        ({**GPTQ, "bits": 3}, "have 3 bits"),
        ({**GPTQ, "dynamic": {"x": {}}}, "differ in bits"),
        ({"quant_method": "awq", "bits": 4, "version": "gemv"}, "not gemm"),
        (compressed("float-quantized", 8), "no layout of the format 'float-quantized'"),
        (compressed("pack-quantized", 4, type="float"), "another type than integers"),
        ([1], "not a mapping"),
    ],
)
def test_what_cannot_be_read(config: Any, reason: str, tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"")
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama", "quantization_config": config}))
    with pytest.raises(LoadError, match=reason) as caught:
        tmconvert.load(tmp_path)
    assert caught.value.code == "TM1028"
    assert "model.dequantize()" in str(caught.value)


def folder_of(kind: str, path: Path) -> tuple[Any, dict[str, Quantized]]:
    """A folder of transformers with a small decoder; returns the same model in float32, and its matrices."""
    transformers = pytest.importorskip("transformers")
    from safetensors.torch import save_file

    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        hidden_size=64, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1,
        intermediate_size=96, vocab_size=48,
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config).eval()
    path.mkdir()
    model.config.save_pretrained(path)
    document = json.loads((path / "config.json").read_text())
    document |= {"quantization_config": CONFIGS[kind], "architectures": ["LlamaForCausalLM"]}
    (path / "config.json").write_text(json.dumps(document))
    made, tensors = {}, dict(model.state_dict())
    for seed, (name, module) in enumerate(model.named_modules()):
        if isinstance(module, torch.nn.Linear) and name != "lm_head":
            made[name] = each = Quantized(kind, tuple(module.weight.shape), seed)
            module.weight.data = torch.from_numpy(each.plain)
            del tensors[f"{name}.weight"]
            tensors |= {f"{name}.{end}": torch.from_numpy(array) for end, array in each.tensors.items()}
    save_file({name: each.contiguous() for name, each in tensors.items()}, path / "model.safetensors")
    return model, made


@pytest.mark.slow
@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("kind", ["gptq", "gptq order", "awq", "packed symmetric", "packed order", "int 8"])
def test_files_have_the_integers_of_the_folder(kind: str, half: bool, tmp_path: Path) -> None:
    model, made = folder_of(kind, tmp_path / "net")
    ids = torch.randint(0, 48, (2, 7))
    path = tmp_path / "out.onnx"
    floats: dict[str, Any] = {"float_type": "float16"} if half else {}
    report = tmconvert.to_onnx(
        tmp_path / "net", path, example_kwargs={"input_ids": ids}, integer_weights="MatMulNBits", **floats
    )
    assert report.verified
    graph = onnx.load(path).graph
    constants = {each.name: numpy_helper.to_array(each) for each in graph.initializer}
    products = [node for node in graph.node if node.op_type == "MatMulNBits"]
    assert len(products) == len(made) == 7
    found = {constants[node.input[1]].tobytes() for node in products}
    for each in made.values():
        columns = np.argsort(
            each.tensors.get("g_idx", each.tensors.get("weight_g_idx", np.arange(0))), kind="stable"
        )
        q = each.values if not columns.size else each.values[:, columns]
        stored = q if "8" in kind else q[:, ::2] | q[:, 1::2] << 4
        assert stored.astype(np.uint8).tobytes() in found
    with torch.no_grad():
        wanted = model(input_ids=ids).logits.numpy()
    got = run_onnx(path, [ids.numpy()], EXACT)[0]
    np.testing.assert_allclose(got, wanted, rtol=0, atol=(1e-2 if half else 2e-6) * np.abs(wanted).max())
