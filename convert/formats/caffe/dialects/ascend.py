"""Ascend: the layers that Huawei's ATC reads for its NPUs.

Source: Huawei's caffe.proto (the copy in Huawei-Ascend/tensorflow, inc/register/proto/caffe, commit ae1dbf0),
which has every field below; the vendor's specification of Caffe operators (hiascend.com, CANN 8.0,
operatorlist_00099 and following); and its parsers, which name the types that they take (OriginOpType, in
relu6_plugin.cpp and the other files of its folder).
"""

from __future__ import annotations

from tmconvert.formats.caffe.dialects.dialect import extended
from tmconvert.formats.caffe.dialects.rule import Rule

WINDOWS = ("Convolution", "Deconvolution", "Pooling")

ASCEND = extended(
    "ascend",
    "Huawei Ascend (ATC)",
    outputs_are_unread=True,
    # no fields for them in its proto, or no parser
    without=("Clip", "DummyData", "Filter", "Im2col", "LSTMUnit", "Python", "RNN", "Swish"),
    layers=(
        "BatchedMatMul",
        "Interp",
        "Normalize",
        "PSROIPooling",
        "Permute",
        "PriorBox",
        "Proposal",
        "ROIAlign",
        "ROIPooling",
        "ReLU6",
        "Reorg",
        "Reverse",
        "ShuffleChannel",
        "Upsample",
    ),
    fields={
        "BiasParameter": "4 bias_from_blob:bool=true",
        "DropoutParameter": "2 scale_train:bool=true",
        "LayerParameter": (
            "154 roi_align_param:ROIAlignParameter, 155 reorg_param:ReorgParameter, "
            "157 reverse_param:ReverseParameter, 158 interp_param:InterpParameter, "
            "159 shuffle_channel_param:ShuffleChannelParameter, 160 upsample_param:UpsampleParameter, "
            "161 roi_pooling_param:ROIPoolingParameter, 201 proposal_param:ProposalParameter, "
            "202 permute_param:PermuteParameter, 203 prior_box_param:PriorBoxParameter, "
            "206 norm_param:NormalizeParameter, 207 psroi_pooling_param:PSROIPoolingParameter, "
            "235 batch_matmul_param:BatchMatMulParameter"
        ),
        "PoolingParameter": "13 ceil_mode:bool=true, 14 round_mode:RoundMode=CEIL",
        "ScaleParameter": "6 scale_from_blob:bool=true",
    },
    messages={
        "BatchMatMulParameter": "1 adj_x1:bool=false, 2 adj_x2:bool=false",
        "InterpParameter": (
            "1 height:int32=0, 2 width:int32=0, 3 zoom_factor:int32=1, 4 shrink_factor:int32=1, "
            "5 pad_beg:int32=0, 6 pad_end:int32=0"
        ),
        "NormalizeParameter": (
            "1 across_spatial:bool=true, 2 scale_filler:FillerParameter, 3 channel_shared:bool=true, "
            "4 eps:float=1e-10"
        ),
        "PSROIPoolingParameter": "1 spatial_scale:float, 2 output_dim:int32, 3 group_size:int32",
        "PermuteParameter": "1 order:*uint32",
        "PriorBoxParameter": (
            "1 min_size:*float, 2 max_size:*float, 3 aspect_ratio:*float, 4 flip:bool=true, "
            "5 clip:bool=false, 6 variance:*float, 7 img_size:uint32, 8 img_h:uint32, 9 img_w:uint32, "
            "10 step:float, 11 step_h:float, 12 step_w:float, 13 offset:float=0.5"
        ),
        "ProposalParameter": (
            "1 feat_stride:float=16, 2 base_size:float=16, 3 min_size:float=16, 4 ratio:*float, "
            "5 scale:*float, 6 pre_nms_topn:int32=3000, 7 post_nms_topn:int32=304, "
            "8 iou_threshold:float=0.7, 9 output_actual_rois_num:bool=false"
        ),
        "ROIAlignParameter": (
            "1 pooled_h:uint32=0, 2 pooled_w:uint32=0, 3 spatial_scale:float=1, 4 sampling_ratio:int32=-1, "
            "5 roi_end_mode:int32=0"
        ),
        "ROIPoolingParameter": (
            "1 pooled_h:int32, 2 pooled_w:int32, 3 spatial_scale:float=0.0625, 4 spatial_scale_h:float, "
            "5 spatial_scale_w:float"
        ),
        "ReorgParameter": "1 reverse:bool=false, 2 stride:uint32=2",
        "ReverseParameter": "1 axis:*int32",
        "ShuffleChannelParameter": "1 group:uint32=1",
        "UpsampleParameter": "1 scale:float=1, 2 stride:int32=2, 3 stride_h:int32=2, 4 stride_w:int32=2",
    },
    rules=(
        Rule("ascend-kernel", "kernel", WINDOWS, 1, 255, help="split the window, or make it smaller"),
        Rule("ascend-stride", "stride", ("Convolution", "Pooling"), 1, 63, help="use a smaller stride"),
        Rule("ascend-dilation", "dilation", ("Convolution",), 1, 255, help="use a smaller dilation"),
        Rule(
            "ascend-deconvolution-dilation",
            "dilation",
            ("Deconvolution",),
            among=(1,),
            help="put zeros into the kernel: the specification names no dilation of a Deconvolution",
            confirmed=False,
        ),
        Rule(
            "ascend-pooling-method",
            "pooling method",
            ("Pooling",),
            among=(0, 1),
            help="use MAX or AVE: it has no STOCHASTIC pooling",
        ),
        Rule(
            "ascend-pooling-stride",
            "stride beyond two kernels",
            ("Pooling",),
            high=0,
            help="stride by at most twice the kernel",
        ),
        Rule(
            "ascend-global-stats",
            "batch statistics",
            ("BatchNorm",),
            among=(0,),
            help="set use_global_stats: true",
        ),
        Rule("ascend-extent", "height and width", high=4096, help="convert for smaller images"),
        Rule("ascend-concat", "bottoms", ("Concat",), 1, 1000, help="concatenate in two steps"),
        Rule(
            "ascend-axis",
            "negative axis below rank 4",
            among=(0,),
            help="count the axis from the front: negative ones are for blobs of four axes",
        ),
    ),
)
