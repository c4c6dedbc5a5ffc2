"""``tools/on_processor NAME COMMAND...``: the table of processors, and the command line."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from . import arm64, emulated, masked
from .common import NotAvailable, missing

USAGE = """\
usage: tools/on_processor NAME COMMAND...     runs COMMAND as on the processor NAME
       tools/on_processor --list              the processors, and what this machine lacks for each
       tools/on_processor --has NAME          status 0 if this machine can run commands as on NAME
"""


@dataclass(frozen=True)
class Processor:
    """How one kind of processor is had, and with which programs of this machine."""

    meaning: str
    programs: tuple[str, ...]
    start: Callable[[Sequence[str]], tuple[list[str], dict[str, str]]]
    needs_x86: bool = False

    def lacking(self) -> list[str]:
        """What this machine lacks, in words."""
        machine = ["an x86-64 machine"] if self.needs_x86 and not masked.is_x86() else []
        return machine + missing(self.programs)


def _masked(level: str, meaning: str) -> Processor:
    return Processor(
        meaning,
        masked.PROGRAMS,
        lambda command: (list(command), masked.environment(level)),
        needs_x86=True,
    )


def _emulated(model: str, meaning: str) -> Processor:
    def start(command: Sequence[str]) -> tuple[list[str], dict[str, str]]:
        return emulated.x86_command(model, command), {}

    return Processor(meaning, ("qemu-x86_64",), start, needs_x86=True)


def _arm64(name: str, meaning: str) -> Processor:
    return Processor(meaning, arm64.PROGRAMS, lambda command: (arm64.command(name, command), {}))


KERNEL_VARIABLES = frozenset({"OPENBLAS_CORETYPE", "MKL_ENABLE_INSTRUCTIONS", "ATEN_CPU_CAPABILITY"})
# what qemu cannot emulate of the model, and warns of in each process
HASWELL = "Haswell-v4,-pcid,-x2apic,-tsc-deadline,-invpcid,-spec-ctrl"
PROCESSORS = {
    "avx2": _masked("avx2", "x86-64 with AVX2, without AVX-512, VNNI and AMX; native speed"),
    "sse": _masked("sse", "x86-64 with SSE 4.2, without AVX and FMA; native speed"),
    "haswell": _emulated(HASWELL, "Intel Haswell (AVX2) in qemu; only this process, not its children"),
    "nehalem": _emulated("Nehalem", "Intel Nehalem (SSE 4.2) in qemu; only this process, not its children"),
    "arm64": _arm64("arm64", "ARM Cortex-A76 (dot products) in qemu: Python, NumPy, ONNX Runtime, LiteRT"),
    "arm64-v8.0": _arm64("arm64-v8.0", "ARM Cortex-A72 (no dot products) in qemu: the same"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    match list(sys.argv[1:] if arguments is None else arguments):
        case ["--list"]:
            return _list()
        case ["--has", name] if name in PROCESSORS:
            return int(bool(PROCESSORS[name].lacking()))
        case [name, *command] if name in PROCESSORS and command:
            return run(name, command)
    print(USAGE + "processors: " + ", ".join(PROCESSORS), file=sys.stderr)
    return 2


def _list() -> int:
    for name, processor in PROCESSORS.items():
        lacking = processor.lacking()
        print(f"{name:12}{processor.meaning}")
        if lacking:
            print(f"{'':12}not on this machine; it needs {', '.join(lacking)}")
    return 0


def _inherited() -> dict[str, str]:
    """The variables of this process, without those that choose kernels for this machine."""
    return {name: value for name, value in os.environ.items() if name not in KERNEL_VARIABLES}


def run(name: str, command: Sequence[str]) -> int:
    """Becomes the command; returns only if it cannot."""
    processor = PROCESSORS[name]
    try:
        if lacking := processor.lacking():
            raise NotAvailable(f"{name} needs {', '.join(lacking)}")
        started, variables = processor.start(command)
        os.execvpe(started[0], started, _inherited() | variables)
    except (NotAvailable, OSError, subprocess.CalledProcessError) as error:
        print(f"on_processor: {error}", file=sys.stderr)
        return 126
