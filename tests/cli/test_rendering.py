"""What a person sees: on terminals of several widths, and in pipes."""

from __future__ import annotations

import os
import re
import select
import subprocess
from pathlib import Path

import pytest

from tests.cli.runner import DATA, command_line, environment
from tmconvert.cli.rendering import error_lines, plain_table
from tmconvert.conversion.format_numbers import counted, quantity, size
from tmconvert.errors import UnsupportedError
from tmconvert.errors.source import Source, printable

pty = pytest.importorskip("pty")

ERROR = UnsupportedError(
    "TM2003",
    "no ONNX symbolic for aten::grid_sampler at opset 13",
    source=Source("net.py", 88, "head.warp", "SpatialTransformer"),
    excerpt='%41 = aten::grid_sampler(%39, %40) {mode="bilinear"} : f32[1,64,32,32]',
    notes=[("have", "since 16"), ("help", "use --opset 16 or later,\nor replace grid_sample in the model")],
)


def text_of(width: int) -> list[str]:
    return ["".join(part for part, _ in line) for line in error_lines(ERROR, width)]


def test_an_error_on_a_wide_terminal_reads_as_in_a_pipe() -> None:
    assert "\n".join(text_of(120)) == ERROR.render()


@pytest.mark.parametrize("width", [40, 60, 79])
def test_an_error_fits_a_narrow_terminal(width: int) -> None:
    lines = text_of(width)
    longest_word = max(len(word) for word in ERROR.render().split())
    assert max(map(len, lines)) <= max(width, longest_word + 9)
    assert " ".join("".join(lines).replace("|", " ").split()).startswith("error[TM2003]: no ONNX")
    excerpt = [line for line in lines if line.startswith("   |  ")]
    assert len(excerpt) >= 2 or width > 75


def test_plain_tables() -> None:
    assert plain_table(["op", "onnx"], [["a", "native"], ["longer", "no:\nx"]]) == [
        "op      onnx",
        "a       native",
        "longer  no: x",
    ]


def test_control_characters_are_shown() -> None:
    assert printable("a\x1b[31mb\tc\nd\r\x9b\u202e") == "a\\x1b[31mb\tc\\nd\\r\\x9b\\u202e"


def test_wording() -> None:
    assert [counted(1, "op"), counted(0, "op"), counted(45, "op")] == ["1 op", "0 ops", "45 ops"]
    assert [quantity(number, "parameter") for number in (1, 999, 1000, 11_189_512, 7 * 10**9)] == [
        "1 parameter",
        "999 parameters",
        "1.0 k parameters",
        "11.2 M parameters",
        "7.0 G parameters",
    ]
    assert [size(number) for number in (1, 812, 44_700_000)] == ["1 byte", "812 bytes", "44.7 MB"]


def on_terminal(*args: str | Path, width: int = 80, **env: str) -> tuple[int, str]:
    """Exit status and everything that a terminal receives."""
    master, slave = pty.openpty()
    env = environment(COLUMNS=str(width), TERM="xterm", **env)
    process = subprocess.Popen(command_line(*args), stdin=slave, stdout=slave, stderr=slave, env=env)
    os.close(slave)
    received = b""
    while select.select([master], [], [], 60)[0]:
        try:
            part = os.read(master, 65536)
        except OSError:  # Linux says EIO when the last writer has gone
            break
        if not part:
            break
        received += part
    os.close(master)
    return process.wait(60), received.decode()


def without_colour(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text).replace("\r\n", "\n")


@pytest.mark.slow
def test_an_error_on_a_terminal_has_colour() -> None:
    status, received = on_terminal("onnx", DATA / "no_such.tm", "o.onnx", width=60)
    assert status == 1
    assert "\x1b[1;31merror[TM1001]: " in received
    assert "error[TM1001]: cannot read the model file: No such file" in without_colour(received)
    status, received = on_terminal("explain", "TM0", NO_COLOR="1")
    assert status == 2
    assert "\x1b[3" not in received


@pytest.mark.slow
def test_the_table_of_ops_fits_the_terminal() -> None:
    status, received = on_terminal("ops", width=90)
    assert status == 0
    lines = without_colour(received).splitlines()
    assert max(map(len, lines)) <= 90
    assert any(line.split() == ["aten::relu", "native", "native", "native"] for line in lines)


@pytest.mark.slow
def test_progress_is_for_terminals_only(tmp_path: Path) -> None:
    out = tmp_path / "o.onnx"
    status, received = on_terminal("onnx", DATA / "resnet18.tm", out, width=250)
    assert status == 0
    assert f"converting {DATA / 'resnet18.tm'}" in received
    lines = [line.strip() for line in without_colour(received).split("\n")]
    assert lines[-1] == "" or lines[-1].startswith("out ")
    assert f"{out}  (ONNX opset 17, 49 operators, 176.8 k parameters)" in lines
