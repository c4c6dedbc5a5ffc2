"""The loss of connectionist temporal classification."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from .harness import check

X = torch.randn(6, 3, 4, generator=torch.Generator().manual_seed(0)).log_softmax(2)
LABELS = torch.tensor([[1, 1, 2], [3, 2, 1], [2, 2, 2]])
STEPS, COUNTS = torch.tensor([6, 5, 6]), torch.tensor([3, 2, 3])
# the last has too few steps for its labels, the second none for none
FEW, NONE = torch.tensor([6, 0, 4]), torch.tensor([1, 0, 3])
FORMS: dict[str, Callable[..., Any]] = {
    "each": lambda x, t, n, m: F.ctc_loss(x, t, n, m, reduction="none"),
    "mean": lambda x, t, n, m: F.ctc_loss(x, t, n, m, zero_infinity=True),
    "sum": lambda x, t, n, m: torch.ctc_loss(x, t, n, m, 0, 2, False),
    "another blank": lambda x, t, n, m: F.ctc_loss(x, 3 - t.clamp(max=2), n, m, 3, "none", True),
    "doubles": lambda x, t, n, m: F.ctc_loss(x.double(), t.int(), n, m, reduction="none"),
    "fixed lengths": lambda x, t, n, m: F.ctc_loss(x, t, (6, 5, 6), (3, 2, 1), reduction="none"),
    "in a row": lambda x, t, n, m: F.ctc_loss(x, t.flatten()[:8], (6, 5, 6), (3, 2, 3)),
    "alone": lambda x, t, n, m: F.ctc_loss(x[:, 0], t[0], n[0], m.max(), reduction="none"),
    "a layer": lambda x, t, n, m: torch.nn.CTCLoss(reduction="sum")(x, t, n, m),
    "one label": lambda x, t, n, m: F.ctc_loss(x, t[:, :1], n, m.clamp(max=1), reduction="none"),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms(form: str) -> None:
    second = (X.flip(1), LABELS.flip(0), FEW, NONE)
    check(FORMS[form], X, LABELS, STEPS, COUNTS, second=second, tolerance=1e-5)


def test_labels_in_a_row_of_lengths_in_the_data() -> None:
    def loss(x: torch.Tensor, row: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        return F.ctc_loss(x, row, STEPS, counts, reduction="none")

    row, second = torch.tensor([1, 1, 2, 3, 2]), (X, torch.tensor([3, 3, 3, 1, 2]), torch.tensor([1, 3, 1]))
    check(loss, X, row, torch.tensor([2, 1, 2]), opsets=(9, 17), second=second, tolerance=1e-5)
