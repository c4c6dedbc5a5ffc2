"""What it costs that LiteRT and OpenCV run in a process of their own.

    python benchmarks/worker.py [TIMES]

Medians of a first and a second conversion in one process, in ms: with the runtime in the process itself, and
with it apart, in a worker. Both are run in turn, so that a busy machine slows both.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
MODEL = str(ROOT / "samples" / "digits.tm")
CASES = {
    "TFLite": ("to_tflite", "o.tflite", ""),
    "TFLite in integers": ("to_tflite", "o.tflite", ", quantized=True"),
    "Caffe": ("to_caffe", "o.prototxt", ""),
}
RUN = """
import sys, time
before = time.perf_counter()
{here}
import tmconvert
for _ in range(2):
    tmconvert.{function}({model!r}, {out!r}{options})
    print(time.perf_counter() - before)
    before = time.perf_counter()
"""
HERE = "sys.frozen = True  # there can be no worker"


def main(times: int) -> None:
    print(f"{'':20}{'first':>8}{'apart':>8}{'second':>8}{'apart':>8}")
    for name, (function, out, options) in CASES.items():
        model = MODEL.replace("digits", "digits_qat") if options else MODEL
        found: dict[str, list[list[float]]] = {HERE: [], "": []}
        for _ in range(times):
            for here, seconds in found.items():
                code = RUN.format(here=here, function=function, model=model, out=out, options=options)
                seconds.append(_seconds(code))
        columns = [statistics.median(each[run] for each in found[here]) for run in (0, 1) for here in found]
        print(f"{name:20}" + "".join(f"{1000 * each:8.0f}" for each in columns))


def _seconds(code: str) -> list[float]:
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True
        )
    return [float(line) for line in done.stdout.split()]


if __name__ == "__main__":
    main(int((sys.argv[1:] or ["10"])[0]))
