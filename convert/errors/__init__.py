"""Exception classes of tmconvert.

    TmconvertError              base; code, message, place, excerpt, notes; exit status 1
    ├── LoadError               TM1xxx  a model file cannot be read
    ├── UnsupportedError        TM2xxx  the model cannot be expressed for the target
    ├── VerificationError       TM4xxx  a written file does not compute what its source computes
    ├── WriteError              TM5xxx  an output cannot be written
    ├── UsageError              TM6xxx  the request itself is wrong; exit status 2
    │   └── CallError           TM6009  the arguments of a call are not those of the function; a TypeError
    └── InternalError           TM9xxx  a defect of tmconvert; exit status 3
        └── GraphError          TM3xxx  an edit or a pass broke an invariant of the graph

Codes are stable. ``convert/errors/explanations.toml`` describes each and its remedy.
"""

from __future__ import annotations

from collections.abc import Sequence

from tmconvert.errors.source import Source, printable


class TmconvertError(Exception):
    """Base class of all errors: a code, a message, the source location, an excerpt of the graph, and notes.

    ``excerpt`` is the node in text form; ``notes`` are ``(label, text)`` pairs such as
    ``("help", "use --opset 16 or later")``, shown in order.
    """

    exit_status = 1

    def __init__(
        self,
        code: str,
        message: str,
        *,
        source: Source | None = None,
        excerpt: str = "",
        notes: Sequence[tuple[str, str]] = (),
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.source = source if source is not None and str(source) else None
        self.excerpt = excerpt
        self.notes = tuple(notes)

    def __reduce__(self) -> tuple[object, ...]:
        return _restored, (type(self), self.__dict__)

    def __str__(self) -> str:
        return self.render()

    def render(self) -> str:
        """Returns the error as plain text, as the command line shows it without colour."""
        first, *rest = self.message.split("\n")
        lines = [f"error[{self.code}]: {first}", *(f"  {line}" for line in rest)]
        if self.source is not None:
            lines.append(f"  --> {self.source}")
        if self.excerpt:
            lines += ["   |", *(f"   |  {line}" for line in self.excerpt.splitlines()), "   |"]
        for label, text in self.notes:
            first, *rest = text.splitlines() or [""]
            lines.append(f"   = {label}: {first}")
            lines += [" " * (7 + len(label)) + line for line in rest]
        return "\n".join(map(printable, lines))

    def to_json(self) -> dict[str, object]:
        """Returns the error as a JSON-serializable dict."""
        source = self.source
        return {
            "code": self.code,
            "message": self.message,
            "source": None if source is None else str(source),
            "excerpt": self.excerpt or None,
            "notes": [{"label": label, "text": text} for label, text in self.notes],
        }


def _restored(cls: type[TmconvertError], state: dict[str, object]) -> TmconvertError:
    """Returns an error that was pickled, for another process."""
    error = cls.__new__(cls, state["message"])
    error.__dict__.update(state)
    return error


class LoadError(TmconvertError):
    """A model file is damaged, of an unknown kind, or refused."""


class UnsupportedError(TmconvertError):
    """The model is understood, but the target cannot express it.

    ``scopes`` are the names that its source has for what stops it, as far as they are known.
    """

    scopes: tuple[str, ...] = ()


class VerificationError(TmconvertError):
    """A written file failed to run, or its ``outputs`` differ from those of its source."""

    outputs: tuple[str, ...] = ()


class RuntimeTooOld(VerificationError):
    """The installed runtime is older than the version that the file requires."""


class UnknownOperator(VerificationError):
    """The runtime does not have the user's operator library that the file requires."""


class WriteError(TmconvertError):
    """An output file cannot be written."""


class UsageError(TmconvertError):
    """An option or argument is wrong, whatever the model."""

    exit_status = 2


class CallError(UsageError, TypeError):
    """A call has unknown, missing or too many arguments, which is a TypeError as of any function."""


class InternalError(TmconvertError):
    """A defect of tmconvert itself."""

    exit_status = 3


class GraphError(InternalError):
    """A graph invariant does not hold."""


class Refusal(Exception):
    """Raised by an adapter or symbolic that cannot convert one call; collected into a report.

    ``reason`` is a sentence without a full stop, ``help`` what the user can do, if anything.
    """

    def __init__(self, reason: str, help: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.help = help
