"""How many modules of tmconvert the first conversion of a small model imports: a third of its time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.source_tree import ROOT

SAMPLES = ROOT / "samples"
_TRACED = """
import torch
net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU()).eval()
arguments = {"example_inputs": [torch.ones(1, 3, 32, 32)]}
"""
_FILE = "net, arguments = {!r}, {{}}"
_CONVERSION = """
import json, sys
{model}
import tmconvert

called = set()

def remember(frame, event, _):
    importing = "<module>" in (frame.f_code.co_name, frame.f_back and frame.f_back.f_code.co_name)
    if not importing:
        called.add(frame.f_code.co_filename)

def convert():
    return tmconvert.to_onnx(net, {output!r}, **arguments)

sys.setprofile(remember)
report = convert()
sys.setprofile(None)
assert report.verified
ours = {{name: module.__file__ for name, module in sys.modules.items() if name.startswith("tmconvert")}}
unused = [name for name, file in ours.items() if file not in called and not file.endswith("__init__.py")]
print(json.dumps([len(ours), unused, "torch" in sys.modules]))
"""


@pytest.mark.parametrize(
    ("model", "most", "needs_torch"),
    [
        pytest.param(_TRACED, 200, True, id="torch"),
        pytest.param(_FILE.format(str(SAMPLES / "digits_torch.onnx")), 248, False, id="onnx"),
        pytest.param(_FILE.format(str(SAMPLES / "digits.tm")), 239, False, id="tm"),
    ],
)
def test_a_conversion_imports_few_modules(model: str, most: int, needs_torch: bool, tmp_path: Path) -> None:
    if needs_torch:
        pytest.importorskip("torch")
    code = _CONVERSION.format(model=model, output=str(tmp_path / "net.onnx"))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    count, unused, has_torch = json.loads(done.stdout.splitlines()[-1])
    assert count <= most, f"{count} modules, of which only the import ran: {', '.join(sorted(unused))}"
    assert has_torch == needs_torch
