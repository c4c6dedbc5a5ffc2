"""The public function that makes files of a lock again; ``tmconvert.api`` has the others."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from tmconvert.api_convert import to_target
from tmconvert.conversion.options.arguments import entry_point
from tmconvert.errors import UsageError
from tmconvert.frontends.torch.entry import is_factory
from tmconvert.ir.types import Paths

if TYPE_CHECKING:
    from tmconvert.conversion.request import Model
    from tmconvert.lock.lock_file import Lock
    from tmconvert.lock.rebuilt import Rebuilt


@entry_point
def rebuild(
    lock: str | PathLike[str],
    model: Model | None = None,
    *,
    folder: str | PathLike[str] | None = None,
    allow_code: bool = False,
) -> Rebuilt:
    """Converts a model again as a lock records it, and compares the bytes of the files.

    Nothing is written next to the lock: the files are in ``folder``, or are deleted after the comparison.

    Args:
        lock: The path of a lock, which a conversion with ``lock`` wrote; its paths start at its folder.
        model: The source, in place of the recorded one; needed where that was an object of Python.
        folder: The folder for the files, which is made if it is missing.
        allow_code: Run the factory, plugins and TorchScript that the lock names.

    Returns:
        ``ok`` if all bytes are the same, and ``differences`` of sources, versions, processor and files.

    Raises:
        LoadError: TM1029 if the file is not a lock; what the conversion raises.
        UsageError: TM6094 for a lock that names code, without ``allow_code``; TM6095 for one whose model or
            arguments were objects of Python.

    Example:
        >>> tmconvert.rebuild("net.onnx.lock").ok  # doctest: +SKIP
        True
    """
    from tmconvert.conversion.options.commands import conversion_options
    from tmconvert.lock.arguments import restored_arguments
    from tmconvert.lock.lock_file import read_lock
    from tmconvert.lock.rebuilt import (
        Rebuilt,
        differences_of_machine,
        differences_of_outputs,
        differences_of_sources,
    )

    path = Path(lock)
    found, arrays = read_lock(path)
    _check_code(path, found, allow_code=allow_code)
    source = _source(path, found) if model is None else model
    arguments = restored_arguments(found.arguments, conversion_options(found.target), path.parent, arrays)
    differences = [*differences_of_sources(found, path.parent), *differences_of_machine(found)]
    _load_plugins(found.plugins, path.parent)
    with TemporaryDirectory(prefix="tmconvert-") as temporary:
        into = Path(temporary if folder is None else folder)
        into.mkdir(parents=True, exist_ok=True)
        names = [into / Path(name).name for name in found.outputs if not name.endswith(".data")]
        report = to_target(source, found.target, *_first_of_graph(names, found.target), **arguments)
        differences += differences_of_outputs(found, report.paths)
    paths = report.paths if folder is not None else [Path(each.name) for each in report.paths]
    return Rebuilt(tuple(paths), tuple(differences))


def _first_of_graph(paths: Paths, target: str) -> list[Path]:
    """Returns the paths with the file of the graph first, as the target takes them."""
    from tmconvert.targets.registry import target_named

    suffixes = list(target_named(target).suffixes)
    known = [each for each in paths if each.suffix in suffixes]
    return sorted(known, key=lambda each: suffixes.index(each.suffix))


def _check_code(path: Path, lock: Lock, *, allow_code: bool) -> None:
    """Raises UsageError TM6094 if the lock names code, which the caller has to allow."""
    code = [f"the plugin {each}" for each in lock.plugins]
    code += [f"the factory {lock.model}"] if is_factory(lock.model or "") else []
    code += ["the code of a TorchScript file"] if lock.arguments.get("allow_code") else []
    if code and not allow_code:
        raise UsageError(
            "TM6094",
            f"{path} names code to run: {', '.join(code)}",
            notes=[("help", "if you trust its origin, use --allow-code")],
        )


def _source(path: Path, lock: Lock) -> str:
    """Returns the recorded source. Raises UsageError TM6095 where it was an object."""
    missing = [f"the model, a {lock.object}"] if lock.model is None else []
    missing += lock.unrecorded
    if lock.model is None or missing:
        raise UsageError(
            "TM6095",
            f"{path} cannot be built again alone: no text can stand for {', '.join(missing)}",
            notes=[("help", "pass the model (model=, --source), or convert again and compare the files")],
        )
    is_path = (path.parent / lock.model).exists() and not is_factory(lock.model)
    return str(path.parent / lock.model) if is_path else lock.model


def _load_plugins(plugins: Sequence[str], folder: Path) -> None:
    from tmconvert.symbolics.plugins import load_plugin, loaded_files

    for each in plugins:
        if str(folder / each) not in loaded_files():
            load_plugin(folder / each)
