"""Each recorded MegEngine model on each target, against what MegEngine computed.

    python benchmarks/corpus_targets.py --write docs/megengine-models.md
    python benchmarks/corpus_targets.py --target tflite --only op_norms vit_tiny

A file is right (within 1e-4 of the largest output; models with fake quantization against MegEngine's
floats, fixed-point ones by a cosine above 0.98), refused with a reason, wrong, or invalid (its runtime does
not take it). Exit status 1 if any is wrong or invalid.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.models import corpus
from tmconvert.errors import TmconvertError, UnsupportedError, VerificationError

TARGETS = ("onnx", "tflite", "caffe")
TOLERANCE, COSINE = 1e-4, 0.98
VERSION = r" [\d.]+$"  # of a runtime, at the end of its name
FLOATS = np.load(corpus.DATA / "made/float_exports.npz")


def models() -> list[str]:
    """All recorded models but those that must be refused, or that need functions of their users."""
    names = (path.stem for path in corpus.DATA.glob("*.tm"))
    return sorted(name for name in names if not name.startswith(("hostile", "custom")))


def wanted(name: str) -> list[np.ndarray]:
    outputs = corpus.golden(name)[1]
    return [FLOATS.get(f"{name}.{i}", output) for i, output in enumerate(outputs)]


def tried(name: str, target: str) -> tuple[str, str]:
    """(state, the largest error or the reason)."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            report, paths = corpus.converted(name, target, Path(folder))
            found = corpus.run(target, paths, name)
        except UnsupportedError as error:
            return "refused", error.message
        except VerificationError as error:
            return ("wrong" if error.code == "TM4001" else "invalid"), error.message
        except TmconvertError as error:
            return "refused", f"{error.code}: {error.message}"
    runtime = report.verification.runtime if report.verification else "not verified"
    is_right, distance = judged(name, found)
    return "right" if is_right else "wrong", f"{distance}, {runtime}"


def judged(name: str, found: Sequence[np.ndarray]) -> tuple[bool, str]:
    pairs = list(zip(found, wanted(name), strict=True))
    if name.startswith("quantized"):  # in floats nothing is rounded
        cosine = min(
            float(np.vdot(a, b) / np.sqrt(np.vdot(a, a) * np.vdot(b, b)))
            for a, b in ([each.astype(np.float64) for each in pair] for pair in pairs)
        )
        return cosine > COSINE, f"cosine {cosine:.4f}"
    error = max((corpus.relative_error(a, b) for a, b in pairs), default=0.0)
    return error < TOLERANCE, f"{error:.1e}"


def judges(states: Sequence[tuple[str, str]]) -> str:
    """How many files each runtime has judged: ``49 by OpenCV 4.14.0; 6 by MNN 3.6.1``."""
    runtimes = (note.partition(", ")[2] for state, note in states if state == "right")
    return "; ".join(f"{count} by {name}" for name, count in Counter(runtimes).most_common())


def table(rows: Sequence[tuple[str, dict[str, tuple[str, str]]]], targets: Sequence[str]) -> Iterator[str]:
    yield "| model | " + " | ".join(targets) + " |"
    yield "|---|" + "---|" * len(targets)
    for name, states in rows:
        cells = (_cell(*states[target]) for target in targets)
        yield f"| {name} | " + " | ".join(" ".join(cell.replace("|", "/").split()) for cell in cells) + " |"


def _cell(state: str, note: str) -> str:
    """What is known of a file; the versions of runtimes are in the summary."""
    ran = state in ("right", "wrong")
    return f"{state}: {re.sub(VERSION, '', note) if ran else note}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--target", choices=TARGETS, action="append")
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--write", type=Path, help="the page of the documentation")
    options = parser.parse_args()
    targets = options.target or TARGETS
    rows = []
    for name in options.only or models():
        rows.append((name, {target: tried(name, target) for target in targets}))
        print(name, *(": ".join(state) for state in rows[-1][1].values()), sep="\n    ", flush=True)
    counts = {target: Counter(states[target][0] for _, states in rows) for target in targets}
    summary = [
        f"{target}: "
        + ", ".join(f"{count} {state}" for state, count in sorted(counts[target].items()))
        + f" ({judges([states[target] for _, states in rows])})"
        for target in targets
    ]
    print(*summary, sep="\n")
    if options.write:
        head = [
            "# The recorded MegEngine models on each target",
            "",
            "Made by `python benchmarks/corpus_targets.py --write docs/megengine-models.md`: the largest",
            "difference from what MegEngine computed, over its largest output, and the runtime that ran the",
            "file; or why there is none. Models with fake quantization are compared with MegEngine's floats.",
            "",
            *(f"- {line}" for line in summary),
            "",
        ]
        options.write.write_text("\n".join([*head, *table(rows, targets)]) + "\n")
    return int(any(states["wrong"] or states["invalid"] for states in counts.values()))


if __name__ == "__main__":
    sys.exit(main())
