"""Verifies a file with compressed weights against its source.

The allowed difference of such a file is computed from the rounded weights, not a constant for all models:

- The float32 file of the same conversion agrees with the source.
- Each stored weight is within half a step of the float32 one, or at the end of its range, which the target
  checks: max|w| / 127 of its channel is a step of int8, an eleventh bit that of float16.
- The file agrees with a float32 file that holds the very numbers of its weights: within what float kernels
  differ by, where all kernels are of float32. Where kernels round activations, too, the float32 file is run
  with its activations rounded likewise, to several numbers of steps. By how much its outputs move is what
  rounding does to this model; the file's may move ``_MARGIN`` times as much. For a file of float16 that is
  off by more than 1e-2, the source is run with its results rounded likewise.

The error due to fewer bits, which depends on the model, is measured and reported.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tmconvert.lowering.target_graph import TargetGraph
from tmconvert.output.atomic import temporary_folder
from tmconvert.targets.registry import runtime_of, target_named
from tmconvert.verification.compare import Comparison, check, compare, scale_of, with_coarser
from tmconvert.verification.noise import decibels, energies
from tmconvert.verification.pieces import InPieces, is_large, write_graph
from tmconvert.verification.random_numbers import random_operators
from tmconvert.verification.references import References
from tmconvert.verification.runtime import Runtime
from tmconvert.verification.verify import Verification, verify_written

# The largest of several deviations that rounding to other places causes is hardly ever a fourth of one more.
_MARGIN = 4
_HALF_UNITS = 1 << 12  # in the last place of float32: half of one of float16
_MOST_OF_HALVES = 5e-2  # of the largest element: by how much measured roundings may move an output


def verify_compressed(
    paths: Sequence[Path],
    plain: TargetGraph,
    restored: TargetGraph,
    rounded: Sequence[TargetGraph],
    source: References,
    *,
    users: Runtime | None = None,
    types: Sequence[np.dtype] | None = None,
    computes_in: str = "",
) -> Verification | None:
    """Compares the files at ``paths`` with their source; returns None, with a note, if not verifiable.

    ``plain`` is the float32 graph, ``restored`` the one with the stored weights in float32, and ``rounded``
    are copies of that which also round activations. ``users`` runs the file with the runtime's default
    options, where these round more; the difference is only noted. ``types`` are those of the file's inputs,
    and ``computes_in`` its type of floats, where it computes in a narrower one. Raises VerificationError.
    """
    references, inputs, notes = source.references, source.inputs, source.notes
    runtime = runtime_of(plain, paths[0])
    with temporary_folder() as folder:
        if runtime is None:  # which is noted
            return verify_written(plain.target, paths, plain, source)
        float_runtime, float_paths = _runs(runtime, plain, folder, "plain")
        verified = verify_written(plain.target, float_paths, plain, source, runtime=float_runtime)
        if verified is None:
            return None
        if isinstance(float_runtime, InPieces):
            count = len(float_runtime.pieces)
            notes.append(f"compared in {count} pieces, each with the weights of a few layers")
        graphs = (restored, *rounded)
        counterparts = [_runs(runtime, graph, folder, str(number)) for number, graph in enumerate(graphs)]
        files = _Files(counterparts, plain.output_names, computes_in)
        found: list[list[Comparison]] = []
        for number, reference in enumerate(references):
            if reference.lacks(None if number else inputs):
                break
            given, expected = reference.case(None if number else inputs)
            stored = dict(zip(plain.input_names, reference.stored_inputs(given), strict=True))
            fed = (
                stored
                if types is None
                else {name: stored[name].astype(dtype) for name, dtype in zip(stored, types, strict=True)}
            )
            stored = {name: array.astype(stored[name].dtype) for name, array in fed.items()}
            actual = _in_types_of(expected, runtime.run(paths, fed, plain.output_names))
            found.append(
                files.compared(stored, actual, functools.partial(reference.spread, given, _HALF_UNITS))
            )
            if not number:
                runs = [] if users is None else [users.run(paths, fed, plain.output_names)]
                made = [actual, *(_in_types_of(expected, each) for each in runs)]
                outputs = [reference.source_outputs(each) for each in made]
                far = [_distance(each, expected, plain.output_names) for each in outputs]
                ratio = _ratio(outputs[0], expected)
    notes.append(
        f"the outputs differ by {far[0]:.1e} from those with float32 weights ({ratio:.1f} dB)"
        + "".join(f", by {each:.1e} in a session with default options" for each in far[1:])
    )
    return replace(verified, comparisons=tuple(found[0]))


def _in_types_of(expected: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Returns outputs in the types of the source, whose integers stay what they are."""
    pairs = zip(outputs, expected, strict=True)
    return [each.astype(like.dtype) if each.dtype.kind == "f" else each for each, like in pairs]


def _distance(actual: Sequence[np.ndarray], expected: Sequence[np.ndarray], names: Sequence[str]) -> float:
    return max((each.max_error for each in compare(actual, expected, names)), default=0.0)


def _ratio(actual: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> float:
    """Returns the lowest signal-to-noise ratio of float outputs, in decibels."""
    pairs = zip(expected, actual, strict=True)
    ratios = (decibels(*energies(one, other)) for one, other in pairs if one.dtype.kind == "f" and one.size)
    return min(ratios, default=float("inf"))


@dataclass
class _Files:
    """The files that are compared with: one with the same weights in float32, then those that round."""

    counterparts: Sequence[tuple[Runtime, Sequence[Path]]]
    names: Sequence[str]
    computes_in: str = ""

    def compared(
        self,
        inputs: Mapping[str, np.ndarray],
        actual: Sequence[np.ndarray],
        half_spread: Callable[[], Sequence[float]],
    ) -> list[Comparison]:
        """Compares the outputs ``actual``, in the file's layout. Raises VerificationError.

        ``half_spread`` measures how far rounding to float16 moves each output of the source.
        """
        exact, *rounded = [runtime.run(paths, inputs, self.names) for runtime, paths in self.counterparts]
        pairs = zip(compare(exact, exact, self.names), exact, strict=True)
        allowed = [with_coarser(each, array, self.computes_in).tolerance for each, array in pairs]
        for outputs in rounded:
            moved = compare(outputs, exact, self.names)
            allowed = [
                max(allowance, comparison.tolerance + _MARGIN * comparison.max_error)
                for allowance, comparison in zip(allowed, moved, strict=True)
            ]
        found = compare(actual, exact, self.names)
        is_beyond = any(each.max_error > limit for each, limit in zip(found, allowed, strict=True))
        if self.computes_in == "float16" and is_beyond:
            shares = [
                min(spread / scale_of(array), _MOST_OF_HALVES)
                for spread, array in zip(half_spread(), exact, strict=True)
            ]
            allowed = [*map(max, allowed, shares)]
        return check(actual, exact, self.names, tolerances=allowed)


def _runs(runtime: Runtime, graph: TargetGraph, folder: Path, name: str) -> tuple[Runtime, Sequence[Path]]:
    """Returns what runs a float32 graph, and its files; a large one has none, and is run in pieces."""
    if is_large(graph) and not random_operators(graph):
        return InPieces(runtime, graph), [folder / f"{name}{target_named(graph.target).suffixes[0]}"]
    return runtime, write_graph(graph, folder, name)
