"""The ops: a folder per family, a file per op or per table of similar ops, imported on first use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

from tmconvert.symbolics.op import Op

# The ops of each file, those of aten without their prefix, in the order of the table that users see.
MODULES = {
    "layers.convolution": "conv1d conv2d conv3d",
    "layers.conv_transpose": "conv_transpose1d conv_transpose2d conv_transpose3d",
    "layers.deform_conv2d": "torchvision::deform_conv2d",
    "layers.max_pool": "max_pool1d max_pool2d max_pool3d",
    "layers.avg_pool": "avg_pool1d avg_pool2d avg_pool3d",
    "layers.adaptive_pool": (
        "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d "
        "adaptive_max_pool2d adaptive_max_pool3d"
    ),
    "layers.pool_indices": (
        "max_pool1d_with_indices max_pool2d_with_indices max_pool3d_with_indices "
        "adaptive_max_pool1d_with_indices adaptive_max_pool2d_with_indices "
        "adaptive_max_pool3d_with_indices max_unpool1d max_unpool2d max_unpool3d"
    ),
    "sampling.upsample": "upsample_nearest2d upsample_bilinear2d",
    "sampling.upsample_nd": (
        "upsample_nearest1d upsample_nearest3d _upsample_nearest_exact1d _upsample_nearest_exact2d "
        "_upsample_nearest_exact3d upsample_linear1d upsample_trilinear3d upsample_bicubic2d "
        "_upsample_bilinear2d_aa _upsample_bicubic2d_aa"
    ),
    "sampling.resize": "tm::resize",
    "sampling.grid_sampler": "grid_sampler",
    "sampling.grid_sampler3d": "grid_sampler_3d",
    "sampling.affine_grid": "affine_grid_generator",
    "sampling.remap": "tm::remap",
    "sampling.roi_align": "torchvision::roi_align torchvision::ps_roi_align",
    "sampling.roi_pool": "torchvision::roi_pool",
    "sampling.nms": "torchvision::nms torchvision::batched_nms tm::nms_of_classes",
    "layers.batch_norm": "batch_norm",
    "layers.layer_norm": "layer_norm rms_norm",
    "layers.group_norm": "group_norm instance_norm",
    "layers.local_response_norm": "local_response_norm",
    "layers.linear": "linear",
    "linalg.matmul": "matmul tm::matmul_nt mm bmm mv dot",
    "linalg.outer": "outer",
    "linalg.matmul_sums": "addmm addmv addr addbmm baddbmm",
    "linalg.einsum": "einsum",
    "layers.bilinear": "bilinear",
    "linalg.determinants": "linalg_det linalg_slogdet linalg_inv linalg_cross",
    "linalg.lu": "linalg_lu_factor_ex lu_unpack",
    "linalg.solve_triangular": "linalg_solve_triangular linalg_cholesky_ex",
    "linalg.householder": "geqrf tm::geqp3 ormqr",
    "linalg.ldl": "linalg_ldl_factor_ex linalg_ldl_solve",
    "linalg.matrix_exp": "linalg_matrix_exp",
    "shapes.triu_tril": "triu tril trace",
    "indexing.embedding": "embedding",
    "indexing.embedding_bag": "embedding_bag",
    "layers.recurrent": "lstm gru rnn_tanh rnn_relu",
    "layers.recurrent_cells": "lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell",
    "layers.attention": "scaled_dot_product_attention",
    "elementwise.binary": "add sub mul div maximum minimum",
    "elementwise.unary": "abs neg exp log sqrt reciprocal square rsqrt floor ceil sigmoid tanh relu",
    "elementwise.power": "pow",
    "elementwise.exponential": (
        "exp2 expm1 log2 log10 log1p log_sigmoid logaddexp logaddexp2 xlogy softplus logit"
    ),
    "special.erf": "erf erfc erfinv",
    "special.normal_distribution": "special_ndtr special_log_ndtr special_ndtri special_erfcx",
    "special.gamma": "lgamma digamma polygamma",
    "special.incomplete_gamma": "igamma igammac",
    "special.zeta": "special_zeta",
    "special.bessel": "i0 special_i0e special_i1 special_i1e",
    "special.bessel_j_y": "special_bessel_j0 special_bessel_j1 special_bessel_y0 special_bessel_y1",
    "special.bessel_k": (
        "special_modified_bessel_k0 special_modified_bessel_k1 special_scaled_modified_bessel_k0 "
        "special_scaled_modified_bessel_k1"
    ),
    "special.airy": "special_airy_ai",
    "special.orthogonal_polynomials": (
        "special_chebyshev_polynomial_t special_chebyshev_polynomial_u special_chebyshev_polynomial_v "
        "special_chebyshev_polynomial_w special_shifted_chebyshev_polynomial_t "
        "special_shifted_chebyshev_polynomial_u special_shifted_chebyshev_polynomial_v "
        "special_shifted_chebyshev_polynomial_w special_hermite_polynomial_h "
        "special_hermite_polynomial_he special_laguerre_polynomial_l special_legendre_polynomial_p"
    ),
    "elementwise.trigonometric": (
        "sin cos tan asin acos atan sinh cosh asinh acosh atanh deg2rad rad2deg atan2"
    ),
    "elementwise.rounding": (
        "sign trunc frac round tm::round_half_away tm::trunc_divide floor_divide fmod remainder"
    ),
    "elementwise.compare": (
        "eq ne lt le gt ge logical_and logical_or logical_xor logical_not isnan isinf isposinf isneginf "
        "isfinite signbit"
    ),
    "elementwise.where": "where",
    "elementwise.lerp_hypot": "hypot copysign fmax fmin heaviside lerp addcmul addcdiv nan_to_num",
    "elementwise.elementwise_formulas": "sinc special_entr special_xlog1py ldexp gcd lcm isclose",
    "elementwise.bitwise": (
        "bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift bitwise_not"
    ),
    "elementwise.activations": "silu mish hardswish hardsigmoid softsign tanhshrink gelu",
    "elementwise.elu": "elu selu celu",
    "elementwise.leaky_relu": "leaky_relu prelu",
    "elementwise.shrink_threshold": "hardshrink softshrink hardtanh threshold glu",
    "elementwise.clamp": "clamp",
    "elementwise.relu6": "relu6",
    "layers.softmax": "softmax log_softmax softmin",
    "reductions.reduce": "mean sum prod amax amin logsumexp",
    "reductions.any_all": "any all count_nonzero",
    "reductions.var": "var std var_mean std_mean",
    "reductions.vector_norm": "linalg_vector_norm cdist",
    "reductions.distances": "cosine_similarity pairwise_distance pdist renorm",
    "reductions.arg_reduce": "argmax argmin",
    "reductions.sort": "sort topk",
    "reductions.order_statistics": "argsort kthvalue median max min",
    "reductions.quantiles": "quantile nanquantile nanmedian mode",
    "reductions.cumulative": "cumsum cumprod logcumsumexp cummax cummin",
    "indexing.bucketize": "bucketize searchsorted",
    "reductions.histc": "histc",
    "shapes.reshape": "reshape",
    "shapes.permute": "permute",
    "shapes.cat": "cat",
    "shapes.slice": "slice select",
    "shapes.slice_scatter": "slice_scatter select_scatter",
    "shapes.split": "split_with_sizes unbind",
    "shapes.expand": "expand repeat",
    "shapes.flip_roll": "flip roll rot90 repeat_interleave",
    "indexing.index_select": "index_select index_copy index_add index_fill",
    "indexing.index": "index",
    "indexing.index_put": "index_put",
    "indexing.gather": "gather scatter",
    "indexing.take": "take take_along_dim",
    "indexing.masked": "masked_fill masked_scatter",
    "indexing.scatter_reduce": (
        "scatter_add tm::scatter_prod tm::scatter_amax tm::scatter_amin scatter_reduce index_reduce"
    ),
    "indexing.nonzero": "nonzero argwhere masked_select",
    "reductions.unique": "_unique2 unique_dim unique_consecutive",
    "shapes.repeat_indices": "tm::repeat_indices tm::count_to",
    "shapes.diagonal": "diagonal diag_embed diagonal_scatter",
    "indexing.one_hot": "one_hot tm::wrap_index",
    "shapes.arange": "arange",
    "sampling.random_numbers": "tm::random_uniform tm::random_normal",
    "shapes.pad": "pad",
    "shapes.pad_circular": "_pad_circular",
    "layers.im2col": "im2col col2im",
    "special.fourier": "tm::fft tm::irfft tm::stft",
    "shapes.unfold": "unfold",
    "shapes.pixel_shuffle": "pixel_shuffle pixel_unshuffle channel_shuffle",
    "control_flow.cond": "tm::cond",
    "control_flow.loop": "tm::loop",
    "control_flow.scan": "tm::scan",
    "control_flow.function": "tm::function",
    "elementwise.to": "to",
    "shapes.sizes": "tm::sizes",
    "shapes.view": "tm::view",
    "shapes.relayout": "tm::relayout",
    "quantization.quantize": "tm::quantize",
    "quantization.requantize": "tm::requantize",
    "quantization.in_steps": "tm::in_steps",
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
