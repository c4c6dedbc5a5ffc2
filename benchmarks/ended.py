"""Conversions that are ended by a signal at a random time: what is left behind, and the exit statuses.

    python benchmarks/ended.py [TIMES [SEED]]

Each signal is sent TIMES (10) times to conversions of a sample to ONNX with a file of parameters, TFLite in
integers and Caffe. The output is whole or not there, nothing else is left beside it or in the folder of
temporary files, and nothing speaks of a defect; after SIGKILL, other conversions remove what was left.
Signals that this process ignores, as in the background of a shell, are not ignored by the conversions.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parent.parent
MODEL = str(ROOT / "samples" / "digits_qat.tm")
COMMANDS = [
    ["onnx", MODEL, "o.onnx", "--qparams", "o.json"],
    ["tflite", MODEL, "o.tflite", "--quantized"],
    ["caffe", MODEL, "o.prototxt"],
]
# a new process inherits what is ignored
START = "import signal as s; [s.signal(n, s.SIG_DFL) for n in (s.SIGTERM, s.SIGHUP, s.SIGQUIT)]; "
START += "s.signal(s.SIGINT, s.default_int_handler); "
START += "import runpy; runpy.run_module('tmconvert', run_name='__main__')"
OUTPUTS = {"o.onnx", "o.json", "o.tflite", "o.prototxt", "o.caffemodel"}
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGKILL]


def main(times: int, seed: int) -> int:
    chosen, faults = random.Random(seed), 0
    seconds = {command[0]: _seconds(command) for command in COMMANDS}
    for number in SIGNALS:
        statuses: Counter[int] = Counter()
        for each in range(times):
            command = COMMANDS[each % len(COMMANDS)]
            status, said, left = ended(command, number, chosen.uniform(0.05, 1.1) * seconds[command[0]])
            statuses[status] += 1
            if left or "defect" in said or "Traceback" in said:
                faults += 1
                print(f"{number.name} {command[0]}: {left} {said}")
        print(f"{number.name}: statuses {dict(sorted(statuses.items()))}")
    print(f"{faults} faults in {times * len(SIGNALS)} runs")
    return 1 if faults else 0


def _seconds(command: list[str]) -> float:
    before = time.monotonic()
    ended(command, signal.SIGTERM, 600)
    return time.monotonic() - before


def ended(command: list[str], number: signal.Signals, after: float) -> tuple[int, str, list[str]]:
    """The exit status, what was said, and what was left behind."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "temporary").mkdir()
        status, said = _run(command, folder, number, after)
        if number == signal.SIGKILL:
            for other in COMMANDS[1:]:  # these use temporary files, too
                _run(other, folder, number, 600)
        found = {path.relative_to(folder).as_posix() for path in folder.rglob("*")}
        return status, said, sorted(found - OUTPUTS - {"temporary"})


def _run(command: list[str], folder: Path, number: signal.Signals, after: float) -> tuple[int, str]:
    with subprocess.Popen(
        [sys.executable, "-c", START, *command],
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder / "temporary")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            said = process.communicate(timeout=after)[1]
        except subprocess.TimeoutExpired:
            process.send_signal(number)
            said = process.communicate()[1]
        return process.returncode, said


if __name__ == "__main__":
    sys.exit(main(int((sys.argv[1:] or [10])[0]), int((sys.argv[2:] or [0])[0])))
