"""The entry point of the command ``tmconvert`` and of ``python -m tmconvert``."""

import os

from tmconvert.garbage_collection import collect_less_often, skip_last_collection
from tmconvert.signals import ending_by_signals


def _fill_standard_streams() -> None:
    """Opens the null device as stdin, stdout or stderr where it is closed, so no file gets its number."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gives the lowest number that is free


def _let_threads_sleep() -> None:
    """Lets OpenBLAS's threads wait for 2**16 cycles before they sleep, not for 2**26.

    NumPy's import starts one for each core, and each would take 20 ms of processor time to do nothing.
    """
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "16")


def main() -> None:
    """Runs the command line; signal handlers are installed before the other imports."""
    _fill_standard_streams()
    _let_threads_sleep()
    collect_less_often()
    with ending_by_signals():
        from tmconvert.cli import main as command

        try:
            command()
        finally:
            skip_last_collection()


if __name__ == "__main__":
    main()
