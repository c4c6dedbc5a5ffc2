"""A package on disk: it runs without tmconvert, and appears as a whole or not at all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tmconvert
from tests.cli.runner import run
from tests.models import corpus
from tmconvert import api
from tmconvert.errors import UnsupportedError, UsageError, WriteError
from tmconvert.ir.tree import leaves

torch = pytest.importorskip("torch")
from tests.torch_code.folders import WithoutTmconvert, differences  # noqa: E402

DIGITS = Path(__file__).parents[2] / "samples" / "digits.tm"


SAMPLE = (
    "mobilenet_v1",
    "resnet18",
    "vit_tiny",
    "unet",
    "text_lstm",
    "op_multi_io",
    "op_trig_compare",
    "digits",
)


@pytest.mark.slow
def test_packages_need_torch_only(tmp_path: Path) -> None:
    """They compute the same in a Python without tmconvert, and their graph is that of the model.

    The package of the package is the same text, and has the same graph, names included.
    """
    with WithoutTmconvert() as process:
        for name in SAMPLE:
            path = DIGITS if name == "digits" else corpus.model(name)
            model = tmconvert.load(path)
            inputs = [torch.from_numpy(np.array(each)) for each in example_of(path)]
            (tmp_path / name).mkdir()
            model.to_folder(tmp_path / name / "net", "Net")
            with torch.no_grad():
                expected = leaves(model.to_torch()(*inputs))
            results = process.run(tmp_path / name, inputs)
            assert all(torch.equal(*pair) for pair in zip(results, expected, strict=True))
            assert differences(model, inputs, tmp_path / name, is_exact=False) == "", name


@pytest.mark.slow
def test_packages_of_modules(tmp_path: Path) -> None:
    """The graph of a package of a PyTorch module is the module's, text for text."""

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
            self.encoder = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            self.head = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.GELU(), torch.nn.Linear(4, 3))

        def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
            y = self.encoder(x)
            return {"logits": self.head(y.mean(1)).log_softmax(-1), "hidden": y}

    x = torch.randn(2, 5, 8)
    model = tmconvert.trace(Net().eval(), x)
    model.to_folder(tmp_path / "net", "Net")
    assert differences(model, [x], tmp_path, is_exact=True) == ""
    with WithoutTmconvert() as process:
        results = process.run(tmp_path, [x])
    assert all(torch.equal(*pair) for pair in zip(results, leaves(model.to_torch()(x)), strict=True))
    assert sorted(path.name for path in (tmp_path / "net").iterdir() if path.is_file()) == [
        "__init__.py",
        "module.py",
        "weights.safetensors",
    ]


def example_of(path: Path) -> list[np.ndarray]:
    if path == DIGITS:
        return [np.ones((1, 1, 8, 8), np.float32)]
    return corpus.golden(path.stem)[0]


def test_command(tmp_path: Path) -> None:
    folder = tmp_path / "net"
    done = run("code", DIGITS, "-o", folder, "--class-name", "Net")
    assert (done.status, done.stdout) == (0, f"{folder}  (class Net, 35.0 k parameters)\n")
    done = run("code", DIGITS, "-o", folder)
    assert done.status != 0
    assert "TM5001" in done.stderr and "exists already" in done.stderr


@pytest.mark.parametrize("name", ["my net", "class", "", "1st", "torch", '"); import os', "__Net"])
def test_class_names_are_identifiers(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="TM6071"):
        tmconvert.load(DIGITS).to_folder(tmp_path / "net", name)
    assert not (tmp_path / "net").exists()


def test_nothing_is_half_written(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError):
        tmconvert.load(corpus.model("custom_user_function")).to_folder(tmp_path / "net")
    with pytest.raises(WriteError, match="TM5001"):
        tmconvert.load(DIGITS).to_folder(tmp_path / "no" / "net")
    (tmp_path / "old").mkdir()
    with pytest.raises(WriteError, match="exists already"):
        tmconvert.load(DIGITS).to_folder(tmp_path / "old")
    assert [path.name for path in tmp_path.iterdir()] == ["old"]


def test_sizes_of_files_stay_open_or_get_the_number_of_fix(tmp_path: Path) -> None:
    def rows(x: torch.Tensor) -> torch.Tensor:
        return x + torch.arange(x.shape[0])[:, None]

    path = tmp_path / "model.onnx"
    tmconvert.to_onnx(rows, path, example_inputs=(torch.rand(3, 4),), dynamic_shapes={"x": {0: "n"}})
    for name, options in (("open", {}), ("fixed", {"fix": {"n": 5}})):
        api.to_folder(path, tmp_path / name, **options)
    open_, fixed = ((tmp_path / name / "module.py").read_text() for name in ("open", "fixed"))
    assert "x.shape[0]" in open_ and "x.shape[0]" not in fixed


def test_a_requested_size_that_the_code_cannot_keep_is_an_error(tmp_path: Path) -> None:
    traced = tmconvert.trace(
        lambda x: torch.linalg.svdvals(x), torch.rand(3, 4), dynamic_shapes={"x": {0: "n"}}
    )
    with pytest.raises(UnsupportedError, match=r"TM2031.*n cannot stay dynamic"):
        traced.to_folder(tmp_path / "net")
