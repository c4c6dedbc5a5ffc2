"""Lists of one number as often as a size tells: ``[0] * n``."""

from __future__ import annotations

from typing import Any


class RepeatedNumber(list[Any]):
    """``[number] * n``, with the traced size ``n``: a tensor of it is one that is filled."""

    def __init__(self, numbers: list[Any], repeats: int) -> None:
        super().__init__(numbers)
        self.repeats = repeats

    @property
    def filled(self) -> tuple[Any, ...]:
        """The arguments of ``torch.full``; empty if the list was changed, or has other elements."""
        is_same = len(self) == int.__int__(self.repeats) and all(each is self[0] for each in self)
        return ((self.repeats,), self[0]) if is_same and self and isinstance(self[0], (int, float)) else ()
