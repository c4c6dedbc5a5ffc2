"""Names of inputs and outputs as optimum gives them to decoders, which their runtimes expect.

A cache is ``past_key_values.0.key`` among the inputs and ``present.0.key`` among the outputs; of a decoder
with cross-attention ``past_key_values.0.decoder.key`` and ``past_key_values.0.encoder.key``. The state of a
convolution is ``past_conv.0`` and ``present_conv.0``, that of a recurrence ``past_ssm.0`` and
``present_ssm.0``. All else keeps its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from tmconvert.conversion.io_names import output_paths, written_outputs
from tmconvert.conversion.io_overrides import IoOverrides
from tmconvert.errors import UsageError
from tmconvert.ir import Input, TracedModule
from tmconvert.ir.flatten import flatten_module

Path = tuple[str, ...]

OPTIMUM = "optimum"
_CACHE = re.compile("past|present|cache")
_SIDES = {"self_attention_cache": ("decoder",), "cross_attention_cache": ("encoder",)}
_STATES = {"conv_states": "conv", "recurrent_states": "ssm"}  # of layers without keys and values
_PAIR = (("key",), ("value",))
# by the number of tensors of a layer, what they are in order
_POSITIONS = {2: _PAIR, 4: tuple((side, *name) for side in ("decoder", "encoder") for name in _PAIR)}


def with_names(module: TracedModule, overrides: IoOverrides, names: str | None) -> IoOverrides:
    """Returns the overrides with the names of the scheme; those of ``rename`` take precedence.

    Raises UsageError TM6002 for a model that is cut, whose inputs and outputs are other ones.
    """
    if names != OPTIMUM:
        return overrides
    if overrides.is_cut:
        raise UsageError("TM6002", f"names={names!r} applies to whole models: omit inputs and outputs")
    return overrides._replace(rename={**optimum_names(module), **overrides.rename})


def optimum_names(module: TracedModule) -> dict[str, str]:
    """Maps the default names of cache tensors in a file to the names that Optimum uses.

    ``past_key_values_0_key`` is ``past_key_values.0.key``, for instance.
    """
    flat = flatten_module(module)
    assert module.graph is not None and flat.graph is not None
    pairs = zip(module.graph.inputs[1:], flat.graph.inputs[1:], strict=True)
    inputs = {new.name: tuple(old.expr.name.split(".")) for old, new in pairs if isinstance(old.expr, Input)}
    paths = (tuple(map(str, path)) for path, _ in output_paths(flat.graph.result))
    outputs = dict(zip(written_outputs(flat.graph), paths, strict=True))
    return dict([*_renamed(inputs, "past_key_values", "past"), *_renamed(outputs, "present", "present")])


def _renamed(paths: Mapping[str, Path], top: str, side: str) -> Iterator[tuple[str, str]]:
    """Yields the names of the tensors of caches, each with its new one."""
    layers = [path[:-1] for path in paths.values()]
    for name, path in paths.items():
        if len(path) > 2 and path[-2] in _STATES and path[-1] == "0":
            yield name, f"{side}_{_STATES[path[-2]]}.{path[-3]}"
            continue
        found = _in_cache(path, layers.count(path[:-1]))
        if found is not None:
            yield name, ".".join((top, *found))


def _in_cache(path: Path, count: int) -> Path | None:
    """Returns the layer and the place in it of a tensor that is one of ``count`` of a layer of a cache."""
    top, *rest = path if path[:1] and not path[0].isdigit() else ("cache", *path[1:])
    side = _SIDES.get(rest[0], ()) if rest else ()
    rest = rest[1:] if side else rest
    if not _CACHE.search(top) or len(rest) != 2 or not rest[0].isdigit():
        return None
    layer, slot = rest
    positions = _POSITIONS.get(count, ())
    if slot.isdigit() and int(slot) < len(positions):
        return (layer, *side, *positions[int(slot)])
    return None if slot.isdigit() else (layer, *side, slot)
