"""Statistics are merged exactly: a calibration does not depend on who measures the samples."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tmconvert
from tmconvert.calibration.data import Samples, spread
from tmconvert.calibration.measuring import CHUNK, Chunk, Measures, Observed, Statistics, distributing
from tmconvert.calibration.ranges import Histogram
from tmconvert.errors import UsageError
from tmconvert.ir.types import TensorType

DIGITS = Path(__file__).parents[2] / "samples" / "digits.tm"
FLOAT = TensorType(np.dtype(np.float32), (1, 3))


def state(histogram: Histogram) -> list[Any]:
    return [value.tolist() if isinstance(value, np.ndarray) else value for value in vars(histogram).values()]


@pytest.mark.parametrize("seed", range(6))
def test_histograms_do_not_depend_on_order_and_parts(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scales = 10.0 ** rng.integers(-6, 7, 9)
    arrays = [(rng.normal(size=(3, 5)) * scale).astype(np.float32) for scale in scales]
    arrays += [
        np.zeros((2, 2), np.float32),
        np.abs(arrays[0]),
        np.array([-np.inf, 1.5], np.float32),
        arrays[1],
    ]
    whole = Histogram()
    for array in arrays:
        whole.add(array)
    parts: list[Histogram] = []
    for some in np.array_split(rng.permutation(len(arrays)), 4):
        parts.append(Histogram())
        for number in some:
            parts[-1].add(arrays[number])
    merged = Histogram()
    for part in parts:
        merged.merge(part)
    assert state(merged) == state(whole)
    assert whole.counts.sum() == sum(np.isfinite(array).sum() for array in arrays)
    inside = [array[np.isfinite(array)] for array in arrays]
    bins = np.floor(np.concatenate(inside).astype(np.float64) / whole.width).astype(int) - whole.first
    np.testing.assert_array_equal(whole.counts, np.bincount(bins, minlength=len(whole.counts)))


def elsewhere(asked: list[int]) -> Any:
    """A function that measures chunks as another process does, in another order."""

    def distribute(measure: Measures, work: Observed, chunks: Sequence[Chunk]) -> Iterable[Statistics]:
        asked.append(len(chunks))
        found: dict[Chunk, Statistics] = {}
        common = pickle.loads(pickle.dumps(work))
        for chunk in reversed(chunks):
            found[chunk] = pickle.loads(pickle.dumps(measure(common, chunk)))
        return [found[chunk] for chunk in chunks]

    return distribute


@pytest.mark.slow
def test_a_calibration_elsewhere_gives_the_same_bytes(tmp_path: Path) -> None:
    images = np.random.default_rng(0).random((2 * CHUNK + 5, 1, 8, 8), np.float32)
    (tmp_path / "data").mkdir()
    np.savez(tmp_path / "data/a.npz", x=images[:40])
    np.save(tmp_path / "data/b.npy", images[40:])
    heard: list[tuple[int, int]] = []
    tmconvert.calibrate(DIGITS, tmp_path / "data", output=tmp_path / "here.tm")
    asked: list[int] = []
    with distributing(elsewhere(asked)):
        tmconvert.calibrate(
            DIGITS,
            tmp_path / "data",
            output=tmp_path / "there.tm",
            progress=lambda done, total: heard.append((done, total)),
        )
    assert asked == [3, 3, 3]  # equalization, ranges, biases
    assert heard == [(CHUNK, 69), (2 * CHUNK, 69), (69, 69)]
    assert (tmp_path / "here.tm").read_bytes() == (tmp_path / "there.tm").read_bytes()


def test_errors_elsewhere_name_the_sample(tmp_path: Path) -> None:
    images = np.zeros((CHUNK + 3, 1, 8, 8), np.float32)
    images[CHUNK + 1] = np.nan
    np.savez(tmp_path / "a.npz", x=images)
    with distributing(elsewhere([])), pytest.raises(UsageError, match=f"in sample {CHUNK + 2}") as error:
        tmconvert.calibrate(DIGITS, tmp_path / "a.npz")
    again = pickle.loads(pickle.dumps(error.value))
    assert (type(again), str(again), again.notes) == (UsageError, str(error.value), error.value.notes)


@pytest.mark.parametrize(("first", "end"), [(0, 2), (1, 6), (4, 5), (6, 9), (9, 12)])
def test_parts_of_data(first: int, end: int, tmp_path: Path) -> None:
    rows = np.arange(27, dtype=np.float32).reshape(9, 3)
    for name, some in (("a", rows[:5]), ("b", rows[5:6]), ("c", rows[6:])):
        np.save(tmp_path / f"{name}.npy", some)
    samples = Samples(tmp_path, [("x", FLOAT)])
    assert samples.exact_count() == 9
    found = [sample[0][0].tolist() for sample in samples.part(first, end)]
    assert found == rows[first:end].tolist()


def test_a_loader_is_read_no_further_than_for_the_first_samples() -> None:
    class Loader:
        """Makes samples as it is iterated."""

        made = 0

        def __iter__(self) -> Iterator[dict[str, np.ndarray]]:
            for number in range(100):
                Loader.made += 1
                yield {"x": np.full(3, number, np.float32)}

    found, about = spread(Samples(Loader(), [("x", FLOAT)]), "the data passed", 4)
    assert [sample[0][0, 0] for sample in found] == [0, 1, 2, 3]
    assert (about, Loader.made) == ("the first 4 samples of the data passed", 4)


@pytest.mark.parametrize("places", [[], [0], [8], [1, 4, 5, 8], [2, 3], list(range(9))])
def test_single_samples_of_data(places: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.arange(27, dtype=np.float32).reshape(9, 3)
    for name, some in (("a", rows[:5]), ("b", rows[5:6]), ("c", rows[6:])):
        np.save(tmp_path / f"{name}.npy", some)
    counted: list[object] = []
    count = Samples._count
    monkeypatch.setattr(Samples, "_count", lambda self, source: counted.append(source) or count(self, source))
    samples = Samples(tmp_path, [("x", FLOAT)])
    assert [sample[0][0].tolist() for sample in samples.at(places)] == rows[places].tolist()
    assert len(counted) == len(set(counted)) <= 3
