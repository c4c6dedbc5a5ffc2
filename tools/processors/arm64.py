"""64-bit ARM in qemu: Debian's Python for it, and the wheels of the runtimes, unpacked into the cache."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from .common import NotAvailable, cache

PROGRAMS = ("qemu-aarch64", "apt-get", "dpkg")
DEBS = [
    "python3.11-minimal",
    "libpython3.11-minimal",
    "libpython3.11-stdlib",
    "libc6",
    "libgcc-s1",
    "libstdc++6",
    "zlib1g",
    "libexpat1",
    "libffi8",
    "libssl3",
    "libbz2-1.0",
    "liblzma5",
    "libuuid1",
    "libcrypt1",
]
PYTHON = "usr/bin/python3.11"
WHEELS = ("numpy", "onnxruntime", "ai-edge-litert", "flatbuffers", "protobuf", "ml-dtypes", "packaging")
PURE = ("tqdm", "typing-extensions", "backports.strenum")
PLATFORMS = ("manylinux_2_28", "manylinux_2_27", "manylinux_2_17", "manylinux2014")
# qemu's model, and the part number that /proc/cpuinfo has for it: ONNX Runtime and XNNPACK look for both
MODELS = {"arm64": ("cortex-a76", 0xD0B), "arm64-v8.0": ("cortex-a72", 0xD08)}
FEATURES = "fp asimd evtstrm aes pmull sha1 sha2 crc32 cpuid"


def command(name: str, arguments: Sequence[str]) -> list[str]:
    """A call of Python in emulation. No other program is there."""
    if not re.fullmatch(r"python[\d.]*", Path(arguments[0]).name):
        raise NotAvailable(f"{name} has Python only: tools/on_processor {name} python FILE.py ...")
    model, part = MODELS[name]
    root = system(part)
    variables = [f"PYTHONPATH={':'.join([str(packages()), *_given_path()])}", "PYTHONDONTWRITEBYTECODE=1"]
    settings = [item for variable in variables for item in ("-E", variable)]
    return ["qemu-aarch64", "-cpu", model, "-L", str(root), *settings, str(root / PYTHON), *arguments[1:]]


def _given_path() -> list[str]:
    given = os.environ.get("PYTHONPATH")
    return [given] if given else []


def system(part: int) -> Path:
    """Debian's files, beside a /proc/cpuinfo of the processor: qemu looks for absolute paths here first."""
    root = cache() / f"arm64-{part:x}"
    if not (root / "proc/cpuinfo").exists():
        base = debian()
        (root / "proc").mkdir(parents=True, exist_ok=True)
        for entry in base.iterdir():
            if not (root / entry.name).exists():
                (root / entry.name).symlink_to(entry)
        (root / "proc/cpuinfo").write_text(cpuinfo(part, os.cpu_count() or 1))
    return root


def cpuinfo(part: int, cores: int) -> str:
    """Linux's description of ARM cores."""
    lines = (
        "Features\t: " + FEATURES,
        "CPU implementer\t: 0x41",
        "CPU architecture: 8",
        "CPU variant\t: 0x1",
    )
    core = "\n".join([*lines, f"CPU part\t: {part:#x}", "CPU revision\t: 1"])
    return "".join(f"processor\t: {index}\n{core}\n\n" for index in range(cores))


def debian() -> Path:
    """The packages of Debian, unpacked. apt gets folders of its own, so this machine's are not touched."""
    root = cache() / "arm64-debian"
    if root.exists():
        return root
    with tempfile.TemporaryDirectory(dir=cache()) as scratch:
        folder = Path(scratch)
        for name in ("lists/partial", "archives/partial", "debs"):
            (folder / name).mkdir(parents=True)
        (folder / "status").touch()
        options = [
            f"Dir::State::lists={folder / 'lists'}",
            f"Dir::State::status={folder / 'status'}",
            f"Dir::Cache={folder}",
            "APT::Architecture=arm64",
            "APT::Architectures=arm64",
            "APT::Sandbox::User=root",
        ]
        apt = ["apt-get", "-qq", *(item for option in options for item in ("-o", option))]
        subprocess.run([*apt, "update"], check=True, stdout=sys.stderr)
        subprocess.run([*apt, "download", *DEBS], check=True, cwd=folder / "debs", stdout=sys.stderr)
        for deb in (folder / "debs").glob("*.deb"):
            subprocess.run(["dpkg", "-x", deb, folder / "root"], check=True)
        (folder / "root").rename(root)
    return root


def packages() -> Path:
    """The runtimes in the versions that this Python has, else the newest."""
    wanted = [_requirement(name) for name in (*WHEELS, *PURE)]
    root = cache() / f"arm64-{'-'.join(wanted[:3])}"
    if root.exists():
        return root
    with tempfile.TemporaryDirectory(dir=cache()) as scratch:
        wheels = Path(scratch) / "wheels"
        platforms = [item for name in PLATFORMS for item in ("--platform", f"{name}_aarch64")]
        options = ["-qq", "--no-deps", "--only-binary=:all:", "--python-version=3.11", *platforms]
        download = [sys.executable, "-m", "pip", "download", *options, "-d", wheels, *wanted]
        subprocess.run(download, check=True, stdout=sys.stderr)
        for wheel in wheels.glob("*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(Path(scratch) / "root")
        (Path(scratch) / "root").rename(root)
    return root


def _requirement(name: str) -> str:
    try:
        return f"{name}=={importlib.metadata.version(name)}"
    except importlib.metadata.PackageNotFoundError:
        return name
