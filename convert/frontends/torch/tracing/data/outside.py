"""Values from outside of a model: generators other than torch's, clocks, files, the environment.

What ``forward`` takes from there would be a constant of a file. The functions of clocks and of the system's
entropy note that they were called, and the states of generators show whether they were used. Such a module
is run again, with other generators and at another time, and what it computes must be the same.
"""

from __future__ import annotations

import builtins
import datetime
import functools
import io
import os
import pickle
import random
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

import numpy as np
import torch

from tmconvert.errors import UnsupportedError
from tmconvert.errors.source import Source
from tmconvert.frontends.torch.tracing.recording.objects import held_objects
from tmconvert.frontends.torch.tracing.recording.source_lines import NOT_USERS
from tmconvert.frontends.torch.tracing.recording.state_guard import is_generator
from tmconvert.frontends.torch.tracing.recording.tape import Scope, Value
from tmconvert.ir.tree import leaves

_LATER = 401 * 86400 + 5 * 3600 + 17 * 60 + 23  # seconds, by which the clocks of the second run are ahead
_CLOCKS = ["time", "monotonic", "perf_counter", "process_time", "thread_time"]
_RUN = "tmconvert.frontends.torch.tracing.module_run"
_MOST_READS = 4  # in notes
_CODE = (".py", ".pyc", ".so", ".pyd", ".dll")
_OF_SYSTEM, _OF_MEMORY = ("/proc/", "/sys/", "/dev/"), "/dev/shm/"  # the last has files of users
_HELP = (
    "compute it outside of forward: in __init__ where it is a constant, else pass it as an input, "
    "def forward(self, x, noise)"
)


class Outside:
    """The use of clocks and generators by a run, and the files and variables that it reads."""

    def __init__(self) -> None:
        self.is_taken = False
        self.reads: dict[str, None] = {}

    def notes(self) -> list[str]:
        names = [*self.reads]
        more = f" and {len(names) - _MOST_READS} more" if len(names) > _MOST_READS else ""
        kept = "what forward reads there is a constant of the file"
        return [f"{', '.join(names[:_MOST_READS])}{more}: {kept}"] if names else []


class _Active(threading.local):
    outside: Outside | None = None  # of the run of this thread
    later = 0  # seconds


_ACTIVE = _Active()


@contextmanager
def elsewhere() -> Iterator[None]:
    """Makes the runs of this thread have other generators and another time within the context."""
    _ACTIVE.later = _LATER
    try:
        yield
    finally:
        _ACTIVE.later = 0


@contextmanager
def taken_from_outside(outside: Outside, held: Iterable[Any]) -> Iterator[None]:
    """Notes what is taken from outside within the context; ``held`` are generators that are restored."""
    known = {id(each): each for each in (*held, *_of_processes())}.values()
    states = [(each, _state(each)) for each in known]
    if _ACTIVE.later:
        for each in known:
            _move(each)
    before = [_compared(_state(each)) for each in known]
    _ACTIVE.outside = outside
    try:
        yield
        outside.is_taken |= before != [_compared(_state(each)) for each in known]
    finally:
        _ACTIVE.outside = None
        for each, state in states:
            _set_state(each, state)


def check_repeatable(run: Callable[[], Any]) -> None:
    """Runs a module twice; raises UnsupportedError TM2022 where the second run computes something else."""
    from tmconvert.frontends.torch.tracing.sizes.differences import difference_of_data

    one = run()
    with elsewhere():
        two = run()
    for each in (one, two):
        _drop_unused(each.tape.top)
    found, place = difference_of_data(one.tape, two.tape, "when it is run again")
    if not found and all(map(_is_same, one.outputs, two.outputs)):
        return
    raise UnsupportedError(
        "TM2022",
        "the module computes with a random number that is not torch's, or with the time, which would be a "
        "constant of the file" + (f": {found}" if found else ""),
        source=place if found else Source(""),
        notes=[("help", _HELP)],
    )


def _is_same(one: Any, two: Any) -> bool:
    return bool(one.shape == two.shape and one.tobytes() == two.tobytes())


def _drop_unused(top: Scope) -> None:
    """Removes the calls whose results reach no output."""
    needed = _values(top.result)

    def drop(scope: Scope) -> None:
        kept = []
        for item in reversed(scope.items):
            if isinstance(item, Scope):
                drop(item)
                if not item.items:
                    continue
            elif not item.subgraphs and [*item.results()] and needed.isdisjoint(item.results()):
                continue
            else:
                needed.update(item.values())
                for body in item.subgraphs:
                    needed.update(_values(body.result), *(record.values() for record in body.records()))
            kept.append(item)
        scope.items[:] = kept[::-1]

    drop(top)


def _values(tree: object) -> set[Value]:
    return {leaf for leaf in leaves(tree) if isinstance(leaf, Value)}


# ---- generators


def generators_in(called: Sequence[object]) -> list[Any]:
    """Returns the generators that functions captured, and those among the global names of the files of
    functions, or of the classes of modules.
    """
    homes = {getattr(each, "__module__", None) or "" for each in called}
    files = [
        vars(sys.modules[name]) for name in homes if name in sys.modules and not name.startswith("torch.")
    ]
    held = [value for each in called if not isinstance(each, torch.nn.Module) for value in held_objects(each)]
    names = [value for file in files for value in file.values()]
    return [value for value in (*held, *names) if is_generator(value)]


def _of_processes() -> list[Any]:
    of_numpy = getattr(sys.modules.get("numpy.random.mtrand"), "_rand", None)
    return [vars(random)["_inst"], *([] if of_numpy is None else [of_numpy])]


def _state(generator: Any) -> Any:
    if isinstance(generator, random.SystemRandom):
        return None
    if hasattr(generator, "getstate"):
        return generator.getstate()
    if hasattr(generator, "get_state"):
        return generator.get_state()
    return generator.bit_generator.state


def _compared(state: Any) -> Any:
    """Returns a state in a form that can be compared, as arrays cannot."""
    if isinstance(state, tuple):
        return [part.tobytes() if isinstance(part, np.ndarray) else part for part in state]
    return pickle.dumps(state)


def _set_state(generator: Any, state: Any) -> None:
    if isinstance(generator, random.SystemRandom):
        return
    if hasattr(generator, "setstate"):
        generator.setstate(state)
    elif hasattr(generator, "set_state"):
        generator.set_state(state)
    else:
        generator.bit_generator.state = state


def _move(generator: Any) -> None:
    if hasattr(generator, "random"):
        generator.random()


# ---- clocks, entropy, files


def _take() -> int:
    """Notes that a clock or the system's entropy is read by this thread; returns how late it is."""
    if _ACTIVE.outside is not None and _caller() not in ("torch", "tmconvert"):
        _ACTIVE.outside.is_taken = True
        return _ACTIVE.later
    return 0


def _callers() -> Iterator[str]:
    """Yields the names of the modules whose functions are being called, from the inside to the run."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        if name == _RUN:
            return
        if frame.f_globals is not globals():
            yield name
        frame = frame.f_back


def _caller() -> str:
    """Returns the name of the package that calls a function of Python's library."""
    tops = (name.partition(".")[0] for name in _callers())
    return next((top for top in tops if top not in sys.stdlib_module_names), "")


def _is_read() -> bool:
    """Whether the code of the model reads, and not tmconvert, or a module that is being imported."""
    if _ACTIVE.outside is None or _caller() == "tmconvert":
        return False
    return not any("importlib" in name[:17] for name in _callers())


def _note_read(what: str) -> None:
    if _ACTIVE.outside is not None:
        _ACTIVE.outside.reads[what] = None


def _noting(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function of the system's entropy, which differs from call to call."""

    @functools.wraps(function)
    def noted(*args: Any, **options: Any) -> Any:
        _take()
        return function(*args, **options)

    return noted


def _later(clock: Callable[[], Any], unit: int) -> Callable[[], Any]:
    @functools.wraps(clock)
    def read() -> Any:
        return clock() + _take() * unit

    return read


def _parts_later(function: Callable[..., Any]) -> Callable[..., Any]:
    now = time.time

    @functools.wraps(function)
    def parts(*args: Any) -> Any:
        return function(*(args or (now() + _take(),)))

    return parts


class _LikeBase(type):
    """Classes whose instances are those of the class that they extend."""

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, cls.__bases__[0])


_NOW = time.time
_DATETIME, _DATE = datetime.datetime, datetime.date


class _Datetime(datetime.datetime, metaclass=_LikeBase):
    @classmethod
    def now(cls, tz: Any = None) -> Any:
        return _DATETIME.fromtimestamp(_NOW() + _take(), tz)

    @classmethod
    def utcnow(cls) -> Any:
        return _DATETIME.fromtimestamp(_NOW() + _take(), datetime.timezone.utc).replace(tzinfo=None)

    @classmethod
    def today(cls) -> Any:
        return _DATETIME.fromtimestamp(_NOW() + _take())


class _Date(datetime.date, metaclass=_LikeBase):
    @classmethod
    def today(cls) -> Any:
        return _DATE.fromtimestamp(_NOW() + _take())


class _Random(random.Random, metaclass=_LikeBase):
    def __init__(self, x: Any = None) -> None:
        if x is None:
            _take()
        super().__init__(x)


def _opened(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def opened(file: Any, mode: Any = "r", *args: Any, **options: Any) -> Any:
        is_path = isinstance(file, (str, bytes, os.PathLike))
        if is_path and isinstance(mode, str) and "r" in mode and _is_read():
            name = os.fsdecode(file)
            is_of_system = name.startswith(_OF_SYSTEM) and not name.startswith(_OF_MEMORY)
            if not name.endswith(_CODE) and not is_of_system:
                _note_read(f"the file {name!r}")
        return function(file, mode, *args, **options)

    return opened


def _variable(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def variable(self: object, key: object) -> Any:
        if _is_read() and _caller() not in NOT_USERS:
            _note_read(f"the environment variable {key}")
        return function(self, key)

    return variable


Names = dict[str, Any]


@functools.cache
def _functions() -> tuple[tuple[Names, Names], ...]:
    clocks = {name: _later(getattr(time, name), 1) for name in _CLOCKS}
    clocks |= {f"{name}_ns": _later(getattr(time, f"{name}_ns"), 10**9) for name in _CLOCKS}
    clocks |= {name: _parts_later(getattr(time, name)) for name in ("gmtime", "localtime", "ctime")}
    entropy = _noting(os.urandom)
    opened = _opened(builtins.open)
    return (
        (vars(time), clocks),
        (vars(datetime), {"datetime": _Datetime, "date": _Date}),
        (vars(os), {"urandom": entropy}),
        (vars(random), {"_urandom": entropy, "Random": _Random}),
        (vars(uuid), {"uuid1": _noting(uuid.uuid1)}),
        (vars(builtins), {"open": opened}),
        (vars(io), {"open": opened}),
    )


@functools.cache
def _of_numpy(bits: Any) -> Callable[..., Any]:
    return _noting(bits)


def replaced_functions() -> list[tuple[Names, Names]]:
    """Returns what notes that it is called, by the namespaces of the modules that have it."""
    seeding = sys.modules.get("numpy.random.bit_generator")
    of_numpy = [(vars(seeding), {"randbits": _of_numpy(vars(seeding)["randbits"])})] if seeding else []
    return [*_functions(), *of_numpy]


@contextmanager
def variables_noted() -> Iterator[None]:
    """Notes which variables of the environment are read within the context."""
    kind: Any = type(os.environ)
    original = kind.__getitem__
    kind.__getitem__ = _variable(original)
    try:
        yield
    finally:
        kind.__getitem__ = original
