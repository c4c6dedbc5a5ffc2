"""Parts of MegEngine that no conversion supports, with reasons: names, or patterns (``*``)."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import NamedTuple

from tmconvert.errors import Refusal

FUNCTIONS = "megengine.functional."
MODULES = "megengine.module."


class Reason(NamedTuple):
    """``reason`` is the predicate of a sentence that begins with the name."""

    names: tuple[str, ...]
    reason: str
    instead: str


REASONS = [
    Reason(
        (f"{FUNCTIONS}loss.*", f"{FUNCTIONS}metric.*"),
        "compares results with labels, which only training and tests need",
        "end the model before it, for example with --outputs",
    ),
    Reason(
        (
            *("opdef.BatchNormBackward", "opdef.RegionRestrictedConvolutionBackwardData"),
            *("opdef.WarpPerspectiveBackward*", "opdef.WhereBackward"),
            *("opdef.CheckHasInf", "opdef.CheckNonFinite", "opdef.InplaceAdd", "opdef.LAMBUpdate"),
            *(f"{FUNCTIONS}inplace.*", "megengine.autodiff.*", "megengine.optimizer.*", "megengine.amp.*"),
            *("Tensor.grad", "Tensor.requires_grad", "Tensor.reset_zero", "Tensor.backward"),
        ),
        "belongs to training",
        "trace the model in inference mode",
    ),
    Reason(
        (
            *("megengine.random.*", "opdef.*RNG"),
            *(f"{MODULES}vision.Additive*", f"{MODULES}vision.Random*"),
            *(f"{MODULES}vision.{name}" for name in ("ActiveBlur", "Emboss", "LinearContrast", "Sharpen")),
            *(f"{MODULES}vision.{name}" for name in ("Cutmix", "Mixup")),
        ),
        "is random, so that results differ from run to run",
        "remove it, or pass its values to the model as an input",
    ),
    Reason(
        (
            *("megengine.distributed.*", f"{FUNCTIONS}distributed.*"),
            *("opdef.CollectiveComm", "opdef.RemoteRecv", "opdef.RemoteSend"),
        ),
        "communicates with other machines",
        "trace the model on one machine",
    ),
    Reason(
        (f"{FUNCTIONS}external.*", f"{MODULES}external.*", "opdef.*Runtime", "opdef.ExternOpr"),
        "runs code compiled for one vendor's runtime, which the file does not describe",
        "convert the model that it was compiled from",
    ),
    Reason(
        (
            *(f"{MODULES}vision.{name}" for name in ("CropAndPad", "Dilation", "FillPoly")),
            *("opdef.OpDef", "opdef.PyOpBase", "megengine.core.ops.custom.*"),
        ),
        "is an operator of MegEngine's GPU library only",
        "write it with MegEngine's functions",
    ),
    Reason(
        tuple(f"{FUNCTIONS}tensor.{name}" for name in ("complex", "imag", "polar", "real")),
        "has complex inputs or outputs, which no target has",
        "use separate tensors for real and imaginary parts",
    ),
    Reason(
        (f"{FUNCTIONS}math.svd", "opdef.SVD"),
        "is a singular value decomposition, which no target has, and whose result is unique up to signs only",
        "decompose constants before tracing, or end the model before it",
    ),
    Reason(
        (f"{FUNCTIONS}vision.nvof", "opdef.NvOf"),
        "needs special hardware of NVIDIA",
        "compute the flow outside of the model",
    ),
    Reason(
        ("opdef.GaussianBlur", f"{MODULES}vision.GaussianBlur"),
        "is a blur that tmconvert does not support",
        "write it as a depthwise convolution",
    ),
    Reason(
        (
            *(f"{FUNCTIONS}debug_param.*", f"{FUNCTIONS}tensor_cache.*", f"{FUNCTIONS}utils.*"),
            *(f"{FUNCTIONS}nn.expand_*", f"{FUNCTIONS}einsum.diag_*", f"{FUNCTIONS}einsum.einsum_*"),
            *("opdef.AssertEqual", "opdef.Barrier"),
        ),
        "controls MegEngine itself and is not part of a model",
        "trace the model again without it",
    ),
    Reason(
        (
            *("Tensor.T", "Tensor.device", "Tensor.dtype", "Tensor.item", "Tensor.name", "Tensor.ndim"),
            *("Tensor.numpy", "Tensor.qparams", "Tensor.set_value", "Tensor.shape", "Tensor.size"),
            *("Tensor._isscalar", "Tensor._reset", "Tensor._tuple_shape", "Tensor._*setscalar"),
        ),
        "has arguments or results that are not tensors, so that MegEngine does not record it",
        "trace the model again",
    ),
    Reason(
        (
            *(f"{MODULES}{name}" for name in ("module.Module", "sequential.Sequential")),
            *(f"{MODULES}{name}" for name in ("rnn.RNNBase", "rnn.RNNCellBase")),
            *(f"{MODULES}{name}" for name in ("qat.module.QATModule", "quantized.module.QuantizedModule")),
        ),
        "is a base class; files contain its subclasses or their graphs",
        "trace the model again",
    ),
    Reason(
        (
            f"{MODULES}quantized.conv.ConvTransposeRelu2d",
            *(f"{MODULES}quantized.conv_transpose_bn.ConvTranspose{name}2d" for name in ("Bn", "BnRelu")),
        ),
        "raises an error when MegEngine calls it",
        "use the layer without the activation, or the float model",
    ),
]


def refusal_of(name: str) -> Refusal | None:
    """Returns the reason why calls of a MegEngine function are never supported; None for other functions."""
    for names, reason, instead in REASONS:
        if any(fnmatchcase(name, pattern) for pattern in names):
            return Refusal(f"{name} {reason}", instead)
    return None
