"""ONNX files of PyTorch's two exporters, read and converted to TFLite and ONNX, compared with direct tracing.

    python benchmarks/torch_onnx_files.py                                   the models that CHOSEN lists
    python benchmarks/torch_onnx_files.py --only timm/ghostnet_050 'transformers/g*' --exporters dynamo
    python benchmarks/torch_onnx_files.py --files FOLDER --simplifiers --json rows.json --markdown table.md

``torch.onnx.export`` writes each model of ``torch_models_*.py`` twice: by TorchScript (``dynamo=False``) and
by ``torch.export`` (``dynamo=True``, which needs the packages onnxscript and onnx_ir). Each file is converted
to TFLite and to ONNX at another opset, and so is the module by direct tracing. Outputs of LiteRT and ONNX
Runtime are compared with PyTorch's on two inputs, by the limits of verification. Where ONNX Runtime computes
something else of the exported file, or does not run it, the row says so ("source"), and what it computes is
the reference.

A file is "read" if it loads. "operators" and "nodes" count those of the TFLite and of the ONNX file, by the
file / by direct tracing. "s" is the processor time of both conversions without verification, with reading or
tracing. Each model is a process of its own with a time limit; ``--files`` keeps the exported files and uses
those that are there.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

sys.path.insert(0, str(Path(__file__).parent))

import onnx_files
import torch_models

Run = Callable[[Path, list[np.ndarray]], list[np.ndarray]]
EXPORTERS = ("torchscript", "dynamo")
OPSETS = {"torchscript": 17, "dynamo": 18}  # of the exported files
OTHER_OPSET = 20
CHOSEN = {
    "small": "*",
    "torchvision": """
        resnet18 regnet_y_400mf mobilenet_v2 mobilenet_v3_small mnasnet0_5 efficientnet_b0 shufflenet_v2_x0_5
        densenet121 squeezenet1_1 convnext_tiny swin_t vit_b_16 googlenet inception_v3
        lraspp_mobilenet_v3_large deeplabv3_mobilenet_v3_large
    """,
    "timm": """
        ghostnet_050 edgenext_xx_small mobilevit_xxs pvt_v2_b0 fastvit_t8 skresnet18 mobileone_s0
        efficientvit_b0 mobilenetv4_conv_small lcnet_050 tiny_vit_5m_224 coat_lite_tiny xcit_nano_12_p16_224
        gmlp_ti16_224 mixer_s16_224 twins_svt_small eva02_tiny_patch14_224 swinv2_tiny_window8_256
    """,
    "transformers": """
        bert distilbert albert electra deberta-v2 modernbert gpt2 gpt-neox llama mistral qwen2 gemma2 phi
        mamba t5 bart whisper wav2vec2 vit dinov2 segformer swin convnext mobilevit detr yolos clip siglip
    """,
}


class Flat(torch.nn.Module):
    """A model whose arguments and results are tensors, one after the other."""

    def __init__(self, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        super().__init__()
        self.module = module
        self.constants, self.spec = tree_flatten((args, kwargs))
        self.tensors = [index for index, leaf in enumerate(self.constants) if is_tensor(leaf)]

    def example(self) -> tuple[torch.Tensor, ...]:
        return tuple(self.constants[index] for index in self.tensors)

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        leaves = list(self.constants)
        for index, tensor in zip(self.tensors, tensors, strict=True):
            leaves[index] = tensor
        args, kwargs = tree_unflatten(leaves, self.spec)
        return tuple(results(self.module(*args, **kwargs)))


def is_tensor(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor)


def results(tree: Any) -> list[torch.Tensor]:
    """Returns the tensors of a result in order, those of caches and records, too."""
    plain = torch_models.plain_structure(tree, torch_models.opener("returns"))
    return [leaf for leaf in torch_models.leaves(plain) if is_tensor(leaf)]


# ---- one model


class Model:
    """The measurements of one model."""

    def __init__(self, name: str, folder: Path, other_opset: int) -> None:
        self.name, self.folder, self.other_opset = name, folder, other_opset
        torch.manual_seed(0)
        self.module = Flat(*torch_models.alive(torch_models.models()[name]())).eval()
        self.example = self.module.example()
        self.samples = [self.example, tree_map(torch_models.other, self.example)]
        with torch.no_grad():
            self.wanted = [[each.numpy() for each in self.module(*sample)] for sample in self.samples]
        self.names = [f"x{index}" for index in range(len(self.example))]

    def exported(self, exporter: str) -> Path:
        """Returns the file of an exporter, and writes it unless it is there."""
        path = self.folder / f"{self.name.replace('/', '.')}.{exporter}.onnx"
        if not path.exists():
            staged = self.folder / "staged.onnx"
            torch.onnx.export(
                self.module,
                self.example,
                str(staged),
                input_names=self.names,
                opset_version=OPSETS[exporter],
                dynamo=exporter == "dynamo",
                external_data=False,
                verbose=False,
            )
            staged.rename(path)
        return path

    def direct(self) -> dict[str, Any]:
        """Returns what direct tracing makes."""
        import tmconvert

        return self._converted(lambda: tmconvert.trace(self.module, *self.example), "direct", self.wanted)

    def _of_source(self, path: Path) -> list[list[np.ndarray]]:
        """Returns what ONNX Runtime computes of an exported file; PyTorch's results if it does not run it."""
        try:
            return [run_onnx(path, [each.numpy() for each in sample]) for sample in self.samples]
        except Exception:
            return self.wanted

    def of_file(self, exporter: str, simplifiers: Sequence[str]) -> dict[str, Any]:
        """Returns what the file of an exporter becomes."""
        import onnx

        import tmconvert

        try:
            path = self.exported(exporter)
        except Exception as error:
            return {"export": reason(error)}
        found = {"source nodes": onnx_files.nodes(onnx.load(str(path)).graph)}
        wanted = self.wanted
        try:
            found["source"] = self._agrees(run_onnx, path, wanted)
        except Exception as error:
            found["source"] = reason(error)
            wanted = self._of_source(path)
        found |= self._converted(lambda: tmconvert.load(path), exporter, wanted)
        for tool in simplifiers:
            try:
                found[f"{tool} nodes"] = simplified(tool, path)
            except Exception as error:
                found[tool] = reason(error)
        return found

    def _converted(
        self, read: Callable[[], Any], name: str, wanted: list[list[np.ndarray]]
    ) -> dict[str, Any]:
        import onnx

        import tmconvert

        found: dict[str, Any] = {}
        since = time.process_time()
        try:
            model = read()
        except Exception as error:
            return {"read": reason(error)}
        found["read"] = 1
        found["s"] = time.process_time() - since
        tflite, other = self.folder / f"{name}.out.tflite", self.folder / f"{name}.out.onnx"
        since = time.process_time()
        try:
            tmconvert.to_tflite(model, tflite, io_layout="source", verify=False)
            found["s"] += time.process_time() - since
            found["operators"] = onnx_files.operators(tflite)
            found["tflite"] = self._agrees(run_tflite, tflite, wanted)
        except Exception as error:
            found["tflite"] = reason(error)
        since = time.process_time()
        try:
            tmconvert.to_onnx(model, other, opset=self.other_opset, verify=False)
            found["s"] += time.process_time() - since
            found["nodes"] = onnx_files.nodes(onnx.load(str(other)).graph)
            found["onnx"] = self._agrees(run_onnx, other, wanted)
        except Exception as error:
            found["onnx"] = reason(error)
        return found

    def _agrees(self, run: Run, path: Path, wanted: list[list[np.ndarray]]) -> int:
        """Returns 1, or raises what differs."""
        for sample, right in zip(self.samples, wanted, strict=True):
            made = run(path, [each.numpy() for each in sample])
            torch_models.check(made, right, [f"output {index}" for index in range(len(right))])
        return 1


def run_onnx(path: Path, arrays: list[np.ndarray]) -> list[np.ndarray]:
    return torch_models.run_onnx(path, arrays)[0]


def run_tflite(path: Path, arrays: list[np.ndarray]) -> list[np.ndarray]:
    return torch_models.run_tflite(path, arrays)[0]


def simplified(tool: str, path: Path) -> int:
    """Returns the number of nodes that a simplifier leaves."""
    import onnx

    if tool == "onnxsim":
        import onnxsim

        return onnx_files.nodes(onnxsim.simplify(onnx.load(str(path)))[0].graph)
    import onnxslim

    return onnx_files.nodes(onnxslim.slim(onnx.load(str(path))).graph)


def reason(error: Exception) -> str:
    text = getattr(error, "message", "") or f"{type(error).__name__}: {error}"
    return f"{getattr(error, 'code', '')} {' '.join(str(text).split())}".strip()[:300]


# ---- processes


def measure(name: str, folder: Path, options: Any, pipe: Any) -> None:
    """Sends the row of a model, again after each part: an exporter or runtime may end the process."""
    warnings.simplefilter("ignore")
    row: dict[str, Any] = {"name": name}
    try:
        model = Model(name, folder, options.opset)
    except Exception as error:
        pipe.send(row | {"model": reason(error)})
        return
    tools = onnx_files.SIMPLIFIERS if options.simplifiers else ()
    for part in ("direct", *options.exporters):
        row[part] = {"read": "crash or time limit"}
        pipe.send(row)
        row[part] = model.direct() if part == "direct" else model.of_file(part, tools)
        pipe.send(row)


def row_of(name: str, options: Any) -> dict[str, Any]:
    """Returns the row of a model, measured in a process of its own."""
    with tempfile.TemporaryDirectory() as scratch:
        arguments = (name, options.files or Path(scratch), options)
        return onnx_files.last_row(measure, arguments, {"name": name}, options.seconds, method="fork")


def chosen(patterns: Sequence[str]) -> list[str]:
    """Returns the names of the models that a pattern names, or those of CHOSEN."""
    names = list(torch_models.models())
    wanted = patterns or [f"{family}/{each}" for family, text in CHOSEN.items() for each in text.split()]
    return [name for name in names if any(fnmatch.fnmatch(name, pattern) for pattern in wanted)]


# ---- tables


def both(row: dict[str, Any], exporter: str, column: str) -> str:
    """Returns what was measured of the file, and of direct tracing."""
    values = [row.get(part, {}).get(column, "") for part in (exporter, "direct")]
    return " / ".join(f"{each:.1f}" if isinstance(each, float) else str(each) for each in values)


def table(rows: Sequence[dict[str, Any]], exporters: Sequence[str]) -> str:
    """Returns the rows, their errors and the sums as Markdown."""
    tools = [
        tool
        for tool in onnx_files.SIMPLIFIERS
        if any(f"{tool} nodes" in r.get(e, {}) for r in rows for e in exporters)
    ]
    heads = ["model", "exporter", "source nodes", "read", "TFLite", "ONNX", "operators", "nodes"]
    lines = [f"| {' | '.join([*heads, *tools, 's'])} |", "|---" * (len(heads) + len(tools) + 1) + "|"]
    for row in rows:
        for exporter in exporters:
            found = row.get(exporter, {})
            states = ["right" if found.get(part) == 1 else "no" for part in ("read", "tflite", "onnx")]
            counts = [both(row, exporter, column) for column in ("operators", "nodes")]
            left = [str(found.get(f"{tool} nodes", "")) for tool in tools]
            cells = [row["name"], exporter, str(found.get("source nodes", "")), *states, *counts, *left]
            lines.append(f"| {' | '.join([*cells, both(row, exporter, 's')])} |")
    for row in rows:
        for part in ("direct", *exporters):
            for key, value in row.get(part, {}).items():
                if isinstance(value, str):
                    lines.append(f"\n{row['name']}, {part}, {key}: {value}")
    return "\n".join([*lines, "", *(summary(rows, exporter) for exporter in exporters)])


def summary(rows: Sequence[dict[str, Any]], exporter: str) -> str:
    """Returns the sums of an exporter, over the models that it exports."""
    pairs = [(row[exporter], row["direct"]) for row in rows if "source nodes" in row.get(exporter, {})]
    counts = {part: sum(file.get(part) == 1 for file, _ in pairs) for part in ("read", "tflite", "onnx")}
    text = (
        f"\n{exporter}: {len(pairs)} files, {counts['read']} read, "
        f"{counts['tflite']} right in TFLite, {counts['onnx']} right in ONNX"
    )
    for column in ("operators", "nodes", "s"):
        both = [
            (file[column], direct[column]) for file, direct in pairs if column in file and column in direct
        ]
        more = sum(file > direct for file, direct in both)
        text += f"; {column} {sum(a for a, _ in both):.0f} / {sum(b for _, b in both):.0f}, more in {more}"
    return text


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", default=[], help="names or patterns of models")
    parser.add_argument("--exporters", nargs="+", default=list(EXPORTERS), choices=EXPORTERS)
    parser.add_argument("--files", type=Path, help="folder that keeps the exported files")
    parser.add_argument("--opset", type=int, default=OTHER_OPSET, help="of the written ONNX files")
    parser.add_argument("--simplifiers", action="store_true", help="also onnxsim and onnxslim")
    parser.add_argument("--seconds", type=float, default=300.0, help="time limit of a model")
    parser.add_argument("--json", type=Path, help="rows; models that have one are not measured again")
    parser.add_argument("--markdown", type=Path)
    options = parser.parse_args()
    if options.files:
        options.files.mkdir(parents=True, exist_ok=True)
    rows = json.loads(options.json.read_text()) if options.json and options.json.is_file() else []
    for name in chosen(options.only):
        if name in [row["name"] for row in rows]:
            continue
        rows.append(row_of(name, options))
        print(json.dumps(rows[-1]), flush=True, file=sys.stderr)
        if options.json:
            options.json.write_text(json.dumps(rows, indent=1))
    text = table(rows, options.exporters)
    print(text)
    if options.markdown:
        options.markdown.write_text(text + "\n")
    return int(
        any(row.get(e, {}).get(p) != 1 for row in rows for e in options.exporters for p in ("tflite", "onnx"))
    )


if __name__ == "__main__":
    sys.exit(main())
