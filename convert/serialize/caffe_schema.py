"""The part of caffe.proto that a converted model uses, as messages of a descriptor pool of our own.

A private pool, so that another caffe.proto in the process (there are many forks) does no harm.
Fields that only training uses (fillers, engines, losses, data layers) are left out: protobuf needs no
gap filled. Source: BVLC Caffe, src/caffe/proto/caffe.proto, 2020; Permute: the SSD
fork, whose form other runtimes read.

Form of a message: ``number name:type=default`` separated by commas; ``*`` before the type says
repeated, ``[]`` after it packed. Form of an enum: ``NAME=number`` separated by spaces. Syntax: proto2.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_ENUMS = {
    "Phase": "TRAIN=0 TEST=1",
    "PoolingParameter.PoolMethod": "MAX=0 AVE=1 STOCHASTIC=2",
    "PoolingParameter.RoundMode": "CEIL=0 FLOOR=1",
    "EltwiseParameter.EltwiseOp": "PROD=0 SUM=1 MAX=2",
    "LRNParameter.NormRegion": "ACROSS_CHANNELS=0 WITHIN_CHANNEL=1",
    "ReductionParameter.ReductionOp": "SUM=1 ASUM=2 SUMSQ=3 MEAN=4",
}

_MESSAGES = {
    "BlobShape": "1 dim:*int64[]",
    "BlobProto": "5 data:*float[], 7 shape:BlobShape",
    "NetParameter": "1 name:string, 100 layer:*LayerParameter",
    "NetStateRule": (
        "1 phase:Phase, 2 min_level:int32, 3 max_level:int32, 4 stage:*string, 5 not_stage:*string"
    ),
    "ParamSpec": "1 name:string, 3 lr_mult:float=1, 4 decay_mult:float=1",
    "InputParameter": "1 shape:*BlobShape",
    "ArgMaxParameter": "1 out_max_val:bool=false, 2 top_k:uint32=1, 3 axis:int32",
    "BatchNormParameter": (
        "1 use_global_stats:bool, 2 moving_average_fraction:float=0.999, 3 eps:float=1e-05"
    ),
    "BiasParameter": "1 axis:int32=1, 2 num_axes:int32=1",
    "ClipParameter": "1 min:float, 2 max:float",
    "ConcatParameter": "1 concat_dim:uint32=1, 2 axis:int32=1",
    "ConvolutionParameter": (
        "1 num_output:uint32, 2 bias_term:bool=true, 3 pad:*uint32, 4 kernel_size:*uint32,"
        "5 group:uint32=1, 6 stride:*uint32, 9 pad_h:uint32=0, 10 pad_w:uint32=0, 11 kernel_h:uint32,"
        "12 kernel_w:uint32, 13 stride_h:uint32, 14 stride_w:uint32, 16 axis:int32=1,"
        "17 force_nd_im2col:bool=false, 18 dilation:*uint32"
    ),
    "CropParameter": "1 axis:int32=2, 2 offset:*uint32",
    "DropoutParameter": "1 dropout_ratio:float=0.5",
    "ELUParameter": "1 alpha:float=1",
    "EltwiseParameter": "1 operation:EltwiseOp=SUM, 2 coeff:*float, 3 stable_prod_grad:bool=true",
    "EmbedParameter": "1 num_output:uint32, 2 input_dim:uint32, 3 bias_term:bool=true",
    "ExpParameter": "1 base:float=-1, 2 scale:float=1, 3 shift:float=0",
    "FlattenParameter": "1 axis:int32=1, 2 end_axis:int32=-1",
    "InnerProductParameter": (
        "1 num_output:uint32, 2 bias_term:bool=true, 5 axis:int32=1, 6 transpose:bool=false"
    ),
    "LRNParameter": (
        "1 local_size:uint32=5, 2 alpha:float=1, 3 beta:float=0.75,"
        "4 norm_region:NormRegion=ACROSS_CHANNELS, 5 k:float=1"
    ),
    "LogParameter": "1 base:float=-1, 2 scale:float=1, 3 shift:float=0",
    "MVNParameter": "1 normalize_variance:bool=true, 2 across_channels:bool=false, 3 eps:float=1e-09",
    "PReLUParameter": "2 channel_shared:bool=false",
    "ParameterParameter": "1 shape:BlobShape",
    "PermuteParameter": "1 order:*uint32",
    "PoolingParameter": (
        "1 pool:PoolMethod=MAX, 2 kernel_size:uint32, 3 stride:uint32=1, 4 pad:uint32=0,"
        "5 kernel_h:uint32, 6 kernel_w:uint32, 7 stride_h:uint32, 8 stride_w:uint32, 9 pad_h:uint32=0,"
        "10 pad_w:uint32=0, 12 global_pooling:bool=false, 13 round_mode:RoundMode=CEIL"
    ),
    "PowerParameter": "1 power:float=1, 2 scale:float=1, 3 shift:float=0",
    "ReLUParameter": "1 negative_slope:float=0",
    "RecurrentParameter": "1 num_output:uint32=0, 5 expose_hidden:bool=false",
    "ReductionParameter": "1 operation:ReductionOp=SUM, 2 axis:int32=0, 3 coeff:float=1",
    "ReshapeParameter": "1 shape:BlobShape, 2 axis:int32=0, 3 num_axes:int32=-1",
    "ScaleParameter": "1 axis:int32=1, 2 num_axes:int32=1, 4 bias_term:bool=false",
    "SliceParameter": "1 slice_dim:uint32=1, 2 slice_point:*uint32, 3 axis:int32=1",
    "SoftmaxParameter": "2 axis:int32=1",
    "SwishParameter": "1 beta:float=1",
    "ThresholdParameter": "1 threshold:float=0",
    "TileParameter": "1 axis:int32=1, 2 tiles:int32",
    "LayerParameter": (
        "1 name:string, 2 type:string, 3 bottom:*string, 4 top:*string, 5 loss_weight:*float,"
        "6 param:*ParamSpec, 7 blobs:*BlobProto, 8 include:*NetStateRule, 9 exclude:*NetStateRule,"
        "10 phase:Phase,"
        "103 argmax_param:ArgMaxParameter, 104 concat_param:ConcatParameter,"
        "106 convolution_param:ConvolutionParameter, 108 dropout_param:DropoutParameter,"
        "110 eltwise_param:EltwiseParameter, 111 exp_param:ExpParameter,"
        "117 inner_product_param:InnerProductParameter, 118 lrn_param:LRNParameter,"
        "120 mvn_param:MVNParameter, 121 pooling_param:PoolingParameter,"
        "122 power_param:PowerParameter, 123 relu_param:ReLUParameter,"
        "125 softmax_param:SoftmaxParameter, 126 slice_param:SliceParameter,"
        "128 threshold_param:ThresholdParameter, 131 prelu_param:PReLUParameter,"
        "133 reshape_param:ReshapeParameter, 134 log_param:LogParameter,"
        "135 flatten_param:FlattenParameter, 136 reduction_param:ReductionParameter,"
        "137 embed_param:EmbedParameter, 138 tile_param:TileParameter,"
        "139 batch_norm_param:BatchNormParameter, 140 elu_param:ELUParameter,"
        "141 bias_param:BiasParameter, 142 scale_param:ScaleParameter, 143 input_param:InputParameter,"
        "144 crop_param:CropParameter, 145 parameter_param:ParameterParameter,"
        "146 recurrent_param:RecurrentParameter, 147 swish_param:SwishParameter,"
        "148 clip_param:ClipParameter, 202 permute_param:PermuteParameter"
    ),
}

# By layer type: the LayerParameter field that holds its attributes, or None if it has none.
PARAMETER_FIELDS: dict[str, str | None] = {
    "AbsVal": None,
    "ArgMax": "argmax_param",
    "BNLL": None,
    "BatchNorm": "batch_norm_param",
    "Bias": "bias_param",
    "Clip": "clip_param",
    "Concat": "concat_param",
    "Convolution": "convolution_param",
    "Crop": "crop_param",
    "Deconvolution": "convolution_param",
    "Dropout": "dropout_param",
    "ELU": "elu_param",
    "Eltwise": "eltwise_param",
    "Embed": "embed_param",
    "Exp": "exp_param",
    "Flatten": "flatten_param",
    "InnerProduct": "inner_product_param",
    "LRN": "lrn_param",
    "LSTM": "recurrent_param",
    "Log": "log_param",
    "MVN": "mvn_param",
    "PReLU": "prelu_param",
    "Parameter": "parameter_param",
    "Permute": "permute_param",
    "Pooling": "pooling_param",
    "Power": "power_param",
    "RNN": "recurrent_param",
    "ReLU": "relu_param",
    "ReLU6": None,  # OpenCV's and MNN's; BVLC has Clip instead
    "Reduction": "reduction_param",
    "Reshape": "reshape_param",
    "Scale": "scale_param",
    "Sigmoid": None,
    "Silence": None,
    "Slice": "slice_param",
    "Softmax": "softmax_param",
    "Split": None,
    "Swish": "swish_param",
    "TanH": None,
    "Threshold": "threshold_param",
    "Tile": "tile_param",
}

_PACKAGE = "caffe"
_Field = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "bool": _Field.TYPE_BOOL,
    "float": _Field.TYPE_FLOAT,
    "int32": _Field.TYPE_INT32,
    "int64": _Field.TYPE_INT64,
    "string": _Field.TYPE_STRING,
    "uint32": _Field.TYPE_UINT32,
}


def _file_descriptor() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(name="tmconvert/caffe.proto", package=_PACKAGE, syntax="proto2")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for text in fields.split(","):
            message.field.append(_field(name, text.strip()))
    messages = {message.name: message for message in file.message_type}
    for full_name, values in _ENUMS.items():
        owner, _, name = full_name.rpartition(".")
        enum = (messages[owner] if owner else file).enum_type.add(name=name)
        for value in values.split():
            label, number = value.split("=")
            enum.value.add(name=label, number=int(number))
    return file


def _field(owner: str, text: str) -> descriptor_pb2.FieldDescriptorProto:
    """The descriptor of a field such as ``18 dilation:*uint32`` of the message ``owner``."""
    number, rest = text.split(" ")
    name, form = rest.split(":")
    kind, _, default = form.partition("=")
    repeated, packed = kind.startswith("*"), kind.endswith("[]")
    kind = kind.removeprefix("*").removesuffix("[]")

    field = _Field(name=name, number=int(number))
    field.label = _Field.LABEL_REPEATED if repeated else _Field.LABEL_OPTIONAL
    if packed:
        field.options.packed = True
    if default:
        field.default_value = default
    if kind in _SCALARS:
        field.type = _SCALARS[kind]
    elif kind in _ENUMS:
        field.type, field.type_name = _Field.TYPE_ENUM, f".{_PACKAGE}.{kind}"
    elif f"{owner}.{kind}" in _ENUMS:
        field.type, field.type_name = _Field.TYPE_ENUM, f".{_PACKAGE}.{owner}.{kind}"
    else:
        field.type, field.type_name = _Field.TYPE_MESSAGE, f".{_PACKAGE}.{kind}"
    return field


def _message_class(name: str) -> Any:
    return message_factory.GetMessageClass(_POOL.FindMessageTypeByName(f"{_PACKAGE}.{name}"))


_POOL = descriptor_pool.DescriptorPool()
_POOL.AddSerializedFile(_file_descriptor().SerializeToString())

BlobProto = _message_class("BlobProto")
LayerParameter = _message_class("LayerParameter")
NetParameter = _message_class("NetParameter")
