"""The file formats of quantization parameters, by name; ``mgeconvert`` is the default."""

from __future__ import annotations

from ...errors import UsageError
from .aimet import AIMET_061, AIMET_100
from .aimet_qdq import AIMET_200
from .ascend import ASCEND, ASCEND_CAFFE
from .format import Format
from .mgeconvert import MGECONVERT
from .mnn import MNN
from .ncnn import NCNN
from .onnxruntime import ONNXRUNTIME
from .ppq import PPQ
from .tensorrt import TENSORRT_CACHE, TENSORRT_JSON, TENSORRT_RANGES
from .tpu_mlir import TPU_MLIR

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
    """Raises UsageError TM6002 for a name that is none."""
    if name not in FORMATS:
        raise UsageError(
            "TM6002",
            f"there is no format {name!r} of quantization parameters",
            notes=[("help", f"use {', '.join(FORMATS)}")],
        )
    return FORMATS[name]
