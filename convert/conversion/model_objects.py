"""Models and files that are objects in memory: for the time of a call each is a file in a temporary folder.

So a ModelProto, the bytes of a TFLite model or an open file takes the way of a file, its runtime included.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, BinaryIO

from tmconvert.errors import UsageError
from tmconvert.errors.values import type_and_value
from tmconvert.ir import TracedModule

if TYPE_CHECKING:
    from importlib.abc import Traversable
    from inspect import BoundArguments
    from tempfile import TemporaryDirectory

# parameters that take models, in all functions or in one
READ = frozenset(
    ("model", "source", "first", "second", "load.path", "verify.path", "params.file", "bench.files")
)
# parameters that take files to write, and the name of the file where the argument is an open file or None
WRITTEN: Mapping[str, str] = MappingProxyType(
    {
        "to_onnx.path": "model.onnx",
        "simplify.path": "model.onnx",
        "to_tflite.path": "model.tflite",
        "to_caffe.prototxt": "model.prototxt",
        "to_caffe.caffemodel": "model.caffemodel",
        "to_target.path": "model",
        "save.path": "model.tm",
    }
)
# functions that trace nothing: a program of torch.export is a file for them
OF_FILES = frozenset(("load", "check", "run", "inspect"))
RETURNED = WRITTEN.keys() - {"to_caffe.caffemodel", "save.path"}


class ObjectFiles:
    """The files of one call of a public function, in place of the objects among its arguments.

    Raises UsageError TM6008 for a model that is a file open for text.
    """

    def __init__(self, function: str, bound: BoundArguments) -> None:
        self._folder: TemporaryDirectory[str] | None = None
        self._streams: list[tuple[Any, Path]] = []
        try:
            self._replace_objects(function, bound)
        except BaseException:
            self.__exit__(BaseException, None, None)
            raise

    def _replace_objects(self, function: str, bound: BoundArguments) -> None:
        given = bound.arguments
        for name in bound.signature.parameters:
            qualified, value = f"{function}.{name}", given.get(name)
            if isinstance(value, (str, PathLike, TracedModule)):
                continue
            if qualified in WRITTEN:
                if callable(getattr(value, "write", None)):
                    self._streams.append((value, self._new_path(WRITTEN[qualified])))
                    given[name] = str(self._streams[-1][1])
                elif value is None and qualified in RETURNED:
                    given[name] = str(self._new_path(WRITTEN[qualified]))
            elif READ.intersection((name, qualified)) and value is not None:
                if type(value).__name__ == "ExportedProgram" and function in OF_FILES:
                    given[name] = self._saved_program(value)
                    continue
                is_list = qualified == "bench.files"
                given[name] = tuple(map(self._file_of, value)) if is_list else self._file_of(value)

    def __enter__(self) -> ObjectFiles:
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        if kind is not None and self._folder is not None:
            self._folder.cleanup()

    def finish(self, result: object) -> None:
        """Copies written files to streams; those of a returned model or report stay as long as it does.

        Raises UsageError TM6002 where the model has more files than there are streams.
        """
        if self._folder is None:
            return
        for stream, path in self._streams:
            extra = {each.name for each in path.parent.iterdir()} - {each.name for _, each in self._streams}
            if extra:
                raise UsageError(
                    "TM6002",
                    f"the model has a further file, {min(extra)}, for which no stream was given",
                    notes=[("help", "pass a path, or omit the options that write further files")],
                )
            with path.open("rb") as file:
                _copy(file, stream)
        owner = result[0] if isinstance(result, tuple) and result else result
        if isinstance(owner, TracedModule) or hasattr(owner, "paths"):
            weakref.finalize(owner, self._folder.cleanup)
        else:
            self._folder.cleanup()

    def _file_of(self, value: object) -> Any:
        write = _writer_of(value)
        if write is None:
            return value
        path = self._new_path(f"{type(value).__name__}.model", apart=True)
        write(value, path)
        return str(path)

    def _saved_program(self, program: Any) -> str:
        path = self._new_path("program.pt2", apart=True)
        sys.modules["torch.export"].save(program, path)
        return str(path)

    def _new_path(self, name: str, apart: bool = False) -> Path:
        """Returns a path in the folder of written files, with ``apart`` in a folder of its own."""
        import tempfile

        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="tmconvert-", ignore_cleanup_errors=True)
            (Path(self._folder.name) / "written").mkdir()
        folder = tempfile.mkdtemp(dir=self._folder.name) if apart else Path(self._folder.name, "written")
        return Path(folder, name)


def _writer_of(value: Any) -> Callable[[Any, Path], None] | None:
    """Returns the function that writes an object to a file; None for others, such as modules."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _write_bytes
    from tmconvert.formats.onnx.objects import writer_of_object

    of_onnx = writer_of_object(value)
    if of_onnx is not None or callable(value):
        return of_onnx
    if callable(getattr(value, "read", None)):
        return _copy_stream
    return _copy_resource if callable(getattr(value, "read_bytes", None)) else None


def _write_bytes(content: bytes, path: Path) -> None:
    path.write_bytes(content)


def _copy_resource(resource: Traversable, path: Path) -> None:
    path.write_bytes(resource.read_bytes())


def _copy_stream(stream: BinaryIO, path: Path) -> None:
    first = stream.read(1)
    if isinstance(first, str):
        reason = f"model is a file that is open for text: {type_and_value(stream)}"
        raise UsageError("TM6008", reason, notes=[("help", 'open it with mode "rb"')])
    with path.open("wb") as file:
        file.write(first)
        _copy(stream, file)


def _copy(source: BinaryIO, target: BinaryIO) -> None:
    while block := source.read(1 << 20):
        target.write(block)
