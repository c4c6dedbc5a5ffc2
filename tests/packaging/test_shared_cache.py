"""Files of decoders for onnxruntime-genai: caches that are updated in place, activations in 8 bits."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tmconvert.packaging.rounded_activations import round_activations
from tmconvert.packaging.shared_cache import share_caches

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

HEADS, KEY_HEADS, LENGTH = 4, 2, 16  # the last is that of a buffer
WINDOW = 3


def _dotted(name: str) -> str:
    """The parser of onnx takes no names with dots."""
    return re.sub(r"_0_(key|value)", r".0.\1", name)


def written(path: Path, *, size: int = 8, mask: str = "causal", more: str = "", opset: int = 23) -> Path:
    """Writes a layer whose queries, keys and values are rows of tables; ``more`` makes ``others``."""
    text = f"""
        <ir_version: 10, opset_import: ["": {opset}]>
        layer (int64[batch, new] input_ids, int64[batch, all] attention_mask,
               float[batch, {KEY_HEADS}, past, {size}] past_key_values_0_key,
               float[batch, {KEY_HEADS}, past, {size}] past_key_values_0_value)
          => (float[batch, new, {HEADS}, {size}] logits,
              float[batch, {KEY_HEADS}, all, {size}] present_0_key,
              float[batch, {KEY_HEADS}, all, {size}] present_0_value)
        <float[batch, {HEADS}, new, {size}] q, float[batch, {KEY_HEADS}, new, {size}] k,
         float[batch, {KEY_HEADS}, new, {size}] v, bool[batch, 1, new, all] mask>
        {{
          q_row = Gather(q_table, input_ids)
          q_shape = Constant<value_ints = [0, 0, {HEADS}, {size}]>()
          kv_shape = Constant<value_ints = [0, 0, {KEY_HEADS}, {size}]>()
          q_heads = Reshape(q_row, q_shape)
          q = Transpose<perm = [0, 2, 1, 3]>(q_heads)
          k_row = Gather(k_table, input_ids)
          k_heads = Reshape(k_row, kv_shape)
          k = Transpose<perm = [0, 2, 1, 3]>(k_heads)
          v_row = Gather(v_table, input_ids)
          v_heads = Reshape(v_row, kv_shape)
          v = Transpose<perm = [0, 2, 1, 3]>(v_heads)
          present_0_key = Concat<axis = 2>(past_key_values_0_key, k)
          present_0_value = Concat<axis = 2>(past_key_values_0_value, v)
          sizes = Shape(past_key_values_0_key)
          two = Constant<value_int = 2>()
          past_length = Gather(sizes, two)
          ids = Shape(input_ids)
          one = Constant<value_int = 1>()
          zero = Constant<value_int = 0>()
          count = Gather(ids, one)
          total = Add(past_length, count)
          keys = Range(zero, total, one)
          news = Range(past_length, total, one)
          column = Constant<value_ints = [-1, 1]>()
          queries = Reshape(news, column)
          causal = LessOrEqual(keys, queries)
          width = Constant<value_int = {WINDOW}>()
          least = Sub(queries, width)
          near = Greater(keys, least)
          window = And(causal, near)
          both = Or(causal, near)
          image = Constant<value_int = 7>()
          is_image = Equal(input_ids, image)
          last = Constant<value_ints = [1, 3]>()
          of_image = Unsqueeze(is_image, last)
          of_tokens = Or(causal, of_image)
          known = Cast<to = 9>(attention_mask)
          axes = Constant<value_ints = [1, 2]>()
          open = Unsqueeze(known, axes)
          mask = And({mask}, open)
          made = Attention(q, present_0_key, present_0_value, mask)
          logits = Transpose<perm = [0, 2, 1, 3]>(made)
          {more}
        }}"""
    model = onnx.parser.parse_model(text)
    if more:
        model.graph.output.append(onnx.helper.make_tensor_value_info("others", 1, None))
    for node in model.graph.node:
        for names in (node.input, node.output):
            names[:] = [_dotted(name) for name in names]
    for each in (*model.graph.input, *model.graph.output, *model.graph.value_info):
        each.name = _dotted(each.name)
    random = np.random.default_rng(0)
    for name, heads in (("q_table", HEADS), ("k_table", KEY_HEADS), ("v_table", KEY_HEADS)):
        table = random.standard_normal((11, heads * size)).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(table, name))
    path.write_bytes(model.SerializeToString())
    return path


def ran(path: Path, tokens: Any, known: Any, caches: list[np.ndarray]) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(path)
    feeds = {"input_ids": np.array(tokens), "attention_mask": np.array(known)}
    names = [f"past_key_values.0.{part}" for part in ("key", "value")]
    return list(session.run(None, {**feeds, **dict(zip(names, caches, strict=True))}))


@pytest.mark.parametrize("mask", ["causal", "window"])
@pytest.mark.parametrize(
    ("tokens", "known"),
    [
        ([[3, 4, 5]], [[1, 1, 1]]),
        ([[3], [9]], [[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]]),
        ([[3, 1, 10]], [[1, 1, 1, 1, 1, 1, 1]]),
    ],
    ids=["no past", "padding", "past"],
)
def test_a_buffer_longer_than_the_text(mask: str, tokens: Any, known: Any, tmp_path: Path) -> None:
    joined, shared = (written(tmp_path / name, mask=mask) for name in ("joined.onnx", "shared.onnx"))
    assert share_caches(shared) == ""
    types = [node.op_type for node in onnx.load(shared).graph.node]
    assert "GroupQueryAttention" in types and "Attention" not in types
    total = len(known[0])
    past = total - len(tokens[0])
    random = np.random.default_rng(1)
    buffers = [
        random.standard_normal((len(tokens), KEY_HEADS, LENGTH, 8)).astype(np.float32) for _ in range(2)
    ]
    wanted = ran(joined, tokens, known, [each[:, :, :past] for each in buffers])
    found = ran(shared, tokens, known, buffers)
    np.testing.assert_allclose(found[0], wanted[0], atol=1e-5)
    for cache, other in zip(found[1:], wanted[1:], strict=True):
        np.testing.assert_allclose(cache[:, :, :total], other, atol=1e-6)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"size": 12}, "the size of a head, 12, is not a multiple of 8"),
        ({"mask": "both"}, "computes something else"),  # it shows later tokens
        ({"mask": "of_tokens"}, "mask depends on tokens"),  # it shows them to some tokens
        ({"more": "others = Relu(past_key_values_0_key)"}, "read by one operator Attention alone"),
        (
            {"more": "sizes_after = Shape(present_0_key)\n others = Cast<to = 1>(sizes_after)"},
            "lengths of the new caches",
        ),
        ({"opset": 22}, "opset is lower than 23"),
    ],
    ids=["size", "mask", "mask of tokens", "past", "lengths of new caches", "opset"],
)
def test_files_that_stay_as_they_are(options: dict[str, Any], reason: str, tmp_path: Path) -> None:
    path = written(tmp_path / "net.onnx", **options)
    before = path.read_bytes()
    assert reason in share_caches(path) and path.read_bytes() == before


def test_activations_of_products_with_few_bits(tmp_path: Path) -> None:
    """In the graph, and in a branch; a level that was there before is replaced."""
    product = "com.microsoft.MatMulNBits<K = 32, N = 4, bits = 4, block_size = 32%s>(x, weight, scale)"
    text = f"""
        <ir_version: 10, opset_import: ["": 21, "com.microsoft": 1]>
        net (bool which, float[1, 32] x, uint8[4, 1, 16] weight, float[4, 1] scale) => (float[1, 4] y)
        {{
          first = {product % ""}
          second = If(which)<
            then_branch = one () => (float[1, 4] a) {{ a = {product % ", accuracy_level = 1"} }},
            else_branch = other () => (float[1, 4] b) {{ b = Identity(first) }}>
          y = Add(first, second)
        }}"""
    path = tmp_path / "net.onnx"
    path.write_bytes(onnx.parser.parse_model(text).SerializeToString())
    assert round_activations(path) == 2
    printed = onnx.printer.to_text(onnx.load(path))
    assert printed.count("accuracy_level: int = 4") == 2 and "accuracy_level: int = 1" not in printed
    onnxruntime.InferenceSession(path)
