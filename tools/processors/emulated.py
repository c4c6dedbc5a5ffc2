"""Processors that qemu emulates instruction by instruction: 10 to 50 times slower, and exact."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from .common import NotAvailable


def x86_command(model: str, command: Sequence[str]) -> list[str]:
    """The command in qemu's user mode emulation."""
    return ["qemu-x86_64", "-cpu", model, *executable(command)]


def executable(command: Sequence[str]) -> list[str]:
    """The command with a program that is an ELF file: scripts are given to their interpreters.

    Programs that the emulated one starts run natively, so the interpreter may not be ``env``.
    """
    found = shutil.which(command[0])
    if found is None:
        raise NotAvailable(f"no program {command[0]}")
    first, *rest = Path(found).read_bytes()[:256].split(b"\n", 1)
    if not first.startswith(b"#!") or not rest:
        return [found, *command[1:]]
    interpreter, *arguments = first[2:].decode().split()
    if Path(interpreter).name == "env":
        interpreter, *arguments = arguments
    return executable([interpreter, *arguments, found, *command[1:]])
