"""How models saved with ``format="megengine"`` compute in MegEngine, compared with the recorded outputs.

    python benchmarks/saved_for_megengine.py tests/data --megengine PYTHON

PYTHON is a Python 3.8 that has MegEngine 1.13. Each model needs an .npz file next to it, with the inputs in0,
in1, ... and the outputs out0, out1, ... Prints the largest difference over the largest output, or the error.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

import tmconvert
from tmconvert.errors import TmconvertError

RUNNER = Path(__file__).parent.parent / "tests/differential/run_in_megengine.py"
TOLERANCE = 1e-4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--megengine", required=True, metavar="PYTHON")
    options = parser.parse_args()
    models = [path for path in sorted(options.folder.glob("*.tm")) if path.with_suffix(".npz").exists()]
    found = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path in models:
            try:
                tmconvert.load(path).save(folder / path.name, format="megengine")
                shutil.copy(path.with_suffix(".npz"), folder)
            except TmconvertError as error:
                found[path.stem] = error.message
        subprocess.run([options.megengine, str(RUNNER), name], check=True, capture_output=True)
        for path in models:
            found.setdefault(path.stem, outcome(path, folder))
    right = sum(text.startswith("right") for text in found.values())
    print(f"{right} of {len(models)} models compute the same in MegEngine")
    for stem, text in found.items():
        print(f"  {stem:30} {text}")


def outcome(path: Path, folder: Path) -> str:
    """How the outputs of one model differ, or its error in MegEngine."""
    error = folder / f"{path.stem}.error"
    if error.exists():
        return error.read_text(encoding="utf-8").strip().splitlines()[-1]
    with np.load(path.with_suffix(".npz")) as golden, np.load(folder / f"{path.stem}.out.npz") as made:
        count = sum(name.startswith("out") for name in golden.files)
        if [made[name].shape for name in made.files] != [golden[f"out{i}"].shape for i in range(count)]:
            return "the outputs have other shapes"
        worst = max((difference(made[f"out{i}"], golden[f"out{i}"]) for i in range(count)), default=0.0)
    return f"{'right' if worst <= TOLERANCE else 'WRONG'}: {worst:.1e}"


def difference(made: np.ndarray, golden: np.ndarray) -> float:
    if not golden.size:
        return 0.0
    distance = np.abs(made.astype(np.float64) - golden.astype(np.float64)).max()
    return float(distance / max(float(np.abs(golden.astype(np.float64)).max()), 1e-3))


if __name__ == "__main__":
    main()
