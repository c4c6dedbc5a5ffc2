"""Atomic output files: each appears complete or not at all.

A file is written in the folder of its target under a temporary name, flushed to the disk, and then renamed.
It can be read, and verified, while it is flushed. Until the rename an older file under the target's name
stays unchanged, even after an exception, a full disk or ``kill -9``. The temporary name keeps the suffix,
which runtimes read: ``.out.tmconvert-6019814a27c1d3f0.onnx``. ``leftovers.py`` removes the temporary files of
processes that were ended.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import io
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from tmconvert.errors import WriteError
from tmconvert.output.leftovers import Lock, hidden_name, register, remove_abandoned, unregister

_HELP = {
    errno.EFAULT: "the model file was changed while it was read: do not modify it during a conversion",
    errno.EACCES: "choose a folder and a file for which you have write permission",
    errno.EDQUOT: "your disk quota is used up: free some space, or write to another disk",
    errno.EFBIG: "the file system, or a limit of your shell (ulimit -f), does not allow a file of this size",
    errno.EISDIR: "pass the path of a file, not of a folder",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.ENOENT: "create the folder first",
    errno.ENOSPC: "the disk is full: free some space, or write to another disk",
    errno.ENOTDIR: "a part of this path is a file, not a folder",
    errno.EPERM: "choose a folder and a file for which you have write permission",
    errno.EROFS: "this disk is read-only: write to another one",
}
IS_WINDOWS = os.name == "nt"
_RENAMES, _PAUSE = 20, 0.05  # tries, and the seconds between two
_OTHER_HELP = "check the path, and that its disk is available"


def write_error(path: Path, cause: OSError | ValueError) -> WriteError:
    """Returns the TM5001 that states why ``path`` cannot be written."""
    number = cause.errno if isinstance(cause, OSError) else None
    reason = os.strerror(number) if number is not None else str(cause)
    help_text = _HELP.get(number, _OTHER_HELP) if number is not None else _OTHER_HELP
    return WriteError("TM5001", f"cannot write {path}: {reason}", notes=[("help", help_text)])


class _ReportingFile(io.FileIO):
    """A file whose write errors name the target, to distinguish them from other OSErrors."""

    def __init__(self, path: Path, target: Path) -> None:
        super().__init__(path, "x")
        self.target = target

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            raise write_error(self.target, error) from error


def reserve(file: BinaryIO, size: int) -> None:
    """Allocates ``size`` bytes on the disk before they are written.

    A full disk is then an error before any work, and writes are faster. It does nothing for files other than
    those of a StagedOutput, and on file systems without allocation. Raises: WriteError TM5001.
    """
    raw = getattr(file, "raw", None)
    if isinstance(raw, _ReportingFile):
        allocate(raw.fileno(), size, raw.target)


def allocate(descriptor: int, size: int, target: Path) -> None:
    """Allocates the bytes of a file, which messages call ``target``. Raises: WriteError TM5001."""
    if not hasattr(os, "posix_fallocate"):
        return
    try:
        os.posix_fallocate(descriptor, 0, size)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise write_error(target, error) from error


def check_writable(*targets: str | os.PathLike[str]) -> None:
    """Checks before long work that these files can be written. Raises WriteError TM5001."""
    for target in targets:
        output = StagedOutput(target)
        output.file.close()
        output.discard()


class _Flush:
    """Flushes a file to the disk in a thread, while other work is done."""

    def __init__(self, file: BinaryIO) -> None:
        self._descriptor = os.dup(file.fileno())  # the file may be closed before
        self._error: OSError | None = None
        self._thread = threading.Thread(target=self._run, name="flush", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:  # the process may start no more threads, or ends
            self._run()

    def _run(self) -> None:
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            self._error = error
        finally:
            os.close(self._descriptor)

    def wait(self) -> OSError | None:
        """Waits until the file is on the disk. Returns the error where that failed."""
        if self._thread.ident is not None:  # it was started
            self._thread.join()
        return self._error


class StagedOutput:
    """A file under a temporary name, to be renamed to ``target``.

    ``file`` takes the bytes. After ``finish`` the whole file can be read at ``path``; ``commit`` gives it its
    final name, ``discard`` removes it. A symbolic link at the target stays a link. In a ``folder``, on the
    same disk, the file has its final name from the beginning. Raises: WriteError TM5001 when the target
    cannot be written, at the first step that fails.
    """

    def __init__(self, target: str | os.PathLike[str], folder: Path | None = None) -> None:
        self.target = Path(target)
        self._flush: _Flush | None = None
        try:
            self._final = Path(os.path.realpath(self.target))
            _refuse_unencodable(self._final)
            _refuse_unwritable(self._final)
            raw = self._opened(folder)
        except (OSError, ValueError) as error:
            raise write_error(self.target, error) from error
        self.file: BinaryIO = io.BufferedWriter(raw, buffer_size=1 << 20)

    def _opened(self, folder: Path | None) -> _ReportingFile:
        """Opens and locks the file at ``path``; an unlocked one counts as abandoned."""
        while True:
            name = hidden_name(self.target.stem, self.target.suffix)
            self.path = self._final.with_name(name) if folder is None else folder / self._final.name
            register(self.path)
            raw = _ReportingFile(self.path, self.target)
            self._lock = Lock(self.path)
            if not self._lock.is_lost:
                return raw
            raw.close()
            self._let_go()

    @property
    def folder(self) -> Path:
        """Returns the final folder of the file."""
        return self._final.parent

    def finish(self) -> None:
        """Closes the file, and begins to flush it to the disk. A second call has no effect."""
        if self.file.closed:
            return
        try:
            self.file.flush()
            self._flush = _Flush(self.file)
            self.file.close()
            if self._final.exists():
                self.path.chmod(stat.S_IMODE(self._final.stat().st_mode))
        except OSError as error:
            raise write_error(self.target, error) from error

    def wait_for_disk(self) -> None:
        """Finishes the file, and waits until it is on the disk."""
        self.finish()
        error = None if self._flush is None else self._flush.wait()
        if error is not None:
            raise write_error(self.target, error) from error

    def commit(self) -> None:
        """Renames the file to its final name, once it is on the disk."""
        self.wait_for_disk()
        try:
            _rename(self.path, self._final)
        except OSError as error:
            raise write_error(self.target, error) from error
        self._let_go()
        _sync_folder(self._final.parent)

    def discard(self) -> None:
        """Removes the temporary file; has no effect after ``commit``."""
        # A full disk makes close fail again on what is left in the buffer; it does close.
        with contextlib.suppress(OSError, WriteError):
            self.file.close()
        if self._flush is not None:  # Windows removes no file that is open
            self._flush.wait()
        with contextlib.suppress(OSError):
            self.path.unlink()
        self._let_go()

    def _let_go(self) -> None:
        self._lock.release()
        unregister(self.path)

    def keep_older(self) -> Path | None:
        """Adds a second name to the file that ``commit`` would replace, if there is one."""
        if not self._final.exists():
            return None
        kept = self._final.with_name(hidden_name(self._final.name, ".older"))
        register(kept)
        try:
            kept.hardlink_to(self._final)
        except OSError:  # a file system without hard links
            import shutil

            shutil.copy2(self._final, kept)
        return kept

    def undo(self, older: Path | None) -> None:
        """Restores the file that ``commit`` replaced."""
        if older is None:
            self._final.unlink()
        else:
            _rename(older, self._final)


def commit_together(outputs: Sequence[StagedOutput]) -> None:
    """Commits all of ``outputs``, or none if one fails.

    No file system renames two files in one step: a ``kill -9`` between the two renames can leave the
    first file new and the second one old. Each of them is whole.
    """
    for output in outputs:
        output.finish()
    for output in outputs:
        output.wait_for_disk()
    if len(outputs) == 1:
        outputs[0].commit()
        return
    committed: list[tuple[StagedOutput, Path | None]] = []
    with contextlib.ExitStack() as kept:
        try:
            for output in outputs:
                older = _keep_older(output)
                if older is not None:
                    kept.callback(unregister, older)
                    kept.callback(Lock(older).release)
                    kept.callback(older.unlink, missing_ok=True)
                output.commit()
                committed.append((output, older))
        except BaseException:
            for output, older in reversed(committed):
                with contextlib.suppress(OSError):
                    output.undo(older)
            raise


@contextlib.contextmanager
def staged_outputs(
    *targets: str | os.PathLike[str], named: bool = False
) -> Iterator[tuple[StagedOutput, ...]]:
    """Stages files for ``targets``; those not committed at the end of the block are removed.

    ``named`` is for files that refer to one another by name: they are staged under their own names in a
    folder next to the first.
    """
    with contextlib.ExitStack() as stack:
        outputs = []
        folder = stack.enter_context(_folder_next_to(Path(targets[0]))) if named else None
        for target in targets:
            outputs.append(StagedOutput(target, folder))
            stack.callback(outputs[-1].discard)
        for each in sorted({output.folder for output in outputs}):
            remove_abandoned(each)
        yield tuple(outputs)


@contextlib.contextmanager
def atomic_outputs(*targets: str | os.PathLike[str]) -> Iterator[tuple[BinaryIO, ...]]:
    """Writes files that all appear if the block succeeds, and none otherwise."""
    with staged_outputs(*targets) as outputs:
        yield tuple(output.file for output in outputs)
        commit_together(outputs)


@contextlib.contextmanager
def atomic_output(target: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Writes a file that appears if the block succeeds, and not otherwise."""
    with atomic_outputs(target) as (file,):
        yield file


@contextlib.contextmanager
def _folder_next_to(target: Path) -> Iterator[Path]:
    """Creates a hidden folder next to the target, which is removed at the end of the block."""
    with hidden_folder(lambda: Path(os.path.realpath(target)).parent, target.stem, target) as folder:
        yield folder


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """Creates a temporary folder of the system, removed at the end of the block. Raises WriteError TM5001."""
    import tempfile  # with ``random``; most conversions need neither

    where = Path(os.environ.get("TMPDIR") or "a temporary folder")
    with hidden_folder(lambda: Path(tempfile.gettempdir()), "files", where) as folder:
        yield folder


@contextlib.contextmanager
def hidden_folder(parent: Callable[[], Path], stem: str, shown: Path) -> Iterator[Path]:
    """Creates a hidden folder in the result of ``parent``, removed at the end; errors name ``shown``."""
    try:
        folder, lock = _made_folder(parent(), stem)
    except (OSError, ValueError) as error:
        raise write_error(shown, error) from error
    try:
        yield folder
    finally:
        import shutil  # with modules for archives

        shutil.rmtree(folder, ignore_errors=True)
        lock.release()
        unregister(folder)


def _made_folder(parent: Path, stem: str) -> tuple[Path, Lock]:
    remove_abandoned(parent)
    while True:
        folder = parent / hidden_name(stem, "")
        register(folder)
        folder.mkdir(mode=0o700)
        lock = Lock(folder)
        if not lock.is_lost:
            return folder, lock
        lock.release()


@contextlib.contextmanager
def written(path: Path) -> Iterator[BinaryIO]:
    """Writes a file for use in this process, such as in a ``temporary_folder``. Raises WriteError TM5001."""
    try:
        raw = _ReportingFile(path, path)
    except (OSError, ValueError) as error:
        raise write_error(path, error) from error
    with io.BufferedWriter(raw, buffer_size=1 << 20) as file:
        yield file


def _refuse_unencodable(path: Path) -> None:
    try:
        os.fspath(path).encode()
    except UnicodeEncodeError as error:
        raise ValueError("the name is not UTF-8, which runtimes require") from error


def _refuse_unwritable(path: Path) -> None:
    """Raises the error of opening ``path`` for writing; a rename needs permission for the folder only."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "")
    if path.exists() and not path.is_file():
        raise ValueError("it is a device or a pipe, not a file")  # a rename would replace /dev/null
    if path.exists() and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, "")


def _keep_older(output: StagedOutput) -> Path | None:
    try:
        return output.keep_older()
    except OSError as error:
        raise write_error(output.target, error) from error


def _rename(path: Path, final: Path) -> None:
    """Replaces ``final`` by ``path``.

    Windows refuses that while a mapping of one of them is open: those of this process, which nothing uses any
    more, are closed, and those of others are waited for.
    """
    for _ in range(_RENAMES if IS_WINDOWS else 0):
        try:
            path.replace(final)
        except PermissionError:
            gc.collect()
            time.sleep(_PAUSE)
        else:
            return
    path.replace(final)


def _sync_folder(folder: Path) -> None:
    """Flushes the rename to disk, where folders can be synced."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
