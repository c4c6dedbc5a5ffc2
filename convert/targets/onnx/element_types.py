"""The element types of ONNX's operators by opset; see ``casts.py``.

Made by tools/make_onnx_types.py; do not edit.
"""

ONNX = "1.23.2"
ONNX_RUNTIMES = ("1.17.3", "1.18.1", "1.20.1", "1.23.2", "1.31.1")

TABLE = """
Abs 6 T>T T=efdbhilB
Acos 7 T>T T=efd/d
Acosh 9 T>T T=efd/d
Add 7 T,T>T T=efdil
Add 14 T,T>T T=efdbhilB/bhB
AffineGrid 20 T1,T2>T1 T1=efd T2=l
And 7 T,T>T1 T=? T1=?
ArgMax 1 T>int64 T=efdbhilB/dhl
ArgMax 11 T>int64 T=efdbhilB/hl
ArgMin 1 T>int64 T=efdbhilB/dbhlB
ArgMin 11 T>int64 T=efdbhilB/bhlB
Asin 7 T>T T=efd/d
Asinh 9 T>T T=efd/d
Atan 7 T>T T=efd/d
Atanh 9 T>T T=efd/d
Attention 23 T1,T1,T2,U,T1,T2>T1,T1,T2,T1 T1=efd T2=efd U=efdbhilB?
Attention 24 T1,T1,T2,U,T1,T2,int64>T1,T1,T2,T1 T1=efd T2=efd U=efdbhilB?/h
AveragePool 7 T>T T=efd/d
BatchNormalization 7 T,T,T,T,T>T,T,T,T,T T=efd
BatchNormalization 14 T,T,T,U,U>T,U,U T=efd/d U=efd/d
BatchNormalization 15 T,T1,T1,T2,T2>T,T2,T2 T=efd/d T1=efd/d T2=efd/d
Bernoulli 15 T1>T2 T1=efd T2=efdbhilB?
BitCast 26 T1>T2 T1=efdbhilB? T2=efdbhilB?
BitShift 11 T,T>T T=B
BitShift 28 T,T>T T=bhilB
BitwiseAnd 18 T,T>T T=bhilB
BitwiseNot 18 T>T T=bhilB
BitwiseOr 18 T,T>T T=bhilB
BitwiseXor 18 T,T>T T=bhilB
BlackmanWindow 17 T1>T2 T1=il T2=efdbhilB
Cast 6 T1>T2 T1=efdbhilB? T2=efdbhilB?
CastLike 15 T1,T2>T2 T1=efdbhilB? T2=efdbhilB?
CausalConvWithState 27 T,T,T,T>T,T T=ef
Ceil 6 T>T T=efd
Celu 12 T>T T=f
Celu 28 T>T T=efd
CenterCropPad 18 T,Tind>T T=efdbhilB?/h Tind=il
Clip 6 T>T T=efd/d
Clip 11 T,T,T>T T=efd/d
Clip 12 T,T,T>T T=efdbhilB/h
Col2Im 18 T,int64,int64>T T=efdbhilB?/dbhilB?
Compress 9 T,T1>T T=efdbhilB? T1=?
Concat 4 T>T T=efdbhilB?
ConstantOfShape 9 T1>T2 T1=l T2=efdbhilB?
Conv 1 T,T,T>T T=efd/d
ConvInteger 10 T1,T2,T1,T2>T3 T1=bB/b T2=bB/b T3=i
ConvTranspose 1 T,T,T>T T=efd/d
Cos 7 T>T T=efd/d
Cosh 9 T>T T=efd/d
CumProd 26 T,T2>T T=efdil T2=il
CumSum 11 T,T2>T T=fdil T2=il
CumSum 14 T,T2>T T=efdil T2=il
DFT 17 T1,T2>T1 T1=efd T2=il
DFT 20 T1,T2,int64>T1 T1=efd T2=il
DeformConv 19 T,T,T,T,T>T T=efd
DepthToSpace 1 T>T T=efdbhilB?/bhilB?
DequantizeLinear 10 T,float32,T>float32 T=biB
DequantizeLinear 19 T1,T2,T1>T2 T1=biB T2=ef
DequantizeLinear 21 T1,T2,T1>T2 T1=bhiB T2=ef
DequantizeLinear 23 T1,T2,T1>T3 T1=bhiB T2=ef T3=ef
Det 11 T>T T=efd/d
Div 7 T,T>T T=efdil
Div 14 T,T>T T=efdbhilB/bhB
Dropout 7 T>T,T T=efd
Dropout 10 T>T,T1 T=efd T1=?
Dropout 12 T,T1,T2>T,T2 T=efd T1=efd T2=?
DynamicQuantizeLinear 11 T1>T2,float32,T2 T1=f T2=B
Einsum 12 T>T T=efdbhilB/bhB
Elu 6 T>T T=efd/d
Equal 7 T,T>T1 T=il? T1=?
Equal 11 T,T>T1 T=efdbhilB?/bhB T1=?
Erf 9 T>T T=efdbhilB/dbhilB
Erf 13 T>T T=efd/d
Exp 6 T>T T=efd
Expand 8 T,int64>T T=efdbhilB?
EyeLike 9 T1>T2 T1=efdbhilB?/bhB? T2=efdbhilB?
Flatten 1 T>T T=efd
Flatten 9 T>T T=efdbhilB?
Floor 6 T>T T=efd
GRU 7 T,T,T,T,T1,T>T,T T=efd T1=i
Gather 1 T,Tind>T T=efdbhilB? Tind=il
GatherElements 11 T,Tind>T T=efdbhilB? Tind=il
GatherND 11 T,int64>T T=efdbhilB?
Gelu 20 T>T T=efd/d
Gemm 7 T,T,T>T T=efd
Gemm 9 T,T,T>T T=efdil/il
GlobalAveragePool 1 T>T T=efd/d
GlobalLpPool 2 T>T T=efd/d
GlobalMaxPool 1 T>T T=efd/d
Greater 7 T,T>T1 T=efd T1=?
Greater 9 T,T>T1 T=efdbhilB/bhB T1=?
GreaterOrEqual 12 T,T>T1 T=efdbhilB/bhB T1=?
GridSample 16 T1,T2>T1 T1=efdbhilB?/dbhilB? T2=efd/d
HammingWindow 17 T1>T2 T1=il T2=efdbhilB
HannWindow 17 T1>T2 T1=il T2=efdbhilB
HardSigmoid 6 T>T T=efd/d
HardSwish 14 T>T T=efd/d
Hardmax 1 T>T T=efd/d
Identity 1 T>T T=efdbhilB?
Identity 14 V>V V=efdbhilB?
ImageDecoder 20 T1>T2 T1=B T2=B
InstanceNormalization 6 T,T,T>T T=efd/d
IsInf 10 T1>T2 T1=fd T2=?
IsInf 20 T1>T2 T1=efd T2=?
IsNaN 9 T1>T2 T1=efd T2=?
LRN 1 T>T T=efd/d
LSTM 7 T,T,T,T,T1,T,T,T>T,T,T T=efd T1=i
LayerNormalization 17 T,T,T>T,U,U T=efd U=f
LeakyRelu 6 T>T T=efd/d
LeakyRelu 16 T>T T=efd
Less 7 T,T>T1 T=efd T1=?
Less 9 T,T>T1 T=efdbhilB/bhB T1=?
LessOrEqual 12 T,T>T1 T=efdbhilB/bhB T1=?
LinearAttention 27 T,T,T,S,T,T>T,S T=ef S=ef
Log 6 T>T T=efd
LogSoftmax 1 T>T T=efd
LpNormalization 1 T>T T=efd
LpPool 2 T>T T=efd/d
MatMul 1 T,T>T T=efd
MatMul 9 T,T>T T=efdil
MatMulInteger 10 T1,T2,T1,T2>T3 T1=bB/b T2=bB T3=i
Max 6 T>T T=efd/d
Max 8 T>T T=efd
Max 12 T>T T=efdbhilB/bhB
MaxPool 1 T>T T=efd/d
MaxPool 8 T>T,I T=efd I=l
MaxPool 12 T>T,I T=efdbB I=l
MaxRoiPool 1 T,T>T T=efd/d
MaxUnpool 9 T1,T2,T2>T1 T1=efd/d T2=l
Mean 6 T>T T=efd/d
MeanVarianceNormalization 9 T>T T=efd
MelWeightMatrix 17 T1,T1,T1,T2,T2>T3 T1=il T2=efd/d T3=efdbhilB
Min 6 T>T T=efd/d
Min 8 T>T T=efd
Min 12 T>T T=efdbhilB/bhB
Mish 18 T>T T=efd
Mish 22 T>T T=efd/d
Mod 10 T,T>T T=efdbhilB
Mul 7 T,T>T T=efdil
Mul 14 T,T>T T=efdbhilB/bhB
Multinomial 7 T1>T2 T1=efd/d T2=il
Neg 6 T>T T=efdbhil/h
NegativeLogLikelihoodLoss 12 T,Tind,T>T T=efd Tind=il
NonMaxSuppression 10 float32,float32,int64,float32,float32>int64
NonZero 9 T>int64 T=efdbhilB?/dbh
Not 1 T>T T=?
OneHot 9 T1,T2,T3>T3 T1=efdbhilB/dbhB T2=efdbhilB/dbhilB T3=efdbhilB?/dbhilB?
Optional 15 V>O V=efdbhilB?
OptionalGetElement 15 O>V V=efdbhilB?
OptionalGetElement 18 O>V O=efdbhilB? V=efdbhilB?
OptionalHasElement 15 O>B B=?
OptionalHasElement 18 O>B O=efdbhilB? B=?
Or 7 T,T>T1 T=? T1=?
PRelu 7 T,T>T T=efd/d
PRelu 9 T,T>T T=efdil/dil
PRelu 16 T,T>T T=efdil
Pad 2 T>T T=efd
Pad 11 T,int64,T>T T=efdbhilB/h
Pad 13 T,int64,T>T T=efdbhilB?/h
Pad 18 T,int64,T,Tind>T T=efdbhilB?/h Tind=il
Pow 7 T,T>T T=efd
Pow 12 T,T1>T T=efdil T1=efdbhilB/bhB
QLinearConv 10 T1,float32,T1,T2,float32,T2,float32,T3,T4>T3 T1=bB/b T2=bB T3=bB/b T4=i
QLinearMatMul 10 T1,float32,T1,T2,float32,T2,float32,T3>T3 T1=bB/b T2=bB T3=bB/b
QLinearMatMul 21 T1,TS,T1,T2,TS,T2,TS,T3>T3 TS=ef T1=bB/b T2=bB T3=bB/b
QuantizeLinear 10 T1,float32,T2>T2 T1=fi/i T2=bB
QuantizeLinear 19 T1,T1,T2>T2 T1=efi/i T2=bB
QuantizeLinear 21 T1,T1,T2>T2 T1=efi/i T2=bhB
QuantizeLinear 23 T1,T2,T3>T3 T1=efi/i T2=efi/i T3=bhB
RMSNormalization 23 T,V>V T=efd V=efd
RNN 7 T,T,T,T,T1,T>T,T T=efd/d T1=i
RandomNormalLike 1 T1>T2 T1=efdbhilB?/bhilB? T2=efd
RandomUniformLike 1 T1>T2 T1=efdbhilB?/bhilB? T2=efd
Range 11 T,T,T>T T=fdhil
Range 27 T,T,T>T T=efdhil
Reciprocal 6 T>T T=efd
ReduceL1 1 T>T T=efdil/d
ReduceL1 18 T,int64>T T=efdil
ReduceL2 1 T>T T=efdil/d
ReduceL2 18 T,int64>T T=efdil
ReduceLogSum 1 T>T T=efdil/d
ReduceLogSum 18 T,int64>T T=efdil
ReduceLogSum 28 T,int64>T T=efd
ReduceLogSumExp 1 T>T T=efdil
ReduceLogSumExp 18 T,int64>T T=efdil
ReduceLogSumExp 28 T,int64>T T=efd
ReduceMax 1 T>T T=efdil
ReduceMax 12 T>T T=efdbilB
ReduceMax 18 T,int64>T T=efdbilB
ReduceMax 20 T,int64>T T=efdbilB?
ReduceMean 1 T>T T=efdil/l
ReduceMean 18 T,int64>T T=efdil/l
ReduceMin 1 T>T T=efdil
ReduceMin 12 T>T T=efdbilB
ReduceMin 18 T,int64>T T=efdbilB
ReduceMin 20 T,int64>T T=efdbilB?
ReduceProd 1 T>T T=efdil/d
ReduceProd 18 T,int64>T T=efdil/d
ReduceSum 1 T>T T=efdil
ReduceSum 13 T,int64>T T=efdil
ReduceSumSquare 1 T>T T=efdil
ReduceSumSquare 18 T,int64>T T=efdil
Relu 6 T>T T=efd
Relu 14 T>T T=efdbhil/hl
Reshape 5 T,int64>T T=efdbhilB?
Resize 10 T,float32>T T=efdbhilB?/dhl?
Resize 11 T1,T2,float32,int64>T1 T1=efdbhilB?/dhl? T2=efd
ReverseSequence 10 T,int64>T T=efdbhilB?
RoiAlign 10 T1,T1,T2>T1 T1=efd T2=l
RotaryEmbedding 23 T,T,T,M>T T=ef M=l
Round 11 T>T T=efd
STFT 17 T1,T2,T1,T2>T1 T1=efd T2=il
Scatter 9 T,Tind,T>T T=efdbhilB? Tind=il
ScatterElements 11 T,Tind,T>T T=efdbhilB? Tind=il
ScatterND 11 T,int64,T>T T=efdbhilB?
Selu 6 T>T T=efd/d
SequenceAt 11 S,I>T T=efdbhilB? I=il
SequenceConstruct 11 T>S T=efdbhilB?
SequenceErase 11 S,I>S I=il
SequenceInsert 11 S,T,I>S T=efdbhilB? I=il
Shape 1 T>T1 T=efdbhilB? T1=l
Shrink 9 T>T T=efdbhilB
Sigmoid 6 T>T T=efd
Sign 9 T>T T=efdbhilB
Sin 7 T>T T=efd
Sinh 9 T>T T=efd/d
Size 1 T>T1 T=efdbhilB? T1=l
Slice 1 T>T T=efdbhilB?
Slice 10 T,Tind,Tind,Tind,Tind>T T=efdbhilB? Tind=il
Softmax 1 T>T T=efd
SoftmaxCrossEntropyLoss 12 T,Tind,T>T,T T=efd Tind=il
Softplus 1 T>T T=efd/d
Softsign 1 T>T T=efd/d
SpaceToDepth 1 T>T T=efdbhilB?/bhilB?
Split 2 T>T T=efdbhilB?
Split 13 T,int64>T T=efdbhilB?
SplitToSequence 11 T,I>S T=efdbhilB?/bhB? I=il
SplitToSequence 24 T,I>S T=efdbhilB?/bhB I=il
Sqrt 6 T>T T=efd
Squeeze 1 T>T T=efdbhilB?
Squeeze 13 T,int64>T T=efdbhilB?
Sub 7 T,T>T T=efdil
Sub 14 T,T>T T=efdbhilB/bhB
Sum 6 T>T T=efd
SwiGLU 28 T,T>T T=efd
Swish 24 T>T T=efd
Tan 7 T>T T=efd/d
Tanh 6 T>T T=efd
TensorScatter 24 T,T,int64>T T=efdbhilB?
TfIdfVectorizer 9 T>T1 T=il T1=f
ThresholdedRelu 10 T>T T=efd/d
Tile 6 T,T1>T T=efdbhilB? T1=l
TopK 1 T>T,I T=efd I=l
TopK 10 T,int64>T,I T=efd I=l
TopK 11 T,int64>T,I T=efdbhilB/bhB I=l
TopK 24 T,int64>T,I T=efdbhilB I=l
Transpose 1 T>T T=efdbhilB?
Trilu 14 T,int64>T T=efdbhilB?/bhiB?
Unique 11 T>T,int64,int64,int64 T=efdbhilB?/hiB?
Unsqueeze 1 T>T T=efdbhilB?
Unsqueeze 13 T,int64>T T=efdbhilB?
Upsample 7 T>T T=efdbhilB?
Upsample 9 T,float32>T T=efdbhilB?/dhl?
Where 9 B,T,T>T B=? T=efdbhilB?/bh?
Xor 7 T,T>T1 T=? T1=?
"""
