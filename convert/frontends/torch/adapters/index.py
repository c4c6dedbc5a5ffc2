"""Maps names to adapter families, so that a family is imported on first use.

Made by tools/make_adapter_indexes.py; do not edit.
"""

ATEN = {
    "elementwise.activations": """
threshold hardtanh leaky_relu elu celu gelu softplus hardshrink softshrink glu selu silu mish hardsigmoid
hardswish log_sigmoid softsign tanhshrink relu relu6 log_sigmoid_forward prelu _prelu_kernel softmax
special_softmax _softmax log_softmax special_log_softmax _log_softmax _safe_softmax
""",
    "elementwise.arithmetic": """
add __add__ __radd__ sub subtract __sub__ rsub __rsub__ mul multiply __mul__ __rmul__ div true_divide divide
__div__ __truediv__ __rdiv__ __rtruediv__ floor_divide __floordiv__ pow __pow__ float_power ldexp maximum
minimum remainder __mod__ fmod gcd lcm hypot atan2 arctan2 copysign logaddexp logaddexp2 xlogy special_xlogy
special_xlog1py special_zeta igamma special_gammainc igammac special_gammaincc special_chebyshev_polynomial_t
special_chebyshev_polynomial_u special_chebyshev_polynomial_v special_chebyshev_polynomial_w
special_shifted_chebyshev_polynomial_t special_shifted_chebyshev_polynomial_u
special_shifted_chebyshev_polynomial_v special_shifted_chebyshev_polynomial_w special_hermite_polynomial_h
special_hermite_polynomial_he special_laguerre_polynomial_l special_legendre_polynomial_p fmax fmin heaviside
__rpow__ __rmod__ __rfloordiv__ lerp addcmul addcdiv clamp clip clamp_min clamp_max
""",
    "elementwise.complex": """
view_as_complex complex polar
""",
    "elementwise.logic": """
eq __eq__ ne __ne__ not_equal lt __lt__ less le __le__ less_equal gt __gt__ greater ge __ge__ greater_equal
isclose logical_and logical_or logical_xor logical_not bitwise_not __invert__ bitwise_and __and__ __rand__
bitwise_or __or__ __ror__ bitwise_xor __xor__ __rxor__ bitwise_left_shift __lshift__ __rlshift__
bitwise_right_shift __rshift__ __rrshift__ isnan isinf isposinf isneginf isfinite isreal signbit isin where
""",
    "elementwise.types": """
to _to_copy type_as float double half bfloat16 bool byte char short int long cfloat cdouble type
""",
    "elementwise.unary": """
acos arccos acosh arccosh asin arcsin asinh arcsinh atan arctan atanh arctanh cos cosh deg2rad digamma
special_digamma special_psi erf special_erf erfc special_erfc erfinv special_erfinv exp exp2 special_exp2
expm1 special_expm1 i0 special_i0 special_modified_bessel_i0 lgamma special_gammaln log log10 log1p
special_log1p log2 rad2deg reciprocal rsqrt sigmoid special_expit sin sinc special_sinc sinh special_airy_ai
special_bessel_j0 special_bessel_j1 special_bessel_y0 special_bessel_y1 special_entr special_erfcx special_i0e
special_i1 special_modified_bessel_i1 special_i1e special_log_ndtr special_modified_bessel_k0
special_modified_bessel_k1 special_ndtr special_ndtri special_scaled_modified_bessel_k0
special_scaled_modified_bessel_k1 sqrt tan tanh floor ceil trunc fix round special_round abs absolute __abs__
neg negative __neg__ sign sgn square positive __pos__ real conj conj_physical resolve_conj resolve_neg angle
special_spherical_bessel_j0 frexp logit special_logit nan_to_num polygamma special_polygamma mvlgamma
special_multigammaln
""",
    "indexing.counting": """
nonzero argwhere nonzero_numpy nonzero_static bincount _unique _unique2 unique_dim unique_consecutive
unique_dim_consecutive
""",
    "indexing.gather_scatter": """
gather scatter scatter_add scatter_reduce index_select index_select_copy index_copy index_add index_reduce
index_fill take_along_dim masked_fill masked_scatter masked_select bucketize searchsorted
""",
    "indexing.lookup": """
embedding embedding_bag _embedding_bag _embedding_bag_forward_only one_hot
""",
    "indexing.subscripts": """
index _unsafe_index index_put _index_put_impl _unsafe_index_put take put
""",
    "layers.attention": """
scaled_dot_product_attention _scaled_dot_product_attention_math _scaled_dot_product_flash_attention_for_cpu
""",
    "layers.convolutions": """
conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d convolution _convolution
convolution_overrideable _convolution_mode conv_tbc linear bilinear
""",
    "layers.detection": """
torchvision::roi_align torchvision::ps_roi_align torchvision::roi_pool torchvision::ps_roi_pool
torchvision::deform_conv2d
""",
    "layers.images": """
upsample_linear1d upsample_bilinear2d upsample_trilinear3d upsample_bicubic2d _upsample_bilinear2d_aa
_upsample_bicubic2d_aa upsample_nearest1d upsample_nearest2d upsample_nearest3d _upsample_nearest_exact1d
_upsample_nearest_exact2d _upsample_nearest_exact3d grid_sampler grid_sampler_2d grid_sampler_3d im2col col2im
native_channel_shuffle
""",
    "layers.losses": """
torch_nn::_linear_cross_entropy_batch_chunked torch_nn::_linear_cross_entropy_batch_chunked_no_reduction
""",
    "layers.normalization": """
batch_norm native_batch_norm _native_batch_norm_legit _native_batch_norm_legit_no_training
_batch_norm_no_update instance_norm group_norm native_group_norm layer_norm native_layer_norm rms_norm
_fused_rms_norm
""",
    "layers.pooling": """
max_pool1d max_pool1d_with_indices avg_pool1d adaptive_avg_pool1d adaptive_max_pool1d
adaptive_max_pool1d_with_indices max_unpool1d max_pool2d max_pool2d_with_indices avg_pool2d
adaptive_avg_pool2d adaptive_max_pool2d adaptive_max_pool2d_with_indices max_unpool2d max_pool3d
max_pool3d_with_indices avg_pool3d adaptive_avg_pool3d adaptive_max_pool3d adaptive_max_pool3d_with_indices
max_unpool3d fractional_max_pool2d fractional_max_pool3d fractional_max_pool2d_with_indices
fractional_max_pool3d_with_indices
""",
    "linalg.decompositions": """
linalg_det det linalg_slogdet slogdet logdet linalg_lu_factor_ex linalg_lu_factor lu_unpack linalg_lu
linalg_lu_solve lu_solve linalg_solve_ex linalg_solve linalg_inv inverse linalg_inv_ex linalg_tensorsolve
linalg_solve_triangular triangular_solve linalg_cholesky_ex linalg_cholesky cholesky cholesky_solve
cholesky_inverse geqrf ormqr linalg_householder_product orgqr linalg_qr qr linalg_ldl_factor_ex
linalg_ldl_factor linalg_ldl_solve
""",
    "linalg.fourier": """
fft_fft fft_ifft fft_rfft fft_irfft fft_hfft fft_ihfft fft_fftn fft_ifftn fft_rfftn fft_irfftn fft_hfftn
fft_ihfftn fft_fft2 fft_ifft2 fft_rfft2 fft_irfft2 fft_hfft2 fft_ihfft2 fft_fftshift fft_ifftshift fft_fftfreq
fft_rfftfreq stft istft
""",
    "linalg.least_squares": """
linalg_lstsq
""",
    "linalg.linear_algebra": """
matmul __matmul__ linalg_matmul __rmatmul__ addmm addmv addr addbmm baddbmm outer ger vdot linalg_vecdot inner
tensordot kron cross linalg_cross linalg_multi_dot chain_matmul matrix_power linalg_matrix_power
linalg_matrix_exp matrix_exp cdist dist cov
""",
    "linalg.products": """
einsum _int_mm _grouped_mm transformers::grouped_mm_fallback
""",
    "linalg.spectra": """
_linalg_eigh linalg_eigh linalg_eigvalsh _linalg_svd linalg_svd linalg_svdvals svd linalg_pinv pinverse
""",
    "quantized.dynamic": """
quantized::conv1d_dynamic quantized::conv2d_dynamic quantized::conv3d_dynamic
quantized::conv_transpose1d_dynamic quantized::conv_transpose2d_dynamic quantized::conv_transpose3d_dynamic
quantized::linear_dynamic quantized::linear_relu_dynamic quantized::linear_dynamic_fp16
quantized::linear_relu_dynamic_fp16 quantized_decomposed::choose_qparams
quantized_decomposed::choose_qparams_symmetric quantized_decomposed::choose_qparams_per_token
quantized_decomposed::choose_qparams_per_token_asymmetric
quantized_decomposed::_choose_qparams_per_token_asymmetric_impl quantized_decomposed::quantize_per_token
quantized_decomposed::dequantize_per_token
""",
    "quantized.fake_quant": """
fake_quantize_per_tensor_affine fake_quantize_per_channel_affine _fake_quantize_learnable_per_tensor_affine
_fake_quantize_learnable_per_channel_affine fake_quantize_per_tensor_affine_cachemask
fake_quantize_per_channel_affine_cachemask _fake_quantize_per_tensor_affine_cachemask_tensor_qparams
fused_moving_avg_obs_fake_quant _fused_moving_avg_obs_fq_helper quantize_per_tensor quantize_per_channel
dequantize quantize_per_tensor_dynamic choose_qparams_optimized _choose_qparams_per_tensor quantized_lstm
quantized_gru
""",
    "quantized.operators": """
quantized::conv1d quantized::conv1d_relu quantized::conv2d quantized::conv2d_relu quantized::conv3d
quantized::conv3d_relu quantized::conv_transpose1d quantized::conv_transpose1d_relu
quantized::conv_transpose2d quantized::conv_transpose2d_relu quantized::conv_transpose3d
quantized::conv_transpose3d_relu quantized::linear quantized::linear_relu quantized::conv2d_add
quantized::conv2d_add_relu quantized::linear_leaky_relu quantized::linear_tanh quantized::add
quantized::add_relu quantized::mul quantized::mul_relu quantized::add_scalar quantized::add_scalar_relu
quantized::mul_scalar quantized::mul_scalar_relu quantized::cat quantized::cat_relu quantized::matmul
quantized::hardswish quantized::sigmoid quantized::relu6 quantized::leaky_relu quantized::elu quantized::celu
quantized::prelu quantized::softmax quantized::clamp quantized::dropout quantized::threshold
quantized::embedding_byte quantized::embedding_bag_byte quantized::embedding_4bit
quantized::embedding_bag_4bit quantized::batch_norm quantized::batch_norm_relu quantized::batch_norm1d
quantized::batch_norm1d_relu quantized::batch_norm2d quantized::batch_norm2d_relu quantized::batch_norm3d
quantized::batch_norm3d_relu quantized::layer_norm quantized::group_norm quantized::instance_norm
""",
    "quantized.pairs": """
int_repr quantized_decomposed::quantize_per_tensor quantized_decomposed::dequantize_per_tensor
quantized_decomposed::quantize_per_channel quantized_decomposed::dequantize_per_channel
""",
    "random.dropout": """
dropout dropout1d dropout2d dropout3d feature_dropout alpha_dropout feature_alpha_dropout native_dropout rrelu
rrelu_with_noise
""",
    "random.randomness": """
poisson binomial standard_gamma _standard_gamma _sample_dirichlet _fused_dropout rand rand_like randn
randn_like randint randint_like randperm normal bernoulli multinomial normal_functional uniform exponential
geometric cauchy log_normal random
""",
    "reductions.norms": """
linalg_vector_norm linalg_matrix_norm linalg_norm norm cosine_similarity pairwise_distance
""",
    "reductions.order": """
sort argsort msort topk kthvalue mode median nanmedian quantile nanquantile logcumsumexp cummax cummin
""",
    "reductions.segments": """
histogram histogramdd segment_reduce _jagged_to_padded_dense_forward _padded_dense_to_jagged_forward
""",
    "reductions.sums": """
sum prod cumsum cumprod diff nansum mean nanmean logsumexp special_logsumexp all _is_all_true any _is_any_true
count_nonzero var std var_mean std_mean amax max amin min aminmax argmax argmin
""",
    "sequence.ctc": """
ctc_loss _ctc_loss
""",
    "sequence.recurrent": """
lstm gru rnn_tanh rnn_relu
""",
    "shapes.creation": """
zeros zeros_like new_zeros ones ones_like new_ones empty empty_like new_empty full full_like new_full
_efficientzerotensor empty_strided empty_permuted new_empty_strided tensor as_tensor asarray scalar_tensor
arange range linspace logspace eye tril_indices triu_indices
""",
    "shapes.filling": """
copy fill zero fill_diagonal
""",
    "shapes.padding": """
pad _pad_enum constant_pad_nd pad_sequence _pad_circular reflection_pad1d replication_pad1d reflection_pad2d
replication_pad2d reflection_pad3d replication_pad3d
""",
    "shapes.slicing": """
slice slice_copy narrow narrow_copy select select_copy slice_scatter select_scatter unbind unbind_copy split
unsafe_split split_copy split_with_sizes unsafe_split_with_sizes split_with_sizes_copy chunk unsafe_chunk
tensor_split hsplit vsplit dsplit unfold unfold_copy cat concat concatenate stack _stack hstack vstack
row_stack dstack column_stack block_diag broadcast_tensors meshgrid flip fliplr flipud roll repeat_interleave
diag diagflat linalg_diagonal diagonal_scatter
""",
    "shapes.views": """
contiguous detach clone alias lift lift_fresh lift_fresh_copy data requires_grad cpu cuda pin_memory
share_memory view reshape _unsafe_view view_copy _reshape_alias view_as reshape_as flatten ravel unflatten
squeeze squeeze_copy unsqueeze unsqueeze_copy atleast_1d atleast_2d atleast_3d permute permute_copy transpose
swapaxes swapdims transpose_copy t T H numpy_T matrix_H t_copy mT mH adjoint movedim moveaxis expand
broadcast_to expand_copy expand_as repeat tile as_strided as_strided_copy as_strided_scatter
""",
}

FUNCTIONS = {
    "elementwise.activations": """
torch.nn.functional.elu torch.nn.functional.softmax torch.nn.functional.log_softmax
torch.nn.functional.softmin
""",
    "indexing.counting": """
torch.unique torch.unique_consecutive
""",
    "indexing.lookup": """
torch.nn.functional.embedding torch.nn.functional.embedding_bag
""",
    "layers.detection": """
torchvision.ops.boxes.batched_nms
""",
    "layers.images": """
torch.nn.functional.interpolate torch.nn.functional.upsample torch.nn.functional.grid_sample
torch.nn.functional.affine_grid torch.nn.functional.unfold torch.nn.functional.fold
""",
    "layers.losses": """
torch.nn.functional.gaussian_nll_loss
""",
    "layers.mask_rcnn": """
torchvision.models.detection.roi_heads.paste_masks_in_image
torchvision.models.detection.roi_heads.heatmaps_to_keypoints
""",
    "layers.normalization": """
torch.nn.functional.batch_norm torch.ops.aten._native_batch_norm_legit.no_stats
torch.nn.functional.instance_norm torch.nn.functional.local_response_norm
""",
    "layers.pooling": """
torch.nn.functional.adaptive_max_pool1d torch.nn.functional.max_unpool1d
torch.nn.functional.adaptive_max_pool2d torch.nn.functional.max_unpool2d
torch.nn.functional.adaptive_max_pool3d torch.nn.functional.max_unpool3d
""",
    "linalg.products": """
torch.einsum torch.nn.functional.grouped_mm
""",
    "random.dropout": """
torch.nn.functional.gumbel_softmax
""",
    "sequence.control_flow": """
torch.cond torch.while_loop torch.scan torch.autograd.Function.apply
""",
    "sequence.ctc": """
torch.nn.functional.ctc_loss
""",
    "shapes.sizes": """
operator.add operator.sub operator.mul operator.floordiv operator.mod operator.truediv math.floor math.ceil
operator.pow math.sqrt math.exp math.log math.log2 math.log10 builtins.min builtins.max tm.assume
""",
}

METHODS = {
    "elementwise.logic": """
where
""",
    "elementwise.unary": """
polygamma
""",
    "indexing.counting": """
unique unique_consecutive
""",
    "indexing.subscripts": """
__getitem__ __setitem__
""",
    "random.randomness": """
normal_ bernoulli_
""",
    "reductions.sums": """
count_nonzero
""",
    "shapes.creation": """
new_tensor
""",
    "shapes.slicing": """
narrow_scatter part_scatter split flip
""",
    "shapes.views": """
size numel view reshape unflatten squeeze permute swapaxes expand broadcast_to repeat tile
""",
}

COMPLEX = {
    "elementwise.complex": """
view_as_real real imag abs absolute __abs__ angle full_like ones_like add __add__ __radd__ sub subtract
__sub__ rsub __rsub__ mul multiply __mul__ __rmul__ div true_divide divide __truediv__ __rtruediv__ __rdiv__
reciprocal square pow __pow__ __rpow__ exp log sqrt conj conj_physical _conj sgn sin cos eq __eq__ ne __ne__
not_equal isnan isinf isfinite
""",
    "elementwise.complex_functions": """
addmm addmv addr addbmm baddbmm lerp addcmul addcdiv tanh tan sinh cosh sigmoid special_expit silu log2 log10
log1p special_log1p exp2 special_exp2 rsqrt
""",
    "elementwise.types": """
to _to_copy type_as float double half bfloat16 bool byte char short int long cfloat cdouble type
""",
    "linalg.fourier": """
fft_fft fft_ifft fft_irfft fft_hfft fft_fftn fft_ifftn fft_irfftn fft_hfftn fft_fft2 fft_ifft2 fft_irfft2
fft_hfft2 istft
""",
    "reductions.norms": """
linalg_vector_norm norm
""",
}
