"""Models in ATen-style ops run as their sources, and are saved and read again."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tmconvert
from tests.container.forge import with_document
from tests.models import corpus
from tmconvert.errors import LoadError

QUANTIZED = sorted(
    path.stem for path in corpus.DATA.glob("*.tm") if "qat" in path.stem or path.stem.startswith("quantized")
)

OLD_API = pytest.mark.filterwarnings("ignore")  # PyTorch's warnings, that this API has a successor


@pytest.mark.parametrize("name", QUANTIZED)
def test_fake_quantization_of_weights_stays(name: str, tmp_path: Path) -> None:
    model = tmconvert.load(corpus.model(name))
    inputs, _ = corpus.golden(name)
    normal = tmconvert.normalize(model)
    np.testing.assert_array_equal(normal(*inputs), model(*inputs))
    normal.save(tmp_path / "normal.tm")
    # the last bit of NumPy's products depends on how the mapped weights are aligned, on some processors
    found = tmconvert.load(tmp_path / "normal.tm")(*inputs)
    np.testing.assert_allclose(found, model(*inputs), rtol=3e-7)


@OLD_API
def test_fake_quantization_of_pytorch_stays(tmp_path: Path) -> None:
    """PyTorch rounds halves to even; means of quantized values are often halves."""
    torch = pytest.importorskip("torch")
    from torch.ao import quantization
    from torch.ao.quantization.quantize_fx import prepare_qat_fx

    from tests.frontends.torch.quantized_models import Plain, images, trained

    torch.manual_seed(0)
    mapping = quantization.get_default_qat_qconfig_mapping("fbgemm")
    net = trained(prepare_qat_fx(Plain().train(), mapping, (images(2),)))
    x = images(100)
    model = tmconvert.trace(net, x)
    expected = model(x.numpy())
    normal = tmconvert.normalize(model)
    np.testing.assert_array_equal(normal(x.numpy()), expected)
    normal.save(tmp_path / "normal.tm")
    np.testing.assert_array_equal(tmconvert.load(tmp_path / "normal.tm")(x.numpy()), expected)


def test_subgraphs_are_saved(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(20, 20)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            def inner(y: torch.Tensor) -> torch.Tensor:
                return torch.cond(y.sum() > 30, lambda z: z - 1, self.linear, (y,))

            return torch.cond(x.sum() > 0, inner, lambda y: y * 3, (x,))

    model = tmconvert.trace(Net(), torch.ones(2, 20))
    tmconvert.normalize(model).save(tmp_path / "normal.tm")
    again = tmconvert.load(tmp_path / "normal.tm")
    for value in (2, 0.5, -1):
        x = np.full((2, 20), value, np.float32)
        np.testing.assert_allclose(again(x), model(x), rtol=1e-6)
    assert _described(tmp_path / "normal.tm")["version"] == 3
    tmconvert.normalize(again).save(tmp_path / "again.tm")
    tmconvert.to_onnx(again, tmp_path / "again.onnx")


def test_subgraphs_are_nested_so_deep_only(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")

    class Net(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cond(x.sum() > 0, lambda y: y + 1, lambda y: y - 1, (x,))

    tmconvert.normalize(tmconvert.trace(Net(), torch.ones(2))).save(tmp_path / "normal.tm")

    def nest(described: Any) -> None:
        exprs = described["modules"][-1]["graphs"][0]["exprs"]
        (cond,) = [expr for expr in exprs if "then" in expr.get("kwargs", {})]
        for _ in range(20):
            body = cond["kwargs"]["then"]["graph"]
            inner = {**body["exprs"][-1], "args": [], "kwargs": {"then": {"graph": body}}}
            cond["kwargs"]["then"] = {"graph": {**body, "exprs": [inner]}}

    (tmp_path / "deep.tm").write_bytes(with_document((tmp_path / "normal.tm").read_bytes(), nest))
    with pytest.raises(LoadError, match="TM1006"):
        tmconvert.load(tmp_path / "deep.tm")


def _described(path: Path) -> dict:
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read("tm.json"))


@OLD_API
def test_sources_show_fake_quantization() -> None:
    torch = pytest.importorskip("torch")
    from torch.ao import quantization
    from torch.ao.quantization.quantize_fx import prepare_qat_fx

    net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU())
    x = torch.randn(2, 3, 8, 8)
    mapping = quantization.get_default_qat_qconfig_mapping("fbgemm")
    prepared = prepare_qat_fx(net.train(), mapping, (x,))
    prepared(x)
    model = tmconvert.trace(prepared.eval(), x)
    assert model.graph is not None
    result = model.graph.outputs[0].qparams
    observed = prepared.get_submodule("activation_post_process_1")
    assert result is not None
    assert (result.quant_min, result.quant_max) == (0, 127)
    assert result.scale == pytest.approx(observed.scale.tolist())
    assert result.zero_point == (int(observed.zero_point),)
    per_channel = [
        node.qparams
        for expr in model.graph.exprs(recursive=True)
        for node in expr.outputs
        if getattr(node, "qparams", None) is not None and node.qparams.channel_axis == 0
    ]
    assert per_channel and len(per_channel[0].scale) == 4
