"""``python -m tmconvert`` is the command ``tmconvert``: this is where both begin."""

import os

from tmconvert.signals import ending_by_signals


def _fill_standard_streams() -> None:
    """Where 0, 1 or 2 is closed, a file of ours would get that number, and whatever libraries print."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gives the lowest number that is free


def main() -> None:
    """Runs the command; signals are handled before all that it needs is imported."""
    _fill_standard_streams()
    with ending_by_signals():
        from tmconvert.cli import main as command

        command()


if __name__ == "__main__":
    main()
