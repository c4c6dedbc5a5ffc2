"""Converts any exception of a command to a message and an exit status."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Mapping, Sequence

import click

from tmconvert import signals
from tmconvert.cli.rendering import write_error, write_json, write_message
from tmconvert.errors import InternalError, LoadError, TmconvertError, UsageError, WriteError
from tmconvert.errors.environment import environment_error, memory_error

_NO_MEMORY = ("cannot allocate memory", "failed to map segment")
PIPE_CLOSED = 141  # 128 + SIGPIPE
REPORT = "this is a defect of tmconvert: please report it, with the command and, if you can, the model"


# what other converters and commands call it; the first word is an option of the command, of several ones
# separated by "|" the first that it has
OF_OTHER_TOOLS = {
    **dict.fromkeys(("--int8", "--quantize", "--int"), "--quantized (--calibration DATA for float models)"),
    **dict.fromkeys(("--optimize", "--simplify"), "--pass NAME; files are optimized without it"),
    **dict.fromkeys(("--opset-version", "--opset_version", "--target-opset"), "--opset N"),
    **dict.fromkeys(("--input-names", "--input_names", "--output-names"), "--rename OLD=NEW"),
    **dict.fromkeys(("--input_shape", "--shape", "--shapes"), "--input-shape NAME=N,N,..."),
    **dict.fromkeys(("--dynamic-axes", "--dynamic_axes", "--dynamic-shapes"), "--dynamic NAME:AXIS=SIZE"),
    **dict.fromkeys(("--skip-verify", "--no-check", "--no-validate"), "--no-verify"),
    **dict.fromkeys(
        ("--dataset", "--calib", "--calibration-data", "--calibration", "--data"),
        "--calibration DATA | --data DATA",
    ),
    **dict.fromkeys(("--silent", "--no-progress"), "--quiet"),
    **dict.fromkeys(("--nchw", "--keep-nchw"), "--io-layout source"),
    **dict.fromkeys(("--iterations", "--runs", "--duration"), "--seconds S"),
    **dict.fromkeys(("--num-threads", "--num_threads"), "--threads N"),
    **dict.fromkeys(("--int4", "--w4", "--uint4"), "--weights int4"),
}
_IN_A_FILE = "options of conversions are in tmconvert.toml, which `tmconvert init MODEL` writes"
# the option of a target for floats of 16 bits
_HALF = ("--fp16", "--float16", "--half", "--bf16")


class Carried(Exception):
    """Wraps an exception that click would handle itself."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.error = error


def report_failure(error: BaseException, *, as_json: bool, with_traceback: bool) -> int:
    """Prints the error, with ``as_json`` also as JSON; returns the exit status."""
    if isinstance(error, Carried):
        error = error.error
    try:
        if isinstance(error, BrokenPipeError):
            _silence_stdout()
            return PIPE_CLOSED
        number = signals.received
        if number is None and isinstance(error, (click.Abort, KeyboardInterrupt)):
            number = signal.SIGINT
        if number is not None:  # whatever became of its exception
            signals.remove_leftovers()
            write_message(signals.message_of(number))
            return signals.status_of(number)
        known = as_tmconvert_error(error)
        if isinstance(known, InternalError):
            known = _reportable(known, with_traceback)
            if with_traceback:
                import traceback

                write_message(*"".join(traceback.format_exception(error)).rstrip().split("\n"))
        write_error(known)
        if as_json:
            write_json({"error": known.to_json()})
        return known.exit_status
    except BrokenPipeError:  # nobody listens any more
        _silence_stdout()
        return PIPE_CLOSED
    except WriteError as unwritable:  # of the JSON document
        if not isinstance(error, WriteError) or error.message != unwritable.message:
            write_error(unwritable)
        return unwritable.exit_status


def as_tmconvert_error(error: BaseException) -> TmconvertError:
    """Converts any exception to a TmconvertError, which has a code."""
    if isinstance(error, TmconvertError):
        return error
    if isinstance(error, click.ClickException):
        return _usage_error(error)
    if isinstance(error, SystemExit):
        return LoadError("TM1023", f"user code ended the process: SystemExit({error.code!r})")
    if isinstance(error, MemoryError) or _is_out_of_memory(error):
        return memory_error()
    if isinstance(error, OSError) and (environmental := environment_error(error)) is not None:
        return environmental
    detail = f": {error}" if str(error) else ""
    return _unexpected(error, f"{type(error).__name__}{detail}")


def _unexpected(error: BaseException, reason: str) -> TmconvertError:
    """Returns the error for an exception of code that should raise none: of a plugin, or else a defect."""
    from tmconvert.symbolics.plugins import plugin_frame

    found = plugin_frame(error)
    if found is None:
        return InternalError("TM9000", reason)
    if found.is_innermost:
        return UsageError("TM6020", f"the plugin {found.plugin} failed: {reason}", source=found.place)
    return InternalError("TM9000", reason, notes=[("called by", f"{found.place} of a plugin")])


def _is_out_of_memory(error: BaseException) -> bool:
    """Whether a library could not be mapped, which the loader reports in text only."""
    if isinstance(error, OSError) and error.errno == errno.ENOMEM:
        return True
    said = str(error).lower()
    return isinstance(error, (ImportError, OSError)) and any(words in said for words in _NO_MEMORY)


def _reportable(error: InternalError, with_traceback: bool) -> InternalError:
    notes = [*error.notes, ("help", REPORT)]
    if not with_traceback:
        notes.append(("traceback", "set TMCONVERT_DEBUG=1 to see it"))
    return InternalError(error.code, error.message, source=error.source, excerpt=error.excerpt, notes=notes)


def _usage_error(error: click.ClickException) -> UsageError:
    message = " ".join(_message(error).split()).rstrip(".")
    notes = []
    context = getattr(error, "ctx", None)
    if context is not None:
        is_of_batch = context.command.name == "convert" and isinstance(error, click.NoSuchOption)
        flag = "--help-all" if getattr(context.command, "is_long", False) else "--help"
        listed = "commands" if isinstance(context.command, click.Group) else "options"
        usage = context.get_usage().removeprefix("Usage: ")
        example = getattr(context.command, "example", "").partition("\n")[0]
        notes = [
            ("usage", " ".join(usage.split())),
            *([("example", example)] if example and isinstance(error, click.MissingParameter) else []),
            ("help", _IN_A_FILE if is_of_batch else f"`{context.command_path} {flag}` lists all {listed}"),
        ]
    return UsageError("TM6010", message[:1].lower() + message[1:], notes=notes)


def _message(error: click.ClickException) -> str:
    """Returns the message, with similar options for an unknown one."""
    if not isinstance(error, click.NoSuchOption):
        return error.format_message()
    command = None if error.ctx is None else error.ctx.command
    names = [name for parameter in getattr(command, "params", ()) for name in parameter.opts]
    import difflib

    takers = {
        choice: parameter.opts[0]
        for name in ("weights", "float_type")  # of TFLite's the first alone takes float16
        for parameter in getattr(command, "params", ())
        for choice in (getattr(parameter.type, "choices", ()) if parameter.name == name else ())
    }
    known = _spelling_here(error.option_name, names, takers)
    if known:
        return f"unknown option {error.option_name}: use {known}"
    if isinstance(command, click.Group):
        return f"unknown option {error.option_name}; options follow the command"
    near = difflib.get_close_matches(error.option_name, names, n=2, cutoff=0.8)
    return f"unknown option {error.option_name}" + (f", did you mean {' or '.join(near)}?" if near else "")


def _spelling_here(option: str, names: Sequence[str], takers: Mapping[str, str]) -> str:
    """Returns the option of the command for one of another tool; empty where there is none.

    ``takers`` are the options that choose a type of floats, by the type.
    """
    known = OF_OTHER_TOOLS.get(option, "")
    if option in _HALF:
        type = "bfloat16" if option == "--bf16" else "float16"
        known = f"{takers.get(type, '')} {type}"
    return next((each for each in known.split(" | ") if each.split()[:1] and each.split()[0] in names), "")


def _silence_stdout() -> None:
    """Prevents a complaint of the interpreter about the closed pipe at its end."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):  # stdout is no file, as in a test
        return
