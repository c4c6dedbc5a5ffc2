"""BVLC Caffe: the base of all dialects.

Form of a message: ``number name:type=default`` separated by commas; ``*`` before the type says
repeated, ``[]`` after it packed. Form of an enum: ``NAME=number`` separated by spaces. Syntax: proto2.
Source: BVLC Caffe, src/caffe/proto/caffe.proto, commit 9b89154 (2020); the layers are those that it
registers. Messages of the solver, and the older forms of layers (V0, V1), are left out.
"""

from __future__ import annotations

ENUMS = {
    "FillerParameter.VarianceNorm": "FAN_IN=0 FAN_OUT=1 AVERAGE=2",
    "Phase": "TRAIN=0 TEST=1",
    "ParamSpec.DimCheckMode": "STRICT=0 PERMISSIVE=1",
    "LossParameter.NormalizationMode": "FULL=0 VALID=1 BATCH_SIZE=2 NONE=3",
    "ConvolutionParameter.Engine": "DEFAULT=0 CAFFE=1 CUDNN=2",
    "DataParameter.DB": "LEVELDB=0 LMDB=1",
    "EltwiseParameter.EltwiseOp": "PROD=0 SUM=1 MAX=2",
    "HingeLossParameter.Norm": "L1=1 L2=2",
    "LRNParameter.NormRegion": "ACROSS_CHANNELS=0 WITHIN_CHANNEL=1",
    "LRNParameter.Engine": "DEFAULT=0 CAFFE=1 CUDNN=2",
    "PoolingParameter.PoolMethod": "MAX=0 AVE=1 STOCHASTIC=2",
    "PoolingParameter.Engine": "DEFAULT=0 CAFFE=1 CUDNN=2",
    "PoolingParameter.RoundMode": "CEIL=0 FLOOR=1",
    "ReductionParameter.ReductionOp": "SUM=1 ASUM=2 SUMSQ=3 MEAN=4",
    "ReLUParameter.Engine": "DEFAULT=0 CAFFE=1 CUDNN=2",
    "SigmoidParameter.Engine": "DEFAULT=0 CAFFE=1 CUDNN=2",
    "SoftmaxParameter.Engine": "DEFAULT=0 CAFFE=1 CUDNN=2",
    "TanHParameter.Engine": "DEFAULT=0 CAFFE=1 CUDNN=2",
    "SPPParameter.PoolMethod": "MAX=0 AVE=1 STOCHASTIC=2",
    "SPPParameter.Engine": "DEFAULT=0 CAFFE=1 CUDNN=2",
}

MESSAGES = {
    "BlobShape": "1 dim:*int64[]",
    "BlobProto": (
        "1 num:int32=0, 2 channels:int32=0, 3 height:int32=0, 4 width:int32=0, 5 data:*float[], "
        "6 diff:*float[], 7 shape:BlobShape, 8 double_data:*double[], 9 double_diff:*double[]"
    ),
    "FillerParameter": (
        "1 type:string=constant, 2 value:float=0, 3 min:float=0, 4 max:float=1, 5 mean:float=0, "
        "6 std:float=1, 7 sparse:int32=-1, 8 variance_norm:VarianceNorm=FAN_IN"
    ),
    "NetParameter": (
        "1 name:string, 3 input:*string, 4 input_dim:*int32, 5 force_backward:bool=false, "
        "6 state:NetState, 7 debug_info:bool=false, 8 input_shape:*BlobShape, "
        "100 layer:*LayerParameter"
    ),
    "NetState": "1 phase:Phase=TEST, 2 level:int32=0, 3 stage:*string",
    "NetStateRule": (
        "1 phase:Phase, 2 min_level:int32, 3 max_level:int32, 4 stage:*string, 5 not_stage:*string"
    ),
    "ParamSpec": "1 name:string, 2 share_mode:DimCheckMode, 3 lr_mult:float=1, 4 decay_mult:float=1",
    "TransformationParameter": (
        "1 scale:float=1, 2 mirror:bool=false, 3 crop_size:uint32=0, 4 mean_file:string, "
        "5 mean_value:*float, 6 force_color:bool=false, 7 force_gray:bool=false"
    ),
    "LossParameter": "1 ignore_label:int32, 2 normalize:bool, 3 normalization:NormalizationMode=VALID",
    "AccuracyParameter": "1 top_k:uint32=1, 2 axis:int32=1, 3 ignore_label:int32",
    "ArgMaxParameter": "1 out_max_val:bool=false, 2 top_k:uint32=1, 3 axis:int32",
    "BatchNormParameter": (
        "1 use_global_stats:bool, 2 moving_average_fraction:float=0.999, 3 eps:float=1e-05"
    ),
    "BiasParameter": "1 axis:int32=1, 2 num_axes:int32=1, 3 filler:FillerParameter",
    "ClipParameter": "1 min:float, 2 max:float",
    "ConcatParameter": "1 concat_dim:uint32=1, 2 axis:int32=1",
    "ContrastiveLossParameter": "1 margin:float=1, 2 legacy_version:bool=false",
    "ConvolutionParameter": (
        "1 num_output:uint32, 2 bias_term:bool=true, 3 pad:*uint32, 4 kernel_size:*uint32, "
        "5 group:uint32=1, 6 stride:*uint32, 7 weight_filler:FillerParameter, "
        "8 bias_filler:FillerParameter, 9 pad_h:uint32=0, 10 pad_w:uint32=0, 11 kernel_h:uint32, "
        "12 kernel_w:uint32, 13 stride_h:uint32, 14 stride_w:uint32, 15 engine:Engine=DEFAULT, "
        "16 axis:int32=1, 17 force_nd_im2col:bool=false, 18 dilation:*uint32"
    ),
    "CropParameter": "1 axis:int32=2, 2 offset:*uint32",
    "DataParameter": (
        "1 source:string, 2 scale:float=1, 3 mean_file:string, 4 batch_size:uint32, "
        "5 crop_size:uint32=0, 6 mirror:bool=false, 7 rand_skip:uint32=0, 8 backend:DB=LEVELDB, "
        "9 force_encoded_color:bool=false, 10 prefetch:uint32=4"
    ),
    "DropoutParameter": "1 dropout_ratio:float=0.5",
    "DummyDataParameter": (
        "1 data_filler:*FillerParameter, 2 num:*uint32, 3 channels:*uint32, 4 height:*uint32, "
        "5 width:*uint32, 6 shape:*BlobShape"
    ),
    "ELUParameter": "1 alpha:float=1",
    "EltwiseParameter": "1 operation:EltwiseOp=SUM, 2 coeff:*float, 3 stable_prod_grad:bool=true",
    "EmbedParameter": (
        "1 num_output:uint32, 2 input_dim:uint32, 3 bias_term:bool=true, "
        "4 weight_filler:FillerParameter, 5 bias_filler:FillerParameter"
    ),
    "ExpParameter": "1 base:float=-1, 2 scale:float=1, 3 shift:float=0",
    "FlattenParameter": "1 axis:int32=1, 2 end_axis:int32=-1",
    "HDF5DataParameter": "1 source:string, 2 batch_size:uint32, 3 shuffle:bool=false",
    "HDF5OutputParameter": "1 file_name:string",
    "HingeLossParameter": "1 norm:Norm=L1",
    "ImageDataParameter": (
        "1 source:string, 2 scale:float=1, 3 mean_file:string, 4 batch_size:uint32=1, "
        "5 crop_size:uint32=0, 6 mirror:bool=false, 7 rand_skip:uint32=0, 8 shuffle:bool=false, "
        "9 new_height:uint32=0, 10 new_width:uint32=0, 11 is_color:bool=true, 12 root_folder:string"
    ),
    "InfogainLossParameter": "1 source:string, 2 axis:int32=1",
    "InnerProductParameter": (
        "1 num_output:uint32, 2 bias_term:bool=true, 3 weight_filler:FillerParameter, "
        "4 bias_filler:FillerParameter, 5 axis:int32=1, 6 transpose:bool=false"
    ),
    "InputParameter": "1 shape:*BlobShape",
    "LRNParameter": (
        "1 local_size:uint32=5, 2 alpha:float=1, 3 beta:float=0.75, "
        "4 norm_region:NormRegion=ACROSS_CHANNELS, 5 k:float=1, 6 engine:Engine=DEFAULT"
    ),
    "LogParameter": "1 base:float=-1, 2 scale:float=1, 3 shift:float=0",
    "MVNParameter": "1 normalize_variance:bool=true, 2 across_channels:bool=false, 3 eps:float=1e-09",
    "MemoryDataParameter": "1 batch_size:uint32, 2 channels:uint32, 3 height:uint32, 4 width:uint32",
    "PReLUParameter": "1 filler:FillerParameter, 2 channel_shared:bool=false",
    "ParameterParameter": "1 shape:BlobShape",
    "PoolingParameter": (
        "1 pool:PoolMethod=MAX, 2 kernel_size:uint32, 3 stride:uint32=1, 4 pad:uint32=0, "
        "5 kernel_h:uint32, 6 kernel_w:uint32, 7 stride_h:uint32, 8 stride_w:uint32, "
        "9 pad_h:uint32=0, 10 pad_w:uint32=0, 11 engine:Engine=DEFAULT, "
        "12 global_pooling:bool=false, 13 round_mode:RoundMode=CEIL"
    ),
    "PowerParameter": "1 power:float=1, 2 scale:float=1, 3 shift:float=0",
    "PythonParameter": (
        "1 module:string, 2 layer:string, 3 param_str:string, 4 share_in_parallel:bool=false"
    ),
    "ReLUParameter": "1 negative_slope:float=0, 2 engine:Engine=DEFAULT",
    "RecurrentParameter": (
        "1 num_output:uint32=0, 2 weight_filler:FillerParameter, 3 bias_filler:FillerParameter, "
        "4 debug_info:bool=false, 5 expose_hidden:bool=false"
    ),
    "ReductionParameter": "1 operation:ReductionOp=SUM, 2 axis:int32=0, 3 coeff:float=1",
    "ReshapeParameter": "1 shape:BlobShape, 2 axis:int32=0, 3 num_axes:int32=-1",
    "SPPParameter": "1 pyramid_height:uint32, 2 pool:PoolMethod=MAX, 6 engine:Engine=DEFAULT",
    "ScaleParameter": (
        "1 axis:int32=1, 2 num_axes:int32=1, 3 filler:FillerParameter, 4 bias_term:bool=false, "
        "5 bias_filler:FillerParameter"
    ),
    "SigmoidParameter": "1 engine:Engine=DEFAULT",
    "SliceParameter": "1 slice_dim:uint32=1, 2 slice_point:*uint32, 3 axis:int32=1",
    "SoftmaxParameter": "1 engine:Engine=DEFAULT, 2 axis:int32=1",
    "SwishParameter": "1 beta:float=1",
    "TanHParameter": "1 engine:Engine=DEFAULT",
    "ThresholdParameter": "1 threshold:float=0",
    "TileParameter": "1 axis:int32=1, 2 tiles:int32",
    "WindowDataParameter": (
        "1 source:string, 2 scale:float=1, 3 mean_file:string, 4 batch_size:uint32, "
        "5 crop_size:uint32=0, 6 mirror:bool=false, 7 fg_threshold:float=0.5, "
        "8 bg_threshold:float=0.5, 9 fg_fraction:float=0.25, 10 context_pad:uint32=0, "
        "11 crop_mode:string=warp, 12 cache_images:bool=false, 13 root_folder:string"
    ),
    "LayerParameter": (
        "1 name:string, 2 type:string, 3 bottom:*string, 4 top:*string, 5 loss_weight:*float, "
        "6 param:*ParamSpec, 7 blobs:*BlobProto, 8 include:*NetStateRule, 9 exclude:*NetStateRule, "
        "10 phase:Phase, 11 propagate_down:*bool, 100 transform_param:TransformationParameter, "
        "101 loss_param:LossParameter, 102 accuracy_param:AccuracyParameter, "
        "103 argmax_param:ArgMaxParameter, 104 concat_param:ConcatParameter, "
        "105 contrastive_loss_param:ContrastiveLossParameter, "
        "106 convolution_param:ConvolutionParameter, 107 data_param:DataParameter, "
        "108 dropout_param:DropoutParameter, 109 dummy_data_param:DummyDataParameter, "
        "110 eltwise_param:EltwiseParameter, 111 exp_param:ExpParameter, "
        "112 hdf5_data_param:HDF5DataParameter, 113 hdf5_output_param:HDF5OutputParameter, "
        "114 hinge_loss_param:HingeLossParameter, 115 image_data_param:ImageDataParameter, "
        "116 infogain_loss_param:InfogainLossParameter, "
        "117 inner_product_param:InnerProductParameter, 118 lrn_param:LRNParameter, "
        "119 memory_data_param:MemoryDataParameter, 120 mvn_param:MVNParameter, "
        "121 pooling_param:PoolingParameter, 122 power_param:PowerParameter, "
        "123 relu_param:ReLUParameter, 124 sigmoid_param:SigmoidParameter, "
        "125 softmax_param:SoftmaxParameter, 126 slice_param:SliceParameter, "
        "127 tanh_param:TanHParameter, 128 threshold_param:ThresholdParameter, "
        "129 window_data_param:WindowDataParameter, 130 python_param:PythonParameter, "
        "131 prelu_param:PReLUParameter, 132 spp_param:SPPParameter, "
        "133 reshape_param:ReshapeParameter, 134 log_param:LogParameter, "
        "135 flatten_param:FlattenParameter, 136 reduction_param:ReductionParameter, "
        "137 embed_param:EmbedParameter, 138 tile_param:TileParameter, "
        "139 batch_norm_param:BatchNormParameter, 140 elu_param:ELUParameter, "
        "141 bias_param:BiasParameter, 142 scale_param:ScaleParameter, "
        "143 input_param:InputParameter, 144 crop_param:CropParameter, "
        "145 parameter_param:ParameterParameter, 146 recurrent_param:RecurrentParameter, "
        "147 swish_param:SwishParameter, 148 clip_param:ClipParameter"
    ),
}
