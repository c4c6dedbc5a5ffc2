"""Notes of a report about weights that are stored in fewer bits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def size_notes(kind: str, weights: Iterable[tuple[str, int, int]]) -> Iterator[str]:
    """Yields the sizes by type; ``weights`` are the type of each, and its bytes before and after.

    >>> list(size_notes("int8", [("int8", 4_000_000, 1_020_000)]))
    ['weights as int8: 1.02 MB instead of 4.00 MB, in 1 tensor']
    """
    sizes: dict[str, list[tuple[int, int]]] = {}
    for type, before, after in weights:
        sizes.setdefault(type, []).append((before, after))
    if not sizes:
        yield f"no weights are stored as {kind}: there are none of 1024 elements and more for which it pays"
    for type in sorted(sizes):
        before, after = (sum(each) / 1e6 for each in zip(*sizes[type], strict=True))
        of = "1 tensor" if len(sizes[type]) == 1 else f"{len(sizes[type])} tensors"
        yield f"weights as {type}: {after:.2f} MB instead of {before:.2f} MB, in {of}"
