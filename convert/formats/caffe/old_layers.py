"""Layers of the format V1, ``layers`` with types such as CONVOLUTION, which nets of before 2015 have.

Source: BVLC Caffe, src/caffe/proto/caffe.proto (V1LayerParameter), and its upgrade_proto.cpp, commit 9b89154.
"""

from __future__ import annotations

from typing import Any

ENUMS = {
    "V1LayerParameter.LayerType": (
        "NONE=0 ABSVAL=35 ACCURACY=1 ARGMAX=30 BNLL=2 CONCAT=3 CONTRASTIVE_LOSS=37 CONVOLUTION=4 DATA=5 "
        "DECONVOLUTION=39 DROPOUT=6 DUMMY_DATA=32 EUCLIDEAN_LOSS=7 ELTWISE=25 EXP=38 FLATTEN=8 HDF5_DATA=9 "
        "HDF5_OUTPUT=10 HINGE_LOSS=28 IM2COL=11 IMAGE_DATA=12 INFOGAIN_LOSS=13 INNER_PRODUCT=14 LRN=15 "
        "MEMORY_DATA=29 MULTINOMIAL_LOGISTIC_LOSS=16 MVN=34 POOLING=17 POWER=26 RELU=18 SIGMOID=19 "
        "SIGMOID_CROSS_ENTROPY_LOSS=27 SILENCE=36 SOFTMAX=20 SOFTMAX_LOSS=21 SPLIT=22 SLICE=33 TANH=23 "
        "WINDOW_DATA=24 THRESHOLD=31"
    )
}
MESSAGES = {
    "V1LayerParameter": (
        "2 bottom:*string, 3 top:*string, 4 name:string, 5 type:LayerType=NONE, 6 blobs:*BlobProto, "
        "7 blobs_lr:*float, 8 weight_decay:*float, 32 include:*NetStateRule, 33 exclude:*NetStateRule, "
        "35 loss_weight:*float, 1001 param:*string, 1002 blob_share_mode:*ParamSpec.DimCheckMode, "
        "9 concat_param:ConcatParameter, 10 convolution_param:ConvolutionParameter, "
        "11 data_param:DataParameter, 12 dropout_param:DropoutParameter, "
        "13 hdf5_data_param:HDF5DataParameter, 14 hdf5_output_param:HDF5OutputParameter, "
        "15 image_data_param:ImageDataParameter, 16 infogain_loss_param:InfogainLossParameter, "
        "17 inner_product_param:InnerProductParameter, 18 lrn_param:LRNParameter, "
        "19 pooling_param:PoolingParameter, 20 window_data_param:WindowDataParameter, "
        "21 power_param:PowerParameter, 22 memory_data_param:MemoryDataParameter, "
        "23 argmax_param:ArgMaxParameter, 24 eltwise_param:EltwiseParameter, "
        "25 threshold_param:ThresholdParameter, 26 dummy_data_param:DummyDataParameter, "
        "27 accuracy_param:AccuracyParameter, 29 hinge_loss_param:HingeLossParameter, "
        "30 relu_param:ReLUParameter, 31 slice_param:SliceParameter, 34 mvn_param:MVNParameter, "
        "36 transform_param:TransformationParameter, 37 tanh_param:TanHParameter, "
        "38 sigmoid_param:SigmoidParameter, 39 softmax_param:SoftmaxParameter, "
        "40 contrastive_loss_param:ContrastiveLossParameter, 41 exp_param:ExpParameter, "
        "42 loss_param:LossParameter"
    )
}
# Types whose new names are not the words of the old ones, capitalized
_NAMES = {
    "ABSVAL": "AbsVal",
    "ARGMAX": "ArgMax",
    "BNLL": "BNLL",
    "HDF5_DATA": "HDF5Data",
    "HDF5_OUTPUT": "HDF5Output",
    "IM2COL": "Im2col",
    "LRN": "LRN",
    "MVN": "MVN",
    "RELU": "ReLU",
    "SOFTMAX_LOSS": "SoftmaxWithLoss",
    "TANH": "TanH",
}


def new_type(old: str) -> str:
    """Returns the name of a type in the current format.

    >>> new_type("INNER_PRODUCT")
    'InnerProduct'
    """
    return _NAMES.get(old) or "".join(word.capitalize() for word in old.split("_"))


def upgrade(net: Any) -> None:
    """Replaces the ``layers`` of a NetParameter by ``layer``."""
    for old in net.layers:
        new = net.layer.add(name=old.name, type=new_type(_label(old, "type")), bottom=old.bottom, top=old.top)
        for name in old.param:
            new.param.add(name=name)
        for field in ("blobs", "include", "exclude"):
            getattr(new, field).extend(getattr(old, field))
        for field, value in old.ListFields():
            if field.name.endswith("_param"):
                getattr(new, field.name).CopyFrom(value)
    del net.layers[:]


def _label(message: Any, field: str) -> str:
    values = message.DESCRIPTOR.fields_by_name[field].enum_type.values_by_number
    return str(values[getattr(message, field)].name)
