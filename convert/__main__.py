"""``python -m tmconvert`` is the command ``tmconvert``: this is where both begin."""

from .signals import ending_by_signals


def main() -> None:
    """Runs the command; signals are handled before all that it needs is imported."""
    with ending_by_signals():
        from .cli import main as command

        command()


if __name__ == "__main__":
    main()
