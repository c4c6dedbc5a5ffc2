"""Maps names to adapter families, so that a family is imported on first use.

Made by tools/make_adapter_indexes.py; do not edit.
"""

LAYERS = {
    "convolutions": """
caffe.Convolution caffe.DepthwiseConv caffe.Deconvolution caffe.Im2col
""",
    "data_movement": """
caffe.Flatten caffe.Reshape caffe.Concat caffe.Slice caffe.Split caffe.Crop caffe.Tile caffe.Permute
caffe.ShuffleChannel caffe.Reverse caffe.BatchReindex caffe.Parameter caffe.DummyData
""",
    "detection": """
caffe.ROIPooling caffe.PriorBox
""",
    "elementwise": """
caffe.ReLU caffe.RReLU caffe.CReLU caffe.Power caffe.Exp caffe.Log caffe.Clip caffe.ELU caffe.PReLU
caffe.Swish caffe.Threshold caffe.GeluApproximation caffe.Dropout caffe.AbsVal caffe.BNLL caffe.Gelu
caffe.HardSwish caffe.Mish caffe.ReLU6 caffe.Sigmoid caffe.TanH caffe.Eltwise
""",
    "normalization": """
caffe.BatchNorm caffe.MVN caffe.Softmax caffe.Normalize
""",
    "pooling": """
caffe.Pooling caffe.SPP caffe.LRN
""",
    "products": """
caffe.InnerProduct caffe.Embed caffe.Scale caffe.Bias caffe.MatMul caffe.BatchedMatMul
""",
    "recurrent": """
caffe.LSTM caffe.RNN caffe.LSTMUnit
""",
    "reductions": """
caffe.Reduction caffe.ArgMax
""",
    "resizing": """
caffe.Interp
""",
}
