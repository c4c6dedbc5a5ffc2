"""The models that ``edits.py --random`` edits: recorded ones of MegEngine, and 30 of PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

import tmconvert
from tests.frontends.torch.quantized_models import IMAGES, Eager
from tests.surgery.pytorch_nets import NETS, net
from tests.surgery.torch_edits import as_array
from tmconvert.ir import TracedModule
from tmconvert.ir.tree import leaves, map_leaves

# float and quantized models, chains and graphs, of several releases of MegEngine
RECORDED = (
    *["det_fpn_scale_stride", "det_yolox_focus", "efficientnet_se", "mlp_mixer", "mobilenet_v1"],
    *["mobilenet_v2", "resnet18", "shufflenet_v2", "sr_espcn", "text_lstm", "unet", "vit_tiny"],
    *["op_activations", "op_conv_variants", "op_conv_transpose", "op_elemwise_arith", "op_interpolate"],
    *["op_linear_matmul", "op_mha_rnncell", "op_multi_io", "op_nested_reuse", "op_norms", "op_pooling"],
    *["op_reduce", "op_subtensor", "surgery_inner_graph", "surgery_insert_exprs", "v1_9_1_mobilenet"],
    *["qat_small_ema", "qat_mobilenetv2_minmax", "qat_concat_elemwise"],
)
TORCHVISION = (
    *["resnet18", "mobilenet_v2", "mobilenet_v3_small", "shufflenet_v2_x0_5", "squeezenet1_1"],
    *["mnasnet0_5", "regnet_x_400mf", "efficientnet_b0", "googlenet"],
)
SMALL = (
    *["lstm_bidirectional", "gru_states", "transformer_encoder_masked", "transformer"],
    *["attention_weights", "pool_uneven", "spatial_transformer"],
)


# PyTorch computes something else while it is watched: its fused path leaves padding at zero
NOT_JUDGED = {"transformer_encoder_masked"}


@dataclass
class Model:
    """A model to edit. ``source`` is the module of PyTorch that is edited, too; it takes ``arguments``."""

    name: str
    load: Callable[[], tuple[TracedModule, list[np.ndarray]]]
    source: torch.nn.Module | None = None
    arguments: tuple[Any, ...] = ()
    quantized: bool = False


def recorded(folder: Path) -> Iterator[Model]:
    """Yields the models of MegEngine in a folder."""
    for name in RECORDED:
        path = folder / f"{name}.tm"
        if path.exists():
            yield Model(
                f"megengine/{name}",
                lambda path=path: (tmconvert.load(path), examples(path)),
                quantized="qat" in name,
            )


def examples(path: Path) -> list[np.ndarray]:
    with np.load(path.with_suffix(".npz")) as arrays:
        return [arrays[f"in{i}"] for i in range(sum(name.startswith("in") for name in arrays.files))]


def of_pytorch() -> Iterator[Model]:
    """Yields models of PyTorch."""
    from torch_models_small import MODELS as small
    from torch_models_torchvision import MODELS as torchvision

    for name in NETS:
        yield made(f"pytorch/{name}", *net(name))
    for origin, names in ((small, SMALL), (torchvision, TORCHVISION)):
        for name in names:
            torch.manual_seed(0)
            module, args, kwargs = origin[name]()
            yield made(f"pytorch/{name}", Called(module.eval(), list(kwargs)), (*args, *kwargs.values()))
    torch.manual_seed(0)
    qat = Eager().prepared(torch.ao.quantization.get_default_qat_qconfig("qnnpack"))
    yield made("pytorch/qat", qat, (torch.randn(1, *IMAGES),), quantized=True)


class Called(torch.nn.Module):
    """A module that takes by keyword what is given by position."""

    def __init__(self, module: torch.nn.Module, names: list[str]) -> None:
        super().__init__()
        self.module, self.names = module, names

    def forward(self, *inputs: Any) -> Any:
        count = len(inputs) - len(self.names)
        return self.module(*inputs[:count], **dict(zip(self.names, inputs[count:], strict=True)))


def made(name: str, module: torch.nn.Module, inputs: tuple[Any, ...], quantized: bool = False) -> Model:
    arrays = [leaf for leaf in leaves(map_leaves(as_array, inputs)) if isinstance(leaf, np.ndarray)]
    source = None if name.partition("/")[2] in NOT_JUDGED else module
    return Model(name, lambda: (tmconvert.trace(module, *inputs), arrays), source, inputs, quantized)
