"""Large arrays that are pages of a temporary file."""

from __future__ import annotations

import errno
import os

import ml_dtypes
import numpy as np
import pytest

from tmconvert.errors import WriteError
from tmconvert.output.scratch import scratch_array, scratch_copy


@pytest.mark.parametrize("dtype", [np.float32, np.int64, ml_dtypes.bfloat16])
@pytest.mark.parametrize("shape", [(), (0, 3), (3, 5), (3000, 2001)])
def test_a_copy_has_the_elements(shape: tuple[int, ...], dtype: type) -> None:
    array = (
        np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)[..., ::-1].T
        if shape
        else np.ones(shape, dtype)
    )
    copy = scratch_copy(array)
    assert copy.dtype == array.dtype and copy.flags.c_contiguous and not np.shares_memory(copy, array)
    np.testing.assert_array_equal(copy, array)


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="files are allocated when they are written")
def test_a_full_disk_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int, offset: int, size: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(WriteError, match="TM5001"):
        scratch_array((4096, 4096), np.dtype(np.float32))
