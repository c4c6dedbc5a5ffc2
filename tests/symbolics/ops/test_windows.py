"""Ops with windows, against what defines them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.symbolics.ops.harness import Const, assert_op_matches, normal, refusal
from tmconvert.ir import TensorType
from tmconvert.symbolics.op import SchemaError
from tmconvert.symbolics.registry import catalogue


def computed(op: str, *args: Any, **attributes: Any) -> np.ndarray:
    definition = catalogue()[op]
    return definition.evaluate(*definition.bind(args, attributes))


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_a_transposed_convolution_is_the_adjoint_of_a_convolution(data: st.DataObject) -> None:
    """<convolution of x, y> = <x, transposed convolution of y> with the same weights."""
    axes, groups = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 2))

    def each(low: int, high: int) -> list[int]:
        return data.draw(st.lists(st.integers(low, high), min_size=axes, max_size=axes))

    stride, dilation, kernel, padding = each(1, 3), each(1, 2), each(1, 3), each(0, 2)
    extents = [
        max(spread * (size - 1) + 1, 2 * amount + 1)
        for size, spread, amount in zip(kernel, dilation, padding, strict=True)
    ]
    x = normal(0, 2, 2 * groups, *extents, dtype=np.float64)
    weight = normal(1, 3 * groups, 2, *kernel, dtype=np.float64)
    forward = computed(f"aten::conv{axes}d", x, weight, None, stride, padding, dilation, groups)
    behind = [
        (extent + 2 * amount - spread * (size - 1) - 1) % step
        for extent, amount, spread, size, step in zip(extents, padding, dilation, kernel, stride, strict=True)
    ]
    y = normal(2, *forward.shape, dtype=np.float64)
    back = computed(
        f"aten::conv_transpose{axes}d", y, weight, None, stride, padding, behind, groups, dilation
    )
    assert back.shape == x.shape
    np.testing.assert_allclose((forward * y).sum(), (x * back).sum(), rtol=1e-9, atol=1e-9)


def test_col2im_is_the_adjoint_of_im2col() -> None:
    windows = {"kernel_size": [3, 2], "dilation": [1, 2], "padding": [2, 1], "stride": [2, 1]}
    x = normal(0, 2, 3, 6, 7, dtype=np.float64)
    columns = computed("aten::im2col", x, **windows)
    y = normal(1, *columns.shape, dtype=np.float64)
    back = computed("aten::col2im", y, output_size=[6, 7], **windows)
    np.testing.assert_allclose((columns * y).sum(), (x * back).sum())


def test_a_deformable_convolution_without_offsets_is_a_convolution() -> None:
    x, weight, bias = normal(0, 2, 4, 5, 6), normal(1, 6, 2, 3, 2), normal(2, 6)
    windows: dict[str, Any] = {"stride": [2, 1], "padding": [1, 0], "dilation": [1, 2]}
    expected = computed("aten::conv2d", x, weight, bias, **windows, groups=2)
    offset = np.zeros((2, 24, *expected.shape[2:]), np.float32)
    actual = computed("torchvision::deform_conv2d", x, weight, offset, None, bias, **windows)
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("kind", "expected"), [("avg", [1.0, 3.0, 6.0, 8.0]), ("max", [2.0, 4.0, 7.0, 9.0])])
def test_adaptive_windows_overlap_where_they_do_not_divide_the_axis(kind: str, expected: list[float]) -> None:
    """[0, 3), [2, 5), [5, 8), [7, 10), as in PyTorch."""
    x = np.arange(10, dtype=np.float32).reshape(1, 1, 10)
    assert computed(f"aten::adaptive_{kind}_pool1d", x, [4]).tolist() == [[expected]]


@pytest.mark.parametrize("kernel", [[1, 1], [5, 7], [2, 3]])
@pytest.mark.parametrize("ceil_mode", [False, True])
def test_integers_have_maxima_too(kernel: list[int], ceil_mode: bool) -> None:
    x = (normal(0, 1, 2, 5, 7) * 40).astype(np.int8)
    attributes = {"kernel_size": kernel, "stride": [2, 2], "padding": [0, 0], "ceil_mode": ceil_mode}
    assert_op_matches("aten::max_pool2d", [x], attributes, targets=("onnx",))


def test_output_padding_beyond_the_stride_is_less_padding() -> None:
    x, weight = normal(0, 1, 2, 4, 5), Const(normal(1, 2, 3, 3, 3))
    attributes = {"padding": [2, 2], "output_padding": [1, 2], "dilation": [2, 3]}
    assert_op_matches("aten::conv_transpose2d", [x, weight, None], attributes, targets=("onnx",))
    attributes["padding"] = [0, 2]
    assert "output_padding 1" in refusal("onnx", "aten::conv_transpose2d", [x, weight, None], attributes)


@pytest.mark.parametrize("op", ["layer_norm", "group_norm", "instance_norm"])
def test_squares_of_float16_do_not_overflow(op: str) -> None:
    x = (normal(0, 1, 4, 3, 5) * 300).astype(np.float16)
    attributes: dict[str, Any] = {"layer_norm": {"normalized_shape": [5]}, "group_norm": {"num_groups": 2}}
    assert np.abs(computed(f"aten::{op}", x, **attributes.get(op, {}))).max() < 4
    assert_op_matches(f"aten::{op}", [x, None, None], attributes.get(op, {}), targets=("onnx",))


@pytest.mark.parametrize(
    ("op", "args", "attributes", "reason"),
    [
        ("aten::conv_transpose2d", [(1, 4, 5, 5), (3, 2, 3, 3)], {}, "does not fit 4 channels"),
        (
            "aten::conv_transpose2d",
            [(1, 4, 1, 1), (4, 2, 2, 2)],
            {"padding": [1, 1]},
            "leaves no element of [2, 2]",
        ),
        (
            "aten::conv_transpose2d",
            [(1, 4, 5, 5), (4, 2, 3, 3)],
            {"output_padding": [1, 1]},
            "output_padding",
        ),
        ("aten::layer_norm", [(2, 3, 4)], {"normalized_shape": [3]}, "does not have the trailing shape (3,)"),
        ("aten::group_norm", [(2, 3, 4)], {"num_groups": 2}, "are not divisible into 2 groups"),
        ("aten::instance_norm", [(2, 3)], {}, "expected at least one spatial dimension"),
        ("aten::local_response_norm", [(2, 3, 4, 4)], {"size": 4}, "not an odd number"),
        ("aten::pixel_shuffle", [(1, 6, 2, 2)], {"upscale_factor": 2}, "not divisible by 2 x 2"),
        ("aten::pixel_unshuffle", [(1, 6, 3, 2)], {"downscale_factor": 2}, "not divisible by 2"),
        ("aten::channel_shuffle", [(1, 6, 3, 2)], {"groups": 4}, "are not divisible into 4 groups"),
        ("aten::_pad_circular", [(1, 6, 3, 2)], {"pad": [3, 0]}, "circular padding by"),
        ("aten::adaptive_avg_pool2d", [(1, 6, 3, 2)], {"output_size": [0, 1]}, "cannot pool"),
        (
            "aten::col2im",
            [(1, 6, 3)],
            {"output_size": [4, 4], "kernel_size": [2, 3], "dilation": 1, "padding": 0, "stride": 1},
            "does not fit",
        ),
    ],
)
def test_refused(op: str, args: list[Any], attributes: dict[str, Any], reason: str) -> None:
    definition = catalogue()[op]
    names = [argument.name for argument in definition.args[: len(args)]]
    types = {name: TensorType(np.dtype(np.float32), shape) for name, shape in zip(names, args, strict=True)}
    with pytest.raises(SchemaError) as caught:
        definition.infer(*definition.bind((), {**types, **attributes}))
    assert reason in str(caught.value)
