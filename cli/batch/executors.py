"""Runs work in this process, in several processes of this machine, or on a cluster of Dask."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_all_start_methods, get_context, parent_process, util
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tmconvert import signals
from tmconvert.cli.batch.work import ModelWork, Outcome, outcomes_in_process, outcomes_of
from tmconvert.errors import TmconvertError, UsageError
from tmconvert.frontends.torch.entry import is_factory

if sys.platform != "win32":
    from multiprocessing import forkserver, resource_tracker
if TYPE_CHECKING:
    from tmconvert.calibration.measuring import Chunk, Measures, Observed, Statistics

RETRIES = 2  # of work whose process ended
# Frameworks of macOS may not be used in a process that was forked.
_FORKS = "forkserver" in get_all_start_methods() and sys.platform != "darwin"
_PRELOADED = "tmconvert.cli.batch.preloaded"


def executed(
    work: Sequence[ModelWork], *, jobs: int = 1, cluster: str | None = None
) -> Iterator[tuple[ModelWork, Outcome]]:
    """Yields the outcomes of all conversions, as they end.

    ``jobs`` is the number of processes; ``cluster`` the address of a Dask scheduler, whose workers need
    tmconvert and see the files under the same paths. Work whose process ended is done again.
    """
    if cluster is not None:
        with _client(cluster) as client:
            executor = client.get_executor(pure=False, retries=RETRIES)
            yield from _gathered(executor, _longest_first(work), do=outcomes_on_worker)
    elif jobs == 1 or len(work) < 2:
        for each in work:
            yield from ((each, outcome) for outcome in outcomes_of(each))
    else:
        lost: list[ModelWork] = []
        yield from _gathered(_processes(min(jobs, len(work))), _longest_first(work), lost)
        if lost:
            _end_server()  # it may be what was killed
        for each in lost:  # alone, so that it ends no other work
            yield from _gathered(_processes(1), [each])


def outcomes_on_worker(work: ModelWork) -> list[Outcome]:
    """Does ``outcomes_of`` in a worker of Dask; all workers measure the samples of calibrations."""
    from tmconvert.calibration.measuring import distributing

    with distributing(_measured_on_cluster):
        return outcomes_in_process(work)


def _measured_on_cluster(measure: Measures, work: Observed, chunks: Sequence[Chunk]) -> Iterator[Statistics]:
    """Yields the statistics of chunks in order. What is lost with a worker is measured again."""
    from distributed import worker_client

    with worker_client() as client:
        common = client.submit(_itself, work, pure=False, retries=RETRIES)  # stored once, and made again
        parts = [client.submit(measure, common, chunk, pure=False, retries=RETRIES) for chunk in chunks]
        for number, part in enumerate(parts):
            yield part.result()
            parts[number] = None  # which frees it


def _itself(work: Observed) -> Observed:
    return work


def prepare() -> None:
    """Starts the server that the processes are forked from, so that it imports while work is collected."""
    if _FORKS:
        get_context("forkserver").set_forkserver_preload([_PRELOADED])
        folder = util.get_temp_dir()  # of the server's socket
        if folder not in signals.folders:
            signals.folders.append(folder)
        with _deaf_to_interrupts():
            forkserver.ensure_running()


def _processes(count: int) -> Executor:
    prepare()
    context = get_context("forkserver" if _FORKS else "spawn")
    return ProcessPoolExecutor(count, mp_context=context, initializer=_end_with_parent)


def _end_with_parent() -> None:
    """Makes a worker end when the process ends that started it, in whatever way."""
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_wait_for, args=(parent,), daemon=True).start()


def _wait_for(parent: Any) -> None:
    parent.join()
    signals.remove_leftovers()
    os._exit(1)


def _end_server() -> None:
    """Ends the server, which may be about to fork a process that nobody waits for, or was killed.

    Waits for its end: until then the next pool would take it for a living one.
    """
    server = getattr(forkserver, "_forkserver", None) if _FORKS else None
    number = getattr(server, "_forkserver_pid", None)
    if number is not None:
        with contextlib.suppress(OSError):
            os.kill(number, signal.SIGKILL)
            os.waitid(os.P_PID, number, os.WEXITED | os.WNOWAIT)


@contextlib.contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Makes processes that are started meanwhile ignore SIGINT, which a terminal sends to all: the first
    process ends them. One that comes meanwhile is delivered to it afterwards.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    if sys.platform != "win32":
        resource_tracker.ensure_running()  # which would unblock the signal
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _longest_first(work: Sequence[ModelWork]) -> list[ModelWork]:
    """Orders work by the size of the model, so that no process is left with a large one at the end.

    Factories are first: they make models of PyTorch, which is imported for them.
    """
    return sorted(work, key=_size, reverse=True)


def _size(work: ModelWork) -> float:
    if is_factory(work.model):
        return math.inf
    try:
        return Path(work.folder, work.model).stat().st_size
    except (OSError, ValueError):  # an error of this model alone, which its conversion reports
        return 0


def _gathered(
    executor: Executor,
    work: Sequence[ModelWork],
    lost: list[ModelWork] | None = None,
    do: Callable[[ModelWork], list[Outcome]] = outcomes_in_process,
) -> Iterator[tuple[ModelWork, Outcome]]:
    try:
        with contextlib.nullcontext() if _FORKS else _deaf_to_interrupts():  # as is the server that forks
            futures: dict[Future[list[Outcome]], ModelWork] = {
                _submitted(executor, do, each): each for each in work
            }
        for future in as_completed(futures):
            each = futures[future]
            try:
                outcomes = future.result()
            except BrokenProcessPool:
                if lost is not None:
                    lost.append(each)
                    continue
                outcomes = _ended(each, "the process ended without an answer")
            except Exception as error:  # of a cluster, whose worker was lost more often than it tries
                outcomes = _ended(each, f"{type(error).__name__}: {error}")
            yield from ((each, outcome) for outcome in outcomes)
    except BaseException:
        processes = dict(getattr(executor, "_processes", None) or {})
        executor.shutdown(wait=False, cancel_futures=True)
        for process in processes.values():
            process.terminate()
        _end_server()
        raise
    executor.shutdown()


def _submitted(
    executor: Executor, do: Callable[[ModelWork], list[Outcome]], work: ModelWork
) -> Future[list[Outcome]]:
    """Returns the future of work, a broken one where the server that forks processes was killed."""
    try:
        return executor.submit(do, work)
    except (EOFError, ConnectionError, BrokenProcessPool) as error:
        lost: Future[list[Outcome]] = Future()
        lost.set_exception(BrokenProcessPool(str(error)))
        return lost


def _ended(work: ModelWork, reason: str) -> list[Outcome]:
    error = TmconvertError("TM6092", f"{work.model} was not converted: {reason}")
    return [
        Outcome(
            *(work.model, each.target, each.paths, error.exit_status, 0.0),
            error=error.to_json(),
            message=error.render(),
        )
        for each in work.conversions
    ]


def _client(address: str) -> Any:
    try:
        from distributed import Client
    except ImportError as error:
        raise UsageError(
            "TM6093",
            "--cluster requires the package `distributed`",
            notes=[("help", "pip install 'tmconvert[cluster]'")],
        ) from error
    try:
        connect: Any = Client
        return connect(address, timeout=20)
    except (OSError, ValueError) as error:
        raise UsageError("TM6093", f"no Dask scheduler answers at {address}: {error}") from error
