"""Reads ``tmconvert.toml``: models, targets and options.

The file is TOML 1.0. Its options are those of the command line, checked by the same declarations: each table
becomes the arguments of a command. A later table overrides an earlier one: ``[options]``, the table of a
target, the entry of a model, and the table of a target in that entry. Relative paths start at the folder of
the file. The file may be a stranger's: what it names is written below its folder only, and code that it names
runs only if the command line allows that.
"""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tmconvert.cli.batch.work import Conversion, ModelWork, parsed
from tmconvert.conversion.options.commands import conversion_options
from tmconvert.conversion.options.flags import PLUGIN
from tmconvert.errors import UsageError
from tmconvert.formats.mapped_file import open_regular
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
    requested: tuple[str, ...] = ()  # targets of the command line

    def with_requested(self, targets: Sequence[str], folder: str | None) -> Configuration:
        """Returns the configuration with the targets and the folder of the command line, where given.

        Entries that name targets of their own keep them. Raises UsageError TM6001 for an unknown target, and
        TM6091 for a folder of the file that is not below the file's.
        """
        for name in targets:
            check_target(name)
        changed = self._replace(targets=tuple(targets) or self.targets, requested=tuple(targets))
        if folder is not None:
            return changed._replace(folder=str(Path(folder).absolute()))
        _path_below(self.path, self.folder)
        return changed

    def code(self) -> list[str]:
        """Returns the code that the file makes conversions run."""
        tables = [self.options, *self.tables.values(), *self.models]
        tables += [each[name] for each in self.models for name in known_targets() if name in each]
        named = [each for table in tables if isinstance(table, Mapping) for each in _named_code(table)]
        factories = [each["model"] for each in self.models if is_factory(str(each.get("model")))]
        return list(dict.fromkeys([*named, *(f"the factory {name}" for name in factories)]))

    def check_code(self) -> None:
        """Raises UsageError TM6094 if the file names code, which the command line has to allow."""
        if code := self.code():
            raise UsageError(
                "TM6094",
                f"{self.path} names code to run: {', '.join(code)}",
                notes=[("help", "if you trust its origin, use --allow-code")],
            )


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
        with open_regular(path) as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise invalid(path, f"it is larger than {MOST_BYTES >> 20} MiB")
        document = tomllib.loads(data.decode("utf-8"))
    except (OSError, ValueError, RecursionError) as error:  # also for integers with too many digits
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
    """Returns the work of a configuration; ``models`` replace those in the file, and keep their entries.

    Raises UsageError for unknown options, wrong values, and outputs that two conversions write.
    """
    try:
        found = [_work(configuration, *each) for each in _entries(configuration, models)]
    except (OSError, ValueError, NotImplementedError, RecursionError) as error:  # of paths and patterns
        raise invalid(configuration.path, getattr(error, "strerror", None) or str(error)) from error
    if not found:
        raise UsageError(
            "TM6091", "there is no model to convert", notes=[("help", f"name models, or list them in {FILE}")]
        )
    _check_outputs(found)
    return found


def _entries(
    configuration: Configuration, models: Sequence[str]
) -> Iterator[tuple[Mapping[str, Any], str, str]]:
    """Yields the entry, the model and a description of each model that is to be converted."""
    listed: dict[str, tuple[Mapping[str, Any], str, str]] = {}
    for number, entry in enumerate(configuration.models, 1):
        name = entry.get("model")
        if not isinstance(name, str) or not name:
            reason = f"model {number} lacks `model`: a path, a pattern or MODULE:FACTORY"
            raise invalid(configuration.path, reason)
        for model in _models(name, configuration.path.parent, is_needed=not models):
            where = f"model {number} ({model})"
            if models:
                listed[_place(model)] = entry, model, where
            else:
                yield entry, model, where
    for number, name in enumerate(models, 1):
        for model in _models(name, Path()):
            entry, _, where = listed.get(_place(model), ({}, "", f"model {number} ({model})"))
            yield entry, model, where


def _place(model: str) -> str:
    return model if is_factory(model) else os.path.abspath(model)  # noqa: PTH100


def _work(configuration: Configuration, entry: Mapping[str, Any], model: str, where: str) -> ModelWork:
    path = configuration.path
    own = {name: value for name, value in entry.items() if name not in (*_ENTRY, *known_targets())}
    tables = {name: entry[name] for name in entry if name in known_targets()}
    others = [] if configuration.requested else [name for name in tables if name not in configuration.targets]
    targets = _targets(path, entry.get("targets", [*configuration.targets, *others]))
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
        chosen = {**general, **configuration.tables.get(target, {}), **special, **tables.get(target, {})}
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
        if option.is_written:
            text = str(_path_below(path, text))
        elif option.kind in ("path", "data") or option is PLUGIN:
            text = str(path.parent / text)
        yield from (option.spelling, text)


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


def _models(name: str, base: Path, is_needed: bool = True) -> list[str]:
    """Returns the models that a name stands for: one path, those that fit a pattern, or those in a folder."""
    path = base / name
    if is_factory(name) or (not path.exists() and cached_folder(name) is not None):
        return [name]
    if any(character in name for character in "*?[") and not path.exists():
        anchor = Path(path.anchor)
        found = sorted(map(str, anchor.glob(str(path.relative_to(anchor)))))
        if not found and is_needed:
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
    return [str(_path_below(path, each)) for each in values]


def _path_below(path: Path, text: str) -> Path:
    """Returns a path that the file at ``path`` names for writing, which is below the folder of the file."""
    found = path.parent / text
    if not Path(os.path.realpath(found)).is_relative_to(os.path.realpath(path.parent)):
        raise invalid(path, f"{text!r} is not below its folder, and a file may write nowhere else")
    return found


def _named_code(table: Mapping[str, Any]) -> Iterator[str]:
    """Yields the plugins that a table of options names, and its permission for TorchScript."""
    for key, value in table.items():
        if _name(key) == PLUGIN.name:
            yield from (f"the plugin {each}" for each in (value if isinstance(value, list) else [value]))
        elif _name(key) == "allow_code" and value:
            yield "the code of a TorchScript file"


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
