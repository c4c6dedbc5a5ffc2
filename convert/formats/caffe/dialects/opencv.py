"""OpenCV's dnn module, version 4: the Caffe layers that its importer reads.

Source: the importer's opencv-caffe.proto as compiled into OpenCV 4.14, and one-layer nets run in it. The
groups of layers that are not in its proto are read from the text only, whatever their number.
"""

from __future__ import annotations

import math

from tmconvert.formats.caffe.dialects.dialect import extended
from tmconvert.formats.caffe.dialects.rule import Rule

OPENCV = extended(
    "opencv",
    "OpenCV dnn 4",
    # not in its factory, or with another meaning: its LSTM and RNN take other states and weights,
    # Tile wants fields of its own
    without=(
        "ArgMax",
        "BatchReindex",
        "Bias",
        "Clip",
        "DummyData",
        "Embed",
        "Filter",
        "Im2col",
        "LSTM",
        "LSTMUnit",
        "Parameter",
        "Python",
        "RNN",
        "Reduction",
        "SPP",
        "Threshold",
        "Tile",
    ),
    layers=(
        "DetectionOutput",
        "Gelu",
        "GeluApproximation",
        "HardSwish",
        "Interp",
        "Mish",
        "Normalize",
        "PSROIPooling",
        "Permute",
        "PriorBox",
        "Proposal",
        "ROIPooling",
        "ReLU6",
        "ShuffleChannel",
    ),
    fields={
        "BatchNormParameter": "7 scale_bias:bool=false",
        "DropoutParameter": "2 scale_train:bool=true",
        "LayerParameter": (
            "147 detection_output_param:DetectionOutputParameter, 148 permute_param:PermuteParameter, "
            "149 norm_param:NormalizeParameter, 150 prior_box_param:PriorBoxParameter, "
            "201 proposal_param:ProposalParameter, 10002 psroi_pooling_param:PSROIPoolingParameter, "
            "8266711 roi_pooling_param:ROIPoolingParameter, 100001 interp_param:InterpParameter, "
            "100002 shuffle_channel_param:ShuffleChannelParameter, 100003 swish_param:SwishParameter"
        ),
        "PoolingParameter": "13 ceil_mode:bool=true",  # in the place of round_mode
    },
    messages={
        "DetectionOutputParameter": (
            "1 num_classes:uint32, 2 share_location:bool=true, 3 background_label_id:int32=0, "
            "4 nms_param:NonMaximumSuppressionParameter, 6 code_type:CodeType=CORNER, "
            "7 keep_top_k:int32=-1, 8 variance_encoded_in_target:bool=false, 9 confidence_threshold:float, "
            "10 normalized_bbox:bool=true, 1000 clip:bool=false"
        ),
        "InterpParameter": (
            "1 height:int32=0, 2 width:int32=0, 3 zoom_factor:int32=1, 4 shrink_factor:int32=1, "
            "5 pad_beg:int32=0, 6 pad_end:int32=0"
        ),
        "NonMaximumSuppressionParameter": "1 nms_threshold:float=0.3, 2 top_k:int32, 3 eta:float=1",
        "NormalizeParameter": (
            "1 across_spatial:bool=true, 2 scale_filler:FillerParameter, 3 channel_shared:bool=true, "
            "4 eps:float=1e-10"
        ),
        "PSROIPoolingParameter": "1 spatial_scale:float, 2 output_dim:int32, 3 group_size:int32",
        "PermuteParameter": "1 order:*uint32",
        "PriorBoxParameter": (
            "1 min_size:*float, 2 max_size:*float, 3 aspect_ratio:*float, 4 flip:bool=true, "
            "5 clip:bool=true, 6 variance:*float, 7 img_size:uint32, 8 img_h:uint32, 9 img_w:uint32, "
            "10 step:float, 11 step_h:float, 12 step_w:float, 13 offset:float=0.5, 14 offset_h:*float, "
            "15 offset_w:*float, 16 width:*float, 17 height:*float"
        ),
        "ProposalParameter": (
            "1 feat_stride:uint32=16, 2 base_size:uint32=16, 3 min_size:uint32=16, 4 ratio:*float, "
            "5 scale:*float, 6 pre_nms_topn:uint32=6000, 7 post_nms_topn:uint32=300, 8 nms_thresh:float=0.7"
        ),
        "ROIPoolingParameter": "1 pooled_h:uint32=0, 2 pooled_w:uint32=0, 3 spatial_scale:float=1",
        "ShuffleChannelParameter": "1 group:uint32=1",
    },
    enums={"DetectionOutputParameter.CodeType": "CORNER=1 CENTER_SIZE=2 CORNER_SIZE=3"},
    rules=(
        Rule(
            "opencv-transposed-weights",
            "transpose",
            ("InnerProduct",),
            among=(0,),
            help="write the weights as [outputs, inputs]: OpenCV computes something else with transpose",
        ),
        Rule(
            "opencv-log-of-x",
            "affine",
            ("Log",),
            among=(0,),
            help="put scale and shift into a Power layer before the Log: OpenCV mistakes them",
        ),
        Rule(
            "opencv-log-base",
            "base",
            ("Log",),
            among=(-1, math.e),
            help="scale by a Power after the Log: OpenCV takes every base for e",
        ),
        Rule(
            "opencv-batch-statistics",
            "batch statistics",
            ("BatchNorm",),
            among=(0,),
            help="set use_global_stats: true, or use MVN: OpenCV normalizes with the stored statistics",
        ),
        Rule(
            "opencv-lrn-k",
            "k across channels",
            ("LRN",),
            among=(1,),
            help="scale by a Power before and after: OpenCV takes k for 1",
        ),
        Rule(
            "opencv-mvn-eps",
            "eps",
            ("MVN",),
            high=1e-8,
            help="make the deviation of Power layers: OpenCV adds eps to the variance",
        ),
        Rule(
            "opencv-volumes",
            "numbers of a window with three axes",
            ("Convolution",),
            among=(3,),
            help="give kernel_size, stride, pad and dilation three times each",
        ),
        Rule(
            "opencv-images",
            "ranks",
            ("Deconvolution",),
            among=(4,),
            help="reshape to four axes: others were not tried in OpenCV",
            confirmed=False,
        ),
        Rule(
            "opencv-deconvolution-dilation",
            "dilation",
            ("Deconvolution",),
            among=(1,),
            help="put zeros into the kernel: OpenCV reads no dilation of a Deconvolution",
        ),
        Rule("opencv-ranks", "ranks", low=1, help="keep an axis of one element: OpenCV's blobs have axes"),
        Rule(
            "opencv-old-axis",
            "old fields of the axis",
            ("Concat", "Slice"),
            among=(0,),
            help="write axis: OpenCV does not read concat_dim and slice_dim",
        ),
        Rule(
            "opencv-swish-beta",
            "beta",
            ("Swish",),
            among=(1,),
            help="multiply x by beta before a Sigmoid: OpenCV does not read beta",
        ),
        Rule(
            "opencv-bias-of-product",
            "biases of a computed factor",
            ("Scale",),
            among=(0,),
            help="add the bias by another Scale: OpenCV does not add it where the factor is a bottom",
        ),
        Rule(
            "opencv-slice-points",
            "slices without a point",
            ("Slice",),
            among=(0,),
            help="name the points: OpenCV fails on a Slice in equal parts",
        ),
    ),
    unconfirmed=frozenset({"interp_param", "shuffle_channel_param", "swish_param"}),
)
