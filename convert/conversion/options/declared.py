"""Options as fields of a TypedDict, and functions that take them as keywords.

A field ``name: Annotated[type, output_option(help)]`` declares a keyword and a flag. ``declared`` reads the
fields; ``expand_options`` puts them into the signature and the docstring of a function.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from typing import Any, ForwardRef, Literal, TypeVar, get_args, get_origin

from tmconvert.targets.option import HEADINGS, Group, Kind, Option

F = TypeVar("F", bound=Callable[..., Any])
WIDTH = 106  # of the lines of docstrings


# kinds of options by their type, where a field names none; other types are texts
_KINDS: Mapping[str, Kind] = {
    "bool": "switch",
    "int": "integer",
    "float": "number",
    "int | None": "integer",
    "float | None": "number",
    "Sequence[float]": "numbers",
    "Sequence[str] | None": "names",
    "str | PathLike[str] | None": "path",
    "Mapping[str, str] | None": "pairs",
    "Mapping[str, Sequence[int]] | None": "pairs",
}


def _option(group: Group, help: str, kind: Kind = "text", **others: Any) -> Option:
    """Returns the option of a field, without its name and what follows from its type."""
    return Option("", group, help, kind, **others)


input_option = partial(_option, "input")
output_option = partial(_option, "output")
names_option = partial(_option, "names")
verification_option = partial(_option, "verification")
shapes_option = partial(_option, "shapes")
quantization_option = partial(_option, "quantization")
calibration_option = partial(_option, "calibration")
tracing_option = partial(_option, "tracing")
debugging_option = partial(_option, "debugging")


@cache
def declared(fields: type) -> tuple[Option, ...]:
    """Returns the options that a TypedDict declares."""
    return in_order(_named(name, field) for name, field in fields.__annotations__.items())


def in_order(options: Iterable[Option]) -> tuple[Option, ...]:
    """Returns the options by group, the common ones of each group first."""
    ranks = {group: number for number, group in enumerate(HEADINGS)}
    return tuple(sorted(options, key=lambda each: (ranks[each.group], not each.is_common)))


def _named(name: str, field: Any) -> Option:
    type = field.__origin__
    found: Option = field.__metadata__[0]
    annotation = _type_text(type)
    kind = found.kind if found.kind != "text" else _KINDS.get(annotation, "text")
    literals = [get_args(each) for each in (type, *get_args(type)) if get_origin(each) is Literal]
    return found._replace(
        name=name,
        kind=kind,
        annotation=annotation,
        default=found.default is True if kind == "switch" else found.default,
        default_text=found.default_text or _default_text(found.default),
        choices=literals[0] if literals and kind == "text" else found.choices,
    )


def _default_text(value: Any) -> str:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return f"{value:g}" if is_number else value if isinstance(value, str) else ""


def _type_text(kind: Any) -> str:
    """Returns a type as source text.

    >>> _type_text(str | None)
    'str | None'
    """
    if isinstance(kind, ForwardRef):
        return kind.__forward_arg__
    if str(get_origin(kind)) in ("typing.Union", "<class 'types.UnionType'>"):
        return " | ".join("None" if each is type(None) else _type_text(each) for each in get_args(kind))
    return re.sub(r"\b(\w+\.)+(?=[A-Z])", "", inspect.formatannotation(kind))


def expand_options(fields: type) -> Callable[[F], F]:
    """Decorates a function of ``**options``, which are the fields of a TypedDict.

    ``help``, ``inspect.signature`` and the checks of arguments then have each option by name.
    """

    def expands(function: F) -> F:
        options, signature = declared(fields), inspect.signature(function)
        keywords = [
            inspect.Parameter(
                each.name, inspect.Parameter.KEYWORD_ONLY, default=each.default, annotation=each.annotation
            )
            for each in options
        ]
        kept = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
        function.__signature__ = signature.replace(parameters=[*kept, *keywords])  # type: ignore[attr-defined]
        before, returns, after = inspect.cleandoc(function.__doc__ or "").partition("\n\nReturns:")
        lines = (
            textwrap.fill(
                f"{each.name}: {each.keyword_text()}",
                WIDTH,
                initial_indent="    ",
                subsequent_indent="        ",
                break_long_words=False,
            )
            for each in options
        )
        function.__doc__ = "\n".join([before, *lines]) + returns + after
        return function

    return expands
