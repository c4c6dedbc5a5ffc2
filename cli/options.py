"""Click options made from the declared options, and commands whose help shows them in groups."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import click
from click.shell_completion import CompletionItem

from tmconvert.conversion.options.commands import options_of
from tmconvert.conversion.options.flags import PLUGIN, QUIET
from tmconvert.symbolics.target_names import known_targets
from tmconvert.targets.option import HEADINGS, REPEATED, Option
from tmconvert.targets.options import AUTO

Decorated = Callable[..., Any]
FLAG_WIDTH = 27  # columns of flags in a help text: 47 of 80 are left for the texts
OTHERS = "Other"  # heading of what is in no group
COMMON = "Common options"  # heading of the only group in a short help
_ALL = f"{__name__}.all"  # in the context: whether help shows all options


class ModelPath(click.Path):
    """The path of a model; for that of an ONNX file, only the message classes of onnx are imported."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if str(value).lower().endswith(".onnx"):
            from tmconvert.formats.onnx.messages import load_messages_alone

            load_messages_alone()
        return super().convert(value, param, ctx)


model_argument = click.argument("model", metavar="MODEL", type=ModelPath())


class TargetChoice(click.Choice):  # type: ignore[type-arg]
    """A choice of targets: help shows the built-in ones, and those of other packages are accepted, too."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return click.Choice(known_targets()).convert(value, param, ctx)


class GroupedOption(click.Option):
    """A click option that knows its declaration."""

    declaration: Option


class GroupedCommand(click.Command):
    """A command whose help has the usage and examples first, then its options by group.

    With ``is_long``, ``--help`` shows the common options, and ``--help-all`` all of them.
    """

    def __init__(
        self,
        *args: Any,
        example: str = "",
        further: Sequence[str] = ("output",),
        is_long: bool = False,
        **others: Any,
    ) -> None:
        """``example`` has one in each line. ``further`` are the options that further arguments stand for, in
        that order, if they are not given as options.
        """
        super().__init__(*args, **others)
        self.example, self.further, self.is_long = example, further, is_long

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        return [*super().get_params(ctx), *([_help_all_option()] if self.is_long else [])]

    def make_parser(self, ctx: click.Context) -> Any:
        """Returns a parser that accepts the output as an argument and as ``-o``, in every command."""
        parser: Any = super().make_parser(ctx)
        parse = parser.parse_args

        def parse_in_any_order(args: list[str]) -> Any:
            values, further, order = parse(_with_output_last(self, list(args)))
            _check_repetition(ctx, order)
            options = {each.name: each for each in self.params if isinstance(each, click.Option)}
            for name in self.further:
                if further and name in options and not values.get(name):
                    value = further.pop(0)
                    values[name] = [value] if options[name].multiple else value
            return values, further, order

        parser.parse_args = parse_in_any_order
        return parser

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.example:
            formatter.write_paragraph()
            text = textwrap.indent(self.example, " " * len("Example: ")).lstrip()
            unwrapped = "\b\n" if "\n" in text else ""
            with formatter.indentation():
                formatter.write_text(f"{unwrapped}Example: {text}")
        super().format_help_text(ctx, formatter)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        is_short = self.is_long and not ctx.meta.get(_ALL)
        headings = (*HEADINGS.values(), OTHERS)
        rows: dict[str, list[tuple[str, str]]] = {COMMON: [], **{heading: [] for heading in headings}}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                flag, text = record
                is_common = not isinstance(parameter, GroupedOption) or parameter.declaration.is_common
                if is_common or not is_short:
                    heading = COMMON if is_short else _heading(parameter)
                    rows[heading].append((flag.ljust(FLAG_WIDTH), text))
        for heading, entries in rows.items():
            if entries:
                with formatter.section(heading):
                    formatter.write_dl(entries, col_max=FLAG_WIDTH)


def _help_all_option() -> click.Option:
    def show(ctx: click.Context, parameter: click.Parameter, is_given: bool) -> None:
        if is_given and not ctx.resilient_parsing:
            ctx.meta[_ALL] = True
            click.echo(ctx.get_help())
            ctx.exit()

    return click.Option(
        ["--help-all"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=show,
        help="Show all options and exit.",
    )


def _check_repetition(ctx: click.Context, order: Sequence[click.Parameter]) -> None:
    """Raises UsageError for an option that is given twice and takes one value: the first would be lost."""
    for each in order:
        takes_one = isinstance(each, GroupedOption) and not (each.multiple or each.count or each.is_flag)
        if takes_one and sum(other is each for other in order) > 1:
            raise click.UsageError(f"{each.opts[-1]} is given more than once, and takes one value", ctx)


def _with_output_last(command: click.Command, args: list[str]) -> list[str]:
    """Returns the arguments with ``-o OUT`` as the last one, where OUT is an argument of the command."""
    if any({"-o", "--output"} & set(each.opts) for each in command.params):
        return args
    for place, each in enumerate(args):
        if each == "--":
            break
        if each in ("-o", "--output") and place + 1 < len(args):
            return [*args[:place], *args[place + 2 :], args[place + 1]]
        if each.startswith("--output="):
            return [*args[:place], *args[place + 1 :], each.partition("=")[2]]
    return args


def _heading(parameter: click.Parameter) -> str:
    return HEADINGS[parameter.declaration.group] if isinstance(parameter, GroupedOption) else OTHERS


def declared_options(command: str) -> Callable[[Decorated], Decorated]:
    """Adds the declared options to a command, which receives each under its declared name."""
    made = [click_option(option) for option in options_of(command) if option.is_flag]

    def decorated(function: Decorated) -> Decorated:
        parameters: list[click.Parameter] = getattr(function, "__click_params__", [])
        function.__click_params__ = [*reversed(made), *parameters]  # type: ignore[attr-defined]
        return function

    return decorated


def click_option(option: Option, **others: Any) -> GroupedOption:
    """Returns the click option for a declared option."""
    flags = [flag for flag in (option.short_flag, option.spelling) if flag]
    if option.suggestions:
        others["shell_complete"] = _completing(option.suggestions)
    made = GroupedOption(
        [*flags, option.name],
        type=_type(option),
        is_flag=option.kind == "switch" or None,  # with False, click 8.3 takes no value that begins with "-"
        count=option.kind == "count",
        multiple=option.kind in REPEATED,
        metavar=option.value_name or None,
        required=option.is_required,
        help=option.help_text(),
        **others,
    )
    made.declaration = option
    return made


class _Opset(click.types.IntParamType):
    """An integer, or ``auto``."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return AUTO if value == AUTO else super().convert(value, param, ctx)


def _type(option: Option) -> Any:
    if option.choices:
        return (TargetChoice if option.name == "target" else click.Choice)(option.choices)
    numbers = {"integer": int, "number": float, "opset": _Opset()}
    types = {"switch": bool, "path": click.Path(), "data": click.Path(), "count": None, **numbers}
    return types.get(option.kind, str)


def _completing(
    suggestions: Iterable[str],
) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    def complete(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
        return [CompletionItem(value) for value in suggestions if value.startswith(typed)]

    return complete


def _load_plugins(ctx: click.Context, parameter: click.Parameter, files: tuple[str, ...]) -> None:
    if files:
        from tmconvert.frontends.registry import temporary_frontends
        from tmconvert.symbolics.plugins import load_plugin
        from tmconvert.symbolics.registry import temporary_symbolics
        from tmconvert.transform.named_passes import temporary_passes

        ctx.with_resource(temporary_symbolics())
        ctx.with_resource(temporary_passes())
        ctx.with_resource(temporary_frontends())
        for file in files:
            load_plugin(file)


def _be_quiet(ctx: click.Context, parameter: click.Parameter, is_quiet: bool) -> None:
    if is_quiet:
        from tmconvert.cli.rendering import quiet

        ctx.with_resource(quiet())


# of every command; see CommandGroup
quiet_option = click_option(QUIET, expose_value=False, callback=_be_quiet, is_eager=True)
plugin_option = click_option(PLUGIN, expose_value=False, callback=_load_plugins)
