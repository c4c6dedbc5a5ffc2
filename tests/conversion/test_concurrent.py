"""Conversions in threads and in processes write the same bytes as one after the other."""

from __future__ import annotations

import hashlib
import multiprocessing
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

import tmconvert

SAMPLES = Path(__file__).parents[2] / "samples"
torch.manual_seed(0)
NETS = [
    torch.nn.Sequential(torch.nn.Conv2d(3, 4 + i, 3), torch.nn.ReLU(), torch.nn.Dropout()).eval()
    for i in range(6)
]
FILES = ("digits.tm", "digits_torch.onnx", "digits_qat.tm", "scale_stride_head.tm")


def digest(number: int) -> tuple[str, bool]:
    convert = (tmconvert.to_onnx, tmconvert.to_tflite)[number % 2]
    number //= 2
    if number < len(NETS):
        report = convert(NETS[number], example_inputs=(torch.ones(1, 3, 8, 8 + number),))
    else:
        report = convert(SAMPLES / FILES[number - len(NETS)])
    return hashlib.sha256(report.bytes).hexdigest(), report.verified


@pytest.fixture(scope="module")
def one_by_one() -> list[tuple[str, bool]]:
    return list(map(digest, range(20)))


@pytest.mark.parametrize("kind", ["threads", "fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_bytes_are_those_of_one_by_one(kind: str, one_by_one: list[tuple[str, bool]]) -> None:
    pool: Executor = ThreadPoolExecutor(10)
    if kind != "threads":
        pool = ProcessPoolExecutor(4, mp_context=multiprocessing.get_context(kind))
    with pool:
        assert list(pool.map(digest, range(20), timeout=300)) == one_by_one
    assert all(verified for _, verified in one_by_one)
