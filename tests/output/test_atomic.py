"""Output files appear whole or not at all."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tmconvert.errors import WriteError
from tmconvert.output.atomic import (
    StagedOutput,
    atomic_output,
    atomic_outputs,
    commit_together,
    reserve,
    staged_outputs,
    temporary_folder,
    write_error,
)
from tmconvert.output.leftovers import remove_abandoned


class Stopped(Exception):
    pass


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_file_appears_when_the_block_ends(tmp_path: Path) -> None:
    target = tmp_path / "out.onnx"
    with atomic_output(target) as file:
        file.write(b"ab")
        file.write(b"c")
        assert not target.exists()
    assert target.read_bytes() == b"abc"
    assert names(tmp_path) == ["out.onnx"]


def test_an_exception_leaves_the_older_file(tmp_path: Path) -> None:
    target = tmp_path / "out.onnx"
    target.write_bytes(b"older")
    with pytest.raises(Stopped), atomic_output(target) as file:
        file.write(b"newer")
        raise Stopped
    assert target.read_bytes() == b"older"
    assert names(tmp_path) == ["out.onnx"]


def test_an_os_error_of_the_caller_is_not_taken_for_a_failed_write(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), atomic_output(tmp_path / "out.onnx"):
        raise FileNotFoundError(errno.ENOENT, "weights are gone")
    assert names(tmp_path) == []


def test_staged_file_can_be_checked_under_its_own_name(tmp_path: Path) -> None:
    with staged_outputs(tmp_path / "out.onnx") as (staged,):
        staged.file.write(b"abc")
        staged.finish()
        assert staged.path.read_bytes() == b"abc"
        assert staged.path.parent == tmp_path
        assert staged.path.name.startswith(".out.")
        assert staged.path.suffix == ".onnx"
    assert names(tmp_path) == []


def test_two_writers_of_one_target_do_not_meet(tmp_path: Path) -> None:
    with staged_outputs(tmp_path / "out.onnx", tmp_path / "out.onnx") as (first, second):
        assert first.path != second.path


def test_discard_after_commit_keeps_the_file(tmp_path: Path) -> None:
    staged = StagedOutput(tmp_path / "out.tflite")
    staged.file.write(b"abc")
    staged.commit()
    staged.discard()
    assert (tmp_path / "out.tflite").read_bytes() == b"abc"


def test_several_files_appear_together(tmp_path: Path) -> None:
    targets = [tmp_path / "out.prototxt", tmp_path / "out.caffemodel"]
    with pytest.raises(Stopped), atomic_outputs(*targets) as (first, second):
        first.write(b"a")
        raise Stopped
    assert names(tmp_path) == []
    with atomic_outputs(*targets) as (first, second):
        first.write(b"a")
        second.write(b"b")
    assert [target.read_bytes() for target in targets] == [b"a", b"b"]
    assert names(tmp_path) == ["out.caffemodel", "out.prototxt"]


@pytest.mark.parametrize("older", [b"older", None])
def test_a_failing_second_rename_undoes_the_first(tmp_path: Path, older: bytes | None) -> None:
    first, second = tmp_path / "out.prototxt", tmp_path / "out.caffemodel"
    if older is not None:
        first.write_bytes(older)
    with pytest.raises(WriteError, match=r"out\.caffemodel"), staged_outputs(first, second) as outputs:
        outputs[0].file.write(b"newer")
        second.mkdir()
        commit_together(outputs)
    assert (first.read_bytes() if first.exists() else None) == older
    assert names(tmp_path) == ["out.caffemodel"] + ([] if older is None else ["out.prototxt"])


def test_a_symbolic_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    link = tmp_path / "out.onnx"
    link.symlink_to(tmp_path / "real" / "model.onnx")
    with atomic_output(link) as file:
        file.write(b"abc")
    assert link.is_symlink()
    assert names(tmp_path / "real") == ["model.onnx"]


def test_permissions_are_those_of_any_new_file_or_of_the_older_one(tmp_path: Path) -> None:
    plain, target = tmp_path / "plain", tmp_path / "out.onnx"
    plain.write_bytes(b"")
    with atomic_output(target) as file:
        file.write(b"a")
    assert target.stat().st_mode == plain.stat().st_mode
    target.chmod(0o640)
    with atomic_output(target) as file:
        file.write(b"b")
    assert target.stat().st_mode & 0o777 == 0o640


def test_missing_folder(tmp_path: Path) -> None:
    target = tmp_path / "nowhere" / "out.onnx"
    with pytest.raises(WriteError) as caught, atomic_output(target):
        pass
    assert str(caught.value) == (
        f"error[TM5001]: cannot write {target}: No such file or directory\n   = help: create the folder first"
    )
    assert caught.value.exit_status == 1


def test_target_is_a_folder(tmp_path: Path) -> None:
    with pytest.raises(WriteError) as caught, atomic_output(tmp_path):
        pass
    assert str(caught.value) == (
        f"error[TM5001]: cannot write {tmp_path}: Is a directory\n"
        "   = help: pass the path of a file, not of a folder"
    )


def test_a_part_of_the_path_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(WriteError, match="Not a directory"), atomic_output(tmp_path / "file" / "out.onnx"):
        pass


def test_a_pipe_is_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(WriteError, match="a device or a pipe"), atomic_output(tmp_path / "pipe"):
        pass
    assert (tmp_path / "pipe").is_fifo()


@pytest.mark.parametrize("name", ["x" * 300 + ".onnx", "a\0b.onnx"])
def test_impossible_names(tmp_path: Path, name: str) -> None:
    with pytest.raises(WriteError, match="cannot write"), atomic_output(tmp_path / name) as file:
        file.write(b"a")
    assert names(tmp_path) == []


def test_the_longest_possible_name(tmp_path: Path) -> None:
    name = "é" * 125 + ".onnx"
    with atomic_output(tmp_path / name) as file:
        file.write(b"a")
    assert names(tmp_path) == [name]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
@pytest.mark.parametrize("forbidden", ["folder", "file"])
def test_no_permission(tmp_path: Path, forbidden: str) -> None:
    target = tmp_path / "out.onnx"
    target.write_bytes(b"older")
    (tmp_path if forbidden == "folder" else target).chmod(0o500)
    with pytest.raises(WriteError, match="Permission denied"), atomic_output(target):
        pass
    tmp_path.chmod(0o700)
    assert target.read_bytes() == b"older"


@pytest.mark.parametrize("reserved", [False, True])
@pytest.mark.parametrize("size", [10, 100_000, 5_000_000])
def test_no_room_left(tmp_path: Path, size: int, reserved: bool) -> None:
    """A limit on file sizes stands in for a full disk: write fails in the same place."""
    target = tmp_path / "out.onnx"
    target.write_bytes(b"older")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size - 1, before[1]))
    try:
        with pytest.raises(WriteError, match=r"out\.onnx: File too large"), atomic_output(target) as file:
            if reserved:
                reserve(file, size)
            else:
                file.write(b"x" * size)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert target.read_bytes() == b"older"
    assert names(tmp_path) == ["out.onnx"]


def test_a_file_can_be_read_before_it_is_on_the_disk_but_has_no_name_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_read, flushed = threading.Event(), list[int]()

    def slow(descriptor: int) -> None:
        assert is_read.wait(10)
        flushed.append(descriptor)

    monkeypatch.setattr(os, "fsync", slow)
    targets = [tmp_path / "out.prototxt", tmp_path / "out.caffemodel"]
    with staged_outputs(*targets) as outputs:
        for output in outputs:
            output.file.write(b"newer")
            output.finish()
            assert output.path.read_bytes() == b"newer"
        assert not flushed
        is_read.set()
        for output in outputs:
            output.wait_for_disk()
        assert len(flushed) == 2 and not any(target.exists() for target in targets)
        commit_together(outputs)
    assert names(tmp_path) == ["out.caffemodel", "out.prototxt"]


def test_a_process_that_may_start_no_thread_flushes_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed, fsync = list[int](), os.fsync

    def refused(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    def counted(descriptor: int) -> None:
        flushed.append(descriptor)
        fsync(descriptor)

    monkeypatch.setattr(threading.Thread, "start", refused)
    monkeypatch.setattr(os, "fsync", counted)
    with staged_outputs(tmp_path / "out.onnx") as outputs:
        outputs[0].file.write(b"newer")
        outputs[0].finish()
        assert len(flushed) == 1
        commit_together(outputs)
    assert (tmp_path / "out.onnx").read_bytes() == b"newer"


@pytest.mark.parametrize("bad", [0, 1])
def test_a_flush_that_fails_leaves_the_older_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bad: int
) -> None:
    """Some file systems find out only then that the disk is full."""
    targets = [tmp_path / "a.onnx", tmp_path / "b.data"]
    for target in targets:
        target.write_bytes(b"older")
    fsync, inode = os.fsync, list[int]()

    def full(descriptor: int) -> None:
        if os.fstat(descriptor).st_ino in inode:
            raise OSError(errno.ENOSPC, "")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with (
        pytest.raises(WriteError, match=rf"{targets[bad].name}: No space left"),
        staged_outputs(*targets) as outputs,
    ):
        inode.append(outputs[bad].path.stat().st_ino)
        commit_together(outputs)
    assert [target.read_bytes() for target in targets] == [b"older", b"older"]
    assert names(tmp_path) == ["a.onnx", "b.data"]


@pytest.mark.parametrize(
    ("number", "help_text"),
    [
        (errno.ENOSPC, "the disk is full: free some space, or write to another disk"),
        (errno.EACCES, "choose a folder and a file for which you have write permission"),
        (errno.EROFS, "this disk is read-only: write to another one"),
        (errno.EIO, "check the path, and that its disk is available"),
    ],
)
def test_each_reason_has_a_help(number: int, help_text: str) -> None:
    error = write_error(Path("out.onnx"), OSError(number, ""))
    assert str(error) == (
        f"error[TM5001]: cannot write out.onnx: {os.strerror(number)}\n   = help: {help_text}"
    )


KILLED = """
import sys
import time
from tmconvert.output.atomic import atomic_output

with atomic_output(sys.argv[1]) as file:
    file.write(b"x" * 3_000_000)
    print("half", flush=True)
    for _ in range(1000):
        file.write(b"x" * 7)
        time.sleep(0.01)
"""


@pytest.mark.parametrize("older", [b"older", None])
def test_killed_in_mid_write(tmp_path: Path, older: bytes | None) -> None:
    target = tmp_path / "out.onnx"
    if older is not None:
        target.write_bytes(older)
    arguments = [sys.executable, "-c", KILLED, str(target)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"half\n"
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert (target.read_bytes() if target.exists() else None) == older
    (left,) = [path for path in tmp_path.iterdir() if path != target]
    assert left.stat().st_size >= 3_000_000  # it was in the middle of its work
    with atomic_output(tmp_path / "other.onnx"):
        pass
    assert not left.exists()


def test_what_a_living_process_writes_is_left_alone(tmp_path: Path) -> None:
    arguments = [sys.executable, "-c", KILLED, str(tmp_path / "out.onnx")]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        before = names(tmp_path)
        with staged_outputs(tmp_path / "model.onnx", tmp_path / "model.data", named=True):
            remove_abandoned(tmp_path)
            assert set(before) < set(names(tmp_path))
        assert names(tmp_path) == before
        process.kill()


@pytest.mark.parametrize(
    "name", [".out.6019814a.onnx", "out.tmconvert-6019814a27c1d3f0.onnx", ".a.tmconvert-6019814a.onnx"]
)
def test_files_of_others_are_not_taken_for_abandoned(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"a")
    os.mkfifo(tmp_path / ".a.tmconvert-6019814a27c1d3f0")  # opening it for reading would wait
    (tmp_path / ".b.tmconvert-6019814a27c1d3f0").symlink_to(tmp_path / name)
    remove_abandoned(tmp_path)
    assert {name, ".b.tmconvert-6019814a27c1d3f0"} <= set(names(tmp_path))


def test_no_room_for_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, *args: object, **options: object) -> None:
        raise OSError(errno.ENOSPC, "")

    monkeypatch.setattr(Path, "mkdir", full)
    with pytest.raises(WriteError, match="No space left on device"), temporary_folder():
        pass
