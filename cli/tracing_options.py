"""The options about models that are traced, from the command line's words to those of the API."""

from __future__ import annotations

from typing import Any

from tmconvert.cli.io_options import dynamic_shapes


def tracing_arguments(
    examples: tuple[str, ...] = (),
    freeze_control_flow: bool = False,
    allow_code: bool = False,
    dynamic: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Keyword arguments of the API; those of options that were not given are left out. Raises UsageError."""
    arguments: dict[str, Any] = {
        "freeze_control_flow": freeze_control_flow,
        "allow_code": allow_code,
        "dynamic_shapes": dynamic_shapes(dynamic),
    }
    if examples:
        from tmconvert.conversion.example_text import parse_examples

        arguments["example_inputs"], arguments["example_kwargs"] = parse_examples(examples)
    return {name: value for name, value in arguments.items() if value}
