"""Damaged copies of model files: each has to be a clean error, or a model that computes something.

    python benchmarks/mutated_files.py --kind tflite --kind caffe --count 7000
    python benchmarks/mutated_files.py --kind onnx --count 6000 --seed 7

Small files of the recorded MegEngine models are written in each format, then copied with changes: bytes that
are other ones, ends that are cut off, parts that are moved, repeated, zeroed, or replaced by large numbers;
in texts, lines that are removed, repeated, exchanged or given other values. Each copy is loaded, and run on
one input where it loads. Printed are the codes of the errors, what took longest, and how far the memory grew.
Exit status 1 where an error is not one of tmconvert, or a copy takes longer than two seconds.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import tmconvert
from tests.models import corpus
from tmconvert.errors import InternalError, TmconvertError
from tmconvert.ir import TensorNode, TracedModule

KINDS = ("onnx", "tflite", "caffe")
MODELS = ("op_s_conv_bn_relu", "op_s_pool_chain", "op_s_elemwise", "op_pooling", "op_reduce", "op_multi_io")
LONGEST = 2.0  # seconds of the processor
MOST_ELEMENTS = 1 << 22  # of inputs that are made
Random = np.random.Generator
LARGE = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF)


def other_bytes(data: bytearray, rng: Random) -> bytearray:
    for at in rng.integers(0, len(data), int(rng.integers(1, 9))):
        data[at] = rng.integers(0, 256)
    return data


def other_bit(data: bytearray, rng: Random) -> bytearray:
    data[int(rng.integers(0, len(data)))] ^= 1 << int(rng.integers(0, 8))
    return data


def cut(data: bytearray, rng: Random) -> bytearray:
    return data[: int(rng.integers(0, len(data)))]


def zeroed(data: bytearray, rng: Random) -> bytearray:
    start, size = int(rng.integers(0, len(data))), int(rng.integers(1, 65))
    data[start : start + size] = bytes(len(data[start : start + size]))
    return data


def moved(data: bytearray, rng: Random) -> bytearray:
    """A part stands in another place, too."""
    start, to, size = (int(each) for each in rng.integers(0, len(data), 3))
    part = data[start : start + size % 257]
    data[to : to + len(part) * int(rng.integers(0, 2))] = part
    return data


def large(data: bytearray, rng: Random) -> bytearray:
    """An aligned number of four bytes is an extreme one."""
    at = 4 * int(rng.integers(0, max(len(data) // 4, 1)))
    data[at : at + 4] = int(rng.choice(LARGE)).to_bytes(4, "little")
    return data


def line(data: bytearray, rng: Random) -> bytearray:
    """In a text, a line is removed, repeated, exchanged with another one, or has another value."""
    lines = data.split(b"\n")
    one, other = (int(each) for each in rng.integers(0, len(lines), 2))
    change = int(rng.integers(0, 4))
    if change == 0:
        del lines[one]
    elif change == 1:
        lines.insert(other, lines[one])
    elif change == 2:
        lines[one], lines[other] = lines[other], lines[one]
    else:
        head = lines[one].partition(b":")[0]
        lines[one] = head + b": " + rng.choice([b"0", b"-1", b"99999999999", b'"x"', b"MAX", b"nan", b"1e30"])
    return bytearray(b"\n".join(lines))


CHANGES: tuple[Callable[[bytearray, Random], bytearray], ...] = (
    other_bytes,
    other_bit,
    cut,
    zeroed,
    moved,
    large,
    line,
)


def originals(kind: str, folder: Path) -> list[list[Path]]:
    """Files of the models: with Caffe, a text and its weights."""
    made = []
    for name in MODELS:
        options = {} if kind == "caffe" else {"quantized": False}
        made.append(corpus.converted(name, kind, folder, verify=False, **options)[1])
    return made


def inputs_of(module: TracedModule) -> list[np.ndarray] | None:
    """Returns inputs of the declared types; None where a file declares sizes that are too large to try."""
    assert module.graph is not None
    arrays = []
    for node in module.graph.inputs[1:]:
        if not isinstance(node, TensorNode):
            continue
        shape = [extent if isinstance(extent, int) else 2 for extent in node.shape or ()]
        if float(np.prod(shape, dtype=float)) > MOST_ELEMENTS:
            return None
        dtype = np.float32 if node.holds_integers else node.dtype
        arrays.append(np.ones(shape, dtype))
    return arrays


def outcome(path: Path) -> str:
    """Loads a file and runs the model; returns the code of the error, or what became of it."""
    try:
        module = tmconvert.load(path)
        arrays = inputs_of(module)
        if arrays is None:
            return "large"
        with np.errstate(all="ignore"):
            module(*arrays)
    except InternalError as error:
        return f"defect {error.code} {error.message[:60]}"
    except TmconvertError as error:
        return error.code
    except Exception as error:
        return f"defect {type(error).__name__} {traceback.extract_tb(error.__traceback__)[-1]}"
    return "model"


def tried(kind: str, count: int, seed: int) -> bool:
    """Prints what became of the copies; returns whether all of them were right."""
    rng, found, slowest = np.random.default_rng(seed), Counter[str](), (0.0, "")
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        files = originals(kind, folder)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for number in range(count):
            group = files[int(rng.integers(0, len(files)))]
            changed = group[int(rng.integers(0, len(group)))]
            data = changed.read_bytes()
            change = CHANGES[int(rng.integers(0, len(CHANGES)))]
            changed.write_bytes(bytes(change(bytearray(data), rng)))
            start = time.process_time()
            result = outcome(group[0])
            seconds = time.process_time() - start
            changed.write_bytes(data)
            found[result] += 1
            slowest = max(slowest, (seconds, f"copy {number} ({change.__name__}, {result})"))
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(f"{kind}: {count} copies, {dict(found.most_common())}")
    print(f"{kind}: the slowest took {slowest[0]:.2f} s, {slowest[1]}; memory grew by {grown / 1024:.0f} MB")
    return slowest[0] < LONGEST and not any(result.startswith("defect") for result in found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--kind", choices=KINDS, action="append")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    results = [tried(kind, options.count, options.seed) for kind in options.kind or KINDS]
    return int(not all(results))


if __name__ == "__main__":
    sys.exit(main())
