"""Verifies an integer file against its float reference and layer by layer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from tmconvert.errors import VerificationError
from tmconvert.ir import InternalGraph
from tmconvert.lowering.target_graph import TargetGraph
from tmconvert.output.atomic import temporary_folder
from tmconvert.symbolics.registry import catalogue
from tmconvert.symbolics.traits import Arithmetic
from tmconvert.targets.registry import runtime_for, write_files
from tmconvert.verification.compare import Comparison
from tmconvert.verification.inputs import within_ranges
from tmconvert.verification.integer_rules import IntegerRules
from tmconvert.verification.layer_checks import Layer, layers
from tmconvert.verification.noise import LARGEST, Energies, energies
from tmconvert.verification.quality import OutputQuality
from tmconvert.verification.references import References
from tmconvert.verification.tensors import Tensors
from tmconvert.verification.vacuous import untold_output, vacuous_notes
from tmconvert.verification.verify import Verification, verify_written

STEPS = 2.0
# of samples that are none
_UNLIKE = {"random inputs": ", unlike those that it was quantized for: --report-data DATA measures these"}
_SHARE = 4  # a quarter of the energy: 1 dB
_FLOAT = 1e-4  # of the largest element, where a layer is in float
# what the file has in its tensors, from its inputs by name
Look = Callable[[Mapping[str, np.ndarray]], Tensors]
# the same of another session, from the inputs and what the first has; None where there is nothing to compare
Again = Callable[[Mapping[str, np.ndarray], Tensors], Tensors | None]


def verify_layers(
    path: Path,
    plain: TargetGraph,
    lowered: InternalGraph,
    references: References,
    look: Look,
    rules: IntegerRules,
    again: Again = lambda inputs, tensors: None,
) -> Verification | None:
    """Compares the file at ``path`` with ``plain``, the float reference graph, and each of its layers.

    ``look`` runs the file, ``again`` in the runtime's fused kernels; ``lowered`` is the graph that was
    lowered to ``plain``, ``rules`` are those of the target. None, with a note, where there is no runtime.
    Raises VerificationError TM4001.
    """
    target = plain.target
    with temporary_folder() as folder:
        float_path = folder / "float"
        write_files(plain, [float_path])
        verified = verify_written(target, [float_path], plain, references)
    if verified is None or runtime_for(target, path) is None:
        return None
    samples, about = _samples(references, lowered)
    reference, names = references.references[0], _output_names(plain)
    worst: dict[str, Comparison] = {}
    noise: dict[str, Energies] = {}
    shown: dict[str, list[np.ndarray]] = {}
    quality = {name: OutputQuality(name) for name in names.values()}
    places = {value.name: place for place, value in enumerate(plain.outputs)}
    for given in samples:
        if noise and not references.budget.allows("further samples"):
            break
        of_model = None if references.uncalibrated is None else references.uncalibrated.expected(list(given))
        stored = dict(zip(plain.input_names, reference.stored_inputs(given), strict=True))
        tensors = look(stored)
        for layer in layers(lowered, reference.catalogue, tensors, list(given), rules):
            found = _checked(layer, names.get(layer.name, layer.name), references.notes)
            worst[layer.name] = max(found, worst.get(layer.name, found), key=lambda each: each.max_error)
            if layer.name in names:
                shown.setdefault(names[layer.name], []).append(layer.local)
                expected = layer.whole if of_model is None else of_model[places[layer.name]]
                quality[names[layer.name]].add(layer.actual, expected)
            noise[layer.name] = layer.energies + noise.get(layer.name)
        fused = again(stored, tensors)
        for layer in layers(lowered, reference.catalogue, fused, list(given), rules) if fused else ():
            _check_fused(layer, names.get(layer.name, layer.name))
    references.notes.extend(each for each in references.budget.notes() if each not in references.notes)
    noises = tuple(each.noise() for each in noise.values())
    for each in noises:
        if each.name in names:
            ratio = f"{quality[names[each.name]].decibels:.1f} dB"
            where = f"signal to noise at {names[each.name]}"
            references.notes.append(
                f"{where}: {ratio}, against the float model, on {about}{_UNLIKE.get(about, '')}"
            )
    return Verification(
        verified.runtime,
        tuple(worst.values()),
        noises,
        about,
        vacuous=_vacuous(shown, verified, references),
        outputs=tuple(names.values()),
        independent=verified.independent,
        quality=tuple(each for each in quality.values() if each.signal or each.noise),
        reference=verified.reference,
        refusal=verified.refusal,
        undecided=verified.undecided,
    )


def _vacuous(
    shown: dict[str, list[np.ndarray]], verified: Verification, references: References
) -> dict[str, str]:
    """Returns why outputs prove nothing, and adds notes on those that the float file did not show."""
    vacuous = {name: what for name, arrays in shown.items() if (what := untold_output(arrays))}
    known = {*verified.vacuous, *verified.independent}
    references.notes.extend(
        vacuous_notes({name: what for name, what in vacuous.items() if name not in known})
    )
    return vacuous


def _output_names(plain: TargetGraph) -> dict[str, str]:
    return {value.name: name for value, name in zip(plain.outputs, plain.output_names, strict=True)}


def _samples(references: References, lowered: InternalGraph) -> tuple[Iterable[Sequence[np.ndarray]], str]:
    """Returns the samples for layer statistics, in the order of the inputs, and their description."""
    if references.samples is not None:
        return references.samples, references.about
    reference = references.references[0]
    if references.inputs is not None:
        return [reference.case(references.inputs)[0]], "the inputs passed"
    if reference.example is not None:
        return [reference.case(None)[0]], "the model's example"
    return [within_ranges(lowered)], "random inputs"


def _checked(layer: Layer, name: str, notes: list[str]) -> Comparison:
    comparison = compared(layer, name)
    if not comparison.ok and is_within_noise(layer):
        note = f"{layer.name} is up to {_distance(layer)} off the float result of {layer.function}"
        notes.extend([note] * (note not in notes))
        return comparison._replace(tolerance=comparison.max_error)
    if not comparison.ok:
        about = f"{layer.name} differs from the float result of {layer.function} for the same operands"
        raise VerificationError("TM4001", f"{about}: an element differs by {_distance(layer)}")
    return comparison


def _check_fused(layer: Layer, name: str) -> None:
    """Checks a layer with operator fusion enabled, for a file that is correct without fusion.

    A tensor in float may be rounded there: that it is read moves the quantization of what it is computed of.
    """
    if not layer.step:
        return
    try:
        _checked(layer, name, [])
    except VerificationError as error:
        message = f"{error.message} in the runtime's fused kernels, but not without fusion"
        help = (
            "on some processors such kernels accumulate integer products incorrectly: tmconvert explain "
            "TM4001"
        )
        raise VerificationError("TM4001", message, notes=[("help", help)]) from error


def compared(layer: Layer, name: str) -> Comparison:
    """Compares a layer relative to its quantized range; for float, to its largest element."""
    shapes = (layer.actual.shape, layer.local.shape)
    if layer.actual.shape != layer.local.shape:
        return Comparison(name, float("inf"), 0.0, *shapes)
    if not layer.step:
        off, sizes = float(np.max(layer.steps_off(), initial=0)), np.abs(layer.local)
        largest = float(np.max(sizes[sizes < LARGEST], initial=0)) or 1.0
        return Comparison(name, off / largest, _FLOAT, *shapes)
    return Comparison(name, *_worst(layer), *shapes)


def is_within_noise(layer: Layer) -> bool:
    """Whether what a product or a quotient is off, beyond what it may be, is little of its whole error.

    Integer kernels of both are a step or more off where an operand is large, or close to zero. That the
    result is off the float model by more, for its operands were rounded, makes it no worse.
    """
    if not layer.step or not _is_product(layer.function) or layer.actual.shape != layer.whole.shape:
        return False
    excess = np.maximum(layer.steps_off() - STEPS - layer.slack / layer.step, 0) * layer.step
    _, whole = energies(layer.whole, layer.actual)
    return float(np.sum(excess**2)) * _SHARE <= whole


def _is_product(function: str) -> bool:
    op = catalogue().found(function)
    arithmetic = None if op is None else op.trait(Arithmetic)
    return arithmetic is not None and arithmetic.is_product


def _worst(layer: Layer) -> tuple[float, float]:
    """Describes the element that exceeds its tolerance most."""
    off = layer.steps_off().reshape(-1)
    if not off.size:
        return 0.0, STEPS / 255
    allowed = np.broadcast_to(STEPS + layer.slack / layer.step, layer.actual.shape).reshape(-1)
    worst = np.argmax(off - allowed)
    return float(off[worst]) / 255, float(allowed[worst]) / 255


def _distance(layer: Layer) -> str:
    if layer.actual.shape != layer.local.shape:
        return f"a shape, {list(layer.actual.shape)} for {list(layer.local.shape)}"
    off = float(np.max(layer.steps_off(), initial=0))
    return f"{off:.1f} steps" if layer.step else f"{off:.1e}"
