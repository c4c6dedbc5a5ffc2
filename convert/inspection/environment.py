"""Versions, installed runtimes, and features of the processor."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from tmconvert._version import __version__
from tmconvert.verification.accelerators.registry import known_accelerators

# package -> (what it is for, how to install it)
PACKAGES = {
    "numpy": ("arrays", ""),
    "onnx": ("ONNX files", ""),
    "torch": ("tracing of PyTorch models", "pip install 'tmconvert[torch]'"),
    "onnxruntime": ("runs and verifies ONNX files", "pip install 'tmconvert[runtimes]'"),
    "ai-edge-litert": ("runs and verifies TFLite files", "pip install 'tmconvert[runtimes]'"),
    "opencv-python-headless": (
        "runs and verifies Caffe files, else the NumPy definitions do",
        "pip install 'tmconvert[opencv]'",
    ),
    "MNN": ("verifies Caffe files with layers that OpenCV lacks", "pip install 'tmconvert[mnn]'"),
    "pillow": ("images for calibration and runs", "pip install 'tmconvert[images]'"),
}
# other packages with the same module
OTHERS = {
    "opencv-python-headless": ("opencv-python", "opencv-contrib-python", "opencv-contrib-python-headless")
}
# flags of processors, by the names of Linux, that decide how integers are multiplied
FEATURES = ("avx2", "avx512f", "avx_vnni", "avx512_vnni", "amx_int8", "asimddp", "i8mm")
VNNI = frozenset({"avx_vnni", "avx512_vnni", "amx_int8"})


class Environment(NamedTuple):
    """The versions and features that conversions and runs depend on.

    Versions are None for packages that are not installed. ``features`` are those of ``FEATURES`` that the
    processor has, None where the system does not tell.
    """

    python: str
    system: str
    processor: str
    features: tuple[str, ...] | None
    packages: dict[str, str | None]

    @property
    def integers(self) -> str:
        """Returns what the processor means for integer files."""
        if platform.machine().lower() in ("arm64", "aarch64"):
            return "exact: Arm multiplies bytes without saturation"
        if self.features is None:
            return "unknown: the system does not list the features of the processor"
        if VNNI & set(self.features):
            return (
                "exact here; on x86 without VNNI, ONNX files with weights in int8 may saturate: the default, "
                "--weight-type uint8, or --reduce-range is exact on every processor"
            )
        return (
            "x86 without VNNI: ONNX Runtime saturates products of uint8 activations and int8 weights; the "
            "default, --weight-type uint8, or --reduce-range is exact"
        )

    def to_json(self) -> dict[str, Any]:
        return {"tmconvert": __version__, **self._asdict(), "integers": self.integers}

    def lines(self) -> Iterator[str]:
        """Returns the text of ``tmconvert doctor``."""
        yield f"{'tmconvert':<12}{__version__}"
        yield f"{'python':<12}{self.python}"
        yield f"{'system':<12}{self.system}"
        yield f"{'processor':<12}{self.processor}"
        features = "not listed by the system" if self.features is None else " ".join(self.features) or "none"
        yield f"{'features':<12}{features}"
        yield f"{'integers':<12}{self.integers}"
        yield ""
        yield "packages"
        width = max(map(len, self.packages))
        for name, version in self.packages.items():
            purpose, install = PACKAGES[name]
            state = version or f"missing: {install}"
            yield f"  {name:<{width}}  {state}  ({purpose})"
        yield ""
        yield "accelerators (--verify-on)"
        for accelerator in known_accelerators().values():
            state = "installed" if accelerator.is_available() else f"missing: {accelerator.how_to_get}"
            yield f"  {accelerator.name:<{width}}  {state}  ({accelerator.about})"


def environment() -> Environment:
    """Returns the state of this machine; no package is imported."""
    return Environment(
        f"{platform.python_version()} ({sys.executable})",
        "-".join((platform.system(), platform.release(), platform.machine())),  # platform() starts a process
        _processor(),
        _features(),
        {name: _installed(name) for name in PACKAGES},
    )


def _installed(package: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    for name in (package, *OTHERS.get(package, ())):
        with suppress(PackageNotFoundError):
            return version(name)
    return None


def _cpuinfo() -> dict[str, str]:
    """Returns the fields of the first processor in /proc/cpuinfo; empty on other systems than Linux."""
    with suppress(OSError):
        text = Path("/proc/cpuinfo").read_text("utf-8", "replace").partition("\n\n")[0]
        pairs = (line.partition(":") for line in text.splitlines())
        return {name.strip().lower(): value.strip() for name, _, value in pairs}
    return {}


def _processor() -> str:
    return _cpuinfo().get("model name") or platform.processor() or platform.machine()


def _features() -> tuple[str, ...] | None:
    fields = _cpuinfo()
    flags = fields.get("flags") or fields.get("features")
    if flags is None:
        return None
    present = set(flags.split())
    return tuple(name for name in FEATURES if name in present)
