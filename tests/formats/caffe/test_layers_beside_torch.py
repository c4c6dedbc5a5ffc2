"""Layers that no recorded output of a runtime proves, compared with PyTorch and NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from tests.targets.caffe.nets import Blobs, defined, layer, normal

torch = pytest.importorskip("torch")
functional = torch.nn.functional

X = normal(0, 2, 6, 9, 11)
T = torch.from_numpy(X)


def run(
    kind: str, parameters: str = "", *blobs: np.ndarray, dialect: str = "bvlc", tops: str = "y"
) -> np.ndarray:
    weights: Blobs = {"y": list(blobs)}
    return defined({"x": X}, layer(kind, parameters, tops=tops), weights, dialect=dialect)[0]


def close(actual: np.ndarray, expected: object, tolerance: float = 1e-5) -> None:
    wanted = np.asarray(expected)
    assert actual.shape == wanted.shape
    np.testing.assert_allclose(actual, wanted, rtol=tolerance, atol=tolerance)


def test_bias() -> None:
    block = normal(1, 6, 9)
    close(run("Bias", "bias_param { num_axes: 2 }", block), X + block[:, :, None])
    inputs, text = {"x": X, "b": normal(2, 9)}, layer("Bias", "bias_param { axis: 2 }", "x b")
    close(defined(inputs, text)[0], X + inputs["b"][:, None])


def test_clip_and_threshold() -> None:
    close(run("Clip", "clip_param { min: -0.5 max: 0.25 }"), np.clip(X, -0.5, 0.25))
    close(run("Threshold", "threshold_param { threshold: 0.3 }"), (np.float32(0.3) < X) * 1.0)


def test_swish_with_another_beta() -> None:
    close(run("Swish", "swish_param { beta: 1.5 }"), T * torch.sigmoid(1.5 * T))


def test_a_layer_in_place_and_a_reader_of_both() -> None:
    text = layer("Power", "power_param { scale: -1 }", tops="a") + (
        'layer { name: "r" type: "ReLU" bottom: "a" top: "a" }' + layer("Eltwise", "", "a x")
    )
    close(defined({"x": X}, text)[0], functional.relu(-T) + T)


def test_log_of_an_affine_function() -> None:
    close(run("Log", "log_param { base: 2 scale: 0.1 shift: 5 }"), np.log2(5 + 0.1 * X))


@pytest.mark.parametrize(
    ("operation", "function"),
    [("SUM", lambda x: x), ("ASUM", np.abs), ("SUMSQ", np.square), ("MEAN", lambda x: x / 99)],
)
def test_reduction(operation: str, function: object) -> None:
    made = run("Reduction", f"reduction_param {{ operation: {operation} axis: 2 coeff: 0.5 }}")
    close(made, function(X).sum((2, 3)) * 0.5, 1e-4)  # type: ignore[operator]


def test_reduction_to_no_axes() -> None:
    close(run("Reduction"), X.sum(), 1e-4)


def test_argmax_along_an_axis() -> None:
    close(run("ArgMax", "argmax_param { axis: 1 }"), X.argmax(1, keepdims=True))
    best = T.topk(3, dim=2)
    close(run("ArgMax", "argmax_param { axis: 2 top_k: 3 }"), best.indices)
    close(run("ArgMax", "argmax_param { axis: 2 top_k: 3 out_max_val: true }"), best.values)


def test_argmax_of_images() -> None:
    best = T.reshape(2, -1).topk(4)
    close(run("ArgMax", "argmax_param { top_k: 4 }"), best.indices[:, None, :, None])
    pairs = run("ArgMax", "argmax_param { top_k: 4 out_max_val: true }")
    close(pairs[:, 0, :, 0], best.indices)
    close(pairs[:, 1, :, 0], best.values)


def test_argmax_of_equals_is_the_last() -> None:
    (made,) = defined({"x": np.zeros((2, 5), np.float32)}, layer("ArgMax", "argmax_param { axis: 1 }"))
    close(made, [[4], [4]])


def test_embed() -> None:
    table, bias, indices = normal(1, 7, 4), normal(2, 4), np.array([[0, 6, 3]], np.float32)
    text = layer("Embed", "embed_param { num_output: 4 input_dim: 7 }")
    close(defined({"x": indices}, text, {"y": [table, bias]})[0], table[[[0, 6, 3]]] + bias)
    with pytest.raises(ValueError, match="indices are out of range for 7 rows"):
        defined({"x": indices + 1}, text, {"y": [table, bias]})


def test_tile_and_batch_reindex_and_parameter() -> None:
    close(run("Tile", "tile_param { axis: 2 tiles: 3 }"), np.tile(X, (1, 1, 3, 1)))
    order = np.array([1, 1, 0], np.float32)
    close(defined({"x": X, "o": order}, layer("BatchReindex", "", "x o"))[0], X[[1, 1, 0]])
    constant = normal(3, 2, 3)
    text = layer("Parameter", "parameter_param { shape { dim: 2 dim: 3 } }", bottoms="")
    close(defined({}, text, {"y": [constant]})[0], constant)


def test_slice_and_concat_in_the_words_of_old_nets() -> None:
    close(run("Slice", tops="y a b"), X[:, :2])
    close(run("Slice"), X)
    close(run("Slice", "slice_param { slice_dim: 3 slice_point: 2 }", tops="y a"), X[..., :2])
    joined = defined({"x": X}, layer("Concat", "concat_param { concat_dim: 3 }", "x x"))[0]
    close(joined, np.concatenate([X, X], 3))


def test_reverse() -> None:
    close(run("Reverse", "reverse_param { axis: 1 axis: 3 }", dialect="ascend"), X[:, ::-1, :, ::-1])


def test_statistics_of_the_batch() -> None:
    made = run("BatchNorm", "batch_norm_param { use_global_stats: false eps: 0.1 }", *3 * [np.ones(6)])
    close(made, functional.batch_norm(T, None, None, training=True, eps=0.1))


@pytest.mark.parametrize(("shape", "inputs"), [((9, 17), {"s": normal(1, 2, 3, 9, 17)}), ((5, 6), {})])
def test_interp_between_corners(shape: tuple[int, int], inputs: dict[str, np.ndarray]) -> None:
    """To the size of another blob, and every second row and column of an image."""
    text = layer("Interp", "" if inputs else "interp_param { shrink_factor: 2 }", " ".join(["x", *inputs]))
    expected = functional.interpolate(T, shape, mode="bilinear", align_corners=True)
    close(defined({"x": X, **inputs}, text, dialect="opencv")[0], expected)


def test_lrn_with_another_k() -> None:
    expected = functional.local_response_norm(T, 3, alpha=0.1, beta=0.7, k=2.0)
    close(run("LRN", "lrn_param { local_size: 3 alpha: 0.1 beta: 0.7 k: 2 }"), expected)


def test_mvn_adds_eps_to_the_deviation() -> None:
    mean, deviation = X.mean((2, 3), keepdims=True), X.std((2, 3), keepdims=True)
    close(run("MVN", "mvn_param { eps: 0.1 }"), (X - mean) / (deviation + 0.1))


def test_normalize_over_the_image() -> None:
    norm = np.sqrt(np.square(X).sum((1, 2, 3), keepdims=True))
    close(run("Normalize", "", normal(1, 1), dialect="ascend"), X / norm * normal(1, 1))


def test_transposed_weights() -> None:
    weight = normal(1, 11, 5)
    parameters = "inner_product_param { num_output: 5 axis: -1 transpose: true bias_term: false }"
    close(run("InnerProduct", parameters, weight), X @ weight)


def test_pooling_rounded_down_and_places() -> None:
    made = run("Pooling", "pooling_param { kernel_size: 3 stride: 3 pad: 1 round_mode: FLOOR }")
    close(made, functional.max_pool2d(T, 3, 3, 1))
    values, places = defined(
        {"x": X},
        layer("Pooling", "pooling_param { kernel_size: 3 stride: 2 pad: 1 }", tops="y p"),
        outputs="y p",
    )
    expected = functional.max_pool2d(T, 3, 2, 1, ceil_mode=True, return_indices=True)
    close(values, expected[0])
    close(places, expected[1])


def test_a_pyramid_of_poolings() -> None:
    """Levels of 1 and of 2x2 windows; 9 rows in two windows of 5 begin with a row of padding."""
    windows = [X] + [
        X[:, :, rows, columns]
        for rows in (slice(0, 4), slice(4, 9))
        for columns in (slice(0, 5), slice(5, 11))
    ]
    maxima = [part.max((2, 3)) for part in windows]
    expected = np.concatenate([maxima[0], np.stack(maxima[1:], 2).reshape(2, -1)], 1)
    close(run("SPP", "spp_param { pyramid_height: 2 }"), expected)


def test_im2col() -> None:
    made = run("Im2col", "convolution_param { kernel_size: 3 kernel_size: 2 stride: 2 pad: 1 }")
    expected = functional.unfold(T, (3, 2), stride=2, padding=1)
    close(made.reshape(expected.shape), expected)


def test_convolutions_over_one_and_three_axes() -> None:
    line, weight, bias = normal(1, 2, 4, 9), normal(2, 6, 2, 3), normal(3, 6)
    text = layer(
        "Convolution", "convolution_param { num_output: 6 kernel_size: 3 group: 2 stride: 2 pad: 1 }"
    )
    expected = functional.conv1d(*map(torch.from_numpy, (line, weight, bias)), stride=2, padding=1, groups=2)
    close(defined({"x": line}, text, {"y": [weight, bias]})[0], expected)

    space, weight = normal(1, 2, 3, 5, 6, 7), normal(2, 4, 3, 2, 3, 2)
    text = layer(
        "Convolution",
        "convolution_param { num_output: 4 bias_term: false dilation: 2 "
        "kernel_size: 2 kernel_size: 3 kernel_size: 2 }",
    )
    expected = functional.conv3d(torch.from_numpy(space), torch.from_numpy(weight), dilation=2)
    close(defined({"x": space}, text, {"y": [weight]})[0], expected)


def test_channels_along_another_axis() -> None:
    x, weight = normal(1, 2, 3, 4, 7, 6), normal(2, 6, 4, 3, 3)
    text = layer("Convolution", "convolution_param { num_output: 6 kernel_size: 3 axis: 2 bias_term: false }")
    expected = functional.conv2d(torch.from_numpy(x.reshape(6, 4, 7, 6)), torch.from_numpy(weight))
    close(defined({"x": x}, text, {"y": [weight]})[0], expected.reshape(2, 3, 6, 5, 4))


def test_deconvolution_with_holes() -> None:
    weight, bias = normal(1, 6, 2, 3, 3), normal(2, 4)
    parameters = "convolution_param { num_output: 4 kernel_size: 3 stride: 2 pad: 1 dilation: 2 group: 2 }"
    expected = functional.conv_transpose2d(
        T, torch.from_numpy(weight), torch.from_numpy(bias), stride=2, padding=1, dilation=2, groups=2
    )
    close(run("Deconvolution", parameters, weight, bias), expected)


@pytest.mark.parametrize("exposed", [False, True])
def test_lstm(exposed: bool) -> None:
    """torch's gates are input, forget, candidate, output; the last two change places."""
    steps, batch, inputs, size = 5, 3, 4, 6
    theirs = torch.nn.LSTM(inputs, size)
    order = np.concatenate(
        [np.arange(2 * size), np.arange(3 * size, 4 * size), np.arange(2 * size, 3 * size)]
    )
    weights = [value.detach().numpy()[order] for value in theirs.parameters()]
    blobs = [weights[0], weights[2] + weights[3], weights[1]]
    x, h, c = normal(1, steps, batch, inputs), normal(2, 1, batch, size), normal(3, 1, batch, size)
    feeds = {"x": x, "m": np.ones((steps, batch), np.float32)}
    parameters = f"recurrent_param {{ num_output: {size} expose_hidden: {str(exposed).lower()} }}"
    with torch.no_grad():
        if exposed:
            feeds |= {"h": h, "c": c}
            expected, (last, cell) = theirs(torch.from_numpy(x), (torch.from_numpy(h), torch.from_numpy(c)))
            text = layer("LSTM", parameters, "x m h c", "y hn cn")
            made = defined(feeds, text, {"y": blobs}, outputs="y hn cn")
            for ours, truth in zip(made, (expected, last, cell), strict=True):
                close(ours, truth)
        else:
            expected, _ = theirs(torch.from_numpy(x))
            close(defined(feeds, layer("LSTM", parameters, "x m"), {"y": blobs})[0], expected)


def test_lstm_begins_anew_where_a_mark_is_zero() -> None:
    x, marks = normal(1, 4, 1, 3), np.array([[0], [1], [0], [1]], np.float32)
    blobs = [normal(2, 8, 3), normal(3, 8), normal(4, 8, 2)]
    text = layer("LSTM", "recurrent_param { num_output: 2 }", "x m")
    whole = defined({"x": x, "m": marks}, text, {"y": blobs})[0]
    half = defined({"x": x[2:], "m": marks[:2]}, text, {"y": blobs})[0]
    close(whole[2:], half)


def test_rnn() -> None:
    x, held, around = normal(1, 4, 2, 3), normal(2, 1, 2, 5), normal(3, 2, 7)
    blobs = [
        normal(seed, *shape) * 0.5 for seed, shape in enumerate([(5, 3), (5,), (5, 7), (5, 5), (5, 5), (5,)])
    ]
    feeds = {"x": x, "m": np.ones((4, 2), np.float32), "s": around, "h": held}
    text = layer("RNN", "recurrent_param { num_output: 5 expose_hidden: true }", "x m s h", "y hn")
    outputs, last = defined(feeds, text, {"y": blobs}, outputs="y hn")
    hidden, expected = held[0], []
    for step in x:
        hidden = np.tanh(step @ blobs[0].T + blobs[1] + around @ blobs[2].T + hidden @ blobs[3].T)
        expected.append(np.tanh(hidden @ blobs[4].T + blobs[5]))
    close(outputs, np.stack(expected))
    close(last, hidden[None])
