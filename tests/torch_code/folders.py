"""Packages of ``to_folder``: run without tmconvert, and traced again."""

from __future__ import annotations

import importlib.util
import itertools
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import torch

import tmconvert
from tests.torch_code.canonical import canonical, exact

_PLACE = re.compile(r" +loc\(.*?\)")
_numbers = itertools.count()


class WithoutTmconvert:
    """A process of Python that has torch and no tmconvert."""

    def __enter__(self) -> WithoutTmconvert:
        script = Path(__file__).with_name("without_tmconvert.py")
        self.process: subprocess.Popen[str] = subprocess.Popen(
            [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stream(self.process.stdin).close()
        status = self.process.wait(timeout=60)
        self._stream(self.process.stdout).close()
        if status != 0 and kind is None:
            raise RuntimeError("the process has imported tmconvert")

    def run(self, folder: Path, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Returns the outputs of the package ``net`` in a folder."""
        torch.save(list(inputs), folder / "inputs.pt")
        sending = self._stream(self.process.stdin)
        sending.write(f"{folder}\n")
        sending.flush()
        reason = self._stream(self.process.stdout).readline()
        if reason != "\n":
            raise RuntimeError(reason.strip() or "the process has ended")
        results: list[torch.Tensor] = torch.load(folder / "outputs.pt")
        return results

    @staticmethod
    def _stream(stream: IO[str] | None) -> IO[str]:
        assert stream is not None
        return stream


def loaded(package: Path) -> Any:
    """The class ``Net`` of a package."""
    name = f"written_net_{next(_numbers)}"
    spec = importlib.util.spec_from_file_location(
        name, package / "__init__.py", submodule_search_locations=[str(package)]
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module.Net


def _named(model: Any) -> list[str]:
    """The text form of the normalized graph, names included, without places."""
    lines = tmconvert.normalize(model).graph.to_text().splitlines()
    return [_PLACE.sub("", line) for line in lines]


def differences(model: Any, inputs: Sequence[torch.Tensor], folder: Path, *, is_exact: bool) -> str:
    """How the graph of the package ``net`` of ``model`` differs from the model's; empty where it does not.

    The package of the package's trace must be the same text, and its graph too, names included.
    """
    first = tmconvert.trace(loaded(folder / "net")(), *inputs)
    text = exact if is_exact else canonical
    if text(first) != text(model):
        return "another graph"
    (folder / "again").mkdir()
    first.to_folder(folder / "again" / "net", "Net")
    second = tmconvert.trace(loaded(folder / "again" / "net")(), *inputs)
    if _named(first) != _named(second):
        return "other names the second time"
    (folder / "third").mkdir()
    second.to_folder(folder / "third" / "net", "Net")
    codes = [(folder / name / "net" / "module.py").read_text("utf-8") for name in ("again", "third")]
    return "" if codes[0] == codes[1] else "another text the second time"
