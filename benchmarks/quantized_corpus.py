"""Each quantized MegEngine model in integers, TFLite and ONNX, against what MegEngine computed.

    python benchmarks/quantized_corpus.py --write docs/quantized-models.md

Exit status 1 if a model is further off than three steps, or than one for more than 0.1 % of its elements,
and ``EXPLAINED`` does not say why.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import tmconvert
from tests.models import corpus, integers

MADE = corpus.DATA / "made/quantized"
EXPLAINED = {
    "qat_angles": "the angle of a point near the origin turns fast: a step is several of the angle",
    "qat_histogram": "MegEngine's HistogramObserver goes on observing when the model runs: what it computed"
    " has quantization parameters that are not in the file",
    "qat_shared": "the source adds its input in float, too, beyond the range of its integers; exact with"
    " `--io-type float32`",
    "qat_turned": "a sign decides which elements are taken: an error of one step at 0 changes whole elements",
}
# what LiteRT's own kernels, without XNNPACK, are further off
OWN_KERNELS = (
    "LiteRT's own kernels requantize sums in fixed point, where MegEngine and XNNPACK round floats:"
    " layers differ by one step here and there, which adds up, and shows where an output has few elements."
)


@dataclass
class Row:
    name: str
    operators: int
    in_float: int
    tflite: integers.Distance
    own_kernels: integers.Distance
    onnx: integers.Distance
    convolutions: str

    @property
    def is_near(self) -> bool:
        return self.tflite.is_near and self.onnx.is_near

    def line(self) -> str:
        cells = [
            self.name,
            f"{self.operators} ({self.in_float} in float)" if self.in_float else str(self.operators),
            str(self.tflite),
            str(self.own_kernels),
            str(self.onnx),
            self.convolutions,
        ]
        return f"| {' | '.join(cells)} |"


def models() -> dict[str, Path]:
    """All of the corpus, and the small ones that are made of it."""
    found = {name: corpus.model(name) for name in integers.models()}
    return found | {path.stem: path for path in sorted(MADE.glob("*.tm"))}


def arrays(path: Path) -> tuple[list[np.ndarray], list[np.ndarray]]:
    with np.load(path.with_suffix(".npz")) as given:
        names = (sorted(key for key in given.files if key.startswith(kind)) for kind in ("in", "out"))
        inputs, outputs = ([given[name] for name in each] for each in names)
    return inputs, outputs


def measured(name: str, path: Path, folder: Path) -> Row:
    inputs, expected = arrays(path)
    lite, pairs = folder / "m.tflite", folder / "m.onnx"
    tmconvert.to_tflite(path, lite, quantized=True, allow_float=True, verify=False)
    tmconvert.to_onnx(path, pairs, quantized=True, verify=False)
    census, kernels = integers.census(lite), integers.onnx_kernels(pairs, folder)
    convolutions = sum(kernels[type] for type in ("Conv", "QLinearConv"))
    return Row(
        name,
        sum(census.operators.values()),
        sum(census.in_float.values()),
        integers.tflite_distance(lite, inputs, expected),
        integers.tflite_distance(lite, inputs, expected, integers.OWN_KERNELS),
        integers.onnx_distance(pairs, inputs, expected),
        f"{kernels['QLinearConv']} of {convolutions}" if convolutions else "none",
    )


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        for name, path in models().items():
            yield measured(name, path, Path(folder))


def page(found: Sequence[Row]) -> str:
    lines = [
        "# Quantized models, in integers",
        "",
        "Made by `python benchmarks/quantized_corpus.py --write docs/quantized-models.md`. Each row is a",
        "model that MegEngine trained with fake quantization, or has in fixed point, converted with",
        "`--quantized` and compared with what MegEngine computed: the largest distance in steps of the",
        "output's scale (of 1/255 of the range for outputs in float), and how many elements are more than",
        "one step off.",
        "",
        "| model | TFLite operators | LiteRT, XNNPACK | LiteRT, own kernels | ONNX Runtime"
        " | convolutions in QLinearConv |",
        "|---|---|---|---|---|---|",
        *(row.line() for row in found),
        "",
        "## Why some are further off",
        "",
        *(f"- {name}: {why}." for name, why in EXPLAINED.items()),
        f"- {OWN_KERNELS}",
        "",
    ]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the table here")
    options = parser.parse_args()
    found = []
    for row in rows():
        print(row.line(), flush=True)
        found.append(row)
    if options.write:
        options.write.write_text(page(found))
    return int(any(not row.is_near and row.name not in EXPLAINED for row in found))


if __name__ == "__main__":
    sys.exit(main())
