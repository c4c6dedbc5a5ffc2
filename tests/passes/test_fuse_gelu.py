"""Long chains of sums and products: the search for a GELU ends after a few steps."""

from __future__ import annotations

from pathlib import Path

import pytest

import tmconvert

torch = pytest.importorskip("torch")


class Doubled(torch.nn.Module):
    """Each step uses the one before twice: 2 ** 40 paths lead from the last step to the input."""

    def __init__(self, is_product: bool) -> None:
        super().__init__()
        self.is_product = is_product

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x * 0.5
        for _ in range(40):
            y = y * y if self.is_product else y + y
        return 0.5 * y * (1 + torch.erf(x)) if self.is_product else 0.5 * x * (1 + torch.tanh(y))


@pytest.mark.parametrize("is_product", [False, True])
def test_a_chain_with_many_paths_is_no_gelu(is_product: bool, tmp_path: Path) -> None:
    x = torch.linspace(-2, 2, 6)
    report = tmconvert.to_onnx(Doubled(is_product), tmp_path / "net.onnx", example_inputs=[x], verify=False)
    assert report.paths
