"""The public functions that run and transform models; ``tmconvert.api`` has the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tmconvert.calibration.settings import Settings
from tmconvert.conversion.options.arguments import entry_point
from tmconvert.conversion.options.declared import expand_options
from tmconvert.conversion.options.inspection import RunOptions
from tmconvert.conversion.prepared_model import loaded
from tmconvert.conversion.request import Model
from tmconvert.progress import Progress
from tmconvert.surgery import Node, TracedModule
from tmconvert.surgery.module import users_model
from tmconvert.symbolics.registry import catalogue

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tmconvert.inspection.given_inputs import Inputs
    from tmconvert.transform.match import Match


@entry_point
@expand_options(RunOptions)
def run(model: Model, inputs: Inputs | None = None, **options: Unpack[RunOptions]) -> dict[str, np.ndarray]:
    """Runs a model or a written file; returns its outputs by their names in written files.

    ONNX and TFLite files and prototxts run in ONNX Runtime, LiteRT or OpenCV: arrays may have the layout of
    the source or of the file, and real values are quantized for integer inputs, and integer outputs
    dequantized. Source models run by the reference kernels.

    Args:
        model: A TracedModule, or the path of a model or of a written file.
        inputs: Arrays or tensors by the names of inputs, or in order; an array for the only input; the path
            of an .npz file with such names or one array for each input, of an .npy file, or of an image;
            text such as "float32[1,3,8,8]" for random values, or a list of such texts. The error for None
            lists the inputs of the model.

    Returns:
        Arrays by name: the watched tensors and the outputs.

    Raises:
        LoadError: The model cannot be read.
        UsageError: TM6003, TM6011, TM6014 for inputs that do not fit, TM6033 for images, TM6050 for unknown
            names.
        VerificationError: TM4002 where the runtime refuses the file, TM4003 where it is not installed.

    Example:
        >>> tmconvert.run("net.tm", {"x": x}, watch=["layer1.*"])  # doctest: +SKIP
        >>> tmconvert.run("net.tflite", "cat.png", mean=[0.5], std=[0.5])  # doctest: +SKIP
    """
    from tmconvert.targets.recognize import written_target

    settings = Settings.of({"mean": options["mean"], "std": options["std"]})
    if isinstance(model, (str, PathLike)) and written_target(model) is not None:
        from tmconvert.inspection.run_file import FileRunner

        runner = FileRunner(Path(model), signature=options["signature"] or "")
        return runner.run(inputs, options["watch"], settings)
    from tmconvert.inspection.run_source import run_source

    return run_source(loaded(model), inputs, options["watch"], settings)


@entry_point
def normalize(model: Model, *, progress: Progress | None = None) -> TracedModule:
    """Returns the model as a flat graph of ATen-style ops, such as ``aten::conv2d``, the form on which passes
    work.

    It can be run, saved and converted like the source; its text form can be printed and read back.

    Args:
        model: A TracedModule, or the path of a model.
        progress: A function that is called with the numbers of steps done and of all, and with the ``stage``
            if it has such a parameter.

    Returns:
        A new model; ``model`` is unchanged.

    Raises:
        LoadError: The model cannot be read.
        UnsupportedError: TM2003 for calls that no op expresses.

    Example:
        >>> print(tmconvert.normalize(tm).graph.to_text())  # doctest: +SKIP
    """
    from tmconvert.transform.normal_form import eliminate_dead_code, transformed

    return users_model(transformed(loaded(model), catalogue(), eliminate_dead_code, keeps_outputs=True))


@entry_point
def optimize(
    model: Model, passes: str | Sequence[Any] = ("FuseConvBn",), *, progress: Progress | None = None
) -> TracedModule:
    """Returns the model after some passes, as a flat graph of ATen-style ops.

    Args:
        model: A TracedModule, or the path of a model.
        passes: Names: MegEngine's (FuseConvBn, FuseAddMul, BackwardFoldScale, ...), tmconvert's
            (FoldScaleBias or fold_scale_bias, ...) and those of ``register_pass``; or functions of a graph,
            and classes with a method ``run``.
        progress: A function that is called with the numbers of steps done and of all, and with the ``stage``
            if it has such a parameter.

    Returns:
        A new model; ``model`` is unchanged.

    Raises:
        LoadError: The model cannot be read.
        UnsupportedError: TM2003 for calls that no op expresses.
        UsageError: TM6051 for an unknown pass, TM6052 and TM6053 for a user's pass that fails or leaves a
            graph that is not valid.

    Example:
        >>> tmconvert.optimize(tm, ["FuseConvBn", "FuseAddMul", "BackwardFoldScale"])  # doctest: +SKIP
    """
    from tmconvert.transform.optimize import optimize_model

    requested = [passes] if isinstance(passes, str) else passes
    return users_model(optimize_model(loaded(model), requested, catalogue())[0])


@entry_point
def register_pass(
    name: str, pass_: Callable[..., Any] | None = None, *, after: str | Sequence[str] = ()
) -> Callable[..., Any]:
    """Registers a pass for ``optimize``, ``to_onnx(..., passes=[name])`` and ``--pass``. Also a decorator.

    The graph is verified after the pass.

    Args:
        name: The name of the pass.
        pass_: A function of a graph of ATen-style ops (and, as a second argument, of the PassRecord to which
            it reports changes and refusals), or a class with a method ``run``, such as a
            ``tmconvert.passes.rewriting.RewritePass``. None returns a decorator.
        after: Names of passes of a target after which it runs; without any it runs before all of them.

    Returns:
        ``pass_``, or a decorator.

    Raises:
        UsageError: TM6051 for a name that is taken, and for what is not a pass.

    Example:
        >>> @tmconvert.register_pass("DropDropout")  # doctest: +SKIP
        ... def drop_dropout(graph):
        ...     for call in list(graph):
        ...         if getattr(call, "function", "") == "aten::dropout":
        ...             graph.replace_uses(call.output, call.args[0])
    """
    from tmconvert.transform.named_passes import register

    def registers(function: Callable[..., Any]) -> Callable[..., Any]:
        register(name, function, [after] if isinstance(after, str) else list(after))
        return function

    return registers if pass_ is None else registers(pass_)


@entry_point
def parse_graph(text: str, weights: TracedModule | Mapping[str, np.ndarray] | None = None) -> TracedModule:
    """Reads the text form of a graph of ATen-style ops, as ``normalize(model).graph.to_text()`` prints it.

    Args:
        text: The text form, which names weights by their digests. A line needs no ``loc(...)``.
        weights: A model that has these weights, or a dict of arrays by digest.

    Returns:
        A model. It has the example inputs of ``weights``, if that is a model.

    Raises:
        LoadError: TM1101 with line and column for malformed text and unknown weights.
        GraphError: A type in the text is not what its op computes.

    Example:
        >>> text = tmconvert.normalize(tm).graph.to_text()  # doctest: +SKIP
        >>> changed = tmconvert.parse_graph(text.replace("aten::relu(", "aten::silu("), tm)  # doctest: +SKIP
    """
    from tmconvert.transform.graph_text import parse_model

    return users_model(parse_model(text, weights, catalogue()))


@entry_point
def replace_pattern(
    model: TracedModule,
    pattern: object,
    replacement: object,
    *,
    match_filters: Sequence[Callable[..., bool]] = (),
) -> list[Match]:
    """Replaces each match of a pattern in a model, in place.

    Of overlapping matches the first in order of execution is replaced. A match is skipped if a call outside
    of it uses one of its intermediate values. A replacement of ATen-style ops, or of results of a submodule,
    has the types of what it replaces; elsewhere types are inferred again, and refused where they do not fit.

    Args:
        model: The model to change.
        pattern: A function of ``g`` and values, which calls ops by ``g.call("aten::relu", x)``; or a function
            of torch tensors, with the calls that a traced PyTorch model records; or a graph, or its text. Its
            parameters stand for any value or constant; ``g.any`` and ``...`` for attributes. A pattern of
            ``aten::`` ops makes the model a flat graph of these; others are found in each graph of the
            source.
        replacement: The same, with the parameters of the pattern; a parameter ``match`` gets the Match.
        match_filters: Functions ``f(match, graph, pattern)``; a match is skipped if one returns false.

    Returns:
        The matches, with ``anchor``, ``nodes_map`` and the matched calls, ``exprs``.

    Raises:
        UsageError: TM6052, TM6054 for a pattern or replacement that fails or does not fit; then the model is
            as it was.

    Example:
        >>> tmconvert.replace_pattern(  # doctest: +SKIP
        ...     tm,
        ...     lambda g, x: g.call("aten::relu", x),
        ...     lambda g, x: g.call("aten::clamp", x, 0.0, 6.0),
        ... )
    """
    from tmconvert.transform.replace_pattern import replace_in_model

    return replace_in_model(loaded(model), pattern, replacement, match_filters, catalogue())


@entry_point
def decompose(model: Model, table: Mapping[str, Callable[..., Any]]) -> TracedModule:
    """Returns the model as a flat graph of ATen-style ops, with some of them replaced by functions.

    Args:
        model: A TracedModule, or the path of a model.
        table: By the name of an op, a function of ``g`` and of the op's arguments, by their names, that
            computes the same by ``g.call``. Calls that it makes are not replaced again.

    Returns:
        A new model; ``model`` is unchanged.

    Raises:
        LoadError: The model cannot be read.
        UnsupportedError: TM2003 for calls that no op expresses.
        UsageError: TM6050 for an unknown op, TM6052 for a function that fails, TM6054 for results of other
            types.

    Example:
        >>> def silu(g, x):
        ...     return g.call("aten::mul", x, g.call("aten::sigmoid", x))
        >>> tmconvert.decompose(tm, {"aten::silu": silu})  # doctest: +SKIP
    """
    from tmconvert.transform.decompositions import decompose_model

    return users_model(decompose_model(loaded(model), table, catalogue()))


@entry_point
def split_module(model: Model, by: Callable[[Node], Any]) -> TracedModule:
    """Returns a flat copy of a model whose calls are divided into submodules, as torch.fx.passes does.

    Args:
        model: A TracedModule, or the path of a model.
        by: A function of the first result of each call, which returns the key of its part, a number or text;
            the part becomes the submodule ``submod_KEY``.

    Returns:
        A new model, which shares the weights of ``model``.

    Raises:
        LoadError: The model cannot be read.
        UsageError: TM6052 where ``by`` fails, TM6055 where parts need each other's results.

    Example:
        >>> halves = tmconvert.split_module(tm, lambda node: node.name.startswith("head"))  # doctest: +SKIP
        >>> halves.submod_False, halves.submod_True  # doctest: +SKIP
    """
    from tmconvert.transform.split import split

    return users_model(split(loaded(model), cast("Callable[[Any], Any]", by)))
