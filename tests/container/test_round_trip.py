"""What is saved as a container comes back as it was."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import tmconvert
from tests.container.same import assert_same
from tmconvert.errors import TmconvertError
from tmconvert.ir import TracedModule
from tmconvert.ir.tree import leaves

DATA = Path(__file__).parents[1] / "data"
MODELS = sorted(
    path
    for folder in (DATA, DATA / "made", DATA / "made/quantized")
    for path in folder.glob("*.tm")
    if "hostile" not in path.name
)
TARGETS = {"onnx": "o.onnx", "tflite": "o.tflite", "caffe": "o.prototxt"}


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_models_come_back_as_they_were(path: Path, tmp_path: Path) -> None:
    original = tmconvert.load(path)
    first, second, third = (tmp_path / f"{i}.tm" for i in range(3))
    original.save(first)
    original.save(second)
    assert first.read_bytes() == second.read_bytes()
    again = tmconvert.load(first)
    assert_same(original, again)
    again.save(third)
    assert first.read_bytes() == third.read_bytes()
    assert str(path) not in first.read_bytes().decode("latin-1")


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_containers_convert_to_the_same_files(path: Path, tmp_path: Path) -> None:
    saved = tmp_path / "saved.tm"
    tmconvert.load(path).save(saved)
    for target, name in TARGETS.items():
        outcomes = [attempt(target, source, tmp_path / f"{source.stem}_{name}") for source in (path, saved)]
        assert outcomes[0] == outcomes[1]


def attempt(target: str, source: Path, out: Path) -> list[bytes] | tuple[str, str]:
    """The bytes of the converted files, with the digest of the first source; or the error."""
    try:
        report = getattr(tmconvert, f"to_{target}")(source, out, verify=False)
    except TmconvertError as error:
        return error.code, error.message
    return [path.read_bytes() for path in report.paths]


@pytest.mark.parametrize("name", ["resnet18", "op_multi_io", "qat_small_tqt", "text_lstm"])
def test_containers_compute_the_same(name: str, tmp_path: Path) -> None:
    model = tmconvert.load(DATA / f"{name}.tm")
    model.save(tmp_path / "saved.tm")
    with np.load(DATA / f"{name}.npz") as arrays:
        inputs = [arrays[key] for key in arrays.files if key.startswith("in")]
    try:
        wanted = model(*inputs)
    except TmconvertError:
        pytest.skip("the interpreter does not know all of it")
    found = tmconvert.load(tmp_path / "saved.tm")(*inputs)
    # sums may be in another order: arrays in a container are aligned, those in a pickle are not
    for one, other in zip(leaves(found), leaves(wanted), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_weights_are_mapped_and_read_only(tmp_path: Path) -> None:
    tmconvert.load(DATA / "resnet18.tm").save(tmp_path / "saved.tm")
    model = tmconvert.load(tmp_path / "saved.tm")
    tensors = [tensor for _, module in model.modules() for tensor in module.tensors.values()]
    assert tensors
    for tensor in tensors:
        assert not tensor.flags.writeable and not tensor.flags.owndata and tensor.flags.aligned


def test_a_container_may_replace_the_file_that_it_is_read_from(tmp_path: Path) -> None:
    path = tmp_path / "model.tm"
    shutil.copy(DATA / "op_s_conv_bn_relu.tm", path)
    model = tmconvert.load(path)
    model.save(path)
    again: TracedModule = tmconvert.load(path)
    assert_same(model, again)


def test_flat_models_are_kept_too(tmp_path: Path) -> None:
    flat = tmconvert.load(DATA / "op_nested_reuse.tm").flatten()
    flat.save(tmp_path / "flat.tm")
    again = tmconvert.load(tmp_path / "flat.tm")
    assert str(again.graph) == str(flat.graph)
    again.save(tmp_path / "again.tm")
    assert (tmp_path / "flat.tm").read_bytes() == (tmp_path / "again.tm").read_bytes()
