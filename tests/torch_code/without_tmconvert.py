"""Runs packages of ``to_folder`` in a Python that cannot import tmconvert.

Standard input has one folder a line: in it ``net`` is the package and ``inputs.pt`` a list of tensors. The
outputs, flattened, are written to ``outputs.pt``. Standard output has a line for each: empty, or why not.
"""

from __future__ import annotations

import importlib.util
import sys
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any


class Refused(MetaPathFinder):
    """Makes ``import tmconvert`` fail, whatever is installed."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> None:
        if fullname.partition(".")[0] == "tmconvert":
            raise ImportError(f"{fullname} is not there")


sys.meta_path.insert(0, Refused())

import torch  # noqa: E402


def flat(tree: Any) -> list[torch.Tensor]:
    if isinstance(tree, torch.Tensor):
        return [tree]
    items = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, (list, tuple)) else ()
    return [leaf for item in items for leaf in flat(item)]


def run(folder: Path, name: str) -> None:
    package = folder / "net"
    spec = importlib.util.spec_from_file_location(
        name, package / "__init__.py", submodule_search_locations=[str(package)]
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    with torch.no_grad():
        results = flat(module.Net()(*torch.load(folder / "inputs.pt")))
    torch.save(results, folder / "outputs.pt")


def main() -> None:
    for number, line in enumerate(sys.stdin):
        try:
            run(Path(line.strip()), f"net_{number}")
        except Exception as failure:  # of any model
            reason = f"{type(failure).__name__}: {failure}".replace("\n", " ")
        else:
            reason = ""
        print(reason, flush=True)
    assert not [name for name in sys.modules if name.partition(".")[0] == "tmconvert"]


if __name__ == "__main__":
    main()
