"""The samples of surgery run, and print what they are meant to."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.runner import environment

ROOT = Path(__file__).parents[2]
PRINTED = {
    "profile_layers": r"call +result +ms +%\n(.+\n){10}",
    "propagate_shapes": r"placeholder +x +float32\[5, 1, 8, 8\]\n(.+\n)+.*classifier_out +float32\[5, 10\]",
    "fuse_conv_bn": r"6 batch norms were fused; outputs differ by \d\.\de-0[5-9]",
    "fake_quantize": r"6 convolutions; accuracy 0\.99 before, (0\.9[5-9]|1\.00) after",
    "inverted_dropout": r"3 factors went into weights, 0 are left; outputs differ by \d\.\de-0[6-9]",
}


def test_each_sample_is_tried() -> None:
    found = {path.stem for path in (ROOT / "samples/surgery").glob("*.py")}
    assert found >= set(PRINTED)


@pytest.mark.parametrize("name", PRINTED)
def test_a_sample(name: str, tmp_path: Path) -> None:
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    done = subprocess.run(
        [sys.executable, f"samples/surgery/{name}.py"],
        cwd=tmp_path,
        env=environment(PYTHONPATH=str(ROOT)),
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(PRINTED[name], done.stdout), done.stdout
