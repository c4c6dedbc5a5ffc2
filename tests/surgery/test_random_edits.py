"""Models after random edits run, are saved, and convert to files that compute the same.

``benchmarks/edits.py --random 5000`` does this for 60 models.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tmconvert
from tests.frontends.torch.quantized_models import IMAGES, Eager
from tests.surgery.edited import RIGHT, arrays_of, inputs_of, outcomes
from tests.surgery.models import DATA
from tests.surgery.pytorch_nets import NETS, net
from tests.surgery.random_edits import Edits
from tests.surgery.torch_edits import as_array, judged
from tmconvert.ir import TracedModule
from tmconvert.ir.tree import map_leaves

EDITS = 25
RECORDED = (
    *["op_nested_reuse", "sr_espcn", "op_multi_io", "op_mha_rnncell", "surgery_inner_graph", "text_lstm"],
    *["qat_small_ema", "qat_concat_elemwise"],
)


def examples(name: str) -> list[np.ndarray]:
    with np.load(DATA / f"{name}.npz") as arrays:
        return [arrays[key] for key in sorted(arrays.files) if key.startswith("in")]


def edited(module: TracedModule, given: list[np.ndarray], seed: int, folder: Path, quantized: bool) -> None:
    """Edits a model at random, and checks all its uses."""
    edits = Edits(module, seed)
    while edits.done + edits.refused < EDITS:
        edits.step()
    assert edits.done > EDITS // 4
    inputs = inputs_of(edits.module, given, seed)
    found = outcomes(edits.module, inputs, folder, quantized=quantized)
    assert found["run"] == found["save"] == found["flatten"] == RIGHT, found


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", RECORDED)
def test_recorded_models(name: str, seed: int, tmp_path: Path) -> None:
    module = tmconvert.load(DATA / f"{name}.tm")
    edited(module, examples(name), seed, tmp_path, quantized="qat" in name)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", NETS)
def test_models_of_pytorch(name: str, seed: int, tmp_path: Path) -> None:
    source, inputs = net(name)
    edited(tmconvert.trace(source, *inputs), arrays(inputs), seed, tmp_path, quantized=False)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:torch.ao.quantization is deprecated", "ignore:Please use quant_min")
def test_a_model_with_fake_quantization(tmp_path: Path) -> None:
    torch.manual_seed(0)
    source = Eager().prepared(torch.ao.quantization.get_default_qat_qconfig("qnnpack"))
    x = torch.randn(1, *IMAGES)
    edited(tmconvert.trace(source, x), [x.numpy()], 0, tmp_path, quantized=True)


@pytest.mark.parametrize("name", NETS)
def test_pytorch_does_the_same_edits(name: str) -> None:
    source, inputs = net(name)
    assert judged(tmconvert.trace(source, *inputs), source, inputs, 0, 4) >= 2


def arrays(tree: Any) -> list[np.ndarray]:
    return arrays_of(map_leaves(as_array, tree))
