"""Checks of nets in every dialect: names, order, counts, shapes."""

from __future__ import annotations

from collections.abc import Iterator

from tmconvert.formats.caffe.dialects.dialect import Dialect
from tmconvert.formats.caffe.dialects.rule import Rule
from tmconvert.formats.caffe.layers import LAYERS, TRAINING
from tmconvert.formats.caffe.layers.layer import Shape
from tmconvert.formats.caffe.net import Net, NetLayer
from tmconvert.targets.caffe.quantities import QUANTITIES
from tmconvert.targets.violation import Violation

# rule: what to do
RULES = {
    "duplicate-layer": "give each layer a unique name: weights are found by it",
    "unnamed-layer": "give the layer a name: weights are found by it",
    "unknown-layer": "use layers of the dialect, or choose the dialect that has this one",
    "training-layer": "remove it from a net for inference, as in a deploy.prototxt",
    "missing-blob": "correct the name, or add the layer that computes the blob",
    "wrong-order": "move the layer after the one that computes the blob",
    "duplicate-blob": "give the top another name: only a layer in place may write a blob again",
    "in-place": "give the top another name: this type reads elements after it wrote others",
    "in-place-shared": "give the top another name: the other layer may see the blob before or after",
    "bottoms-and-tops": "give the layer as many bottoms and tops as its type has",
    "shape": "correct the parameters, or the layers that make the bottoms",
}


def violations(net: Net, dialect: Dialect) -> list[Violation]:
    """Returns all violations of ``net``, in the order of its layers."""
    return sorted(
        [*_layers(net, dialect), *_blobs(net), *_shapes(net, dialect)], key=lambda found: found.line
    )


def _found(rule: str, layer: NetLayer, message: str) -> Violation:
    return Violation(rule, message, RULES[rule], layer.name, layer.line)


def _layers(net: Net, dialect: Dialect) -> Iterator[Violation]:
    seen: set[str] = set()
    for layer in net.layers:
        if not layer.name:
            yield _found("unnamed-layer", layer, f"a layer of the type {layer.type} has no name")
        elif layer.name in seen:
            yield _found("duplicate-layer", layer, "another layer has this name, too")
        seen.add(layer.name)
        if not dialect.knows(layer.type):
            yield _unknown(layer, dialect)


def _unknown(layer: NetLayer, dialect: Dialect) -> Violation:
    if layer.type in TRAINING:
        return _found("training-layer", layer, f"{layer.type} is for training only")
    return _found("unknown-layer", layer, f"{dialect.title} has no layer {layer.type!r}")


def _blobs(net: Net) -> Iterator[Violation]:
    """Who makes, reads and overwrites which blob."""
    everything = {top for layer in net.layers for top in layer.tops}
    made: set[str] = set()
    readers: dict[str, list[str]] = {}
    for layer in net.layers:
        for name in layer.bottoms:
            if name not in everything:
                yield _found("missing-blob", layer, f"no layer computes its bottom {name}")
            elif name not in made:
                yield _found("wrong-order", layer, f"its bottom {name} is computed by a later layer")
        for name in layer.tops:
            if name in layer.bottoms:
                yield from _in_place(layer, name, readers.get(name, []))
            elif name in made:
                yield _found("duplicate-blob", layer, f"another layer has made the blob {name}")
        for name in layer.bottoms:
            readers.setdefault(name, []).append(layer.name)
        for name in layer.tops:
            made.add(name)
            readers[name] = []


def _in_place(layer: NetLayer, name: str, readers: list[str]) -> Iterator[Violation]:
    definition = LAYERS.get(layer.type)
    if definition is not None and definition.run is not None and not definition.overwrites:
        yield _found("in-place", layer, f"{layer.type} cannot write over its bottom {name}")
    if readers:
        yield _found("in-place-shared", layer, f"writes over {name}, which {', '.join(readers)} reads, too")


def _shapes(net: Net, dialect: Dialect) -> Iterator[Violation]:
    """Checks counts, shapes and the dialect's own rules; layers with unknown shapes are skipped."""
    known: dict[str, Shape] = {}
    for layer in net.layers:
        definition = LAYERS.get(layer.type)
        bottoms = [known[name] for name in layer.bottoms if name in known]
        for name in layer.tops:
            known.pop(name, None)
        if definition is None or definition.shapes is None or not dialect.knows(layer.type):
            continue
        counts = [
            _count(definition.bottoms, layer.bottoms, "bottom"),
            _count(definition.tops, layer.tops, "top"),
        ]
        if any(counts):
            yield _found("bottoms-and-tops", layer, f"{layer.type} has {' and '.join(filter(None, counts))}")
        if any(counts) or len(bottoms) < len(layer.bottoms):
            continue
        try:
            tops = definition.shapes(layer, bottoms)
        except (ValueError, IndexError, ZeroDivisionError, OverflowError) as error:
            yield _found("shape", layer, str(error))
            continue
        known.update(zip(layer.tops, tops, strict=False))
        yield from _rules(layer, dialect, bottoms, tops)


def _count(limits: tuple[int, int | None], names: list[str], word: str) -> str:
    """The words for a number of ``names`` outside of ``limits``."""
    least, most = limits
    if least <= len(names) and (most is None or len(names) <= most):
        return ""
    wanted = f"{least} or more" if most is None else f"{least}" if least == most else f"{least} to {most}"
    return f"{wanted} {word}s, not {len(names)}"


def _rules(layer: NetLayer, dialect: Dialect, bottoms: list[Shape], tops: list[Shape]) -> Iterator[Violation]:
    for rule in dialect.rules:
        if rule.layers and layer.type not in rule.layers:
            continue
        message = _excess(rule, dialect.title, layer, bottoms, tops)
        if message:
            yield Violation(rule.name, message, rule.help, layer.name, layer.line, rule.confirmed)


def _excess(rule: Rule, reader: str, layer: NetLayer, bottoms: list[Shape], tops: list[Shape]) -> str:
    """Returns how the layer violates ``rule``; empty where it does not."""
    if rule.fields:
        given = [field.name for field, _ in layer.parameters.ListFields() if field.name in rule.fields]
        return f"{' and '.join(given)} set, which {reader} does not read" if given else ""
    numbers = QUANTITIES[rule.quantity](layer, bottoms, tops)
    given = [f"{number:g}" for number in numbers if not rule.allows(number)]
    shown = ", ".join(dict.fromkeys(given))
    return f"{rule.quantity} is {shown}, but {reader} supports {rule.limits()}" if given else ""
