"""Maps names to adapter families, so that a family is imported on first use.

Made by tools/make_adapter_indexes.py; do not edit.
"""

OPERATORS = {
    "microsoft.attention": """
com.microsoft.Attention com.microsoft.QAttention com.microsoft.MultiHeadAttention
com.microsoft.GroupQueryAttention com.microsoft.RotaryEmbedding com.microsoft.RelativePositionBias
""",
    "microsoft.fused": """
com.microsoft.FusedConv com.microsoft.NhwcConv com.microsoft.NhwcFusedConv com.microsoft.NhwcMaxPool
com.microsoft.FusedGemm com.microsoft.FusedMatMul com.microsoft.TransposeMatMul com.microsoft.GemmFastGelu
com.microsoft.Gelu com.microsoft.BiasGelu com.microsoft.FastGelu com.microsoft.QuickGelu
com.microsoft.BiasSplitGelu com.microsoft.BiasAdd com.microsoft.BiasSoftmax com.microsoft.BiasDropout
com.microsoft.SkipLayerNormalization com.microsoft.SkipSimplifiedLayerNormalization
com.microsoft.EmbedLayerNormalization com.microsoft.GroupNorm com.microsoft.Pad com.microsoft.Trilu
com.microsoft.Unique com.microsoft.ExpandDims com.microsoft.GatherND com.microsoft.Inverse com.microsoft.CDist
""",
    "microsoft.quantized": """
com.microsoft.QuantizeLinear com.microsoft.DequantizeLinear com.microsoft.QLinearAdd com.microsoft.QLinearMul
com.microsoft.QLinearSigmoid com.microsoft.QLinearLeakyRelu com.microsoft.QLinearSoftmax
com.microsoft.QLinearConcat com.microsoft.QLinearWhere com.microsoft.QLinearAveragePool
com.microsoft.QLinearGlobalAveragePool com.microsoft.QLinearReduceMean com.microsoft.QLinearConv
com.microsoft.QGemm com.microsoft.MatMulIntegerToFloat com.microsoft.DynamicQuantizeMatMul
com.microsoft.MatMulNBits com.microsoft.GatherBlockQuantized
""",
    "microsoft.recurrent": """
com.microsoft.DynamicQuantizeLSTM
""",
    "standard.activations": """
onnx.LeakyRelu onnx.Elu onnx.Celu onnx.Selu onnx.HardSigmoid onnx.HardSwish onnx.Swish onnx.Mish onnx.Gelu
onnx.Softplus onnx.Softsign onnx.ThresholdedRelu onnx.Shrink onnx.Dropout onnx.Softmax onnx.LogSoftmax
onnx.Hardmax
""",
    "standard.attention": """
onnx.Attention onnx.RotaryEmbedding
""",
    "standard.control_flow": """
onnx.If onnx.Loop onnx.Scan
""",
    "standard.convolutions": """
onnx.Conv onnx.ConvTranspose onnx.DeformConv onnx.Col2Im
""",
    "standard.creation": """
onnx.ConstantOfShape onnx.Range onnx.HannWindow onnx.HammingWindow onnx.BlackmanWindow
""",
    "standard.detection": """
onnx.GridSample onnx.AffineGrid onnx.RoiAlign onnx.MaxRoiPool onnx.NonMaxSuppression
""",
    "standard.elementwise": """
onnx.Abs onnx.Acos onnx.Acosh onnx.Asin onnx.Asinh onnx.Atan onnx.Atanh onnx.BitwiseNot onnx.Cos onnx.Cosh
onnx.Erf onnx.Exp onnx.Log onnx.Neg onnx.Not onnx.Reciprocal onnx.Relu onnx.Sigmoid onnx.Sign onnx.Sin
onnx.Sinh onnx.Sqrt onnx.Tan onnx.Tanh onnx.Ceil onnx.Floor onnx.Round onnx.Identity onnx.IsNaN onnx.IsInf
onnx.Cast onnx.BitCast onnx.CastLike onnx.Clip onnx.Add onnx.Sub onnx.Mul onnx.Div onnx.Pow onnx.And onnx.Or
onnx.Xor onnx.Equal onnx.Greater onnx.Less onnx.GreaterOrEqual onnx.LessOrEqual onnx.BitwiseAnd onnx.BitwiseOr
onnx.BitwiseXor onnx.PRelu onnx.Mod onnx.BitShift onnx.Where onnx.Max onnx.Min onnx.Sum onnx.Mean
""",
    "standard.experimental": """
onnx.Affine onnx.ImageScaler onnx.Crop onnx.ParametricSoftplus onnx.ScaledTanh onnx.Scale
""",
    "standard.gathering": """
onnx.Gather onnx.GatherElements onnx.GatherND onnx.ScatterElements onnx.Scatter onnx.ScatterND onnx.OneHot
onnx.NonZero onnx.Compress onnx.TensorScatter
""",
    "standard.losses": """
onnx.NegativeLogLikelihoodLoss onnx.SoftmaxCrossEntropyLoss
""",
    "standard.matrices": """
onnx.MatMul onnx.Gemm onnx.Einsum onnx.Det onnx.Trilu onnx.EyeLike
""",
    "standard.normalization": """
onnx.BatchNormalization onnx.InstanceNormalization onnx.LayerNormalization onnx.RMSNormalization
onnx.SimplifiedLayerNormalization onnx.GroupNormalization onnx.LRN onnx.LpNormalization
onnx.MeanVarianceNormalization
""",
    "standard.pooling": """
onnx.MaxPool onnx.AveragePool onnx.LpPool onnx.GlobalAveragePool onnx.GlobalMaxPool onnx.GlobalLpPool
onnx.MaxUnpool
""",
    "standard.quantized": """
onnx.QuantizeLinear onnx.DequantizeLinear onnx.DynamicQuantizeLinear onnx.QLinearConv onnx.QLinearMatMul
onnx.MatMulInteger onnx.ConvInteger
""",
    "standard.recurrent": """
onnx.LSTM onnx.GRU onnx.RNN
""",
    "standard.reductions": """
onnx.ReduceSum onnx.ReduceMean onnx.ReduceMax onnx.ReduceMin onnx.ReduceProd onnx.ReduceL1 onnx.ReduceL2
onnx.ReduceSumSquare onnx.ReduceLogSum onnx.ReduceLogSumExp onnx.ArgMax onnx.ArgMin onnx.CumSum onnx.CumProd
""",
    "standard.resizing": """
onnx.Resize onnx.Upsample
""",
    "standard.sequences": """
onnx.SequenceEmpty onnx.SequenceConstruct onnx.SequenceInsert onnx.SequenceErase onnx.SequenceAt
onnx.SequenceLength onnx.SplitToSequence onnx.ConcatFromSequence onnx.SequenceMap onnx.Optional
onnx.OptionalHasElement onnx.OptionalGetElement
""",
    "standard.shapes": """
onnx.Shape onnx.Size onnx.Reshape onnx.Flatten onnx.Transpose onnx.Squeeze onnx.Unsqueeze onnx.Expand
onnx.Tile onnx.DepthToSpace onnx.SpaceToDepth
""",
    "standard.signal": """
onnx.DFT onnx.STFT onnx.MelWeightMatrix
""",
    "standard.slicing": """
onnx.Slice onnx.Concat onnx.Split onnx.Pad onnx.CenterCropPad onnx.ReverseSequence
""",
    "standard.sorting": """
onnx.TopK onnx.Unique
""",
}
