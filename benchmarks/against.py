"""Compares the time of start-up and conversions with that of another revision, by turns.

    git worktree add ../other REVISION && python3 -m venv ../other/.venv
    ../other/.venv/bin/pip install -e '../other[torch,runtimes]'
    python benchmarks/against.py ../other/.venv/bin/python                    # all cases
    python benchmarks/against.py ../other/.venv/bin/python --only help,digits --runs 31

The argument is the interpreter in whose environment the other revision is installed; this one is the
interpreter that runs the script. Each case is a new process, this and the other by turns, so that other
work on the machine slows both; each is first in half of the turns, since the files of one may still be on
their way to the disk when the other begins. Byte code is stored, as an installation has it, in the first
run of each, which is not counted.

"Elapsed" is what a user waits for; "processor" is user and system time of the process and of all processes
that it started and waited for, such as the worker of the runtimes, which run at the same time. For functions
that take PyTorch models both exclude what is before the conversion: the imports of PyTorch, and the model;
"elapsed" ends with the conversion, not with the process that has PyTorch in it.

Prints medians in seconds, their ratio, and the median ratio of two neighbouring runs.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
DIGITS = str(ROOT / "samples" / "digits.tm")
SUFFIXES = {"onnx": ".onnx", "tflite": ".tflite", "caffe": ".prototxt"}
MODELS = {
    "swin_t": """
import torchvision_ops
torchvision_ops.declare()
import torchvision
model = torchvision.models.swin_t(weights=None)
inputs = (torch.randn(1, 3, 224, 224),)
""",
    "resnet50": """
import torchvision_ops
torchvision_ops.declare()
import torchvision
model = torchvision.models.resnet50(weights=None)
inputs = (torch.randn(1, 3, 224, 224),)
""",
    "bert": """
import torchvision_ops
torchvision_ops.declare()  # transformers imports torchvision
import transformers
class Tokens(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = transformers.BertModel(transformers.BertConfig(num_hidden_layers=4))
    def forward(self, tokens):
        return self.net(input_ids=tokens).last_hidden_state
model, inputs = Tokens(), (torch.randint(0, 1000, (1, 128)),)
""",
}
BEFORE = """
import os, sys, time, warnings
warnings.simplefilter("ignore")
sys.path.append({folder!r})
import torch
torch.set_num_threads(1)
torch.manual_seed(0)
"""
CONVERSION = """
model.eval()
with torch.no_grad():
    model(*inputs)
print(time.process_time(), time.time(), flush=True)
import tmconvert
"""
END = "\nprint(time.time(), flush=True)"
FACTORY = """

def make():
{made}
    return model.eval(), inputs
"""


class Case(NamedTuple):
    """``arguments`` are those of Python; with ``starts_late`` the process prints its times at the start, and
    the time at the end. ``module`` is the text of net.py in its working folder.
    """

    name: str
    arguments: list[str]
    starts_late: bool = False
    module: str = ""


class Times(NamedTuple):
    """Seconds of one run."""

    elapsed: float
    processor: float


def cases() -> list[Case]:
    found = [Case("help", ["-m", "tmconvert", "--help"])]
    for target, suffix in SUFFIXES.items():
        found.append(Case(f"digits {target}", ["-m", "tmconvert", target, DIGITS, f"out{suffix}"]))
        code = f"import tmconvert; tmconvert.to_{target}({DIGITS!r}, 'out{suffix}')"
        found.append(Case(f"to_{target}(digits)", ["-c", code]))
    for model, made in MODELS.items():
        imports = BEFORE.format(folder=str(Path(__file__).parent))
        factory = imports + FACTORY.format(made=textwrap.indent(made, "    "))
        before = imports + made + CONVERSION
        for target in ("onnx", "tflite"):
            path = f"out{SUFFIXES[target]}"
            command = ["-m", "tmconvert", target, "net:make", path]
            found.append(Case(f"{model} {target}", command, module=factory))
            call = f"tmconvert.to_{target}(model, {path!r}, example_inputs=inputs)"
            found.append(Case(f"to_{target}({model})", ["-c", f"{before}{call}{END}"], starts_late=True))
        code = f"{before}tmconvert.trace(model, *inputs){END}"
        found.append(Case(f"trace({model})", ["-c", code], starts_late=True))
    return found


def environment() -> dict[str, str]:
    """Variables of the measured processes: one thread, and byte code is written."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def seconds(interpreter: str, case: Case) -> Times:
    """Returns the times of a case. Raises CalledProcessError when it fails."""
    command = [interpreter, *case.arguments]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with tempfile.TemporaryDirectory() as folder:
        if case.module:
            Path(folder, "net.py").write_text(case.module, encoding="utf-8")
        start = time.time()
        with subprocess.Popen(command, cwd=folder, env=environment(), **streams) as process:
            assert process.stdout is not None
            printed = process.stdout.read()
            _, status, usage = os.wait4(process.pid, 0)
            end = time.time()
            process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    before = 0.0
    if case.starts_late:
        lines = printed.splitlines()
        before, start = map(float, lines[0].split())
        end = float(lines[-1])
    return Times(end - start, usage.ru_utime + usage.ru_stime - before)


def pair_of(other: str, case: Case, number: int) -> tuple[Times, Times]:
    """Returns the times of the other revision and of this one; which is first changes with the number."""
    order = (other, sys.executable) if number % 2 else (sys.executable, other)
    times = {interpreter: seconds(interpreter, case) for interpreter in order}
    return times[other], times[sys.executable]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("other", help="interpreter of the environment with the other revision")
    parser.add_argument("--only", default="", help="words, with commas: cases whose name has one of them")
    parser.add_argument("--runs", type=int, default=15)
    options = parser.parse_args()
    other = str(Path(options.other).absolute())
    words = options.only.split(",")
    print(f"{'case':20}{'time':10}{'other':>9}{'this':>9}{'ratio':>8}{'of pairs':>10}")
    for case in cases():
        if not any(word in case.name for word in words):
            continue
        pairs = [pair_of(other, case, number) for number in range(options.runs + 1)][1:]
        for kind in Times._fields:
            times = [(getattr(yours, kind), getattr(mine, kind)) for yours, mine in pairs]
            theirs, ours = (statistics.median(column) for column in zip(*times, strict=True))
            of_pairs = statistics.median(mine / yours for yours, mine in times)
            row = f"{theirs:9.3f}{ours:9.3f}{ours / theirs:8.3f}{of_pairs:10.3f}"
            print(f"{case.name:20}{kind:10}{row}", flush=True)


if __name__ == "__main__":
    main()
