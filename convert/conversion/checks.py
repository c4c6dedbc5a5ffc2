"""Checks a conversion in advance: unsupported ops, violated limits, missing runtime kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from tmconvert.conversion.io_overrides import IoOverrides
from tmconvert.conversion.lowering import lowered, sufficient_version, survey, with_version
from tmconvert.ir import TracedModule
from tmconvert.passes.unsupported import UnsupportedGroup, grouped
from tmconvert.symbolics.registry import catalogue
from tmconvert.targets.options import TargetOptions
from tmconvert.targets.registry import target_named

if TYPE_CHECKING:
    from tmconvert.targets.violation import Violation


class Findings(NamedTuple):
    """``unsupported`` are the ops that would stop a conversion; the other fields are computed only for a
    model without any.

    ``sufficient_version`` is the lowest version of the target that supports all ops. ``violations`` are
    limits of the target that the file would exceed; ``missing_kernels`` describes operators for which a
    release of its runtime has no kernel. ``version`` is the one that was checked.
    """

    unsupported: Sequence[UnsupportedGroup]
    sufficient_version: int | None = None
    violations: Sequence[Violation] = ()
    missing_kernels: Sequence[str] = ()
    version: int = 0


def unsupported_groups(
    module: TracedModule, options: TargetOptions, overrides: IoOverrides
) -> list[UnsupportedGroup]:
    """Returns every op that would stop the conversion, with its calls."""
    return grouped(survey(module, options, catalogue(), overrides))


def check_conversion(module: TracedModule, options: TargetOptions, overrides: IoOverrides) -> Findings:
    """Returns all findings about a conversion in advance. Raises UsageError TM6014."""
    options = with_version(module, options, catalogue(), overrides)
    unsupported = unsupported_groups(module, options, overrides)
    if unsupported:
        sufficient = sufficient_version(module, options, catalogue(), overrides)
        return Findings(unsupported, sufficient, version=options.version)
    graph = lowered(module, options, catalogue(), overrides=overrides).graph
    target = target_named(options.target)
    broken = target.violations(graph)
    if options.profile:
        from tmconvert.conversion.profile_notes import graph_violations

        broken = [*broken, *graph_violations(graph, options.profile)]
    return Findings([], None, broken, target.missing_kernels(graph), options.version)
