"""Programs with Python's control flow, compared with PyTorch on both sides of their decisions.

    python -m benchmarks.control_flow --count 300
    python -m benchmarks.control_flow --seed 17 --count 1 --show
    python -m benchmarks.control_flow --loops [--name greedy]

Each program is a function with branches on data and on sizes, loops over open sizes, and loops that end on
data, of ``control_flow_programs.py``; with ``--loops`` those of ``control_flow_loops.models``. It is traced
once, and ONNX Runtime and LiteRT run its files at several sizes, on data that leads to different sides. It
is right, refused with a code, wrong, crashed, or slow.
"""

from __future__ import annotations

import argparse
import importlib.util
import linecache
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import torch

import tmconvert
from benchmarks import control_flow_loops, control_flow_programs
from tmconvert.errors import TmconvertError

SIZES = (6, 1, 2, 3, 5, 7, 12, 13, 17, 42)  # of the open axis; the first is that of the example
FEW_SIZES = (5, 1, 2, 3, 4, 6, 9)
LIMIT = 60  # seconds of processor time for a program
Inputs = Sequence[torch.Tensor]
Program = tuple[str, str, Sequence[Inputs], dict[str, Any]]  # name, text, inputs, options of the trace


class Slow(BaseException):
    """A program takes too long; whatever fails in a run of it is caught as an Exception."""


def function_of(text: str, path: Path, names: Mapping[str, object]) -> Callable[..., Any]:
    """Returns the function ``forward`` of a program, whose lines tracebacks show."""
    path.write_text(text)
    linecache.checkcache(str(path))
    found = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(found)  # type: ignore[arg-type]
    sys.modules[path.stem] = module  # type: ignore[assignment]
    vars(module).update({"torch": torch, **names})
    torch.manual_seed(0)
    found.loader.exec_module(module)  # type: ignore[union-attr]
    return module.forward  # type: ignore[no-any-return]


def cases() -> Iterator[Inputs]:
    """Yields inputs of the random programs, that lead to different sides."""
    generator = torch.Generator().manual_seed(0)
    for number, size in enumerate(FEW_SIZES):
        x = torch.randn(size, 4, generator=generator)
        for factor, mask in ((1, x > 0.5), (0.1, x > 9), (-4, x < 9), (2 + number, x < -0.3)):
            yield x * factor, mask
    yield torch.ones(4, 4), torch.ones(4, 4) > 0


def programs(given: argparse.Namespace) -> Iterator[Program]:
    if not given.loops:
        inputs = [*cases()]
        how: dict[str, Any] = {"dynamic_shapes": {"x": {0: "n"}, "mask": {0: "n"}}}
        for seed in range(given.seed, given.seed + given.count):
            yield str(seed), control_flow_programs.program(seed), inputs, how
        return
    sized = [[torch.randn(size, 4, 3)] for size in SIZES]
    x = torch.linspace(-2, 3, 20).reshape(5, 4)
    other = [[x * factor] for factor in (1, 10, 0.01, -1, -30)] + [[x.flip(0) * 3]]
    for name, text in control_flow_loops.over_sizes():
        yield name, text, sized, {"dynamic_shapes": {"x": {0: "n"}}}
    for name, text in control_flow_loops.programs(control_flow_loops.ROWS["ON_DATA"]):
        yield name, text, other, {}


def onnx_runner(path: Path) -> Callable[[Inputs], list[np.ndarray]]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_inputs()]
    return lambda inputs: session.run(None, {name: each.numpy() for name, each in by_name(names, inputs)})  # type: ignore[no-any-return]


def litert_runner(path: Path) -> Callable[[Inputs], list[np.ndarray]]:
    from ai_edge_litert.interpreter import Interpreter

    def run(inputs: Inputs) -> list[np.ndarray]:
        runner = Interpreter(str(path), num_threads=1)  # LiteRT keeps sizes of subgraphs
        held = {each["name"]: each["index"] for each in runner.get_input_details()}
        pairs = [*by_name([*held], inputs)]
        for name, each in pairs:
            runner.resize_tensor_input(held[name], each.shape)
        runner.allocate_tensors()
        for name, each in pairs:
            runner.set_tensor(held[name], each.numpy())
        runner.invoke()
        return [runner.get_tensor(each["index"]) for each in runner.get_output_details()]

    return run


def by_name(names: Sequence[str], inputs: Inputs) -> Iterator[tuple[str, torch.Tensor]]:
    """Yields the inputs that a file has, in the order of the arguments ``x`` and ``mask``."""
    ordered = dict(zip(("x", "mask"), inputs, strict=False))
    return ((name, ordered[name.partition(":")[0].removeprefix("serving_default_")]) for name in names)


TARGETS = ((".onnx", tmconvert.to_onnx, onnx_runner), (".tflite", tmconvert.to_tflite, litert_runner))


def difference(function: Callable[..., Any], run: Callable[[Inputs], Any], inputs: Sequence[Inputs]) -> str:
    """Returns where a file differs from PyTorch; empty if it does not."""
    for each in inputs:
        try:
            wanted = function(*(tensor.clone() for tensor in each))
        except Exception:  # data, or a size, that the program does not take
            continue
        wanted = [one.numpy() for one in (wanted if isinstance(wanted, tuple) else [wanted])]
        if not all(np.isfinite(one).all() and np.abs(one).max(initial=0) < 1e8 for one in wanted):
            continue
        shown = f"for {[*each[0].shape]}, sum {float(each[0].sum()):.4g}"
        try:
            made = run(each)
        except Exception as error:
            return f"fails {shown}: {str(error)[:300]}"
        for one, two in zip(wanted, made, strict=True):
            scale = max(1.0, float(np.abs(one).max(initial=0)))
            if one.shape != two.shape or np.abs(one - two).max(initial=0) > 2e-3 * scale:
                return f"differs {shown}"
    return ""


def trace(function: Callable[..., Any], inputs: Inputs, how: Mapping[str, Any]) -> Callable[[], Any]:
    """Returns a function that returns the traced program, or raises why it cannot be traced, each time."""
    try:
        made = tmconvert.trace(function, *inputs, **how)
    except (Exception, Slow) as error:
        refusal = error

        def refused() -> Any:
            raise refusal

        return refused
    return lambda: made


def outcomes(program: Program, folder: Path, names: Mapping[str, object]) -> Iterator[tuple[str, str, str]]:
    """Yields the target, a word for what came of the program, and the detail."""
    name, text, inputs, how = program
    path = folder / f"p_{name}.py".replace(" ", "_").replace("'", "").replace(",", "")
    try:
        function = function_of(text, path, names)
        function(*inputs[0])
    except Exception as error:
        yield "source", "not a program", str(error)
        return
    traced: Any = None
    for suffix, write, runner in TARGETS:
        try:
            traced = traced or trace(function, inputs[0], how)
            write(traced(), path.with_suffix(suffix))
            found = difference(function, runner(path.with_suffix(suffix)), inputs)
            yield suffix, "wrong" if found else "right", found
        except TmconvertError as error:
            notes = [note for kind, note in error.notes if kind in ("note", "also")]
            yield (
                suffix,
                f"refused {error.code}",
                f"{error.source}: {'; '.join([error.message, *notes])[:400]}",
            )
        except Slow:
            yield suffix, "slow", ""
        except Exception as error:
            yield suffix, "crashed", f"{type(error).__name__}: {error}"


def stop(number: int, frame: FrameType | None) -> None:
    raise Slow


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--loops", action="store_true", help="run the programs with loops, one a row")
    parser.add_argument("--name", default="", help="run those with this in their names")
    parser.add_argument("--show", action="store_true", help="print the programs that are not right")
    given = parser.parse_args()
    counts: Counter[tuple[str, str]] = Counter()
    names = control_flow_loops.names() if given.loops else {}
    signal.signal(signal.SIGPROF, stop)
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        for each in programs(given):
            if given.name not in each[0]:
                continue
            start = time.process_time()
            signal.setitimer(signal.ITIMER_PROF, LIMIT, LIMIT)  # for each of the targets
            for target, word, detail in outcomes(each, Path(folder), names):
                counts[target, word] += 1
                print(f"{each[0]} {target}: {word}: {detail.replace(folder, '')}", flush=True)
                if given.show and word != "right":
                    print(each[1])
            signal.setitimer(signal.ITIMER_PROF, 0)
            print(f"{each[0]}: {time.process_time() - start:.1f} s", file=sys.stderr)
    for (target, word), count in sorted(counts.items()):
        print(f"{target:8} {word:16} {count}")


if __name__ == "__main__":
    main()
