"""How each target supports the ops of the catalogue, by version."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tmconvert.symbolics.op import ANY_DTYPE, FLOATS, INTEGERS, NUMBERS, Argument, Attribute, Op, Tensors
from tmconvert.targets.registry import target_named

_KINDS = {
    frozenset(ANY_DTYPE): "any",
    frozenset(NUMBERS): "numbers",
    frozenset(FLOATS): "floats",
    frozenset(INTEGERS): "integers",
    frozenset((*INTEGERS, "bool")): "integers, bool",
    frozenset((*FLOATS, "bool")): "floats, bool",
}


@dataclass(frozen=True)
class OpSupport:
    """How one target supports one op: "native", "decomposed", or "no" with the reason.

    ``since`` is the first version of the target with the op, independent of the requested version; None if no
    version has it. ``versions`` are all changes as (first version, "native" or "decomposed"), the oldest
    version first.
    """

    op: str
    target: str
    support: str
    since: int | None = None
    reason: str = ""
    versions: tuple[tuple[int, str], ...] = ()
    definition: Op | None = field(default=None, repr=False, compare=False)

    @property
    def signature(self) -> str:
        """Returns ``aten::clamp(x, min=None, max=None)``."""
        return f"{self.op}({', '.join(map(_argument, self.arguments))})"

    @property
    def arguments(self) -> list[dict[str, Any]]:
        """Returns tensors with element types and ranks (None: any), then attributes with defaults."""
        assert self.definition is not None
        return [_described(argument) for argument in self.definition.args]

    @property
    def limits(self) -> str:
        """Returns ``floats; rank 4``, ``any, indices: integers``: the supported tensors of an op."""
        return _limits([argument for argument in self.arguments if "dtypes" in argument])

    @property
    def starts_later(self) -> bool:
        """Whether the oldest supported version lacks the op."""
        return self.since is not None and self.since > target_named(self.target).oldest_version


def op_support(op: Op, target: str, version: int) -> OpSupport:
    if not target_named(target).has_ordered_versions:
        return _at_version(op, target, version)
    versions = tuple(_versions(op, target))
    since = versions[0][0] if versions else None
    usable = [support for first, support in versions if first <= version]
    if usable:
        return OpSupport(op.name, target, usable[-1], since, "", versions, op)
    lacks = "no symbolic" if since is None else f"requires version {since} or later"
    reason = op.reasons.get(target) or lacks
    return OpSupport(op.name, target, "no", since, reason, versions, op)


def _at_version(op: Op, target: str, version: int) -> OpSupport:
    """How a version has the op where versions have no order, so that there is no first one."""
    is_native = op.lookup(target, version) is not None
    if not is_native and not op.is_decomposed(target, version):
        return OpSupport(op.name, target, "no", None, op.reasons.get(target, ""), (), op)
    support = "native" if is_native else "decomposed"
    return OpSupport(op.name, target, support, 0, "", ((0, support),), op)


def _versions(op: Op, target: str) -> Iterator[tuple[int, str]]:
    """Returns (first version, how); tests prove each, and that older versions are rejected."""
    oldest, native = target_named(target).oldest_version, op.lowest_version(target)
    decomposed = op.decomposed_since(target)
    native = None if native is None else max(native, oldest)
    if decomposed is not None and (native is None or max(decomposed, oldest) < native):
        yield max(decomposed, oldest), "decomposed"
    if native is not None:
        yield native, "native"


def _described(argument: Argument) -> dict[str, Any]:
    if isinstance(argument, Attribute):
        entry = {"name": argument.name, "kind": "attribute", "required": argument.is_required}
        return entry if argument.is_required else {**entry, "default": argument.default}
    return {
        "name": argument.name,
        "kind": "tensors" if isinstance(argument, Tensors) else "tensor",
        "required": isinstance(argument, Tensors) or not argument.optional,
        "dtypes": list(argument.dtypes),
        "ranks": None if argument.ranks is None else list(argument.ranks),
    }


def _argument(argument: dict[str, Any]) -> str:
    name = f"[{argument['name']}, ...]" if argument["kind"] == "tensors" else str(argument["name"])
    return name if argument["required"] else f"{name}={argument.get('default')!r}"


def _limits(tensors: list[dict[str, Any]]) -> str:
    if not tensors:
        return ""
    kinds = [_KINDS.get(frozenset(each["dtypes"])) or " ".join(each["dtypes"]) for each in tensors]
    others = [
        f"{each['name']}: {kind}" for each, kind in zip(tensors, kinds, strict=True) if kind != kinds[0]
    ]
    text = ", ".join([kinds[0], *others])
    ranks = tensors[0]["ranks"]
    return text if ranks is None else f"{text}; rank {' or '.join(map(str, ranks))}"
