"""tools/on_processor: commands see the processor that was named."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ON_PROCESSOR = Path(__file__).parents[2] / "tools/on_processor"
ASKED = ("sse4.2", "avx", "fma", "avx2", "avx512f", "avx512vnni", "avx512vl")
PROGRAM = """
#include <stdio.h>
int main(void) {
    __builtin_cpu_init();
    SUPPORTS
    return 0;
}
"""


def run(*arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ON_PROCESSOR, *arguments]
    return subprocess.run(command, env=os.environ | variables, capture_output=True, text=True)


def needs(*names: str) -> pytest.MarkDecorator:
    """A mark, whose condition is text, so that collection starts no process."""
    condition = f"not all(map(is_here, {names}))"
    return pytest.mark.skipif(condition, reason=f"tools/on_processor --list: {', '.join(names)}")


@cache
def is_here(name: str) -> bool:
    return run("--has", name).returncode == 0


@pytest.fixture
def supports(tmp_path: Path) -> Path:
    """A program that prints which instruction sets it sees."""
    asked = "".join(f'if (__builtin_cpu_supports("{name}")) puts("{name}");' for name in ASKED)
    source, built = tmp_path / "supports.c", tmp_path / "supports"
    source.write_text(PROGRAM.replace("SUPPORTS", asked))
    subprocess.run(["cc", "-o", built, source], check=True)
    return built


@pytest.mark.slow
@needs("avx2", "sse")
@pytest.mark.parametrize(("name", "last"), [("avx2", "avx2"), ("sse", "sse4.2")])
def test_the_mask_hides_what_the_processor_lacks(name: str, last: str, supports: Path) -> None:
    native = subprocess.run([supports], capture_output=True, text=True, check=True).stdout.split()
    found = run(name, supports, XDG_CACHE_HOME=str(supports.parent / "cache"))
    assert (found.returncode, found.stderr) == (0, "")
    known = ASKED[: ASKED.index(last) + 1]
    assert found.stdout.split() == [each for each in known if each in native]


@pytest.mark.slow
@needs("avx2")
def test_a_changed_library_is_disassembled_again(supports: Path) -> None:
    cache = supports.parent / "cache"
    for _ in range(2):
        assert run("avx2", supports, XDG_CACHE_HOME=str(cache)).returncode == 0
    lists = set(cache.rglob("*supports*"))
    assert len(lists) == 1
    supports.write_bytes(supports.read_bytes() + b"\0")
    assert "avx512f" not in run("avx2", supports, XDG_CACHE_HOME=str(cache)).stdout.split()
    assert len(set(cache.rglob("*supports*")) - lists) == 1


@needs("haswell", "nehalem")
def test_emulated_processors(supports: Path) -> None:
    found = {name: run(name, supports) for name in ("haswell", "nehalem")}
    assert not any(each.stderr for each in found.values())
    assert found["haswell"].stdout.split() == ["sse4.2", "avx", "fma", "avx2"]
    assert found["nehalem"].stdout.split() == ["sse4.2"]


@pytest.mark.slow
@needs("sse")
def test_kernels_that_are_chosen_for_this_machine_are_not_chosen_for_another() -> None:
    assert run("sse", "printenv", "OPENBLAS_CORETYPE", OPENBLAS_CORETYPE="Haswell").stdout == ""


@pytest.mark.slow
@needs("haswell")
def test_scripts_run_in_their_interpreter(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text(f"#!/usr/bin/env {sys.executable}\nimport sys\nprint(sys.argv[1:])\n")
    script.chmod(0o755)
    found = run("haswell", script, "a b", "--flag")
    assert (found.stdout, found.stderr) == ("['a b', '--flag']\n", "")


@pytest.mark.parametrize("name", ["avx2", "haswell", "arm64"])
def test_what_is_missing_is_named(name: str, tmp_path: Path) -> None:
    found = run(name, "true", PATH=str(tmp_path))
    assert found.returncode == 126
    assert found.stderr.startswith(f"on_processor: {name} needs ")
    assert "(Debian package " in found.stderr
    assert run("--has", name, PATH=str(tmp_path)).returncode == 1
    assert "not on this machine; it needs" in run("--list", PATH=str(tmp_path)).stdout


@pytest.mark.parametrize("arguments", [(), ("avx2",), ("z80", "true"), ("--has", "z80")])
def test_wrong_usage(arguments: tuple[str, ...]) -> None:
    found = run(*arguments)
    assert found.returncode == 2
    assert "usage: tools/on_processor NAME COMMAND" in found.stderr


@needs("arm64")
def test_arm64_has_python_only() -> None:
    found = run("arm64", "ls")
    assert found.returncode == 126
    assert "arm64 has Python only" in found.stderr
