"""Base class of frontends: which models a frontend reads, and what else it tells about them.

``frontends/registry.py`` finds frontends, built-in ones and those of plugins alike.
docs/development/add-a-frontend.md shows how another package adds one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol

from tmconvert.errors import VerificationError
from tmconvert.ir.types import NamedArrays

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

    from tmconvert.frontends.shared.view_graph import ViewGraph
    from tmconvert.frontends.shared.vocabulary import AdapterVocabulary
    from tmconvert.frontends.torch.request import Tracing
    from tmconvert.ir import TracedModule


class LoadRequest(NamedTuple):
    """How a model is loaded.

    ``tracing`` has the example inputs and permissions of models that are traced; files with a graph are
    loaded without any. ``head`` are the first bytes of a file, empty for a model that is no file. Without
    ``check`` the weights of a container are not compared with their checksums.
    """

    tracing: Tracing
    head: bytes = b""
    check: bool = True


class FileRuntime(Protocol):
    """Runs files: ``verification.runtime.Runtime``."""

    def run(self, paths: Sequence[Path], inputs: NamedArrays, outputs: Sequence[str]) -> list[np.ndarray]:
        """Returns the outputs with these names. Raises VerificationError."""
        raise NotImplementedError


class SourceFile:
    """The files of a loaded model, and the names of its inputs and outputs in them, in order.

    ``batches`` has, by input, the size of the first axis where the file fixes it: arrays of several batches
    are run one after the other.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        inputs: Sequence[str],
        outputs: Sequence[str],
        batches: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        self.paths, self.inputs, self.outputs = list(paths), list(inputs), list(outputs)
        self.batches = batches
        self.refusal = self.judge = ""  # ``judge``: what computed the outputs, if not the runtime

    def run(self, runtime: FileRuntime | None, inputs: NamedArrays) -> list[np.ndarray] | None:
        """Returns the outputs that ``runtime`` computes; None where there is none, or it refuses the file.

        Then ``refusal`` says why.
        """
        self.refusal = ""
        if runtime is None or not self.paths[0].is_file():
            self.refusal = "the source is gone" if runtime else "no runtime for the source is installed"
            return None
        ratios = {self._batches(name, array) for name, array in inputs.items()}
        try:
            if len(ratios) != 1 or ratios == {1}:
                return self.run_once(runtime, inputs)
            return self._in_batches(runtime, inputs, ratios.pop())
        except (VerificationError, ValueError) as error:  # it does not implement all that the format has
            self.refusal = getattr(error, "message", str(error))
            return None

    def run_once(self, runtime: FileRuntime, inputs: NamedArrays) -> list[np.ndarray]:
        """Returns the outputs for inputs of the batch of the file. Raises VerificationError."""
        return runtime.run(self.paths, inputs, self.outputs)

    def _batches(self, name: str, array: np.ndarray) -> Fraction:
        """Returns how many batches an array has."""
        own = self.batches.get(name, 0)
        return Fraction(array.shape[0], own) if own and array.ndim else Fraction(1)

    def _in_batches(self, runtime: FileRuntime, inputs: NamedArrays, ratio: Fraction) -> list[np.ndarray]:
        """Runs one batch after the other; the last one is filled up with its last element."""
        import numpy as np

        made = []
        for number in range(math.ceil(ratio)):
            rows = {name: number * size + np.arange(size) for name, size in self.batches.items()}
            part = {name: array.take(rows[name], 0, mode="clip") for name, array in inputs.items()}
            made.append(self.run_once(runtime, part))
        whole = [np.concatenate(each) for each in zip(*made, strict=True)]
        return [array[: int(len(array) * ratio / len(made))] for array in whole]


class LoadedModel(NamedTuple):
    """A model; with ``source``, its own files are run for the reference of what is made of it."""

    module: TracedModule
    source: SourceFile | None = None


class Frontend:
    """One source of models. Instances have no state.

    ``name`` is unique among frontends, ``title`` the one for people. ``has_graph`` states that its models
    hold their graph; others are traced, and loaded with the example inputs of a request; ``has_signatures``
    that a file may have several graphs, and a request names one of them; ``has_state`` that it may have
    variables, which ``state`` of a request makes inputs and outputs. A call of a function
    whose name begins with one of ``prefixes`` (``torch.``, ``aten::``) is converted by the vocabulary of
    this frontend in every model; ``registry.py`` has those of built-in frontends. ``source_runtime`` is the
    target whose runtime runs the files.

    A frontend without files recognizes none: it has a vocabulary alone.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    has_graph: ClassVar[bool] = True
    has_signatures: ClassVar[bool] = False
    has_state: ClassVar[bool] = False
    prefixes: ClassVar[tuple[str, ...]] = ()
    source_runtime: ClassVar[str] = ""

    # ---- recognition: no framework is imported for it

    def recognizes(self, head: bytes) -> bool:
        """Whether a file that begins with ``head`` (up to 4096 bytes) is a model of this frontend."""
        return False

    def recognizes_file(self, path: str, head: bytes) -> bool:
        """Whether the file at ``path`` is a model of this frontend; by default its head tells."""
        return self.recognizes(head)

    def recognizes_name(self, name: str) -> bool:
        """Whether a text names a model, other than a file: a function, a folder, a name in a cache."""
        return False

    # ---- what is no model, but a part of one

    def part_of_model(self, path: Path, head: bytes) -> tuple[str, str] | None:
        """Returns what a file is that belongs to a model without being one, and help; None for others."""
        return None

    def suggestion_for(self, name: str) -> str:
        """Returns help for a text that is neither a file nor a model; empty for others."""
        return ""

    # ---- models

    def load(self, path: str, request: LoadRequest) -> TracedModule | LoadedModel:
        """Loads a model that this frontend recognizes. Raises LoadError, and UnsupportedError in tracing."""
        raise NotImplementedError

    def vocabulary(self, identifier: str) -> AdapterVocabulary | None:
        """Returns the vocabulary with an identifier, which containers store; None for that of another.

        A frontend with ``prefixes`` has one for its ``name``.
        """
        return None

    def function_name(self, function: object) -> tuple[str, bool]:
        """Returns the name of a function of the framework, and whether it is a method of tensors."""
        return f"{function.__module__}.{getattr(function, '__name__', '')}", False

    def stored_graph(self, path: Path) -> ViewGraph | None:
        """Returns the graph of a file as it is stored, for ``tmconvert view``; None where it is not read.

        Operators that cannot be converted are part of it. Raises LoadError.
        """
        return None
