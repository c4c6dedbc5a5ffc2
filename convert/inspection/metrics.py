"""Metrics of tasks, computed exactly."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def spearman(one: Sequence[float], other: Sequence[float]) -> float:
    """Returns Spearman's rank correlation: Pearson's of the ranks, with equal values at their mean rank.

    >>> round(spearman([1, 2, 3, 4, 5], [5, 6, 7, 8, 7]), 4)
    0.8208
    """
    ranks = np.stack([_ranks(np.asarray(each, np.float64)) for each in (one, other)])
    ranks -= ranks.mean(axis=1, keepdims=True)
    norms = np.linalg.norm(ranks, axis=1)
    return float(ranks[0] @ ranks[1] / norms.prod()) if norms.all() else float("nan")


def _ranks(values: np.ndarray) -> np.ndarray:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks: np.ndarray = (ends - (counts - 1) / 2)[inverse]
    return ranks


def word_errors(wanted: Sequence[str], found: Sequence[str]) -> int:
    """Returns the least number of words to insert, delete or replace (the distance of Levenshtein).

    >>> word_errors("the cat sat on the mat".split(), "the cat sit on mat".split())
    2
    """
    row = np.arange(len(found) + 1)
    places = row.copy()
    for number, word in enumerate(wanted, 1):
        other = np.array([word != each for each in found], row.dtype)
        best = np.minimum(row[:-1] + other, row[1:] + 1)
        # an insertion follows on the least of those before: running minimum of value - place
        row = np.minimum.accumulate(np.concatenate([[number], best]) - places) + places
    return int(row[-1])


def log_likelihoods(logits: np.ndarray, tokens: np.ndarray) -> np.ndarray:
    """Returns the natural logarithm of the probability of ``tokens`` [n] under ``logits`` [n, vocabulary]."""
    logits = logits.astype(np.float64)
    largest = logits.max(axis=-1, keepdims=True)
    sums = np.log(np.exp(logits - largest).sum(axis=-1)) + largest[:, 0]
    found: np.ndarray = np.take_along_axis(logits, tokens[:, None].astype(np.int64), -1)[:, 0] - sums
    return found
