#!/usr/bin/env python3
"""Records the README's picture of a terminal: runs the commands, and writes what they print as an SVG.

    python tools/record_terminal.py            writes docs/assets/terminal.svg
    python tools/record_terminal.py --print    prints the text alone

A test runs the commands again and compares the text, numbers aside.
"""

from __future__ import annotations

import html
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs/assets/terminal.svg"
COMMANDS = (
    "tmconvert onnx digits.tm digits.onnx",
    "tmconvert tflite digits.onnx digits.tflite",
    "tmconvert tflite digits.tm int8.tflite --quantized --calibration images --std 1",
)
SAMPLES = ("digits.tm", "images")
COLUMNS, CHARACTER, LINE, MARGIN, BAR = 100, 8.43, 19, 18, 34  # in characters; in pixels
STYLE = (
    ".back{fill:#1e2130}.dot{fill:#4b5168}text{font:14px ui-monospace,Menlo,Consolas,monospace;fill:#c8cede}"
    ".command{fill:#ffffff;font-weight:bold}.verified{fill:#7ddba3}"
)


def recorded_lines() -> list[str]:
    """Runs the commands in a folder of their own. Returns each with what it prints, folded to the width."""
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for name in SAMPLES:
            source = ROOT / "samples" / name
            copy = shutil.copytree if source.is_dir() else shutil.copy
            copy(source, Path(folder) / name)
        for command in COMMANDS:
            arguments = [sys.executable, "-m", "tmconvert", *command.split()[1:]]
            environment = {"PYTHONPATH": str(ROOT), "COLUMNS": str(COLUMNS), "PATH": "/usr/bin:/bin"}
            done = subprocess.run(
                arguments,
                cwd=folder,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=True,
            )
            lines += [f"$ {command}", *done.stdout.rstrip().splitlines(), ""]
    return lines[:-1]


def picture(lines: list[str]) -> str:
    """Returns the SVG of a terminal with these lines."""
    width = round(max(COLUMNS, *map(len, lines)) * CHARACTER + 2 * MARGIN)
    height = BAR + len(lines) * LINE + MARGIN
    rows = "\n".join(
        f'<text x="{MARGIN}" y="{BAR + (number + 1) * LINE - 5}"{_kind(line)} xml:space="preserve">'
        f"{html.escape(line)}</text>"
        for number, line in enumerate(lines)
        if line
    )
    dots = "".join(f'<circle class="dot" cx="{MARGIN + 6 + 20 * i}" cy="18" r="6"/>' for i in range(3))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="Commands of tmconvert and what they print">\n<style>{STYLE}</style>\n'
        f'<rect class="back" width="{width}" height="{height}" rx="8"/>{dots}\n{rows}\n</svg>\n'
    )


def _kind(line: str) -> str:
    kinds = {"$ ": "command", "verified": "verified"}
    return next((f' class="{kind}"' for start, kind in kinds.items() if line.startswith(start)), "")


def text_of(svg: str) -> list[str]:
    """Returns the lines of a picture, without the empty ones."""
    return [html.unescape(line) for line in re.findall(r"<text[^>]*>(.*?)</text>", svg)]


if __name__ == "__main__":
    found = recorded_lines()
    if sys.argv[1:] == ["--print"]:
        print("\n".join(found))
    else:
        PICTURE.write_text(picture(found), encoding="utf-8")
