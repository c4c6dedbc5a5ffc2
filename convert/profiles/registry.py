"""Profiles by name, or by the path of a TOML file that a user wrote."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from tmconvert.errors import UsageError
from tmconvert.errors.suggestions import no_such_name
from tmconvert.profiles.profile import (
    EFFECTS,
    Effect,
    FactSource,
    Limit,
    OperatorGroup,
    Profile,
    ProfileRule,
    names_in,
)
from tmconvert.profiles.quantities import Number, is_quantity

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_DATA = Path(__file__).parent / "data"
Table = Mapping[str, object]
_TARGETS = ("tflite", "onnx")
_FIELDS = {
    "profile": {"title", "targets", "left_over", "extends", "sources", "operators", "rules", "version"},
    "sources": {"document", "confirmed"},
    "operators": {"names", "types", "ranks", "source"},
    "rules": {
        *("name", "quantity", "operators", "without", "low", "high", "among", "not_among", "multiple_of"),
        *("when", "effect", "help", "source"),
    },
    "when": {"quantity", "low", "high", "among", "not_among", "multiple_of"},
}


def profile_names() -> list[str]:
    """Returns the names of the profiles in the package."""
    return sorted(path.stem for path in _DATA.glob("*.toml"))


def profile_named(name: str) -> Profile:
    """Returns a profile of the package, or the one in the file ``name``, which ends in ``.toml``.

    Raises UsageError TM6002 for an unknown name, TM6070 for a file that is no profile.

    >>> profile_named("ethos-u55").targets
    ('tflite',)
    """
    if name.lower().endswith(".toml"):
        return _read(Path(name), Path(name).stem)
    if name not in profile_names():
        raise no_such_name(name, profile_names(), "there is no profile", "TM6002")
    return _built_in(name)


@cache
def _built_in(name: str) -> Profile:
    return _read(_DATA / f"{name}.toml", name)


def _read(path: Path, name: str) -> Profile:
    reader = _Reader(path, name)
    try:
        text = path.read_text(encoding="utf-8")
        table: Table = tomllib.loads(text)
    except OSError as error:
        reader.fail(f"it cannot be read: {error.strerror}")
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        reader.fail(f"it is not TOML: {error}")
    return reader.profile(table)


class _Reader:
    """Makes a Profile of the tables of a file, and names the first field that is wrong."""

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name = path, name
        self.sources: dict[str, FactSource] = {}
        self.left_over: Effect = "elsewhere"

    def fail(self, cause: str) -> NoReturn:
        message = f"{self.path} is not a profile: {cause}"
        notes = [("see", "docs/how-to/profiles.md describes the file")]
        raise UsageError("TM6070", message, notes=notes)

    def profile(self, table: Table) -> Profile:
        self._check_fields(table, "profile")
        base = None
        if "extends" in table:
            parent = self._text(table, "extends")
            if parent == self.name and self.path.parent == _DATA:
                self.fail("it extends itself")
            base = profile_named(parent)
        self.sources = {
            **({} if base is None else base.sources),
            **{name: self._source(name, each) for name, each in self._table(table, "sources").items()},
        }
        targets = self._names(table, "targets") or (base.targets if base else ())
        if not targets or any(each not in _TARGETS for each in targets):
            self.fail(f"targets must be some of {', '.join(_TARGETS)}")
        given = self._text(table, "left_over", base.left_over if base else "elsewhere")
        self.left_over = self._effect(given)
        operators = [self._group(each) for each in self._tables(table, "operators")]
        rules = [self._rule(each) for each in self._tables(table, "rules")]
        if base is not None:
            own = {rule.name for rule in rules}
            names = {name for group in operators for name in group.names}
            operators += [group._replace(names=group.names - names) for group in base.operators]
            rules += [rule for rule in base.rules if rule.name not in own]
        return Profile(
            self.name,
            self._text(table, "title", self.name),
            targets,
            self.left_over,
            tuple(operators),
            tuple(rules),
            self.sources,
            frozenset(name for group in operators for name in group.names),
            self._text(table, "version", base.version if base else ""),
        )

    def _source(self, name: str, table: object) -> FactSource:
        if not isinstance(table, Mapping):
            self.fail(f"sources.{name} must be a table")
        self._check_fields(table, "sources")
        return FactSource(self._text(table, "document"), self._text(table, "confirmed", ""))

    def _group(self, table: Table) -> OperatorGroup:
        self._check_fields(table, "operators")
        types = names_in(self._names(table, "types")) if "types" in table else None
        return OperatorGroup(
            frozenset(self._names(table, "names")), types, self._range(table, "ranks"), self._from(table)
        )

    def _rule(self, table: Table) -> ProfileRule:
        self._check_fields(table, "rules")
        name = self._text(table, "name")
        if not name:
            self.fail("a rule has no name")
        return ProfileRule(
            name,
            self._limit(table, name),
            frozenset(self._names(table, "operators")),
            frozenset(self._names(table, "without")),
            tuple(self._condition(each, name) for each in self._tables(table, "when")),
            self._effect(self._text(table, "effect", self.left_over)),
            self._text(table, "help", ""),
            self._from(table),
        )

    def _condition(self, table: Table, rule: str) -> Limit:
        self._check_fields(table, "when")
        return self._limit(table, rule)

    def _limit(self, table: Table, rule: str) -> Limit:
        quantity = self._text(table, "quantity")
        if not is_quantity(quantity):
            self.fail(f"the rule {rule} has the unknown quantity {quantity!r}")
        low, high = (self._number(table, name) for name in ("low", "high"))
        limit = Limit(
            quantity,
            low,
            high,
            self._values(table, "among"),
            self._values(table, "not_among"),
            int(self._number(table, "multiple_of") or 0),
        )
        if not limit.text():
            self.fail(f"the rule {rule} sets no limit on {quantity}")
        return limit

    # ---- fields

    def _check_fields(self, table: Table, kind: str) -> None:
        unknown = sorted(set(table) - _FIELDS[kind])
        if unknown:
            self.fail(f"{kind} has the unknown field {unknown[0]!r}")

    def _take(self, table: Table, name: str, default: object, fits: Callable[[Any], bool], what: str) -> Any:
        """Returns a field of a table, or ``default``; it must be ``what`` it is to be."""
        value = table.get(name, default)
        if not fits(value):
            self.fail(f"{name} must be {what}")
        return value

    def _text(self, table: Table, name: str, default: str | None = None) -> str:
        return str(self._take(table, name, default, lambda value: isinstance(value, str), "a text"))

    def _names(self, table: Table, name: str) -> tuple[str, ...]:
        value = self._take(table, name, (), _are_names, "a text, or a list of texts")
        return tuple(value.split() if isinstance(value, str) else value)

    def _number(self, table: Table, name: str) -> float | None:
        found: float | None = self._take(
            table, name, None, lambda value: value is None or isinstance(value, (int, float)), "a number"
        )
        return found

    def _values(self, table: Table, name: str) -> tuple[Number, ...]:
        return tuple(self._take(table, name, [], _list_of(int, float, str), "a list of numbers or texts"))

    def _range(self, table: Table, name: str) -> tuple[int, int] | None:
        if name not in table:
            return None
        what = "two integers, the lowest and the highest"
        low, high = self._take(table, name, [], lambda value: _list_of(int)(value) and len(value) == 2, what)
        return low, high

    def _table(self, table: Table, name: str) -> Table:
        found: Table = self._take(table, name, {}, lambda value: isinstance(value, Mapping), "a table")
        return found

    def _tables(self, table: Table, name: str) -> Sequence[Table]:
        found: Sequence[Table] = self._take(table, name, [], _list_of(Mapping), "a list of tables")
        return found

    def _effect(self, value: str) -> Effect:
        if value not in EFFECTS:
            self.fail(f"expected one of {', '.join(EFFECTS)}, got {value!r}")
        return value

    def _from(self, table: Table) -> FactSource:
        name = self._text(table, "source", next(iter(self.sources), ""))
        if name not in self.sources:
            self.fail(f"there is no source {name!r}")
        return self.sources[name]


def _list_of(*types: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(isinstance(each, types) for each in value)


def _are_names(value: object) -> bool:
    return isinstance(value, (str, tuple)) or _list_of(str)(value)
