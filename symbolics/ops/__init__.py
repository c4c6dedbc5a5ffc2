"""The ops, one a file; ``OPS`` lists them all, in the order of the table that users see."""

from .activations import OPS as ACTIVATION_OPS
from .adaptive_pool import OPS as ADAPTIVE_POOL_OPS
from .affine_grid import affine_grid
from .airy import special_airy_ai
from .any_all import OPS as ANY_ALL_OPS
from .arange import arange
from .arg_reduce import OPS as ARG_REDUCE_OPS
from .attention import attention
from .avg_pool import OPS as AVG_POOL_OPS
from .batch_norm import batch_norm
from .bessel import OPS as BESSEL_OPS
from .bessel_k import OPS as BESSEL_K_OPS
from .bessel_waves import OPS as BESSEL_WAVE_OPS
from .bilinear import bilinear
from .binary import OPS as BINARY_OPS
from .bitwise import OPS as BITWISE_OPS
from .blend import OPS as BLEND_OPS
from .bucketize import OPS as BUCKETIZE_OPS
from .cat import cat
from .clamp import clamp
from .compare import OPS as COMPARE_OPS
from .cond import cond
from .conv_transpose import OPS as CONV_TRANSPOSE_OPS
from .convolution import OPS as CONVOLUTION_OPS
from .counting import OPS as COUNTING_OPS
from .cumulative import OPS as CUMULATIVE_OPS
from .deform_conv2d import deform_conv2d
from .diagonal import OPS as DIAGONAL_OPS
from .distances import OPS as DISTANCE_OPS
from .einsum import einsum
from .elu import OPS as ELU_OPS
from .embedding import embedding
from .embedding_bag import embedding_bag
from .erf import OPS as ERF_OPS
from .expand import OPS as EXPAND_OPS
from .exponential import OPS as EXPONENTIAL_OPS
from .fourier import OPS as FOURIER_OPS
from .function import function
from .gamma import OPS as GAMMA_OPS
from .gather import OPS as GATHER_OPS
from .grid_sampler import grid_sampler
from .grid_sampler3d import grid_sampler_3d
from .group_norm import OPS as GROUP_NORM_OPS
from .histc import histc
from .householder import OPS as HOUSEHOLDER_OPS
from .im2col import OPS as IM2COL_OPS
from .incomplete_gamma import OPS as INCOMPLETE_GAMMA_OPS
from .index import index
from .index_put import index_put
from .index_select import OPS as INDEX_SELECT_OPS
from .layer_norm import OPS as LAYER_NORM_OPS
from .ldl import OPS as LDL_OPS
from .leaky_relu import OPS as LEAKY_RELU_OPS
from .linalg import OPS as LINALG_OPS
from .linear import linear
from .local_response_norm import local_response_norm
from .loop import loop
from .lu import OPS as LU_OPS
from .masked import OPS as MASKED_OPS
from .matmul import OPS as MATMUL_OPS
from .matmul_sums import OPS as MATMUL_SUM_OPS
from .matrix_exp import matrix_exp
from .max_pool import OPS as MAX_POOL_OPS
from .mixed import OPS as MIXED_OPS
from .nms import OPS as NMS_OPS
from .nonzero import OPS as NONZERO_OPS
from .norm import OPS as NORM_OPS
from .normal import OPS as NORMAL_OPS
from .one_hot import OPS as ONE_HOT_OPS
from .order import OPS as ORDER_OPS
from .orthogonal_polynomials import OPS as ORTHOGONAL_POLYNOMIAL_OPS
from .pad import pad
from .pad_circular import pad_circular
from .permute import permute
from .pixel_shuffle import OPS as PIXEL_SHUFFLE_OPS
from .pool_indices import OPS as POOL_INDEX_OPS
from .power import power
from .quantiles import OPS as QUANTILE_OPS
from .recurrent import OPS as RECURRENT_OPS
from .recurrent_cells import OPS as RECURRENT_CELL_OPS
from .reduce import OPS as REDUCE_OPS
from .relayout import relayout
from .relu6 import relu6
from .remap import remap
from .reorder import OPS as REORDER_OPS
from .requantize import requantize
from .reshape import reshape
from .roi_align import OPS as ROI_ALIGN_OPS
from .roi_pool import roi_pool
from .rounding import OPS as ROUNDING_OPS
from .scan import scan
from .scatter_reduce import OPS as SCATTER_REDUCE_OPS
from .shrinks import OPS as SHRINK_OPS
from .sizes import sizes
from .slice import OPS as SLICE_OPS
from .slice_scatter import OPS as SLICE_SCATTER_OPS
from .softmax import OPS as SOFTMAX_OPS
from .sort import OPS as SORT_OPS
from .split import OPS as SPLIT_OPS
from .take import OPS as TAKE_OPS
from .to import to
from .triangle import OPS as TRIANGLE_OPS
from .triangular import OPS as TRIANGULAR_OPS
from .trigonometric import OPS as TRIGONOMETRIC_OPS
from .unary import OPS as UNARY_OPS
from .unfold import unfold
from .unique import OPS as UNIQUE_OPS
from .upsample import OPS as UPSAMPLE_OPS
from .upsample_more import OPS as UPSAMPLE_MORE_OPS
from .var import OPS as VAR_OPS
from .view import view
from .where import where
from .zeta import special_zeta

OPS = [
    *CONVOLUTION_OPS,
    *CONV_TRANSPOSE_OPS,
    deform_conv2d,
    *MAX_POOL_OPS,
    *AVG_POOL_OPS,
    *ADAPTIVE_POOL_OPS,
    *POOL_INDEX_OPS,
    *UPSAMPLE_OPS,
    *UPSAMPLE_MORE_OPS,
    grid_sampler,
    grid_sampler_3d,
    affine_grid,
    remap,
    *ROI_ALIGN_OPS,
    roi_pool,
    *NMS_OPS,
    batch_norm,
    *LAYER_NORM_OPS,
    *GROUP_NORM_OPS,
    local_response_norm,
    linear,
    *MATMUL_OPS,
    *MATMUL_SUM_OPS,
    einsum,
    bilinear,
    *LINALG_OPS,
    *LU_OPS,
    *TRIANGULAR_OPS,
    *HOUSEHOLDER_OPS,
    *LDL_OPS,
    matrix_exp,
    *TRIANGLE_OPS,
    embedding,
    embedding_bag,
    *RECURRENT_OPS,
    *RECURRENT_CELL_OPS,
    attention,
    *BINARY_OPS,
    *UNARY_OPS,
    power,
    *EXPONENTIAL_OPS,
    *ERF_OPS,
    *NORMAL_OPS,
    *GAMMA_OPS,
    *INCOMPLETE_GAMMA_OPS,
    special_zeta,
    *BESSEL_OPS,
    *BESSEL_WAVE_OPS,
    *BESSEL_K_OPS,
    special_airy_ai,
    *ORTHOGONAL_POLYNOMIAL_OPS,
    *TRIGONOMETRIC_OPS,
    *ROUNDING_OPS,
    *COMPARE_OPS,
    where,
    *BLEND_OPS,
    *MIXED_OPS,
    *BITWISE_OPS,
    *ACTIVATION_OPS,
    *ELU_OPS,
    *LEAKY_RELU_OPS,
    *SHRINK_OPS,
    clamp,
    relu6,
    *SOFTMAX_OPS,
    *REDUCE_OPS,
    *ANY_ALL_OPS,
    *VAR_OPS,
    *NORM_OPS,
    *DISTANCE_OPS,
    *ARG_REDUCE_OPS,
    *SORT_OPS,
    *ORDER_OPS,
    *QUANTILE_OPS,
    *CUMULATIVE_OPS,
    *BUCKETIZE_OPS,
    histc,
    reshape,
    permute,
    cat,
    *SLICE_OPS,
    *SLICE_SCATTER_OPS,
    *SPLIT_OPS,
    *EXPAND_OPS,
    *REORDER_OPS,
    *INDEX_SELECT_OPS,
    index,
    index_put,
    *GATHER_OPS,
    *TAKE_OPS,
    *MASKED_OPS,
    *SCATTER_REDUCE_OPS,
    *NONZERO_OPS,
    *UNIQUE_OPS,
    *COUNTING_OPS,
    *DIAGONAL_OPS,
    *ONE_HOT_OPS,
    arange,
    pad,
    pad_circular,
    *IM2COL_OPS,
    *FOURIER_OPS,
    unfold,
    *PIXEL_SHUFFLE_OPS,
    cond,
    loop,
    scan,
    function,
    to,
    sizes,
    view,
    relayout,
    requantize,
]
