"""How many files with a single change verification refuses.

    python benchmarks/single_changes.py --count 500

Converts recorded models to float and integer ONNX, float and integer TFLite, and Caffe, changes one element,
attribute, operand or operator at a time, and runs ``tmconvert verify`` on each. What is not refused has to
compute the same as the unchanged file on inputs that verification does not draw. Prints those that do not,
and a table.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from itertools import islice
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import tmconvert
from tests.models import corpus
from tests.verification.single_changes import changed_files, verdict

FLOAT = ("op_mha_rnncell", "op_pooling", "op_conv_variants", "op_embedding_argmax", "op_norms")
INTEGER = ("qat_small_ema", "qat_resnet_ema", "qat_perchannel_weight", "qat_concat_elemwise", "qat_deconv")
CAFFE = ("op_pooling", "op_conv_variants", "op_s_conv_bn_relu", "mobilenet_v1", "op_s_pool_chain")
KINDS = (
    ("float ONNX", "onnx", FLOAT, {}),
    ("integer ONNX", "onnx", INTEGER, {"quantized": True}),
    ("float TFLite", "tflite", FLOAT, {}),
    ("integer TFLite", "tflite", INTEGER, {"quantized": True, "io_type": "float32"}),
    ("Caffe", "caffe", CAFFE, {}),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    each = -(-given.count // sum(len(names) for _, _, names, _ in KINDS))
    for kind, target, names, options in KINDS:
        found: Counter[str] = Counter()
        for place, name in enumerate(names):
            random = np.random.default_rng([given.seed, place, len(kind)])
            with tempfile.TemporaryDirectory() as folder:
                found += _tried(name, target, Path(folder), options, random, each)
        table = ", ".join(f"{count} {what}" for what, count in sorted(found.items()))
        print(f"{kind}: {sum(found.values())} changes: {table}", flush=True)


def _tried(
    name: str, target: str, folder: Path, options: dict[str, object], random: np.random.Generator, count: int
) -> Counter[str]:
    model, found = tmconvert.load(corpus.model(name)), Counter[str]()
    _, paths = corpus.converted(name, target, folder, **options)
    changed = [folder / f"changed{path.suffix}" for path in paths]
    for change in islice(changed_files(paths, target, random), count):
        change.write(changed)
        what = verdict(model, target, paths, changed)
        if what.startswith("slipped"):
            print(f"  {name} ({target}): {change.what}: {what}", flush=True)
        found[what.partition(" by")[0].partition(": ")[0]] += 1
    return found


if __name__ == "__main__":
    main()
