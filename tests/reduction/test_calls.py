"""The text of recorded calls runs as Python, and computes what the module does."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


class Net(torch.nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("factor", torch.tensor(2.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:  # type: ignore[name-defined]
        y = x[..., ::2, 1:].roll((1, -1), dims=(0, 1)).clamp(min=float("-inf"))
        y[:, 0] = 2.0
        values, places = torch.topk(y.mT, 2, dim=-1)
        a, (b, c) = values, values.split([2, 1], dim=1)
        a += places.to(torch.float32)
        factor = self.factor.to("cpu")  # the same tensor
        return torch.cat([a, b, c, x.new_ones(3, 2)[None]], 1).softmax(-1) * factor


def test_the_program_computes_what_the_module_does(tmp_path: Path) -> None:
    from tmconvert.frontends.torch.tracing.programs.eager_calls import program_of_module
    from tmconvert.frontends.torch.written_calls import Edits

    x = torch.rand(1, 4, 4)
    program = program_of_module(Net(), (x.clone(),), {}, False)
    written = program.write(range(len(program.calls)), Edits(), "# calls")
    assert written is not None and written.inputs == ["float32[1,4,4]"]
    names: dict[str, object] = {}
    exec(written.text, names)
    made = names["Reduced"]()(x.clone())  # type: ignore[operator]
    made = made if isinstance(made, torch.Tensor) else made[-1]
    assert torch.equal(made, Net()(x.clone()))
