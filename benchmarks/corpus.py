"""Time of converting a whole folder of models to ONNX in one process.

    python benchmarks/corpus.py tests/data --opset 17

Prints the total, the slowest models, and what was refused, by error code. Nothing is verified: that
is the work of the runtime and of the reference interpreter.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from pathlib import Path

import tmconvert
from tmconvert.errors import TmconvertError


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--opset", type=int)
    parser.add_argument("--slowest", type=int, default=5)
    options = parser.parse_args()
    models = sorted(options.folder.glob("*.tm"))
    refused: Counter[str] = Counter()
    times = []
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        for model in models:
            before = time.perf_counter()
            try:
                tmconvert.to_onnx(model, Path(folder) / "out.onnx", opset=options.opset, verify=False)
            except TmconvertError as error:
                refused[error.code] += 1
            times.append((time.perf_counter() - before, model.name))
    total = time.perf_counter() - started
    print(f"{len(models) - refused.total()} of {len(models)} models converted in {total:.2f} s")
    for code, count in sorted(refused.items()):
        print(f"  refused: {count} with {code}")
    for seconds, name in sorted(times, reverse=True)[: options.slowest]:
        print(f"  {seconds * 1000:6.0f} ms  {name}")


if __name__ == "__main__":
    main()
