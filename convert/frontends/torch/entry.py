"""Entry points for PyTorch models: files, factories, objects. Torch is imported only to trace one."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import PathFinder
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from tmconvert.errors import LoadError
from tmconvert.errors.source import Source
from tmconvert.frontends.torch.request import Tracing, no_module
from tmconvert.ir import TracedModule
from tmconvert.progress import begin

if TYPE_CHECKING:
    from types import ModuleType

    import numpy as np

    from tmconvert.frontends.torch.archives import Kind
    from tmconvert.frontends.torch.sentence_module import SentenceModule
    from tmconvert.frontends.torch.tracing.programs.parts import Split

_FACTORY = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
_IN_FILE = re.compile(r"[^:]+\.py:[^\W\d]\w*(\.[^\W\d]\w*)*")  # the message for it states the right form
INSTALL = "pip install torch (the CPU build is enough: see pytorch.org for how to install it)"


def is_factory(model: str | PathLike[str]) -> bool:
    """Whether the text names a factory, ``package.module:factory``, and not a file."""
    return (
        isinstance(model, str)
        and bool(_FACTORY.fullmatch(model) or _IN_FILE.fullmatch(model))
        and not Path(model).exists()
    )


def trace_factory(name: str, tracing: Tracing) -> TracedModule:
    """Traces the model that ``package.module:factory`` returns. Raises LoadError, UnsupportedError."""
    file, _, factory = name.rpartition(":")
    if file.endswith(".py"):
        raise LoadError(
            "TM1022",
            f"{file} is a file; name a factory by its module instead",
            notes=[("help", f"write {module_of(file)}:{factory}")],
        )
    top, _, _ = name.partition(":")[0].partition(".")
    is_loaded = top in sys.modules or top in sys.builtin_module_names
    if not is_loaded and PathFinder.find_spec(top, [str(Path.cwd()), *sys.path]) is None:
        raise no_module(top, name)  # before torch is imported, which takes seconds
    return _tracer().trace_factory(name, tracing)


def module_of(file: str) -> str:
    """Returns the module name of a file in the current folder: ``models/net.py`` is ``models.net``."""
    path = Path(file).resolve().with_suffix("")
    within = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else Path(path.name)
    return ".".join(within.parts)


def factories_of(file: str) -> list[str]:
    """Returns functions and classes of a Python file that may create a model, without running it."""
    import ast

    try:
        body = ast.parse(Path(file).read_bytes()).body
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        return []
    kinds = (ast.FunctionDef, ast.ClassDef)
    return [f"{module_of(file)}:{each.name}" for each in body if isinstance(each, kinds)]


def trace_object(model: object, tracing: Tracing) -> TracedModule:
    """Traces a module, a function of tensors, or an ExportedProgram. Raises UnsupportedError."""
    return _tracer().trace_object(model, tracing)


def trace_file(path: str, kind: Kind, tracing: Tracing) -> TracedModule:
    """Reads a PyTorch or GGUF file. Raises LoadError TM1021, TM1024 to TM1026, TM1028, UnsupportedError."""
    from tmconvert.frontends.torch.archives import Kind

    if kind is Kind.CHECKPOINT:
        raise LoadError(
            "TM1024",
            "this is a checkpoint of torch.save: it has weights, but not the computation",
            source=Source(path),
            notes=[
                (
                    "help",
                    "write a function that makes the module and calls module.load_state_dict(torch.load("
                    f"{path!r})), and give it as PACKAGE.MODULE:FUNCTION in the place of the file",
                )
            ],
        )
    if kind is Kind.MODULE:
        raise LoadError(
            "TM1024",
            "this is a whole module pickled by torch.save: loading it runs the code of its classes",
            source=Source(path),
            notes=[
                (
                    "help",
                    f"if you trust its origin, write a function that returns torch.load({path!r}, "
                    "weights_only=False), and give it as PACKAGE.MODULE:FUNCTION in the place of the file",
                )
            ],
        )
    if kind is Kind.SCRIPT and not tracing.allow_code:
        raise LoadError(
            "TM1025",
            "this is a TorchScript file: a program, parts of which run while torch loads it",
            source=Source(path),
            notes=[("help", "if you trust its origin, use --allow-code (allow_code=True) and --input")],
        )
    tracer = _tracer()
    if kind is Kind.GGUF:
        from tmconvert.frontends.torch.tracing.programs.gguf_file import gguf_folder

        return tracer.trace_pretrained(gguf_folder(path), tracing)
    return (
        tracer.trace_exported(path, tracing) if kind is Kind.EXPORTED else tracer.trace_script(path, tracing)
    )


def trace_pretrained(folder: str, tracing: Tracing) -> TracedModule:
    """Traces the model of a folder, with inputs that fit its task unless ``tracing`` has others.

    Batch, sequences and the length of a cache are left open unless ``tracing`` names dynamic sizes. Only
    weights in safetensors of the folder are read, and no code of it is run. Raises LoadError TM1021, TM1028.
    """
    from tmconvert.frontends.torch.pretrained import check_folder

    checked = check_folder(folder)
    return _tracer().trace_pretrained(checked, tracing)


def trace_parts(
    folder: str, *, split: Split = "", pooling: Sequence[SentenceModule] | None = None
) -> dict[str, TracedModule]:
    """Traces the parts of the model of a folder, as programs that open packages expect them.

    ``split`` "encoder-decoder" asks for ``encoder`` and ``decoder``, "vision-language" for ``vision``,
    ``embedding`` and ``decoder``; otherwise the whole model has the name "".
    ``pooling`` has the modules that follow an encoder of text, for its ``SentenceVectors``. Raises what
    ``trace_pretrained`` raises.
    """
    from tmconvert.frontends.torch.pretrained import check_folder

    checked = check_folder(folder)
    return _tracer().trace_parts(checked, split=split, pooling=pooling)


def vectors_of_tokens(
    modules: Sequence[SentenceModule], tokens: np.ndarray, mask: np.ndarray, prompt: int
) -> np.ndarray:
    """Computes vectors of texts, float32[batch, size], from those of their tokens.

    ``tokens`` are float32[batch, tokens, width], ``mask`` is int64[batch, tokens]; ``prompt`` is the number
    of tokens that begin each text and do not count. Raises LoadError TM1028 for weights that do not fit.
    """
    found: np.ndarray = _tracer().vectors_of_tokens(modules, tokens, mask, prompt)
    return found


def trace_detector(path: Path) -> TracedModule:
    """Traces a checkpoint of ultralytics, with its metadata. Code in it runs.

    Raises LoadError TM1021, TM1028, UnsupportedError.
    """
    return _tracer().trace_detector(path)


def trace_pipeline(folder: Path, classes: Mapping[str, str]) -> dict[str, TracedModule]:
    """Traces the parts of a pipeline of diffusers; ``classes`` are the names of classes by folder.

    Weights are read from safetensors, and no code of the folder is run. Raises LoadError TM1021, TM1028.
    """
    return _tracer().trace_pipeline(folder, classes)


def trace_static_decoder(
    folder: str, length: int, prefills: Sequence[int]
) -> tuple[dict[str, TracedModule], Callable[[Sequence[int]], np.ndarray]]:
    """Traces a decoder as signatures with caches of ``length`` positions: a prefill for each of ``prefills``,
    numbers of tokens, and one step of decoding.

    Also returns the function that computes the logits after tokens, float32[vocabulary], in the whole model
    without a cache. Raises what ``trace_pretrained`` raises.
    """
    from tmconvert.frontends.torch.pretrained import check_folder

    return _tracer().trace_static_decoder(check_folder(folder), length, prefills)


def _tracer() -> ModuleType:
    begin("import")
    try:
        from tmconvert.frontends.torch.tracing import sources
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "torch":
            raise
        raise LoadError(
            "TM1021", "tracing a model requires PyTorch, which is not installed", notes=[("help", INSTALL)]
        ) from error
    return sources
