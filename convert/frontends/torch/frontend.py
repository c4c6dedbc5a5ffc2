"""The frontend of PyTorch: programs of torch.export, TorchScript, factories, folders of transformers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tmconvert.frontends.frontend import Frontend, LoadRequest
from tmconvert.frontends.torch.entry import (
    factories_of,
    is_factory,
    module_of,
    trace_factory,
    trace_file,
    trace_pretrained,
)
from tmconvert.frontends.torch.names import name_of

if TYPE_CHECKING:
    from tmconvert.frontends.shared.vocabulary import AdapterVocabulary
    from tmconvert.ir import TracedModule

MOST_FACTORIES = 8  # in a message


class TorchFrontend(Frontend):
    """Traces models of PyTorch, with the example inputs of the request."""

    name = "torch"
    title = "PyTorch"
    has_graph = False

    def recognizes_file(self, path: str, head: bytes) -> bool:
        from tmconvert.frontends.torch.archives import kind_of

        return kind_of(path, head) is not None

    def recognizes_name(self, name: str) -> bool:
        from tmconvert.frontends.torch.pretrained import is_pretrained

        return is_factory(name) or is_pretrained(name) or _cached_folder(name) is not None

    def load(self, path: str, request: LoadRequest) -> TracedModule:
        if request.head:
            from tmconvert.frontends.torch.archives import kind_of

            kind = kind_of(path, request.head)
            assert kind is not None
            return trace_file(path, kind, request.tracing)
        if is_factory(path):
            return trace_factory(path, request.tracing)
        from tmconvert.frontends.torch.pretrained import is_pretrained

        folder = path if is_pretrained(path) else str(_cached_folder(path))
        return trace_pretrained(folder, request.tracing)

    def vocabulary(self, identifier: str) -> AdapterVocabulary | None:
        if identifier != self.name:
            return None
        from tmconvert.frontends.torch.vocabulary import VOCABULARY

        return VOCABULARY

    def function_name(self, function: object) -> tuple[str, bool]:
        name = name_of(function)
        return name.text, name.is_method

    def part_of_model(self, path: Path, head: bytes) -> tuple[str, str] | None:
        if path.suffix == ".py":
            return "a Python file", _factories_in(str(path))
        if head[8:].startswith(b'{"'):  # after the length of the header
            return "a safetensors file: it has weights, but not the computation", _folder_of(path)
        from tmconvert.frontends.torch.pretrained import CONFIG

        if path.name == CONFIG or path.name.endswith(".safetensors.index.json"):
            return "a part of a model of transformers", _folder_of(path)
        return None

    def suggestion_for(self, name: str) -> str:
        file, _, factory = name.rpartition(":")
        if file and Path(f"{file}.py").is_file():  # a path where the name of a module is needed
            return f"name the factory by its module: {module_of(file)}:{factory}"
        from tmconvert.frontends.torch import hub_cache

        if hub_cache.is_hub_name(name):
            return (
                f"{name} is not in the cache of Hugging Face, {hub_cache.cache()}; tmconvert downloads "
                f"nothing: run `hf download {name}`, or pass a folder of transformers"
            )
        return _factories_in(name)


def _cached_folder(name: str) -> Path | None:
    """Returns the folder of a model of Hugging Face by its name, unless there is a file of this name."""
    try:
        if Path(name).exists():
            return None
        from tmconvert.frontends.torch import hub_cache

        return hub_cache.cached_folder(name)
    except (OSError, ValueError):  # such as a name that is too long
        return None


def _folder_of(path: Path) -> str:
    """Suggests the folder of transformers in which a file is, or a function that loads its weights."""
    from tmconvert.frontends.torch.pretrained import CONFIG

    if (path.parent / CONFIG).is_file():
        return f"pass the folder, in which {CONFIG} states the computation: {path.parent}"
    return (
        "write a function that makes the module and calls safetensors.torch.load_model(module, "
        f"{path.name!r}), and give it as PACKAGE.MODULE:FUNCTION in the place of the file"
    )


def _factories_in(name: str) -> str:
    """Suggests factories for a Python file, or for its name without ``.py``."""
    found = factories_of(name if name.endswith(".py") else f"{name}.py")
    more = f", or another of its {len(found)} functions and classes" if len(found) > MOST_FACTORIES else ""
    return (
        (f"name a function or class that creates the module: {', '.join(found[:MOST_FACTORIES])}{more}")
        if found
        else ""
    )
