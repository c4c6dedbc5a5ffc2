"""MNN, version 3: the Caffe layers that its converter reads and computes correctly.

Source: MNN's caffe.proto (alibaba/MNN, tools/converter/source/caffe, commit 03bf389) for the fields; nets of
one layer, converted and run in MNN 3.6.1, and compared with the definitions. Its proto has more types; it
drops some of these without an error, and computes others differently.
"""

from __future__ import annotations

from tmconvert.formats.caffe.dialects.dialect import extended
from tmconvert.formats.caffe.dialects.rule import Rule

IMAGES = ("BatchNorm", "Convolution", "Deconvolution", "LRN", "PReLU", "Pooling", "Scale")

MNN = extended(
    "mnn",
    "MNN 3",
    without=(
        "ArgMax",
        "BatchReindex",
        "Bias",
        "Clip",
        "Dropout",
        "DummyData",
        "Filter",
        "Im2col",
        "LSTM",
        "LSTMUnit",
        "MVN",
        "Parameter",
        "Python",
        "RNN",
        "SPP",
        "Swish",
        "Tile",
    ),
    layers=(
        "Interp",
        "Permute",
        "ReLU6",
        "ShuffleChannel",
    ),
    fields={
        "LayerParameter": (
            "202 permute_param:PermuteParameter, 212 shuffle_channel_param:ShuffleChannelParameter, "
            "2210 interp_param:InterpParameter"
        ),
    },
    messages={
        "InterpParameter": (
            "1 height:int32=0, 2 width:int32=0, 3 zoom_factor:int32=1, 4 shrink_factor:int32=1, "
            "5 pad_beg:int32=0, 6 pad_end:int32=0"
        ),
        "PermuteParameter": "1 order:*uint32",
        "ShuffleChannelParameter": "1 group:uint32=1",
    },
    rules=(
        Rule("mnn-images", "ranks", IMAGES, among=(4,), help="reshape to four axes, and back"),
        Rule("mnn-ranks", "ranks", low=1, help="keep an axis of one element"),
        Rule(
            "mnn-scale-axis",
            "axis",
            ("Scale",),
            among=(1,),
            help="make the axis that is scaled the second one: MNN takes no other",
        ),
        Rule(
            "mnn-scale-bottoms",
            "bottoms",
            ("Scale",),
            among=(1,),
            help="repeat the factor, and multiply by an Eltwise: MNN fails on a computed one",
        ),
        Rule(
            "mnn-dilation",
            "difference of dilations",
            ("Convolution", "Deconvolution"),
            high=0,
            help="use one dilation for both axes: MNN reads only the first one",
        ),
        Rule(
            "mnn-windows",
            "difference of numbers of a window",
            ("Convolution", "Deconvolution"),
            high=0,
            help="write kernel_h and kernel_w, and so on: MNN reads the first number",
        ),
        Rule(
            "mnn-batch-statistics",
            "batch statistics",
            ("BatchNorm",),
            among=(0,),
            help="set use_global_stats: true: MNN normalizes with the stored statistics",
        ),
        Rule(
            "mnn-omitted-windows",
            "omitted windows",
            ("Pooling",),
            high=0,
            help="use less padding: MNN keeps windows that begin after the image, which Caffe omits",
        ),
        Rule(
            "mnn-pooling-mask",
            "mask of padded windows",
            ("Pooling",),
            among=(0,),
            help="use no padding: MNN computes other indices of maxima with it",
        ),
        Rule(
            "mnn-unread-fields",
            "fields that MNN does not read",
            ("Concat", "Flatten", "Interp", "Reduction", "Reshape", "Slice"),
            high=0,
            help="express the layer without them: MNN computes what it does by default",
        ),
        Rule(
            "mnn-log-base",
            "base",
            ("Log",),
            low=0,
            help="set base: 2.7182818, which is the meaning of the default -1",
        ),
        Rule(
            "mnn-log-of-x",
            "affine",
            ("Log",),
            among=(0,),
            help="put scale and shift into a Power layer before the Log",
        ),
        Rule(
            "mnn-lrn-k",
            "k across channels",
            ("LRN",),
            among=(1,),
            help="scale by a Power before and after: MNN takes k for 1",
        ),
        Rule(
            "mnn-embed-bias",
            "bias",
            ("Embed",),
            among=(0,),
            help="set bias_term: false, and add the bias to the table",
        ),
        Rule("mnn-product-rank", "ranks", ("InnerProduct",), high=4, help="reshape to four axes or less"),
        Rule(
            "mnn-round-mode",
            "rounding down",
            ("Pooling",),
            among=(0,),
            help="cut off what MNN's rounding up adds: it does not read round_mode",
        ),
    ),
)
