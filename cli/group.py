"""The command group: imports the module of a command on use, and converts failures to exit statuses."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click

from tmconvert.cli.failures import Carried, report_failure
from tmconvert.signals import Ended, ending_by_signals
from tmconvert.symbolics.target_names import installed_targets


def help_without_command(ctx: click.Context, text: str = "") -> None:
    """Shows a text, or the help, of a group that was called without a command, and exits for wrong usage."""
    if ctx.invoked_subcommand is None:
        click.echo(text or ctx.get_help(), err=True)
        ctx.exit(2)


class CommandGroup(click.Group):
    """A group whose commands are the attribute ``command`` of modules ``tmconvert.cli.commands.<name>``.

    ``groups`` are their names and help by heading. Each of them has the options --plugin and --quiet.
    """

    def __init__(self, *args: Any, groups: Mapping[str, Mapping[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.groups = groups

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for commands in self.all_groups().values() for name in commands]

    def all_groups(self) -> dict[str, Mapping[str, str]]:
        """Returns names and help of all commands by heading, also of those that installed packages add."""
        others = {name: f"Convert a model to {name}." for name in installed_targets()}
        return {**self.groups, "Convert": {**self.groups["Convert"], **others}}

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        command: click.Command
        if any(cmd_name in commands for commands in self.groups.values()):
            command = importlib.import_module(f"{__package__}.commands.{cmd_name}").command
        elif cmd_name in self.list_commands(ctx):
            from tmconvert.cli.conversion import command_of_package

            command = command_of_package(cmd_name)
        else:
            return None
        from tmconvert.cli.options import plugin_option, quiet_option

        for option in (plugin_option, quiet_option):
            if option not in command.params and not isinstance(command, click.Group):
                command.params.append(option)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, self.list_commands(ctx)))
        for heading, commands in self.all_groups().items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), line) for name, line in commands.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] in self.list_commands(ctx) or args[0].startswith("-"):
            return super().resolve_command(ctx, args)
        from tmconvert.cli.words import command_of_words

        return super().resolve_command(ctx, [command_of_words(args, self.list_commands(ctx), ctx), *args])

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Runs a command line; ends the process with its exit status, as ``click`` does."""
        given = sys.argv[1:] if args is None else list(args)
        if not standalone_mode:
            return super().main(given, prog_name or self.name, complete_var, False, **extra)
        # Idle threads of NumPy's OpenBLAS spin for 2^26 cycles, a quarter of the time of a small job.
        os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
        if os.environ.get("_TMCONVERT_COMPLETE", "").startswith("powershell"):
            from tmconvert.cli import powershell  # noqa: F401  (registers itself with click)
        with ending_by_signals():
            try:
                status = super().main(given, prog_name or self.name, complete_var, False, **extra)
            except (Exception, KeyboardInterrupt, Ended) as error:
                status = report_failure(
                    error, as_json=_has(given, "--json"), with_traceback=_wants_traceback(given)
                )
        sys.exit(status or 0)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (BrokenPipeError, EOFError, SystemExit) as error:  # these would end the process in other ways
            raise Carried(error) from error


def _has(args: list[str], *options: str) -> bool:
    flags = args[: args.index("--")] if "--" in args else args
    return any(option in flags for option in options)


def _wants_traceback(args: list[str]) -> bool:
    debug = os.environ.get("TMCONVERT_DEBUG", "")
    return debug not in ("", "0") or _has(args, "-v", "-vv", "--verbose")
