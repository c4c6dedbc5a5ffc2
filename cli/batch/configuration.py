"""Reads ``tmconvert.toml``: models, targets and options.

The file is TOML 1.0. Its options are those of the command line, checked by the same declarations: each table
becomes the arguments of a command. A later table overrides an earlier one: ``[options]``, the table of a
target, the entry of a model, and the table of a target in that entry. Relative paths start at the folder of
the file.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tmconvert.cli.batch.work import Conversion, ModelWork, parsed
from tmconvert.conversion.options.commands import conversion_options
from tmconvert.conversion.options.flags import PLUGIN
from tmconvert.errors import UsageError
from tmconvert.frontends.torch.entry import is_factory
from tmconvert.frontends.torch.hub_cache import cached_folder
from tmconvert.symbolics.target_names import known_targets
from tmconvert.targets.option import REPEATED, Option

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE = "tmconvert.toml"
_TOP = ("folder", "targets", "options", "models")
_ENTRY = ("model", "targets", "output")
MOST_BYTES = 1 << 20  # of a configuration file
# files of models, in a folder that is given as a model
SUFFIXES = (".tm", ".pt2", ".onnx", ".tflite", ".prototxt")
# options that concern one run of a command
OF_A_RUN = frozenset({"json", "verbose", "usage"})


class Configuration(NamedTuple):
    """The contents of a configuration file: ``tables`` are options by target, ``models`` the entries."""

    path: Path
    folder: str
    targets: tuple[str, ...]
    options: Mapping[str, Any]
    tables: Mapping[str, Mapping[str, Any]]
    models: tuple[Mapping[str, Any], ...]

    def with_requested(self, targets: Sequence[str], folder: str | None) -> Configuration:
        """Returns the configuration with the targets and the folder of the command line, where given.

        Entries that name targets of their own keep them. Raises UsageError TM6001 for an unknown target.
        """
        for name in targets:
            check_target(name)
        changed = self._replace(targets=tuple(targets) or self.targets)
        return changed if folder is None else changed._replace(folder=str(Path(folder).absolute()))


def check_target(name: str) -> None:
    """Raises UsageError TM6001 for an unknown target."""
    if name not in known_targets():
        raise UsageError(
            "TM6001",
            f"unknown target {name!r}{_hint(name, known_targets())}",
            notes=[("help", f"targets: {', '.join(known_targets())}")],
        )


def read_configuration(path: Path) -> Configuration:
    """Reads a configuration file. Raises UsageError TM6091 for a file that is not valid."""
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise invalid(path, f"it is larger than {MOST_BYTES >> 20} MiB")
        document = tomllib.loads(data.decode("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise invalid(path, getattr(error, "strerror", None) or str(error)) from error
    tables = {name: value for name, value in document.items() if name in known_targets()}
    for name in document:
        if name not in (*_TOP, *tables):
            raise invalid(path, f"unknown table or key {name!r}{_hint(name, (*_TOP, *known_targets()))}")
    for name, table in (*tables.items(), ("options", document.get("options", {}))):
        if not isinstance(table, dict):
            raise invalid(path, f"{name} must be a table of options")
    models = document.get("models", [])
    if not isinstance(models, list) or not all(isinstance(each, dict) for each in models):
        raise invalid(path, "models must be an array of tables: [[models]]")
    folder = document.get("folder", ".")
    if not isinstance(folder, str):
        raise invalid(path, "folder must be the path of a folder")
    targets = _targets(path, document.get("targets", [*tables] or ["onnx"]))
    return Configuration(path, folder, targets, document.get("options", {}), tables, tuple(models))


def work_of(configuration: Configuration, models: Sequence[str] = ()) -> list[ModelWork]:
    """Returns the work of a configuration; ``models`` replace those in the file.

    Raises UsageError for unknown options, wrong values, and outputs that two conversions write.
    """
    entries = [{"model": model} for model in models]
    base = Path() if models else configuration.path.parent
    found: list[ModelWork] = []
    for number, entry in enumerate(entries or configuration.models, 1):
        where = f"model {number}"
        name = entry.get("model")
        if not isinstance(name, str) or not name:
            raise invalid(configuration.path, f"{where} lacks `model`: a path, a pattern or MODULE:FACTORY")
        for model in _models(name, base):
            found.append(_work(configuration, entry, model, f"{where} ({model})"))
    if not found:
        raise UsageError(
            "TM6091", "there is no model to convert", notes=[("help", f"name models, or list them in {FILE}")]
        )
    _check_outputs(found)
    return found


def _work(configuration: Configuration, entry: Mapping[str, Any], model: str, where: str) -> ModelWork:
    path = configuration.path
    own = {name: value for name, value in entry.items() if name not in (*_ENTRY, *known_targets())}
    tables = {name: entry[name] for name in entry if name in known_targets()}
    targets = _targets(path, entry.get("targets", [*tables] or configuration.targets))
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise invalid(path, f"{name} of {where} must be a table of options")
    _check_shared(path, {**configuration.options, **own}, targets)
    conversions = []
    for target in targets:
        known = _known_options(target)
        general, special = (
            {key: value for key, value in options.items() if _name(key) in known}
            for options in (configuration.options, own)
        )
        chosen = {
            **general,
            **configuration.tables.get(target, {}),
            **special,
            **tables.get(target, {}),
        }
        output = chosen.pop("output", entry.get("output") if len(targets) == 1 else None)
        flags = tuple(_flags(path, target, chosen, known))
        outputs = _outputs(path, output) or [_default_output(configuration, model, target)]
        conversions.append(Conversion(target, tuple(outputs), flags))
        parsed(conversions[-1], model)
    return ModelWork(model, tuple(conversions), str(Path.cwd()))


def _flags(path: Path, target: str, chosen: Mapping[str, Any], known: Mapping[str, Option]) -> Iterator[str]:
    """Returns the flags of the command line for a table of options."""
    for key, value in chosen.items():
        option = known.get(_name(key))
        if option is None:
            raise invalid(path, f"unknown option {key!r} of {target}{_hint(_name(key), known)}")
        yield from _flag(path, option, key, value)


def _flag(path: Path, option: Option, key: str, value: Any) -> Iterator[str]:
    if option.kind == "switch":
        if not isinstance(value, bool):
            raise invalid(path, f"{key} must be true or false, not {value!r}")
        if value != bool(option.default):
            yield option.spelling
        return
    values = value if option.kind in REPEATED and isinstance(value, list) else [value]
    if isinstance(value, dict):
        values = [f"{name}={_text(path, key, each)}" for name, each in value.items()]
    elif isinstance(value, list) and option.kind not in REPEATED:
        values = [",".join(_text(path, key, each) for each in value)]
    for each in values:
        text = _text(path, key, each)
        yield from (
            option.spelling,
            str(path.parent / text) if option.kind in ("path", "data") or option is PLUGIN else text,
        )


def _text(path: Path, key: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise invalid(path, f"{key} must be a text, a number, or a list of these, not {value!r}")
    return str(value)


def _check_shared(path: Path, shared: Mapping[str, Any], targets: Sequence[str]) -> None:
    """An option for several targets applies to those that have it, at least to one."""
    names = {name for target in targets for name in _known_options(target)}
    for key in shared:
        if _name(key) not in names:
            which = ", ".join(targets)
            raise invalid(path, f"no target of {which} has the option {key!r}{_hint(key, names)}")


def _known_options(target: str) -> dict[str, Option]:
    """Returns the options of a target by keyword, and by flag where that is another: ``input``."""
    options = [each for each in conversion_options(target) if each.is_flag and each.name not in OF_A_RUN]
    options.append(PLUGIN)
    by_flag = {_name(each.spelling.lstrip("-")): each for each in options if each.kind != "switch"}
    return {**by_flag, **{each.name: each for each in options}}


def _name(key: str) -> str:
    return key.replace("-", "_")


def _targets(path: Path, value: Any) -> tuple[str, ...]:
    targets = [value] if isinstance(value, str) else list(value) if isinstance(value, (list, tuple)) else []
    for name in targets:
        if name not in known_targets():
            raise invalid(path, f"unknown target {name!r}{_hint(str(name), known_targets())}")
    if not targets:
        raise invalid(path, f"targets must list some of {', '.join(known_targets())}")
    return tuple(targets)


def _models(name: str, base: Path) -> list[str]:
    """Returns the models that a name stands for: one path, those that fit a pattern, or those in a folder."""
    path = base / name
    if is_factory(name) or (not path.exists() and cached_folder(name) is not None):
        return [name]
    if any(character in name for character in "*?[") and not path.exists():
        anchor = Path(path.anchor)
        found = sorted(map(str, anchor.glob(str(path.relative_to(anchor)))))
        if not found:
            raise UsageError("TM6091", f"no file fits the pattern {name!r}")
    elif path.is_dir() and any(each.suffix in SUFFIXES for each in path.iterdir()):
        found = sorted(str(each) for each in path.iterdir() if each.suffix in SUFFIXES)
    else:
        found = [str(path)]
    return [str(Path(each)) for each in found]


def _outputs(path: Path, value: Any) -> list[str]:
    values = [] if value is None else value if isinstance(value, list) else [value]
    if not all(isinstance(each, str) and each for each in values):
        raise invalid(path, "output must be a path, or a list of paths")
    return [str(path.parent / each) for each in values]


def _default_output(configuration: Configuration, model: str, target: str) -> str:
    from tmconvert.targets.registry import target_named

    stem = model.rpartition(":")[2] if is_factory(model) else Path(model).stem
    folder = configuration.path.parent / configuration.folder
    return str(folder / f"{stem}{target_named(target).suffixes[0]}")


def _check_outputs(found: Iterable[ModelWork]) -> None:
    writers: dict[Path, str] = {}
    for work in found:
        for conversion in work.conversions:
            for path in map(Path, conversion.paths):
                other = writers.setdefault(path.absolute(), work.model)
                if other != work.model:
                    raise UsageError(
                        "TM6091",
                        f"{other} and {work.model} would both be written to {path}",
                        notes=[("help", "name an output for one of them")],
                    )


def _hint(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, [*known], n=1)
    return f", did you mean {close[0]!r}?" if close else ""


def invalid(path: Path, reason: str) -> UsageError:
    return UsageError("TM6091", f"{path} is not a valid configuration: {reason}")
