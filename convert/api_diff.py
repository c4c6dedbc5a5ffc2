"""The public function that lists the differences of two models; ``tmconvert.api`` has the others."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from tmconvert.conversion.options.arguments import entry_point
from tmconvert.conversion.request import Model
from tmconvert.symbolics.registry import catalogue

if TYPE_CHECKING:
    from tmconvert.difference.model_diff import ModelDiff


@entry_point
def diff(
    first: Model,
    second: Model,
    *,
    compare_outputs: bool = False,
    latency: bool = False,
    fail_on: Sequence[str] = (),
    page: str | PathLike[str] | None = None,
) -> ModelDiff:
    """Lists what changed between two models or written files: operators, weights, types, names and sizes.

    Nodes correspond by their weights, names and structure. Files of one format are compared as they are
    stored; models of different kinds as graphs of ATen-style ops.

    Args:
        first: The model before: a TracedModule, a model object, or the path of a model or written file.
        second: The model after.
        compare_outputs: Run both on the same inputs, and compare the outputs and layers, as ``compare``.
        latency: Measure both files by turns, as ``bench``.
        fail_on: Conditions for ``ok``: "changed-outputs", "operators", "any", a kind of change such as
            "weights", or "size+5%", "parameters+0%", "macs+1%", "latency+10%". The first and the last make
            the comparison of outputs or the measurement run.
        page: An .html file to write, with both graphs side by side.

    Returns:
        ``changes``, ``totals``, ``outputs``, ``latency`` and ``broken``; ``str`` of it is the text of the
            command, ``markdown()`` that of ``--markdown``.

    Raises:
        LoadError: A model cannot be read.
        UsageError: TM6002 for an unknown condition, and for the latency of a source model.
        VerificationError: TM4002, TM4003 where a runtime refuses a file or is not installed.

    Example:
        >>> tmconvert.diff("old.onnx", "new.onnx", fail_on=["operators", "size+5%"]).ok  # doctest: +SKIP
        True
    """
    from tmconvert.difference.diff_models import DiffSide, diff_page, diff_sides, measure_latency
    from tmconvert.difference.limits import parse_limits

    limits = parse_limits(fail_on)
    one, other = DiffSide(first, catalogue()), DiffSide(second, catalogue())
    found, matching = diff_sides(one, other)
    if compare_outputs or any(each.name == "changed-outputs" for each in limits):
        from tmconvert.api_inspect import compare

        found.outputs = compare(first, second)
    if latency or any(each.name == "latency" for each in limits):
        found.latency = measure_latency(one, other, 2.0)
    found.check(limits)
    if page is not None:
        from tmconvert.viewer.html_page import HtmlPage

        HtmlPage(
            diff_page(matching, found.changes, f"{Path(found.first).name} -> {Path(found.second).name}")
        ).save(page)
    return found
