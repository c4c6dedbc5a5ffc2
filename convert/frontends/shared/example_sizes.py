"""Examples for open sizes, with which a graph is first run: of the batch, of images, and of others.

A model with larger windows has larger examples, since it computes nothing of fewer elements.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

BATCH, IMAGE, OTHER = 2, 64, 8
LARGE_IMAGE, LARGEST = 224, 1 << 14


class Window(NamedTuple):
    """A window of a convolution or pooling: its extents, and whether it averages."""

    extents: Sequence[int]
    is_average: bool = False


class ExampleSizes(NamedTuple):
    """The examples for sizes of images, and of other inputs."""

    image: int = IMAGE
    other: int = OTHER


def example_sizes(windows: Iterable[Window]) -> ExampleSizes:
    """Returns sizes above twice the windows along one axis, and for a picture that is pooled by large windows
    in the end.

    >>> example_sizes([Window([3, 3]), Window([512])])
    ExampleSizes(image=64, other=1024)
    """
    image, other = IMAGE, OTHER
    for window in windows:
        if len(window.extents) == 1:
            other = max(other, min(2 * window.extents[0], LARGEST))
        elif len(window.extents) == 2 and window.is_average and max(window.extents) > 3:
            image = LARGE_IMAGE
    return ExampleSizes(image, other)
