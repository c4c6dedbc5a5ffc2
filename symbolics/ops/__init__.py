"""The ops: one file per op, or per table of similar ops, imported on first use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

from tmconvert.symbolics.op import Op

# The ops of each file, those of aten without their prefix, in the order of the table that users see.
MODULES = {
    "convolution": "conv1d conv2d conv3d",
    "conv_transpose": "conv_transpose1d conv_transpose2d conv_transpose3d",
    "deform_conv2d": "torchvision::deform_conv2d",
    "max_pool": "max_pool1d max_pool2d max_pool3d",
    "avg_pool": "avg_pool1d avg_pool2d avg_pool3d",
    "adaptive_pool": (
        "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d "
        "adaptive_max_pool2d adaptive_max_pool3d"
    ),
    "pool_indices": (
        "max_pool1d_with_indices max_pool2d_with_indices max_pool3d_with_indices "
        "adaptive_max_pool1d_with_indices adaptive_max_pool2d_with_indices "
        "adaptive_max_pool3d_with_indices max_unpool1d max_unpool2d max_unpool3d"
    ),
    "upsample": "upsample_nearest2d upsample_bilinear2d",
    "upsample_nd": (
        "upsample_nearest1d upsample_nearest3d _upsample_nearest_exact1d _upsample_nearest_exact2d "
        "_upsample_nearest_exact3d upsample_linear1d upsample_trilinear3d upsample_bicubic2d "
        "_upsample_bilinear2d_aa _upsample_bicubic2d_aa"
    ),
    "grid_sampler": "grid_sampler",
    "grid_sampler3d": "grid_sampler_3d",
    "affine_grid": "affine_grid_generator",
    "remap": "tm::remap",
    "roi_align": "torchvision::roi_align torchvision::ps_roi_align",
    "roi_pool": "torchvision::roi_pool",
    "nms": "torchvision::nms torchvision::batched_nms",
    "batch_norm": "batch_norm",
    "layer_norm": "layer_norm rms_norm",
    "group_norm": "group_norm instance_norm",
    "local_response_norm": "local_response_norm",
    "linear": "linear",
    "matmul": "matmul tm::matmul_nt mm bmm mv dot outer",
    "matmul_sums": "addmm addmv addr addbmm baddbmm",
    "einsum": "einsum",
    "bilinear": "bilinear",
    "linalg": "linalg_det linalg_slogdet linalg_inv linalg_cross",
    "lu": "linalg_lu_factor_ex lu_unpack",
    "triangular": "linalg_solve_triangular linalg_cholesky_ex",
    "householder": "geqrf tm::geqp3 ormqr",
    "ldl": "linalg_ldl_factor_ex linalg_ldl_solve",
    "matrix_exp": "linalg_matrix_exp",
    "triangle": "triu tril trace",
    "embedding": "embedding",
    "embedding_bag": "embedding_bag",
    "recurrent": "lstm gru rnn_tanh rnn_relu",
    "recurrent_cells": "lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell",
    "attention": "scaled_dot_product_attention",
    "binary": "add sub mul div maximum minimum",
    "unary": "abs neg exp log sqrt reciprocal square rsqrt floor ceil sigmoid tanh relu",
    "power": "pow",
    "exponential": "exp2 expm1 log2 log10 log1p log_sigmoid logaddexp logaddexp2 xlogy softplus logit",
    "erf": "erf erfc erfinv",
    "normal": "special_ndtr special_log_ndtr special_ndtri special_erfcx",
    "gamma": "lgamma digamma polygamma",
    "incomplete_gamma": "igamma igammac",
    "zeta": "special_zeta",
    "bessel": "i0 special_i0e special_i1 special_i1e",
    "bessel_waves": "special_bessel_j0 special_bessel_j1 special_bessel_y0 special_bessel_y1",
    "bessel_k": (
        "special_modified_bessel_k0 special_modified_bessel_k1 special_scaled_modified_bessel_k0 "
        "special_scaled_modified_bessel_k1"
    ),
    "airy": "special_airy_ai",
    "orthogonal_polynomials": (
        "special_chebyshev_polynomial_t special_chebyshev_polynomial_u special_chebyshev_polynomial_v "
        "special_chebyshev_polynomial_w special_shifted_chebyshev_polynomial_t "
        "special_shifted_chebyshev_polynomial_u special_shifted_chebyshev_polynomial_v "
        "special_shifted_chebyshev_polynomial_w special_hermite_polynomial_h "
        "special_hermite_polynomial_he special_laguerre_polynomial_l special_legendre_polynomial_p"
    ),
    "trigonometric": "sin cos tan asin acos atan sinh cosh asinh acosh atanh deg2rad rad2deg atan2",
    "rounding": "sign trunc frac round tm::round_half_away tm::trunc_divide floor_divide fmod remainder",
    "compare": (
        "eq ne lt le gt ge logical_and logical_or logical_xor logical_not isnan isinf isposinf isneginf "
        "isfinite signbit"
    ),
    "where": "where",
    "blend": "hypot copysign fmax fmin heaviside lerp addcmul addcdiv nan_to_num",
    "mixed": "sinc special_entr special_xlog1py ldexp gcd lcm isclose",
    "bitwise": "bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift bitwise_not",
    "activations": "silu mish hardswish hardsigmoid softsign tanhshrink gelu",
    "elu": "elu selu celu",
    "leaky_relu": "leaky_relu prelu",
    "shrink_threshold": "hardshrink softshrink hardtanh threshold glu",
    "clamp": "clamp",
    "relu6": "relu6",
    "softmax": "softmax log_softmax softmin",
    "reduce": "mean sum prod amax amin logsumexp",
    "any_all": "any all count_nonzero",
    "var": "var std var_mean std_mean",
    "norm": "linalg_vector_norm cdist",
    "distances": "cosine_similarity pairwise_distance pdist renorm",
    "arg_reduce": "argmax argmin",
    "sort": "sort topk",
    "order": "argsort kthvalue median max min",
    "quantiles": "quantile nanquantile nanmedian mode",
    "cumulative": "cumsum cumprod logcumsumexp cummax cummin",
    "bucketize": "bucketize searchsorted",
    "histc": "histc",
    "reshape": "reshape",
    "permute": "permute",
    "cat": "cat",
    "slice": "slice select",
    "slice_scatter": "slice_scatter select_scatter",
    "split": "split_with_sizes unbind",
    "expand": "expand repeat",
    "reorder": "flip roll rot90 repeat_interleave",
    "index_select": "index_select index_copy index_add index_fill",
    "index": "index",
    "index_put": "index_put",
    "gather": "gather scatter",
    "take": "take take_along_dim",
    "masked": "masked_fill masked_scatter",
    "scatter_reduce": (
        "scatter_add tm::scatter_prod tm::scatter_amax tm::scatter_amin scatter_reduce index_reduce"
    ),
    "nonzero": "nonzero argwhere masked_select",
    "unique": "_unique2 unique_dim unique_consecutive",
    "counting": "tm::repeat_indices tm::count_to",
    "diagonal": "diagonal diag_embed diagonal_scatter",
    "one_hot": "one_hot tm::wrap_index",
    "arange": "arange",
    "random_numbers": "tm::random_uniform tm::random_normal",
    "pad": "pad",
    "pad_circular": "_pad_circular",
    "im2col": "im2col col2im",
    "fourier": "tm::fft tm::irfft tm::stft",
    "unfold": "unfold",
    "pixel_shuffle": "pixel_shuffle pixel_unshuffle channel_shuffle",
    "cond": "tm::cond",
    "loop": "tm::loop",
    "scan": "tm::scan",
    "function": "tm::function",
    "to": "to",
    "sizes": "tm::sizes",
    "view": "tm::view",
    "relayout": "tm::relayout",
    "quantize": "tm::quantize",
    "requantize": "tm::requantize",
    "in_steps": "tm::in_steps",
}


class ShippedOps(Mapping[str, Op]):
    """All ops by name, in the order of MODULES. Names are known without importing files."""

    def __init__(self) -> None:
        self._modules = {
            name if "::" in name else f"aten::{name}": module
            for module, names in MODULES.items()
            for name in names.split()
        }
        self._loaded: dict[str, Op] = {}

    def __getitem__(self, name: str) -> Op:
        if name not in self._loaded:
            self._loaded |= ops_of(self._modules[name])
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in self._modules

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __len__(self) -> int:
        return len(self._modules)


def ops_of(module: str) -> dict[str, Op]:
    """Returns the ops of a file: its list ``OPS``, or its only op."""
    names = vars(import_module(f".{module}", __name__))
    return {op.name: op for op in names.get("OPS", names.values()) if isinstance(op, Op)}
