"""Converted files on LiteRT's GPU accelerator, where there is a Vulkan driver: right as on the processor.

``eval "$(tools/software_gpu FOLDER)"`` provides one in software.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tmconvert
from tests.models import corpus
from tmconvert.errors import VerificationError
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value
from tmconvert.targets.tflite.writer import write_tflite

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        "VK_ICD_FILENAMES" not in os.environ, reason='no Vulkan driver: eval "$(tools/software_gpu FOLDER)"'
    ),
]
GPU = "litert-gpu"

# recorded models whose files run on the GPU as a whole
WHOLE = [
    "det_fpn_scale_stride",
    "efficientnet_se",
    "mlp_mixer",
    "mobilenet_v1",
    "op_activations",
    "op_linear_matmul",
    "op_pad",
    "op_s_bilinear",
    "op_s_flatten_linear",
    "op_subtensor",
    "resnet18",
    "shufflenet_v2",
    "sr_espcn",
    "unet",
    "vit_tiny",
]


@pytest.fixture(autouse=True)
def limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMCONVERT_RUNTIME_SECONDS", "120")


@pytest.mark.parametrize("name", WHOLE)
def test_recorded_models_are_whole_and_right(name: str, tmp_path: Path) -> None:
    report, _ = corpus.converted(name, "tflite", tmp_path, verify_on=[GPU])
    assert f"{GPU} runs the whole file, and agrees with the processor" in report.notes


FORMS: dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]] = {
    "group_norm of pairs": (lambda x: _functions().group_norm(x * 2, 4), (1, 8, 6, 6)),
    "leaky_relu above 1": (lambda x: _functions().leaky_relu(x, 1.5), (1, 3, 4, 5)),
    "leaky_relu below 0": (lambda x: _functions().leaky_relu(x, -0.5), (2, 7)),
    "softmax of a vector": (lambda x: x.softmax(0), (6,)),
    "cumsum of a vector": (lambda x: x.cumsum(0), (9,)),
    "cumsum of rows": (lambda x: x.cumsum(0), (3, 4, 6)),
    "flipped colours": (lambda x: x.flip(1) * 2, (1, 3, 8, 8)),
    "flipped vector": (lambda x: x.flip(0), (7,)),
    "flipped two axes": (lambda x: x.flip(0, 2), (3, 4, 7)),
    "largest of 6": (lambda x: x.topk(2)[0], (3, 6)),
    "rows of a matrix": (lambda x: x + _numbers(5, 8), (5, 8)),
    "rows of matrices": (lambda x: x / (_numbers(3, 1, 8) + 1), (3, 5, 8)),
    "average with padding": (lambda x: _functions().avg_pool2d(x, 3, 1, 1), (1, 5, 9, 9)),
    "average of other padding": (lambda x: _functions().avg_pool2d(x, 3, 2, 1), (1, 4, 16, 16)),
    "groups of 2": (lambda x: _functions().conv2d(x, _numbers(8, 2, 3, 3), groups=4), (1, 8, 9, 9)),
    "first largest of 5": (lambda x: (-x.abs() - 1).argmax(-1) * 1.0, (3, 5)),
    "padded rows": (lambda x: _functions().pad(x, (1, 2)) * 2, (3, 4, 5)),
    "reflected rows": (lambda x: _functions().pad(x, (1, 2), "reflect"), (3, 4, 5)),
    "powers of two": (lambda x: 2.0**x, (2, 5, 7)),
    "windows of batches": (lambda x: _windows(x * 2).reshape(24, 4, 5), (2, 8, 6, 5)),
    "product after a constant": (lambda x: _numbers(5, 6) @ x, (3, 6, 7)),
    "numbers of positions": (lambda x: (x.clamp(0, 9).long() + _numbers(4, 5).long()) * 0.5, (4, 5)),
    "scaled output": (lambda x: _with_double(_functions().linear(x, _numbers(4, 6))), (1, 6)),
    "shifted output": (lambda x: _with_sum(_functions().conv2d(x, _numbers(4, 3, 1, 1))), (1, 3, 8, 8)),
}


def _functions() -> Any:
    import torch

    return torch.nn.functional


def _numbers(*shape: int) -> Any:
    import torch

    return torch.arange(float(np.prod(shape))).reshape(shape) / 16


def _windows(x: Any) -> Any:
    return x.view(2, 4, 2, 3, 2, 5).permute(0, 1, 3, 2, 4, 5)


def _with_double(x: Any) -> Any:
    return x, x * 3


def _with_sum(x: Any) -> Any:
    return x, x + _numbers(1, 4, 1, 1)


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_operators_are_whole_and_right(form: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    function, shape = FORMS[form]

    class Model(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return function(x)

    report = tmconvert.to_tflite(
        Model(), tmp_path / "net.tflite", example_inputs=[torch.randn(shape)], verify_on=[GPU]
    )
    assert f"{GPU} runs the whole file, and agrees with the processor" in report.notes


def test_operators_that_only_a_library_of_the_processor_takes_are_named(tmp_path: Path) -> None:
    x, c, y = (Value(name, np.dtype("float32"), (4, 8)) for name in "xcy")
    rows, sizes = np.ones((1, 4, 8), np.float32), np.array([4, 8], np.int32)
    whole = [Value("rows", rows.dtype, rows.shape, rows), Value("sizes", sizes.dtype, (2,), sizes)]
    reshape = Operator("RESHAPE", whole, [c], {"new_shape": [4, 8]}, "reshape")
    graph = TargetGraph("tflite", 23, "two", [x], [y], [reshape, Operator("ADD", [x, c], [y], {}, "add")])
    graph.input_names, graph.output_names = ["x"], ["y"]
    with (tmp_path / "two.tflite").open("wb") as file:
        write_tflite(graph, file)
    (said,) = tmconvert.verify(tmp_path / "two.tflite", on=[GPU]).accelerators
    assert "agrees with the processor; on the processor ran: RESHAPE" in said


@pytest.mark.parametrize("shape", [(4, 8), (1, 4, 8)])
def test_a_known_defect_is_seen_here_and_named(shape: tuple[int, ...], tmp_path: Path) -> None:
    x, y = (Value(name, np.dtype("float32"), shape) for name in "xy")
    rows = np.arange(32, dtype=np.float32).reshape(shape)
    added = Operator("ADD", [x, Value("c", rows.dtype, shape, rows)], [y], {}, "add")
    graph = TargetGraph("tflite", 23, "one", [x], [y], [added])
    graph.input_names, graph.output_names = ["x"], ["y"]
    path = tmp_path / "one.tflite"
    with path.open("wb") as file:
        write_tflite(graph, file)
    if shape[0] == 1:
        tmconvert.verify(path, on=[GPU])
        return
    with pytest.raises(VerificationError) as caught:
        tmconvert.verify(path, on=[GPU])
    assert dict(caught.value.notes)["known defect"].startswith("litert-gpu-constant-rows: ")
