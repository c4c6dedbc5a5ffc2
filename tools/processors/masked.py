"""x86 processors with fewer instruction sets: native speed, with CPUID answered by ``cpuid_mask.c``."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

from .common import cache

HERE = Path(__file__).parent
PROGRAMS = ("cc", "objdump")
# The dynamic linker reads CPUID before any audit library is loaded. These names of instruction sets
# (glibc.cpu.hwcaps) keep the C library's own functions, such as memcpy and exp, from using them.
GLIBC = {
    "avx2": ("AVX512F", "AVX512VL", "AVX512BW", "AVX512DQ", "AVX512CD"),
    "sse": ("AVX512F", "AVX512VL", "AVX512BW", "AVX512DQ", "AVX512CD", "AVX2", "AVX", "FMA", "FMA4"),
}


def is_x86() -> bool:
    return os.uname().machine == "x86_64"


def audit_library() -> Path:
    """The compiled ``cpuid_mask.c``, from the cache if it has not changed."""
    source = HERE / "cpuid_mask.c"
    built = cache() / f"cpuid_mask-{hashlib.sha256(source.read_bytes()).hexdigest()[:16]}.so"
    if not built.exists():
        part = built.with_suffix(f".{os.getpid()}")
        subprocess.run(["cc", "-O2", "-Wall", "-shared", "-fPIC", "-o", part, source], check=True)
        part.rename(built)
    return built


def environment(level: str) -> dict[str, str]:
    """The variables that make a program, and its children, see the processor."""
    offsets = cache() / "offsets"
    offsets.mkdir(exist_ok=True)
    tunables = "glibc.cpu.hwcaps=" + ",".join(f"-{name}" for name in GLIBC[level])
    return {
        "LD_AUDIT": str(audit_library()),
        "ON_PROCESSOR_LEVEL": level,
        "ON_PROCESSOR_OFFSETS": str(offsets),
        "ON_PROCESSOR_FINDER": str(HERE / "find_cpuid"),
        "GLIBC_TUNABLES": tunables,
    }
