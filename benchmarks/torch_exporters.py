"""Our trace and export beside the two exporters of PyTorch: time, memory, number of nodes.

    python benchmarks/torch_exporters.py                       # all models, a process for each export
    python benchmarks/torch_exporters.py --only resnet50,gpt2

torch.onnx's new exporter needs the package onnxscript. "memory" is the peak of the resident set during the
export over that just before it, with the model loaded and run once. Nothing is verified. Our byte code is
compiled before, as pip does when it installs a package. Run it on an idle machine.
"""

from __future__ import annotations

import argparse
import compileall
import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tmconvert
import tmconvert.symbolics

EXPORTERS = ("tmconvert", "torchscript", "dynamo")
OPSET = 18


def vision(name: str, size: int = 224) -> Callable[[], Any]:
    def make() -> Any:
        import torch
        import torchvision

        model = getattr(torchvision.models, name)(weights=None)
        return model, (torch.randn(1, 3, size, size),)

    return make


def language(config: str, model: str, **sizes: Any) -> Callable[[], Any]:
    def make() -> Any:
        import torch
        import transformers

        net = getattr(transformers, model)(getattr(transformers, config)(**sizes))

        class Tokens(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.net = net

            def forward(self, tokens: torch.Tensor) -> torch.Tensor:
                return self.net(input_ids=tokens).last_hidden_state

        return Tokens(), (torch.randint(0, 1000, (1, 128)),)

    return make


MODELS: dict[str, Callable[[], Any]] = {
    "resnet50": vision("resnet50"),
    "vit_b_32": vision("vit_b_32"),
    "swin_t": vision("swin_t"),
    "bert_base": language("BertConfig", "BertModel"),
    "gpt2": language("GPT2Config", "GPT2Model", use_cache=False),
    "efficientnet_b0": vision("efficientnet_b0"),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--one", nargs=2, metavar=("MODEL", "EXPORTER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measured(*options.one)))
        return 0
    for package in (tmconvert, tmconvert.symbolics):
        compileall.compile_dir(package.__path__[0], quiet=1)
    print("| model | parameters | exporter | seconds | memory | nodes |\n|---|---|---|---|---|---|")
    for model in options.only.split(",") if options.only else MODELS:
        for exporter in EXPORTERS:
            command = [sys.executable, __file__, "--one", model, exporter]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            line = done.stdout.strip().splitlines()[-1:] or [""]
            try:
                row = json.loads(line[0])
            except ValueError:
                print(
                    f"| {model} | | {exporter} | {done.stderr.strip().splitlines()[-1][:80]} | | |",
                    flush=True,
                )
                continue
            sizes = f"{row['parameters'] / 1e6:.1f} M | {exporter} | {row['seconds']:.2f}"
            print(f"| {model} | {sizes} | {row['memory']} MiB | {row['nodes']} |", flush=True)
    return 0


def measured(name: str, exporter: str) -> dict[str, Any]:
    """One export in this process."""
    import onnx
    import torch
    from torchvision_ops import declare

    warnings.simplefilter("ignore")
    declare()
    torch.manual_seed(0)
    model, inputs = MODELS[name]()
    model.eval()
    with torch.no_grad():
        model(*inputs)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        export = _prepared(exporter)
        forget_peak()
        before, start = resident("VmRSS"), time.perf_counter()
        export(model, inputs, path)
        seconds = time.perf_counter() - start
        memory = resident("VmHWM") - before
        nodes = len(onnx.load(str(path), load_external_data=False).graph.node)
    parameters = sum(tensor.numel() for tensor in model.parameters())
    return {"parameters": parameters, "seconds": seconds, "memory": memory >> 10, "nodes": nodes}


def _prepared(exporter: str) -> Callable[[Any, Any, Path], Any]:
    """The export, with its imports done."""
    import torch

    if exporter == "tmconvert":
        from tmconvert.frontends.torch.tracing import tracer  # noqa: F401

        return lambda model, inputs, path: tmconvert.to_onnx(
            model, path, opset=OPSET, example_inputs=inputs, verify=False
        )
    dynamo = exporter == "dynamo"
    return lambda model, inputs, path: torch.onnx.export(
        model, inputs, str(path), opset_version=OPSET, dynamo=dynamo, verbose=False
    )


def resident(field: str) -> int:
    """KiB of a line of /proc/self/status."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1])
    raise RuntimeError(f"no {field} here")


def forget_peak() -> None:
    """Makes the present resident set the peak (Linux)."""
    Path("/proc/self/clear_refs").write_text("5")


if __name__ == "__main__":
    sys.exit(main())
