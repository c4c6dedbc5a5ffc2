"""The interface of runtimes, with which written files are verified.

``targets/*/runtime.py`` has those of each target, which are imported only when a file is run, so that this
module is imported quickly.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Protocol

import numpy as np

from tmconvert.errors import RuntimeTooOld, UnknownOperator, VerificationError
from tmconvert.ir.types import NamedArrays, Paths, Shapes

is_apart = False  # whether this is the process of a worker

# More threads than this change the order of sums from machine to machine.
THREADS = 2


# What ONNX Runtime says of a sound file of an opset or IR version that is newer than itself.
TOO_NEW = ("is under development and support for this is limited", "Unsupported model IR version")


# What runtimes say of an operator of the user's, which is in none of their libraries.
NOT_REGISTERED = ("is not a registered function/op", "Encountered unresolved custom op")


# What ONNX Runtime says of sound files that it cannot run, and the way out.
HELPS = {
    # element types that the standard has and it has not, or operators that newer releases have
    "Could not find an implementation for": (
        "this release lacks the operator, or supports it in float32 only: install a newer one, write "
        "an older --opset, convert the model in float32 (in PyTorch: module.float()), or write the "
        "file without verification"
    ),
    # its optimizer makes int8 uint8, but for the attribute with the type, from opset 21 on:
    # https://github.com/microsoft/onnxruntime/issues/25526
    "output_dtype INT8 does not match y_zero_point type UINT8": (
        "it fails to convert int8 to uint8, in which it computes on this processor: use --activations "
        "uint8, or --opset 20, or write the file without verification"
    ),
}


class Runtime(Protocol):
    """Runs a written file. ``name`` and ``version`` are those of the software, for the report."""

    name: str

    @property
    def version(self) -> str: ...

    def run(
        self, paths: Paths, inputs: NamedArrays, outputs: Sequence[str], *, shapes: Shapes | None = None
    ) -> list[np.ndarray]:
        """Returns the arrays of ``outputs``, in that order.

        ``paths`` are the files that make up the model, the one with the structure first. ``shapes``
        are those expected of the outputs, for runtimes that do not keep ranks below 2.
        Raises: VerificationError TM4002 when the runtime does not load or run the file, and
        RuntimeTooOld TM4004 when the file is for a later version of it.
        """
        raise NotImplementedError


@cache
def installed_version(package: str) -> str:
    """Returns the version of an installed package.

    It is read from the name of the metadata folder: ``importlib.metadata``, which also finds packages in
    archives, takes 30 ms to import.
    """
    wanted = package.replace("-", "_").lower()
    for folder in sys.path:
        with contextlib.suppress(OSError):
            for entry in os.listdir(folder or "."):  # noqa: PTH208
                if entry.endswith(".dist-info") and entry.lower().startswith(f"{wanted}-"):
                    return entry.removesuffix(".dist-info")[len(wanted) + 1 :]
    from importlib.metadata import version

    return version(package)


class IsolatedRuntime:
    """A runtime that may abort; it runs in a worker (``worker.py``), or in this process if there is no
    worker. The module of workers is imported where it is needed: a worker does not.

    ``settings`` are the arguments with which the worker constructs it.
    """

    name = ""

    @property
    def settings(self) -> dict[str, Any]:
        return {}

    @property
    def version_here(self) -> str:
        raise NotImplementedError

    def load(self) -> None:
        """Imports the runtime's packages."""
        raise NotImplementedError

    def run_here(
        self, paths: Paths, inputs: NamedArrays, outputs: Sequence[str], shapes: Shapes | None
    ) -> list[np.ndarray]:
        raise NotImplementedError

    def forget_here(self) -> None:
        """Frees the data kept between runs."""

    @property
    def version(self) -> str:
        from tmconvert.verification.processes import worker

        try:
            return worker.version(self)
        except worker.Unavailable:
            return self.version_here

    def run(
        self, paths: Paths, inputs: NamedArrays, outputs: Sequence[str], *, shapes: Shapes | None = None
    ) -> list[np.ndarray]:
        from tmconvert.verification.processes import worker

        try:
            return worker.run(self, paths, inputs, outputs, shapes)
        except worker.Unavailable:
            return self.run_here(paths, inputs, outputs, shapes)

    def forget(self) -> None:
        """Frees the data kept between runs, in the process that runs the files."""
        from tmconvert.verification.processes import worker

        worker.forget(self)
        self.forget_here()  # where there is no worker


class FirstToTakeIt:
    """The first of several runtimes that accepts the file; ``name`` and ``version`` are those of that one."""

    def __init__(self, *runtimes: Runtime) -> None:
        self._runtimes = list(runtimes)
        self.name = runtimes[0].name

    @property
    def version(self) -> str:
        return self._runtimes[0].version

    def run(
        self, paths: Paths, inputs: NamedArrays, outputs: Sequence[str], *, shapes: Shapes | None = None
    ) -> list[np.ndarray]:
        while len(self._runtimes) > 1:
            try:
                return self._runtimes[0].run(paths, inputs, outputs, shapes=shapes)
            except VerificationError:
                self._runtimes.pop(0)
                self.name = self._runtimes[0].name
        return self._runtimes[0].run(paths, inputs, outputs, shapes=shapes)


@contextlib.contextmanager
def refusals(name: str) -> Iterator[None]:
    """Converts exceptions of a runtime to VerificationError."""
    try:
        yield
    except (MemoryError, VerificationError):
        raise
    except KeyError as error:
        raise VerificationError("TM4002", f"{name} rejected the file: it has no tensor {error}") from error
    except Exception as error:  # each runtime has exceptions of its own, some of them plain RuntimeErrors
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        if any(phrase in first for phrase in TOO_NEW):
            raise RuntimeTooOld("TM4004", f"the installed {name} is too old for this file") from error
        if any(phrase in str(error) for phrase in NOT_REGISTERED):
            unknown = f"{name} does not know an operator of the file: {first}"
            raise UnknownOperator("TM4002", unknown) from error
        notes = [("help", help) for phrase, help in HELPS.items() if phrase in first]
        raise VerificationError("TM4002", f"{name} rejected the file: {first}", notes=notes) from error


@contextlib.contextmanager
def silent_stderr() -> Iterator[None]:
    """Keeps output of C++ code to file descriptor 2 off the terminal; in a worker it goes to a file."""
    if is_apart:
        yield
        return
    try:
        kept = os.dup(2)
    except OSError:  # there is no stderr
        yield
        return
    sink = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(sink, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(sink)
