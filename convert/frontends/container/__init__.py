"""Reads the ``.tm`` containers that ``tmconvert save`` writes; ``docs/container.md`` describes them."""
