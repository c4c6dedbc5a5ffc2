"""What a reader takes for the outputs of a written net, and nets at another batch size."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

import tmconvert
from tmconvert.errors import LoadError, VerificationError
from tmconvert.targets.registry import runtime_for

DATA = Path(__file__).parents[2] / "data"
UNREAD = ["bvlc", "ascend", "nnie"]  # dialects whose readers give out what no layer reads


class Reused(torch.nn.Module):
    """Two outputs, of which a layer reads the first one, and a slice of which nobody wants the rest."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = functional.max_pool2d(x, 3, 2)
        return y, torch.tanh(y)[:, 1:3]


def blobs_left(prototxt: Path) -> list[str]:
    """The blobs that no layer reads, which BVLC Caffe gives out."""
    text = prototxt.read_text()
    bottoms = set(re.findall(r'bottom: "(.*)"', text))
    return [top for top in re.findall(r'top: "(.*)"', text) if top not in bottoms]


def converted(model: Any, path: Path, dialect: str = "bvlc", **options: Any) -> Any:
    report = tmconvert.to_caffe(model, path, dialect=dialect, **options)
    assert report.verified
    return report


@pytest.mark.parametrize("dialect", UNREAD)
def test_the_outputs_are_what_no_layer_reads(dialect: str, tmp_path: Path) -> None:
    path = tmp_path / "net.prototxt"
    example = (torch.randn(1, 4, 9, 9),)
    report = converted(Reused(), path, dialect, example_inputs=example)
    assert sorted(blobs_left(path)) == sorted(each["name"] for each in report.outputs)
    assert path.read_text().count("Silence") == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["shufflenet_v2", "op_nested_reuse", "op_multi_io", "resnet18", "text_lstm"])
def test_of_recorded_models(name: str, tmp_path: Path) -> None:
    path = tmp_path / "net.prototxt"
    report = converted(DATA / f"{name}.tm", path)
    assert sorted(blobs_left(path)) == sorted(each["name"] for each in report.outputs)


@pytest.mark.opencv
def test_opencv_finds_the_last_output_without_a_name(tmp_path: Path) -> None:
    """It takes the last layer for the output, so that may be no Silence."""
    import cv2

    x = np.random.default_rng(0).standard_normal((1, 4, 9, 9)).astype(np.float32)
    converted(Reused(), tmp_path / "net.prototxt", example_inputs=(torch.from_numpy(x),))
    net = cv2.dnn.readNetFromCaffe(str(tmp_path / "net.prototxt"), str(tmp_path / "net.caffemodel"))
    net.setInput(x)
    np.testing.assert_allclose(net.forward(), Reused()(torch.from_numpy(x))[1], rtol=1e-5)


def test_opencv_asks_by_name_and_needs_no_silence(tmp_path: Path) -> None:
    converted(Reused(), tmp_path / "net.prototxt", "opencv", example_inputs=(torch.randn(1, 4, 9, 9),))
    assert "Silence" not in (tmp_path / "net.prototxt").read_text()


def test_a_net_is_verified_where_no_runtime_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the definitions, which read both files again."""
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name in ("cv2", "MNN") else found(name)
    )
    path, module = tmp_path / "net.prototxt", tmconvert.trace(Reused(), torch.randn(1, 4, 9, 9))
    report = converted(module, path)
    assert str(report).startswith("verified with the NumPy definitions of Caffe's layers in tmconvert ")
    assert tmconvert.verify(module, path).runtime == report.verification.runtime
    weights = path.with_suffix(".caffemodel")
    path.write_text(path.read_text().replace("TanH", "Sigmoid"))
    with pytest.raises(VerificationError, match="differ"):
        tmconvert.verify(module, path)
    weights.unlink()
    with pytest.raises(LoadError, match="no weights"):
        tmconvert.verify(module, path)


# ---- another batch


def shuffled(x: torch.Tensor) -> torch.Tensor:
    return x.reshape(x.shape[0], 2, 4, 6, 6).transpose(1, 2).reshape(x.shape)


NETS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "channel shuffle": shuffled,
    "flatten": lambda x: x.flatten(1) * 2,
    "transpose": lambda x: x.transpose(1, 3).contiguous() + 1,
    "tokens": lambda x: x.flatten(2).transpose(1, 2),
    "pixel shuffle": lambda x: functional.pixel_shuffle(x, 2),
    "resize": lambda x: functional.interpolate(x, (9, 11), mode="bilinear"),
    "constants along H": lambda x: x * torch.arange(6.0).reshape(6, 1) + torch.arange(6.0).reshape(1, 6, 1),
    "gate of rows": lambda x: x * x.mean((1, 3), keepdim=True),
    "group norm": lambda x: functional.group_norm(x, 4),
    "mean": lambda x: x.mean(3),
    "cumsum": lambda x: x.cumsum(2),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize("batch", [1, 2])
def test_the_batch_can_be_changed_in_the_prototxt(name: str, batch: int, tmp_path: Path) -> None:
    """Layers that keep the first axis apart are right for any batch, and for chips that know no other."""

    class Net(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return NETS[name](x)

    path = tmp_path / "net.prototxt"
    report = converted(Net(), path, example_inputs=(torch.randn(batch, 8, 6, 6),))
    text = path.read_text()
    path.write_text(text.replace(f"dim: {batch}\n", "dim: 5\n", 1))
    x = torch.randn(5, 8, 6, 6)
    expected, names = (
        Net()(x),
        [[each["name"] for each in infos] for infos in (report.inputs, report.outputs)],
    )
    (made,) = runtime_for("caffe", path).run(
        [path, path.with_suffix(".caffemodel")], {names[0][0]: x.numpy()}, names[1], shapes=[expected.shape]
    )
    np.testing.assert_allclose(made, expected, rtol=1e-4, atol=1e-5)


# ---- dilation


@pytest.mark.slow
@pytest.mark.parametrize("dialect", ["bvlc", "opencv", "nnie", "ascend", "mnn"])
@pytest.mark.parametrize("dilation", [(2, 2), (2, 3)])
def test_a_dilated_deconvolution(dialect: str, dilation: tuple[int, int], tmp_path: Path) -> None:
    """BVLC's has dilation; where the reader has none, or one for both axes, the kernel has zeros."""
    net = torch.nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, dilation=dilation, groups=2)
    path = tmp_path / "net.prototxt"
    converted(net, path, dialect, example_inputs=(torch.randn(1, 4, 5, 6),))
    has_dilation = "dilation" in path.read_text()
    assert has_dilation == (dialect == "bvlc" or (dialect == "mnn" and dilation == (2, 2)))
