"""Integer TFLite files in Arm's compiler for NPUs: how many operators run on the NPU, and which on the CPU.

    python benchmarks/npu.py --vela VELA [--size 224] [--activations int8 int16]

VELA is the command of the package ethos-u-vela, from an environment of its own. Exit status 1 if an
operator of a file in int8 is left to the CPU.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

import tmconvert
from benchmarks.npu_networks import efficientnet_b0, mobilenet_v3_large

NETWORKS = {"mobilenet_v3_large": mobilenet_v3_large, "efficientnet_b0": efficientnet_b0}
_COUNT = re.compile(r"^(CPU|NPU) operators = (\d+)", re.MULTILINE)
_CPU_OPERATOR = re.compile(r"^ +CPU: (\w+) =", re.MULTILINE)


def write(name: str, size: int, activations: str, path: Path) -> None:
    torch.manual_seed(0)
    module = NETWORKS[name]().eval()
    random = np.random.default_rng(0)
    samples = [(random.standard_normal((1, 3, size, size)).astype(np.float32),) for _ in range(4)]
    traced = tmconvert.trace(module, torch.from_numpy(samples[0][0]))
    tmconvert.to_tflite(
        traced, path, quantized=True, calibration=samples, activations=activations, verify=False
    )


def compiled(vela: str, accelerator: str, path: Path) -> tuple[dict[str, int], Counter[str]]:
    """The operators on each processor, and the types of those on the CPU."""
    command = [vela, "--accelerator-config", accelerator, "--show-cpu-operations", str(path)]
    done = subprocess.run(
        [*command, "--output-dir", str(path.parent)], capture_output=True, text=True, check=True
    )
    counts = {kind: int(count) for kind, count in _COUNT.findall(done.stdout)}
    return counts, Counter(_CPU_OPERATOR.findall(done.stdout))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--vela", required=True)
    parser.add_argument("--accelerator", default="ethos-u55-128")
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--activations", nargs="+", default=["int8"])
    given = parser.parse_args()
    left = 0
    print("| network | activations | on the NPU | on the CPU | which |\n|---|---|---|---|---|")
    for name in NETWORKS:
        for activations in given.activations:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder, f"{name}.tflite")
                write(name, given.size, activations, path)
                counts, types = compiled(given.vela, given.accelerator, path)
            which = ", ".join(f"{count} {type}" for type, count in sorted(types.items()))
            print(f"| {name} | {activations} | {counts['NPU']} | {counts['CPU']} | {which} |", flush=True)
            left += counts["CPU"] * (activations == "int8")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
