"""Prints the smallest arena, in bytes, in which TFLite Micro runs a file: ``python arena_script.py FILE``.

The interpreter may be one without tmconvert, so that nothing of it is imported here.
"""

import sys
from pathlib import Path

from tflite_micro.python.tflite_micro import runtime  # type: ignore[import-not-found, unused-ignore]

STEP = 16  # the alignment of arenas
MOST = 1 << 30


def fits(path: str, size: int) -> bool:
    try:
        runtime.Interpreter.from_file(path, arena_size=size)
    except RuntimeError:
        return False
    return True


def main(path: str) -> int:
    low, high = 0, max(1 << 12, Path(path).stat().st_size)
    while not fits(path, high):
        low, high = high, high * 2
        if high > MOST:
            return 1
    while high - low > STEP:
        middle = (low + high) // 2 // STEP * STEP
        low, high = (low, middle) if fits(path, middle) else (middle, high)
    sys.stdout.write(f"{high}\n")
    return 0


sys.exit(main(sys.argv[1]))
