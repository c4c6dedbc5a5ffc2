"""Peak memory of one conversion of a dense PyTorch model, and memory after each of many in one process.

    python benchmarks/memory.py
    python benchmarks/memory.py --only cnn --times 20

Each line is a process of its own. The peak is that of the resident set during a conversion over that just
before it, with the model loaded, beside the bytes of the weights. After it come as many conversions as
``--times`` says, each of a new model with weights of its own; printed is by how much the resident set grew:
the least after the last ten conversions less the least after the first ten. The runtimes of verified
conversions are processes of their own, and not counted.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch_exporters import forget_peak, resident

FEW = 10  # conversions of which the least is taken: what malloc keeps of freed models varies


def mlp() -> Any:
    from torch import nn, randn

    layers = [layer for _ in range(12) for layer in (nn.Linear(1024, 1024), nn.ReLU())]
    return nn.Sequential(*layers), (randn(1, 1024),)


def mlp_of_rows() -> Any:
    """The same layers for three dimensions, whose weights are transposed in the ONNX file."""
    from torch import randn

    return mlp()[0], (randn(1, 8, 1024),)


def cnn() -> Any:
    from torch import nn, randn

    blocks = [(nn.Conv2d(512, 512, 3, padding=1), nn.BatchNorm2d(512), nn.ReLU()) for _ in range(6)]
    return nn.Sequential(*(layer for block in blocks for layer in block)), (randn(1, 512, 8, 8),)


def transformer() -> Any:
    from torch import nn, randn

    layer = nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True)
    return nn.TransformerEncoder(layer, 4, enable_nested_tensor=False), (randn(1, 32, 512),)


MODELS: dict[str, Callable[[], Any]] = {
    "mlp": mlp,
    "mlp_of_rows": mlp_of_rows,
    "cnn": cnn,
    "transformer": transformer,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", nargs="*", default=list(MODELS))
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--one", nargs=3, metavar=("MODEL", "TARGET", "VERIFY"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measured(*options.one, options.times)))
        return
    print("| model | weights | target | verified | peak | of the weights | growth |\n|" + "---|" * 7)
    for model in options.only:
        for target in ("onnx", "tflite"):
            for verified in ("no", "yes"):
                rest = ["--times", str(options.times), "--one", model, target, verified]
                done = subprocess.run([sys.executable, __file__, *rest], capture_output=True, check=True)
                weights, peak, growth = json.loads(done.stdout.splitlines()[-1])
                cells = [model, f"{weights:.0f} MiB", target, verified, f"{peak:.0f} MiB"]
                print(f"| {' | '.join(cells)} | {peak / weights:.2f} | {growth:.0f} MiB |", flush=True)


def measured(name: str, target: str, verified: str, times: int) -> tuple[float, float, float]:
    """MiB of the weights, of the peak over what was before, and of the growth over all conversions."""
    import torch

    import tmconvert

    torch.set_num_threads(1)
    convert = getattr(tmconvert, f"to_{target}")

    def converted(model: Any, inputs: Any) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"model.{target}"
            convert(model.eval(), path, example_inputs=inputs, verify=verified == "yes")

    converted(torch.nn.Linear(4, 4), (torch.randn(1, 4),))  # imports what the conversion needs
    model, inputs = MODELS[name]()
    weights = sum(each.numel() * each.element_size() for each in model.parameters())
    with torch.no_grad():
        model.eval()(*inputs)
    forget_peak()
    before = resident("VmRSS")
    converted(model, inputs)
    peak, after = resident("VmHWM") - before, []
    del model, inputs
    for _ in range(times):
        converted(*MODELS[name]())
        after.append(resident("VmRSS"))
    return weights / 2**20, peak / 1024, (min(after[-FEW:]) - min(after[:FEW])) / 1024


if __name__ == "__main__":
    main()
