"""NNIE: what HiSilicon's nnie_mapper reads for the cameras' chips of the Hi35xx family.

The vendor's guide (HiSVP development guide, chapter 3) is not public. This file follows public sources:
OpenHarmony's pages on the board Hi3516DV300 (taurus, 4.3) name layers that it adds, and how "Custom" and
"Proposal" replace those it lacks; notes of its users quote the list of layers (3.1.4) and the limits
(3.1.6.2); and a message of the tool states which order a Permute may have (Wulingtian/yolov5_onnx2caffe,
issue 8). The field numbers are those of the forks of Caffe that introduced the layers, and no document
confirms them: all but BVLC's are ``unconfirmed``, as are some rules.
"""

from __future__ import annotations

from tmconvert.formats.caffe.dialects.dialect import extended
from tmconvert.formats.caffe.dialects.rule import Rule
from tmconvert.formats.caffe.layers import LAYERS as CAFFE_LAYERS

WINDOWS = ("Convolution", "Deconvolution", "DepthwiseConv", "Pooling")
EXPONENTS = (-3, -2, -1, -0.5, 0.5, 1, 2, 3)

LAYERS = (
    "CReLU",
    "Custom",
    "DepthwiseConv",
    "MatMul",
    "Normalize",
    "PSROIPooling",
    "PassThrough",
    "Permute",
    "Proposal",
    "ROIPooling",
    "RReLU",
    "Upsample",
)

NNIE = extended(
    "nnie",
    "HiSilicon NNIE",
    outputs_are_unread=True,
    # Caffe 1.0 had neither
    without=("Clip", "DummyData", "Filter", "Im2col", "LSTMUnit", "Python", "Swish"),
    layers=LAYERS,
    fields={
        "LayerParameter": (
            "202 permute_param:PermuteParameter, 206 norm_param:NormalizeParameter, "
            "207 psroi_pooling_param:PSROIPoolingParameter, 161 roi_pooling_param:ROIPoolingParameter, "
            "160 upsample_param:UpsampleParameter, 201 proposal_param:ProposalParameter, "
            "100001 pass_through_param:PassThroughParameter, 100002 rrelu_param:RReLUParameter, "
            "100003 crelu_param:CReLUParameter, 100004 custom_param:CustomParameter"
        ),
    },
    messages={
        "CReLUParameter": "1 negative_slope:float=0, 2 concat_axis:int32=1",
        "CustomParameter": "1 shape:*BlobShape",
        "NormalizeParameter": (
            "1 across_spatial:bool=true, 2 scale_filler:FillerParameter, 3 channel_shared:bool=true, "
            "4 eps:float=1e-10"
        ),
        "PSROIPoolingParameter": "1 spatial_scale:float, 2 output_dim:int32, 3 group_size:int32",
        "PassThroughParameter": "1 num_output:uint32=0, 2 block_height:uint32=0, 3 block_width:uint32=0",
        "PermuteParameter": "1 order:*uint32",
        "ProposalParameter": (
            "1 feat_stride:uint32=16, 2 base_size:uint32=16, 3 min_size:uint32=16, 4 ratio:*float, "
            "5 scale:*float, 6 pre_nms_topn:uint32=6000, 7 post_nms_topn:uint32=300, 8 nms_thresh:float=0.7"
        ),
        "ROIPoolingParameter": "1 pooled_h:uint32=0, 2 pooled_w:uint32=0, 3 spatial_scale:float=1",
        "RReLUParameter": "1 negative_slope:float=0",
        "UpsampleParameter": "1 scale:int32=2, 2 upsample_h:uint32, 3 upsample_w:uint32",
    },
    rules=(
        Rule("nnie-kernel", "kernel", WINDOWS, 1, 255, help="split the window, or make it smaller"),
        Rule("nnie-stride", "stride", WINDOWS, 1, 255, help="use a smaller stride"),
        Rule("nnie-pad", "pad", WINDOWS, 0, 255, help="use less padding"),
        Rule(
            "nnie-group",
            "group",
            ("Convolution", "Deconvolution"),
            1,
            2048,
            help="use fewer groups, or a DepthwiseConv",
        ),
        Rule(
            "nnie-deconvolution-dilation",
            "dilation",
            ("Deconvolution",),
            among=(1,),
            help="put zeros into the kernel: nothing public names a dilation of a Deconvolution",
            confirmed=False,
        ),
        Rule(
            "nnie-exponent",
            "exponent",
            ("Power",),
            among=EXPONENTS,
            help="make the power of several of these",
        ),
        Rule(
            "nnie-permute",
            "order",
            ("Permute",),
            among=(231,),
            help="permute in steps of 0, 2, 3, 1, which is all that NNIE takes",
        ),
        Rule(
            "nnie-extent",
            "extents",
            high=4096,
            help="NNIE counts most axes up to 4096: convert for smaller inputs",
        ),
        Rule(
            "nnie-batch",
            "batch axis",
            among=(0,),
            help="cut and join along other axes: no layer may change the first one",
        ),
        Rule(
            "nnie-rank",
            "rank of inputs",
            ("Input",),
            among=(2, 4),
            help="give the net inputs of two or four axes",
            confirmed=False,
        ),
    ),
    unconfirmed=frozenset(
        parameters
        for parameters in (CAFFE_LAYERS[name].parameters for name in LAYERS)
        if parameters is not None and parameters != "convolution_param"
    ),
)
