"""Maps each op of the catalogue to an expression in PyTorch.

The rule: ``aten::name`` is ``torch.name``, with the arguments of the op's signature in order, without those
that have their default. This table has the exceptions. A text without braces is another name of the function;
one with braces is the whole expression, where ``{x}`` is an argument of the op. ``call_expressions.py``
has the ops that need code; ``runtime_functions.py`` the functions whose names begin with ``_``.
"""

from __future__ import annotations

from tmconvert.torch_code.names import words

FUNCTIONAL = words(
    """
    adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d
    adaptive_max_pool3d adaptive_max_pool1d_with_indices adaptive_max_pool2d_with_indices
    adaptive_max_pool3d_with_indices avg_pool1d avg_pool2d avg_pool3d bilinear celu channel_shuffle
    conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d cosine_similarity gelu glu
    group_norm hardshrink hardsigmoid hardswish hardtanh layer_norm leaky_relu linear
    local_response_norm max_pool1d max_pool2d max_pool3d max_pool1d_with_indices max_pool2d_with_indices
    max_pool3d_with_indices mish one_hot pairwise_distance pdist pixel_shuffle pixel_unshuffle prelu
    relu relu6 rms_norm scaled_dot_product_attention selu silu softmin softplus softshrink softsign
    tanhshrink threshold
    """
)

# functions that are reached by their ATen name only
ATEN = words("_pad_circular linalg_ldl_factor_ex linalg_ldl_solve max_unpool2d unique_consecutive unique_dim")

TEXTS = {
    "aten::add": "{x} + {other}",
    "aten::sub": "{x} - {other}",
    "aten::mul": "{x} * {other}",
    "aten::div": "{x} / {other}",
    "aten::pow": "{x} ** {exponent}",
    "aten::matmul": "{x} @ {other}",
    "aten::neg": "-{x}",
    "aten::eq": "{x} == {other}",
    "aten::ne": "{x} != {other}",
    "aten::lt": "{x} < {other}",
    "aten::le": "{x} <= {other}",
    "aten::gt": "{x} > {other}",
    "aten::ge": "{x} >= {other}",
    "aten::bitwise_and": "{x} & {other}",
    "aten::bitwise_or": "{x} | {other}",
    "aten::bitwise_xor": "{x} ^ {other}",
    "aten::log_sigmoid": "F.logsigmoid",
    "aten::batch_norm": "F.batch_norm({x}, {running_mean}, {running_var}, {weight}, {bias}, eps={eps})",
    "aten::instance_norm": "F.instance_norm({x}, weight={weight}, bias={bias}, eps={eps})",
    "aten::einsum": "torch.einsum({equation}, {tensors})",
    "aten::stack": "torch.stack({tensors}, dim={dim})",
    "aten::im2col": "F.unfold({x}, {kernel_size}, {dilation}, {padding}, {stride})",
    "aten::col2im": "F.fold({x}, {output_size}, {kernel_size}, {dilation}, {padding}, {stride})",
    "aten::to": "{x}.to({dtype})",
    "aten::reshape": "{x}.reshape({shape*})",
    "aten::permute": "{x}.permute({dims*})",
    "aten::split_with_sizes": "torch.split({x}, {split_sizes}, dim={dim})",
    "aten::index_put": "torch.ops.aten.index_put({x}, {indices}, {values}, {accumulate})",
    "aten::index_reduce": (
        "torch.index_reduce({x}, {dim}, {index}, {source}, {reduce}, include_self={include_self})"
    ),
    "aten::linalg_solve_triangular": (
        "torch.linalg.solve_triangular({A}, {B}, upper={upper}, left={left}, unitriangular={unitriangular})"
    ),
    "aten::lstm": (
        "torch.lstm({x}, {hx}, {params}, {has_biases}, {num_layers}, {dropout}, {train}, {bidirectional}, "
        "{batch_first})"
    ),
    "aten::lstm_cell": "torch.lstm_cell({x}, {hx}, {w_ih}, {w_hh}, {b_ih}, {b_hh})",
    "aten::max_unpool1d": (
        "torch.ops.aten.max_unpool2d({x}.unsqueeze(-2), {indices}.unsqueeze(-2), [1, {output_size*}])"
        ".squeeze(-2)"
    ),
    "aten::max_unpool3d": (
        "torch.ops.aten.max_unpool3d({x}, {indices}, {output_size}, [1, 1, 1], [0, 0, 0])"
    ),
    "aten::masked_fill": "{x}.masked_fill({mask}, {value})",
    "aten::meshgrid": "torch.meshgrid({tensors}, indexing={indexing})",
    "aten::quantile": (
        "torch.quantile({x}, {q}, dim={dim}, keepdim={keepdim}, interpolation={interpolation})"
    ),
    "aten::nanmedian": "torch.nanmedian({x}, dim={dim}, keepdim={keepdim})",
    "aten::nanquantile": (
        "torch.nanquantile({x}, {q}, dim={dim}, keepdim={keepdim}, interpolation={interpolation})"
    ),
    "aten::unfold": "{x}.unfold({dimension}, {size}, {step})",
    "aten::expand": "{x}.expand({size*})",
    "aten::repeat": "{x}.repeat({repeats*})",
    "tm::sizes": "torch.tensor({values})",
    "tm::random_uniform": "torch.rand({size})",
    "tm::random_normal": "torch.randn({size})",
    "tm::in_steps": "{whole}",
    "tm::trunc_divide": 'torch.div({x}, {other}, rounding_mode="trunc")',
    "tm::matmul_nt": "{x} @ {other}.transpose(-1, -2)",
    "tm::requantize": "{x}",
    "tm::fake_quantize": (
        "torch.fake_quantize_per_tensor_affine({x}, {scale}, {zero_point}, {quant_min}, {quant_max})"
    ),
    "tm::fake_quantize_channels": (
        "torch.fake_quantize_per_channel_affine({x}, {scale}, {zero_point}, {axis}, {quant_min}, {quant_max})"
    ),
    "tm::round_half_away": "_round_half_away",
    "tm::quantize": ("_quantize({x}, {scale}, {zero_point}, {quant_min}, {quant_max}, {axis}, {dtype})"),
    "tm::remap": "_remap({x}, {places}, {batch}, {border}, {value}, {mode})",
    "tm::wrap_index": "_wrap_index",
    "tm::count_to": "torch.arange(int({end}))",
    "tm::repeat_indices": "_repeat_indices",
    **{
        f"tm::scatter_{kind}": f'torch.scatter_reduce({{x}}, {{dim}}, {{index}}, {{src}}, "{kind}")'
        for kind in ("amax", "amin", "prod")
    },
    "tm::fft": "_fft",
    "tm::irfft": "_irfft",
    "tm::stft": "_stft({x}, {window}, {n_fft}, {hop_length}, {normalized}, {onesided})",
    "tm::dropout": "F.dropout({x}, {p}, self.training)",
    **{
        f"aten::{kind}": (
            f"torch.{kind}({{x}}, {{hx}}, {{params}}, {{has_biases}}, {{num_layers}}, {{dropout}}, "
            "{train}, {bidirectional}, {batch_first})"
        )
        for kind in ("gru", "rnn_tanh", "rnn_relu")
    },
    **{f"aten::{name}": f"F.{name}" for name in FUNCTIONAL},
    **{f"aten::{name}": f"torch.ops.aten.{name}" for name in ATEN},
    "torchvision::nms": "torchvision.ops.nms",
    "torchvision::batched_nms": "torchvision.ops.batched_nms",
    "torchvision::roi_align": (
        "torchvision.ops.roi_align({x}, {boxes}, {output_size}, {spatial_scale}, {sampling_ratio}, {aligned})"
    ),
    "torchvision::roi_pool": "torchvision.ops.roi_pool({x}, {boxes}, {output_size}, {spatial_scale})",
    "torchvision::ps_roi_align": (
        "torchvision.ops.ps_roi_align({x}, {boxes}, {output_size}, {spatial_scale}, {sampling_ratio})"
    ),
    "torchvision::deform_conv2d": (
        "torchvision.ops.deform_conv2d({x}, {offset}, {weight}, {bias}, {stride}, {padding}, {dilation}, "
        "{mask})"
    ),
}
# arguments that PyTorch takes by name only, or that read better so
BY_NAME = frozenset({"dim", "keepdim", "upper"})
# ops that take a Python number where an argument is a constant without axes
TAKE_NUMBERS = frozenset(
    f"aten::{name}"
    for name in words(
        """
    add sub mul div pow eq ne lt le gt ge masked_fill remainder floor_divide fmod
    """
    )
)
# ops with indices that PyTorch takes and gives as int64 only
GIVE_INT64 = frozenset(
    f"aten::{name}"
    for name in words(
        """
    argmax argmin argsort bucketize count_nonzero cummax cummin kthvalue max median min mode nanmedian
    searchsorted sort topk adaptive_max_pool1d_with_indices adaptive_max_pool2d_with_indices
    adaptive_max_pool3d_with_indices max_pool1d_with_indices max_pool2d_with_indices
    max_pool3d_with_indices nonzero argwhere
    """
    )
)
TAKE_INT64 = frozenset(
    f"aten::{name}"
    for name in words("one_hot index_copy index_fill take max_unpool1d max_unpool2d max_unpool3d")
)
# prefixes of names that have a namespace of their own
NAMESPACES = {"linalg_": "torch.linalg.", "special_": "torch.special."}


def text_of(op: str) -> str | None:
    """Returns the text of an op, by the table or by the rule; None for ``tm::`` ops without one."""
    if op in TEXTS:
        return TEXTS[op]
    namespace, _, name = op.partition("::")
    if namespace != "aten":
        return None
    for prefix, home in NAMESPACES.items():
        if name.startswith(prefix):
            return home + name.removeprefix(prefix)
    return f"torch.{name}"
