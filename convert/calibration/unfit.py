"""Errors for data that does not fit the model's inputs."""

from __future__ import annotations

from tmconvert.errors import UsageError


def unfit(message: str, help: str) -> UsageError:
    return UsageError("TM6033", message, notes=[("help", help)] if help else [])
