"""The file formats of quantization parameters, by name; ``mgeconvert`` is the default."""

from __future__ import annotations

from tmconvert.errors import UsageError
from tmconvert.qparams.formats.aimet import AIMET_061, AIMET_100
from tmconvert.qparams.formats.aimet_qdq import AIMET_200
from tmconvert.qparams.formats.ascend import ASCEND, ASCEND_CAFFE
from tmconvert.qparams.formats.format import Format
from tmconvert.qparams.formats.mgeconvert import MGECONVERT
from tmconvert.qparams.formats.mnn import MNN
from tmconvert.qparams.formats.ncnn import NCNN
from tmconvert.qparams.formats.onnxruntime import ONNXRUNTIME
from tmconvert.qparams.formats.ppq import PPQ
from tmconvert.qparams.formats.tensorrt import TENSORRT_CACHE, TENSORRT_JSON, TENSORRT_RANGES
from tmconvert.qparams.formats.tpu_mlir import TPU_MLIR

FORMATS = {
    format.name: format
    for format in (
        MGECONVERT,
        AIMET_061,
        AIMET_100,
        AIMET_200,
        TENSORRT_CACHE,
        TENSORRT_RANGES,
        TENSORRT_JSON,
        ONNXRUNTIME,
        NCNN,
        MNN,
        PPQ,
        ASCEND,
        ASCEND_CAFFE,
        TPU_MLIR,
    )
}
DEFAULT = MGECONVERT.name


def format_called(name: str) -> Format:
    """Returns the format of this name. Raises UsageError TM6002 for an unknown one."""
    if name not in FORMATS:
        raise UsageError(
            "TM6002",
            f"there is no format {name!r} of quantization parameters",
            notes=[("help", f"use {', '.join(FORMATS)}")],
        )
    return FORMATS[name]
