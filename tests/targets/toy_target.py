"""A whole target in one file: a text dump of the operators, which PyTorch runs.

A package outside would put the class into the entry-point group ``tmconvert.targets``.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch

from tmconvert.errors import UsageError
from tmconvert.lowering.target_graph import TargetGraph, Value
from tmconvert.output.metadata import OPTIONS
from tmconvert.passes.common_pipeline import final_passes, initial_passes
from tmconvert.passes.decompose import Decompose
from tmconvert.passes.manager import Pass
from tmconvert.symbolics.op import Op
from tmconvert.symbolics.registry import Catalogue
from tmconvert.targets.option import Option
from tmconvert.targets.options import TargetOptions
from tmconvert.targets.target import Target
from tmconvert.targets.written_model import TensorInfo, WrittenLayer, WrittenModel

HEAD = b'{"format": "toy"'
OPERATORS = {
    "conv2d": lambda x, weight, bias, **options: torch.conv2d(x, weight, bias, **options),
    "relu": lambda x: torch.relu(x),
    "add": lambda x, y: x + y,
    "linear": lambda x, weight, bias: torch.nn.functional.linear(x, weight, bias),
    "reshape": lambda x, to: x.reshape(to),
}


def symbolics(known: Mapping[str, Op]) -> Catalogue:
    """The catalogue with copies of the ops that the toy has operators for."""
    chosen = ["aten::conv2d", "aten::relu", "aten::linear", "aten::reshape", "aten::add"]
    ops = {name: copy.copy(known[name]) for name in chosen}
    for op in ops.values():
        op.symbolics = dict(op.symbolics)
    ops["aten::relu"].symbolic("toy", 1)(lambda g, x: g.op("relu", x))
    ops["aten::add"].symbolic("toy", 1)(lambda g, x, other: g.op("add", x, other))
    ops["aten::linear"].symbolic("toy", 1)(lambda g, x, weight, bias: g.op("linear", x, weight, bias))
    ops["aten::reshape"].symbolic("toy", 1)(lambda g, x, shape: g.op("reshape", x, to=shape))

    @ops["aten::conv2d"].symbolic("toy", 1)
    def conv2d(g: Any, x: Value, weight: Value, bias: Value | None, **options: Any) -> Any:
        return g.op("conv2d", x, weight, bias, **options)

    return Catalogue(list(ops.values()), known)


class ToyRuntime:
    name, version = "PyTorch", torch.__version__

    def run(
        self,
        paths: Sequence[Path],
        inputs: Mapping[str, np.ndarray],
        outputs: Sequence[str],
        *,
        shapes: Sequence[Sequence[int]] | None = None,
    ) -> list[np.ndarray]:
        model = json.loads(paths[0].read_text())
        arrays = {name: np.array(values, np.float32) for name, values in model["constants"].items()}
        values: dict[str, Any] = {name: torch.from_numpy(array) for name, array in (arrays | inputs).items()}
        for line in model["operators"]:
            operands = [None if name is None else values[name] for name in line["inputs"]]
            values[line["output"]] = OPERATORS[line["type"]](*operands, **line["attributes"])
        return [values[name].numpy() for name in outputs]


class ToyTarget(Target):
    name, title, suffixes = "toy", "Toy", (".toy",)
    runtime_package = "torch"
    has_dynamic_shapes = False
    options = (
        Option("edition", "output", "Edition of toy files.", "integer", metavar="N", is_version=True),
        Option("paint", "output", "Color.", choices=("red", "blue"), default="red", default_text="red"),
    )

    def version_number(self, version: int | str | None) -> int:
        if version not in (None, 1):
            raise UsageError("TM6001", f"there is no version {version!r} of toy files")
        return 1

    def passes(self, options: TargetOptions, catalogue: Mapping[str, Op]) -> list[Pass]:
        first = initial_passes(catalogue, keeps_qparams=False)
        return [*first, Decompose(catalogue, self.name, options.version), *final_passes(catalogue)]

    def write(
        self, graph: TargetGraph, files: Sequence[BinaryIO], names: Sequence[str], *, value_info: bool = True
    ) -> None:
        lines = [
            {
                "type": each.type,
                "inputs": [None if value is None else value.name for value in each.inputs],
                "output": each.outputs[0].name,
                "attributes": each.attributes,
            }
            for each in graph.operators
        ]
        constants = {value.name: value.data.tolist() for value in graph.constants()}
        shapes = {value.name: value.shape for value in graph.values()}
        model = {"format": "toy", "inputs": graph.input_names, "outputs": graph.output_names}
        model |= {"operators": lines, "constants": constants, "shapes": shapes, "metadata": graph.metadata}
        files[0].write(json.dumps(model).encode())

    def recognizes(self, head: bytes) -> bool:
        return head.startswith(HEAD)

    def stored_options(self, path: Path) -> Mapping[str, Any]:
        return json.loads(json.loads(path.read_text())["metadata"][OPTIONS])  # type: ignore[no-any-return]

    def written_model(self, path: Path) -> WrittenModel:
        file, model = json.loads(path.read_text()), WrittenModel("toy")
        model.inputs, model.outputs, model.tensors = file["inputs"], file["outputs"], file["shapes"]
        model.constants = set(file["constants"])
        model.input_tensors, model.output_tensors = (
            [TensorInfo(name, "float32", tuple(model.tensors[name] or ())) for name in names]
            for names in (model.inputs, model.outputs)
        )
        model.layers = [
            WrittenLayer(each["output"], each["type"], each["inputs"], [each["output"]])
            for each in file["operators"]
        ]
        return model

    def runtime(self, path: Path | None = None) -> ToyRuntime:
        return ToyRuntime()
