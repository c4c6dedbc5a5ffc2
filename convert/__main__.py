"""``python -m tmconvert`` is the command ``tmconvert``."""

from .cli import main

main()
