"""Written files are recognized by content; source models are not taken for them."""

from __future__ import annotations

from pathlib import Path

import pytest

import tmconvert
from tmconvert.errors import LoadError
from tmconvert.targets.recognize import target_of_file, written_target

HEAD = Path(__file__).parents[2] / "samples" / "scale_stride_head.tm"


def test_a_container_with_layers_is_no_caffe_net(tmp_path: Path) -> None:
    path = tmp_path / "net.tm"
    module = tmconvert.load(HEAD)
    module.class_name = "layer.Net"
    module.save(path)
    assert b"layer" in path.read_bytes()[:4096]
    assert written_target(path) is None
    with pytest.raises(LoadError, match="this is not an ONNX, TFLite or Caffe model"):
        target_of_file(path)
    tmconvert.view(path, tmp_path / "net.html")


@pytest.mark.parametrize("text", ["Each layer {of paint} dries.", '{"layer": {}}', ""])
def test_texts_are_no_caffe_nets(text: str, tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text(text)
    assert written_target(path) is None


def test_a_model_that_is_no_file() -> None:
    assert written_target("package:factory") is None
    assert written_target(tmconvert.load(HEAD)) is None
