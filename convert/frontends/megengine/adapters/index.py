"""Maps names to adapter families, so that a family is imported on first use.

Made by tools/make_adapter_indexes.py; do not edit.
"""

FUNCTIONS = {
    "functions.activations": """
megengine.functional.nn.relu megengine.functional.nn.relu6 megengine.functional.nn.sigmoid
megengine.functional.nn.hsigmoid megengine.functional.nn.hswish megengine.functional.nn.gelu
megengine.functional.nn.silu megengine.functional.nn.softplus megengine.functional.nn.logsigmoid
megengine.functional.nn.leaky_relu megengine.functional.nn.prelu
""",
    "functions.added_in_1_13": """
megengine.functional.elemwise.erf megengine.functional.einsum.einsum megengine.functional.math.cross
megengine.functional.tensor.non_zero megengine.functional.vision.flip megengine.functional.vision.rot90
megengine.functional.vision.resize megengine.functional.vision.rotate opdef.Where opdef.Cross opdef.NonZero
opdef.Flip opdef.Rotate
""",
    "functions.attention": """
megengine.functional.nn.multi_head_attention opdef.MultiHeadAttn
""",
    "functions.boxes": """
megengine.functional.vision.roi_pooling megengine.functional.nn.deformable_psroi_pooling
opdef.DeformablePSROIPooling opdef.NMSKeep
""",
    "functions.convolutions": """
megengine.functional.nn.conv1d megengine.functional.nn.conv2d megengine.functional.nn.conv3d
megengine.functional.nn.conv_transpose2d megengine.functional.nn.conv_transpose3d
megengine.functional.nn.deformable_conv2d megengine.functional.nn.local_conv2d
megengine.functional.nn.region_restricted_conv
""",
    "functions.creation": """
megengine.functional.tensor.zeros megengine.functional.tensor.ones megengine.functional.tensor.full
megengine.functional.tensor.zeros_like megengine.functional.tensor.ones_like
megengine.functional.tensor.full_like megengine.functional.tensor.arange megengine.functional.tensor.linspace
megengine.functional.tensor.eye
""",
    "functions.elemwise": """
megengine.functional.elemwise.abs megengine.functional.elemwise.ceil megengine.functional.elemwise.exp
megengine.functional.elemwise.expm1 megengine.functional.elemwise.floor megengine.functional.elemwise.log
megengine.functional.elemwise.log1p megengine.functional.elemwise.round megengine.functional.elemwise.sqrt
megengine.functional.elemwise.cos megengine.functional.elemwise.sin megengine.functional.elemwise.tan
megengine.functional.elemwise.acos megengine.functional.elemwise.asin megengine.functional.elemwise.cosh
megengine.functional.elemwise.sinh megengine.functional.elemwise.tanh megengine.functional.elemwise.square
megengine.functional.elemwise.asinh megengine.functional.elemwise.acosh megengine.functional.elemwise.atanh
megengine.functional.elemwise.relu megengine.functional.elemwise.relu6 megengine.functional.elemwise.sigmoid
megengine.functional.elemwise.hsigmoid megengine.functional.elemwise.neg megengine.functional.elemwise.hswish
megengine.functional.elemwise.logical_not megengine.functional.elemwise.add megengine.functional.elemwise.sub
megengine.functional.elemwise.mul megengine.functional.elemwise.floor_div megengine.functional.elemwise.mod
megengine.functional.elemwise.pow megengine.functional.elemwise.div megengine.functional.elemwise.maximum
megengine.functional.elemwise.minimum megengine.functional.elemwise.left_shift
megengine.functional.elemwise.right_shift megengine.functional.elemwise.logaddexp
megengine.functional.elemwise.logical_and megengine.functional.elemwise.logical_or
megengine.functional.elemwise.logical_xor megengine.functional.elemwise.equal
megengine.functional.elemwise.not_equal megengine.functional.elemwise.less
megengine.functional.elemwise.less_equal megengine.functional.elemwise.greater
megengine.functional.elemwise.greater_equal megengine.functional.elemwise.atan
megengine.functional.elemwise.atan2 megengine.functional.elemwise.clip megengine.functional.math.sign
megengine.functional.math.isnan megengine.functional.math.isinf megengine.functional.tensor.where
opdef.Elemwise opdef.ElemwiseMultiType opdef.TypeCvt
""",
    "functions.lookup": """
megengine.functional.nn.embedding megengine.functional.nn.one_hot megengine.functional.nn.indexing_one_hot
""",
    "functions.matching": """
megengine.functional.vision.correlation megengine.functional.vision.nms megengine.functional.tensor.cond_take
opdef.CondTake
""",
    "functions.math": """
megengine.functional.math.mean megengine.functional.math.sum megengine.functional.math.prod
megengine.functional.math.max megengine.functional.math.min megengine.functional.math.argmax
megengine.functional.math.argmin megengine.functional.math.var megengine.functional.math.std
megengine.functional.math.norm megengine.functional.math.normalize
""",
    "functions.matrices": """
megengine.functional.math.matmul megengine.functional.math.dot megengine.functional.math.matinv
megengine.functional.nn.linear
""",
    "functions.nn": """
megengine.functional.nn.dropout megengine.functional.nn.pad
""",
    "functions.normalization": """
megengine.functional.nn.batch_norm megengine.functional.nn.sync_batch_norm megengine.functional.nn.layer_norm
megengine.functional.nn.general_norm megengine.functional.nn.group_norm megengine.functional.nn.instance_norm
megengine.functional.nn.local_response_norm
""",
    "functions.rearranging": """
megengine.functional.tensor.copy megengine.functional.tensor.broadcast_to megengine.functional.tensor.repeat
megengine.functional.tensor.tile megengine.functional.tensor.roll megengine.functional.tensor.meshgrid
megengine.functional.tensor.diag megengine.functional.tensor.gather megengine.functional.tensor.scatter
opdef.Borrow opdef.Copy opdef.FastpathCopy opdef.Identity
""",
    "functions.sampling": """
megengine.functional.vision.remap megengine.functional.vision.warp_affine
megengine.functional.vision.warp_perspective megengine.functional.vision.roi_align
megengine.functional.vision.cvt_color
""",
    "functions.softmax": """
megengine.functional.nn.softmax megengine.functional.nn.logsoftmax megengine.functional.nn.logsumexp
""",
    "functions.sorting": """
megengine.functional.math.sort megengine.functional.math.argsort megengine.functional.math.topk
""",
    "functions.tensor": """
megengine.functional.tensor.reshape megengine.functional.tensor.flatten megengine.functional.tensor.transpose
megengine.functional.tensor.swapaxes megengine.functional.tensor.squeeze
megengine.functional.tensor.expand_dims megengine.functional.tensor.concat megengine.functional.tensor.stack
megengine.functional.tensor.split megengine.functional.tensor.cumsum
""",
    "functions.vision": """
megengine.functional.vision.interpolate
""",
    "functions.windows": """
megengine.functional.nn.max_pool2d megengine.functional.nn.avg_pool2d
megengine.functional.nn.adaptive_avg_pool2d megengine.functional.nn.adaptive_max_pool2d
megengine.functional.nn.sliding_window megengine.functional.nn.sliding_window_transpose
megengine.functional.nn.pixel_shuffle megengine.functional.nn.layerPixelShuffle_traceable
""",
    "operators.functions": """
opdef.BatchedMatrixMul opdef.Correlation opdef.Diag opdef.Dot opdef.FillLike opdef.MatrixInverse
opdef.MatrixMul opdef.MeshGrid opdef.Softmax opdef.GetVarShape opdef.Reshape opdef.Broadcast opdef.Dimshuffle
opdef.AddAxis opdef.RemoveAxis opdef.Concat opdef.Stack opdef.Split opdef.Reduce opdef.Argmax opdef.Argmin
opdef.Argsort opdef.TopK opdef.Cumsum opdef.MaskedFill opdef.ParamPackConcat opdef.ParamPackSplit
opdef.Dropout opdef.Fill opdef.Eye opdef.Linspace opdef.IndexingOneHot opdef.IndexingSetOneHot
""",
    "operators.images": """
opdef.Resize opdef.Resize3D opdef.Remap opdef.WarpAffine opdef.WarpPerspective opdef.ROIAlign opdef.ROIPooling
opdef.CvtColor
""",
    "operators.indexing": """
opdef.Subtensor opdef.SetSubtensor opdef.IncrSubtensor opdef.IndexingMultiAxisVec
opdef.IndexingSetMultiAxisVec opdef.IndexingIncrMultiAxisVec opdef.MeshIndexing opdef.SetMeshIndexing
opdef.IncrMeshIndexing opdef.BatchedMeshIndexing opdef.BatchedSetMeshIndexing opdef.BatchedIncrMeshIndexing
""",
    "operators.layers": """
opdef.BatchNorm opdef.LayerNorm opdef.GeneralNorm opdef.GroupNorm opdef.InstanceNorm opdef.RNNCell
opdef.LSTMCell opdef.RNN opdef.LSTM
""",
    "operators.windows": """
opdef.Convolution opdef.ConvBias opdef.Convolution3D opdef.ConvolutionBackwardData
opdef.Convolution3DBackwardData opdef.DeformableConv opdef.GroupLocal opdef.RegionRestrictedConvolution
opdef.Pooling opdef.AdaptivePooling opdef.Images2Neibs opdef.SlidingWindowTranspose opdef.PixelShuffle
opdef.PixelShuffleBackward opdef.LRN opdef.Padding
""",
    "quantized.fake_quant": """
megengine.module.qat.module.QATModule._apply_fakequant_with_observer opdef.FakeQuant opdef.TQT opdef.LSQ
""",
    "quantized.layers": """
megengine.functional.quantized.conv_bias_activation megengine.functional.quantized.batch_conv_bias_activation
megengine.functional.quantized.conv_transpose2d opdef.BatchConvBias
""",
}

METHODS = {
    "functions.elemwise": """
__add__ __iadd__ __radd__ __sub__ __isub__ __rsub__ __mul__ __imul__ __rmul__ __mod__ __imod__ __rmod__
__pow__ __ipow__ __rpow__ __and__ __iand__ __rand__ __or__ __ior__ __ror__ __xor__ __ixor__ __rxor__
__truediv__ __itruediv__ __rtruediv__ __floordiv__ __ifloordiv__ __rfloordiv__ __lshift__ __ilshift__
__rlshift__ __rshift__ __irshift__ __rrshift__ __neg__ __abs__ __invert__ __round__ __floor__ __ceil__ __eq__
__ne__ __lt__ __le__ __gt__ __ge__ __pos__
""",
    "functions.math": """
mean sum prod max min
""",
    "functions.matrices": """
__matmul__ __imatmul__ __rmatmul__
""",
    "functions.rearranging": """
to detach _broadcast
""",
    "functions.tensor": """
__getitem__ __setitem__ reshape flatten transpose __new__ astype
""",
}

MODULES = {
    "functions.added_in_1_13": """
megengine.module.vision.Flip megengine.module.vision.Rot90 megengine.module.vision.Resize
megengine.module.vision.Rotate megengine.module.vision.Remap
""",
    "functions.attention": """
megengine.module.multiheadattn.MultiHeadAttention
""",
    "functions.boxes": """
megengine.module.deformable_psroi_pooling.DeformablePSROIPooling
""",
    "functions.lookup": """
megengine.module.embedding.Embedding
""",
    "functions.matrices": """
megengine.module.linear.Linear megengine.module.linear.LinearRelu megengine.module.linear_bn.LinearBn1d
megengine.module.linear_bn.LinearBnRelu1d megengine.module.batch_matmul_activation.BatchMatMulActivation
""",
    "functions.softmax": """
megengine.module.activation.Softmax
""",
    "modules.functional_forms": """
megengine.module.activation.ReLU megengine.module.activation.Sigmoid megengine.module.activation.SiLU
megengine.module.activation.GELU megengine.module.activation.LeakyReLU megengine.module.activation.PReLU
megengine.module.padding.Pad megengine.module.identity.Identity megengine.module.dropout.Dropout
megengine.module.quant_dequant.QuantStub megengine.module.quant_dequant.DequantStub
megengine.module.concat.Concat megengine.module.elemwise.Elemwise
""",
    "modules.layers": """
megengine.module.conv.Conv1d megengine.module.conv.Conv2d megengine.module.conv.Conv3d
megengine.module.conv.ConvTranspose2d megengine.module.conv.ConvTranspose3d megengine.module.conv.LocalConv2d
megengine.module.conv.DeformableConv2d megengine.module.conv.RegionRestrictedConv
megengine.module.batchnorm.BatchNorm1d megengine.module.batchnorm.BatchNorm2d
megengine.module.batchnorm.SyncBatchNorm megengine.module.conv.ConvRelu2d
megengine.module.conv.ConvTransposeRelu2d megengine.module.conv_bn.ConvBn2d
megengine.module.conv_bn.ConvBnRelu2d megengine.module.conv_transpose_bn.ConvTransposeBn2d
megengine.module.conv_transpose_bn.ConvTransposeBnRelu2d megengine.module.pooling.MaxPool2d
megengine.module.adaptive_pooling.AdaptiveAvgPool2d megengine.module.adaptive_pooling.AdaptiveMaxPool2d
megengine.module.sliding_window.SlidingWindow megengine.module.sliding_window.SlidingWindowTranspose
megengine.module.pixel_shuffle.PixelShuffle megengine.module.lrn.LocalResponseNorm
megengine.module.normalization.LayerNorm megengine.module.normalization.GroupNorm
megengine.module.normalization.InstanceNorm megengine.module.normalization.GeneralNorm
megengine.module.pooling.AvgPool2d
""",
    "modules.recurrent": """
megengine.module.rnn.RNNCell megengine.module.rnn.LSTMCell megengine.module.rnn.RNN megengine.module.rnn.LSTM
""",
    "quantized.layers": """
megengine.module.quantized.conv.Conv2d megengine.module.quantized.conv.ConvRelu2d
megengine.module.quantized.conv_bn.ConvBn2d megengine.module.quantized.conv_bn.ConvBnRelu2d
megengine.module.quantized.conv.ConvTranspose2d megengine.module.quantized.linear.Linear
megengine.module.quantized.linear.LinearRelu megengine.module.quantized.linear_bn.LinearBn1d
megengine.module.quantized.linear_bn.LinearBnRelu1d
megengine.module.quantized.batch_matmul_activation.BatchMatMulActivation
megengine.module.quantized.quant_dequant.QuantStub megengine.module.quantized.quant_dequant.DequantStub
megengine.module.quantized.elemwise.Elemwise megengine.module.quantized.concat.Concat
""",
    "quantized.qat": """
megengine.module.qat.conv.Conv2d megengine.module.qat.conv.ConvRelu2d megengine.module.qat.conv_bn.ConvBn2d
megengine.module.qat.conv_bn.ConvBnRelu2d megengine.module.qat.conv.ConvTranspose2d
megengine.module.qat.conv.ConvTransposeRelu2d megengine.module.qat.conv_transpose_bn.ConvTransposeBn2d
megengine.module.qat.conv_transpose_bn.ConvTransposeBnRelu2d megengine.module.qat.linear.Linear
megengine.module.qat.linear.LinearRelu megengine.module.qat.linear_bn.LinearBn1d
megengine.module.qat.linear_bn.LinearBnRelu1d
megengine.module.qat.batch_matmul_activation.BatchMatMulActivation
megengine.module.qat.quant_dequant.QuantStub megengine.module.qat.quant_dequant.DequantStub
megengine.module.qat.elemwise.Elemwise megengine.module.qat.concat.Concat
""",
}
