"""Base classes of targets: versions, passes, lowering, encodings, files and runtimes.

``conversion/pipeline.py`` runs the stages of a conversion, and contains no code for a specific target; the
differences are methods of these classes, which ``targets/onnx``, ``targets/tflite`` and ``targets/caffe``
override. docs/development/add-a-target.md shows how another package adds a target.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar

from tmconvert.errors import LoadError, UsageError
from tmconvert.errors.source import Source
from tmconvert.ir import InternalGraph, TracedModule
from tmconvert.ir.types import NamedArrays
from tmconvert.lowering.builder import Builder
from tmconvert.lowering.lower import Lowering, lower
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value
from tmconvert.passes.manager import Pass
from tmconvert.passes.rewriting import PassRecord
from tmconvert.symbolics.op import Op
from tmconvert.targets.option import Option
from tmconvert.targets.options import IoLayout, TargetOptions

Shapes = Sequence[tuple[int, ...]]
SharedWeights = dict[object, object]  # by keys of the target's own

if TYPE_CHECKING:
    import numpy as np

    from tmconvert.targets.violation import Violation
    from tmconvert.targets.written_model import TensorInfo, WrittenModel
    from tmconvert.verification.references import References
    from tmconvert.verification.runtime import Runtime
    from tmconvert.verification.verify import Verification


@dataclass
class LoweredGraphs:
    """The graphs of a model between lowering and writing.

    ``graph`` holds the operators of the target, ``lowered`` the aten graph that they were lowered from,
    ``source`` the aten graph before all passes. ``notes`` are for the report. ``weights`` has what other
    signatures of the file store in fewer bits, and gets what this one stores.
    """

    graph: TargetGraph
    lowered: InternalGraph
    source: InternalGraph
    module: TracedModule
    catalogue: Mapping[str, Op]
    notes: list[str] = field(default_factory=list)
    weights: SharedWeights = field(default_factory=dict)


class Encoding:
    """How a lowered graph is stored: in float by default; subclasses quantize weights or all tensors.

    ``graph`` is what is written, ``plain`` the float graph. Each encoding has the verification that fits what
    it rounds.
    """

    def __init__(self, plain: TargetGraph) -> None:
        self.plain = self.graph = plain

    def verify(self, paths: Sequence[Path], references: References) -> Verification | None:
        """Compares the files at ``paths`` with the source; returns None, with a note, where it is impossible.

        Raises VerificationError.
        """
        from tmconvert.verification.verify import verify_written

        return verify_written(self.plain.target, paths, self.graph, references)


class FakeQuantFloat(Encoding):
    """A float graph with fake-quantized weights."""

    def verify(self, paths: Sequence[Path], references: References) -> Verification | None:
        from tmconvert.verification.baked import verify_baked

        return verify_baked(paths, self.graph, references)


# methods whose first argument is the path of a file that may be a stranger's
_READERS = {"model_files", "stored_options", "stored_layouts", "stored_input_shapes", "written_model"}


def _blaming(read: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a method that reads the file at its first argument, whose content is at fault."""

    @functools.wraps(read)
    def reading(self: object, path: Path, *args: Any, **others: Any) -> Any:
        from tmconvert.formats.mapped_file import blaming, unusable_file

        with blaming(functools.partial(unusable_file, path)):
            return read(self, path, *args, **others)

    return reading


class Target(ABC):
    """One kind of output file. Instances have no state; ``targets/registry.py`` finds them by name.

    ``name`` is that of the command and of the symbolics (``@op.onnx``), ``title`` the one for messages.
    ``suffixes`` are those of its files, the structure's first. ``runtime_package`` is what pip installs to
    verify files. ``operator_word`` is what the format calls an operator. ``version_label`` is what messages
    write before a version (``title`` if it is empty); ``has_ordered_versions`` states that each version has
    the operators of those before it, ``drops_low_ranks`` that its runtimes do not keep ranks below 2,
    ``quantizes_inputs`` that inputs of its integer files are quantized tensors, ``names_constants`` that its
    files have names for constants. Results of the operators ``keeps_qparams`` have the quantization
    parameters of their operands. Operands of the operators ``clamps_at_zero`` may have those of the results:
    as 0 is exact under all parameters, max(round(x), 0) is round(max(x, 0)).
    ``weight_axes`` are the operators with weights that are quantized in integers, and the axis of their
    output channels. ``random_operators`` draw random numbers; each is given with its attributes
    for a seed. ``macs`` compute the multiply-accumulates of operators from the shapes of operands and
    results; ``widespread_profile`` is that of an accelerator whose defects are notes by default;
    ``spatial_operators`` work on images in the layout of the target; ``has_signatures`` states that a file
    may have several models. ``options`` are those that this target alone has, in addition to those of all
    targets. The built-in targets declare theirs in ``conversion/options``, so that help texts are shown
    without loading them.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]
    runtime_package: ClassVar[str] = ""
    operator_word: ClassVar[str] = "operator"
    default_io_layout: ClassVar[IoLayout] = "source"
    widespread_profile: ClassVar[str] = ""
    oldest_version: ClassVar[int] = 0
    has_dynamic_shapes: ClassVar[bool] = True
    quantizes_inputs: ClassVar[bool] = False
    drops_low_ranks: ClassVar[bool] = False
    names_constants: ClassVar[bool] = True
    keeps_qparams: ClassVar[frozenset[str]] = frozenset()
    clamps_at_zero: ClassVar[frozenset[str]] = frozenset()
    weight_axes: ClassVar[Mapping[str, int]] = {}
    random_operators: ClassVar[Mapping[str, Callable[[int], dict[str, Any]]]] = {}
    version_label: ClassVar[str] = ""
    options: ClassVar[tuple[Option, ...]] = ()
    macs: ClassVar[Mapping[str, Callable[[Shapes, Shapes], int]]] = {}
    spatial_operators: ClassVar[frozenset[str]] = frozenset()
    has_ordered_versions: ClassVar[bool] = True
    has_signatures: ClassVar[bool] = False

    def __init_subclass__(cls, **others: Any) -> None:
        """Makes the methods that read back a file blame its content for what it breaks."""
        super().__init_subclass__(**others)
        for name in _READERS & vars(cls).keys():
            setattr(cls, name, _blaming(vars(cls)[name]))

    # ---- versions

    @abstractmethod
    def version_number(self, version: int | str | None) -> int:
        """The number by which symbolics are looked up; of the default version for None. Raises UsageError."""

    def version_name(self, number: int) -> int | str:
        """The version as users write it; the inverse of ``version_number``."""
        return number

    def newer_versions(self, number: int) -> Sequence[int]:
        """Versions above ``number`` that an error may recommend, ascending."""
        return ()

    def default_options(self, version: int | str | None = None) -> TargetOptions:
        """Returns the default options of a conversion to ``version``. Raises UsageError."""
        return TargetOptions(self.name, self.version_number(version), self.default_io_layout)

    def requested_options(self, given: Mapping[str, Any]) -> TargetOptions:
        """The options of a conversion, of all options by name; single values were checked.

        By default, values of ``options`` are stored by name in ``TargetOptions.own``. Raises UsageError
        TM6001 for a version, TM6002 for values that exclude each other.
        """
        version = next((given[option.name] for option in self.options if option.is_version), None)
        own = {option.name: given[option.name] for option in self.options if not option.is_version}
        return self.default_options(version)._replace(own=own)

    # ---- from the aten graph to operators

    @abstractmethod
    def passes(self, options: TargetOptions, catalogue: Mapping[str, Op]) -> list[Pass]:
        """Fresh passes for one conversion, in order."""

    def lower(self, graph: InternalGraph, catalogue: Mapping[str, Op], options: TargetOptions) -> Lowering:
        """Lowers a graph that went through ``passes``; returns operators and unsupported calls."""
        return lower(graph, catalogue, self.name, options.version, self.builder())

    def builder(self) -> type[Builder]:
        """Returns the class of ``g``, to which symbolics append operators."""
        return Builder

    def finish(self, graph: TargetGraph, options: TargetOptions) -> list[PassRecord]:
        """Rewrites the operators in place, after lowering; returns what each pass did, in order."""
        return []

    def encode(self, graphs: LoweredGraphs, options: TargetOptions) -> Encoding:
        """The lowered graph in the encoding that is requested.

        Raises UsageError TM6002 where the version cannot hold it, UnsupportedError TM2003 for a quantized
        operator without an integer kernel.
        """
        return FakeQuantFloat(graphs.graph) if options.bakes_weights else Encoding(graphs.graph)

    def has_integer_form(self, graph: InternalGraph, catalogue: Mapping[str, Op], table_entries: int) -> bool:
        """Whether integer files compute ``graph``, whose tensors have QParams, on integers alone, with lookup
        tables of at most ``table_entries`` entries. The graph is not used afterwards.

        Calibration decomposes the calls that have no such form. By default all have one: the operators of
        files with QuantizeLinear and DequantizeLinear compute in float.
        """
        return True

    def named_constants(self, operator: Operator) -> Iterator[tuple[str, Value]]:
        """Returns the constants of an operator, by the names that other tools use."""
        constants = [value for value in operator.inputs if value is not None and value.is_constant]
        from tmconvert.formats.caffe.net import blob_name

        for number, value in enumerate(constants):
            yield value.name if self.names_constants else blob_name(operator.name, number), value

    # ---- writing

    def output_paths(self, given: Sequence[Path]) -> tuple[Path, ...]:
        """Returns the files that are always written, from the user's paths. Raises UsageError TM6002."""
        return tuple(given)

    def further_paths(self, paths: Sequence[Path]) -> tuple[Path, ...]:
        """Returns the paths of files that may be written in addition to ``paths``."""
        return ()

    def files(self, graph: TargetGraph, paths: Sequence[Path], options: TargetOptions) -> list[Path]:
        """The files to write for output ``paths``."""
        return list(paths)

    @abstractmethod
    def write(
        self, graph: TargetGraph, files: Sequence[BinaryIO], names: Sequence[str], *, value_info: bool = True
    ) -> None:
        """Writes the graph to open files, which will be called ``names``."""

    def write_signatures(self, graphs: Sequence[TargetGraph], file: BinaryIO) -> None:
        """Writes several graphs to one file, as its signatures, which share weights."""
        raise NotImplementedError

    def check(self, graph: TargetGraph, paths: Sequence[Path]) -> list[str]:
        """Checks files just written by the format's own rules; returns notes. Raises TmconvertError."""
        return []

    def violations(self, graph: TargetGraph) -> list[Violation]:
        """Returns the limits of the version that the lowered graph exceeds, by rule."""
        return []

    def missing_kernels(self, graph: TargetGraph) -> list[str]:
        """Returns operators of the lowered graph for which a runtime release has no kernel, as text."""
        return []

    def usage(
        self, language: str, paths: Sequence[str], inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]
    ) -> list[str]:
        """Returns a program's lines ("python", "cpp", "kotlin") that runs ``paths``, or none."""
        return []

    # ---- reading back

    def model_object(self, paths: Sequence[Path]) -> Any:
        """Returns the written model as an object in memory: by default the content of its only file."""
        contents = tuple(path.read_bytes() for path in paths)
        return contents[0] if len(contents) == 1 else contents

    @abstractmethod
    def recognizes(self, head: bytes) -> bool:
        """Whether a file that begins with ``head`` (up to 4096 bytes) is of this target."""

    def model_files(self, path: Path) -> list[Path]:
        """The files of the model whose structure is at ``path``. Raises LoadError TM1001."""
        return [path]

    def stored_options(self, path: Path) -> Mapping[str, Any]:
        """Returns the options of the conversion that wrote the file, from its metadata, or an empty dict."""
        return {}

    def stored_layouts(self, path: Path) -> tuple[Sequence[bool], Sequence[bool]] | None:
        """Returns which inputs and outputs of the file are channels-last; None where none are."""
        return None

    def stored_input_shapes(self, path: Path) -> Mapping[str, Sequence[int]]:
        """Shapes of inputs by name, for targets whose runtimes do not check the shapes of inputs."""
        return {}

    def written_model(self, path: Path) -> WrittenModel:
        """Names, shapes and layers of the file. Raises LoadError."""
        raise self._unreadable("read back", path)

    def signature_names(self, path: Path) -> Sequence[str]:
        """Returns the names of the signatures of the file at ``path``; none where it has one or none."""
        return ()

    def signature_model(self, path: Path, signature: str) -> WrittenModel:
        """Names, shapes and layers of a signature, with "" those of the file, which has no other.

        Raises LoadError; UsageError TM6014, TM6016.
        """
        if signature:
            raise UsageError("TM6016", f"{path} has no signatures: signature applies to TFLite files")
        return self.written_model(path)

    def constants(self, paths: Sequence[Path], version: int) -> dict[str, list[np.ndarray]]:
        """Returns the float constants in written files, by name; several constants may have one name."""
        raise self._unreadable("compared constant by constant")

    def runtime(self, path: Path | None = None) -> Runtime | None:
        """Returns the runtime that verifies the file at ``path``, or any; None if none is installed."""
        return None

    def signature_runtime(self, path: Path, signature: str) -> Runtime | None:
        """Returns the runtime that verifies a signature of the file at ``path``, if it has several."""
        return self.runtime(path)

    def source_runtime(self, path: Path) -> Runtime | None:
        """Returns the runtime that computes the reference of a model loaded from the file at ``path``; None
        where none is installed or supports it.
        """
        return self.runtime(path)

    def saturates_here(self) -> bool:
        """Whether the runtime's kernels may accumulate products of integers incorrectly on this processor."""
        return False

    def steps(self, path: Path) -> Callable[[Mapping[str, np.ndarray]], dict[str, np.ndarray]]:
        """Loads the file at ``path`` in its runtime, and returns a function that runs it on inputs by name.
        What the file keeps from run to run stays. It works in this process, which a runtime may end.
        """
        raise self._unreadable("run with variables", path)

    def prepared_run(self, path: Path, threads: int, inputs: NamedArrays) -> Callable[[], object]:
        """Loads the file at ``path`` in its runtime, with the runtime's default options, and returns a
        function that runs it on ``inputs``, which are in the order, and of the types, of the file. It works
        in this process, which a runtime may end.
        """
        raise self._unreadable("timed", path)

    def signature_run(
        self, path: Path, signature: str, threads: int, inputs: NamedArrays
    ) -> Callable[[], object]:
        """Does what ``prepared_run`` does for a signature of the file, if it has several."""
        return self.prepared_run(path, threads, inputs)

    def values(self, path: Path, inputs: NamedArrays, names: Sequence[str]) -> list[np.ndarray]:
        """Returns tensors of the file at ``path`` as its runtime computes them, operator by operator.

        ``inputs`` are by the names, and of the types, of the file. Raises VerificationError TM4002, TM4003.
        """
        raise self._unreadable("run layer by layer", path)

    def signature_values(
        self, path: Path, signature: str, inputs: NamedArrays, names: Sequence[str]
    ) -> list[np.ndarray]:
        """Does what ``values`` does for a signature of the file, if it has several."""
        return self.values(path, inputs, names)

    def tapped(self, path: Path, names: Sequence[str], folder: Path) -> Path:
        """Writes a copy of the file that has the tensors ``names`` as outputs to ``folder``."""
        raise self._unreadable("run layer by layer", path)

    def start_runtime(self) -> None:  # noqa: B027 (nothing to start is the default)
        """Starts in the background the process that a later run of ``runtime`` needs."""

    def _unreadable(self, action: str, path: Path | None = None) -> LoadError:
        """Returns the error for an operation that this target does not have."""
        source = None if path is None else Source(str(path))
        return LoadError("TM1009", " ".join((self.title, "files cannot be", action)), source=source)


def without_scales() -> UsageError:
    """Returns the error for an integer conversion of a model without quantization parameters."""
    return UsageError(
        "TM6030",
        "the model has no quantization: there are no scales to write integers with",
        notes=[("help", "calibrate it: --calibration DATA, or `tmconvert calibrate`")],
    )
