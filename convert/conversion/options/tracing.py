"""Options of loading: how PyTorch models are traced. Evaluated at run time, see ``declared.py``."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

from tmconvert.conversion.options.declared import (
    debugging_option,
    declared,
    input_option,
    shapes_option,
    tracing_option,
)
from tmconvert.progress import Progress

if TYPE_CHECKING:  # help texts do not load it
    from tmconvert.frontends.torch.request import DynamicShapes


class ProgressOptions(TypedDict, total=False):
    """The keyword of functions that take long."""

    progress: Annotated[
        Progress | None,
        debugging_option(
            "A function that is called with the numbers of steps done and of all, and with the ``stage`` if "
            "it has such a parameter.",
            "function",
            only="python",
        ),
    ]


class TracingOptions(ProgressOptions, total=False):
    """Keywords of functions that load a model."""

    example_inputs: Annotated[
        Any,
        tracing_option(
            "Example input: 'float32[1,3,224,224]' or 'int64[1,16]<1000' (random, below 1000), FILE.npy, "
            "FILE.npz, or a number.",
            "entries",
            metavar="[NAME=]INPUT",
            flag="--input",
            is_common=True,
            meaning="Inputs to trace a PyTorch model with, and to verify with: arrays or tensors, in order.",
        ),
    ]
    example_kwargs: Annotated[
        Mapping[str, Any] | None,
        tracing_option(
            "Example inputs by the names of the arguments of ``forward``; on the command line, "
            "`--input NAME=INPUT`.",
            "any",
            only="python",
            meaning="Example inputs by the names of the arguments of ``forward``.",
        ),
    ]
    freeze_control_flow: Annotated[
        bool,
        tracing_option("Where control flow depends on data, record the branch that the example inputs take."),
    ]
    roll_loops: Annotated[
        bool,
        tracing_option("Write equal rounds of Python loops as one loop in the file, where it is a loop."),
    ]
    training: Annotated[
        bool, tracing_option("Keep the mode of a module in training mode; without it, as after ``eval()``.")
    ]
    allow_code: Annotated[bool, tracing_option("Allow the code in a TorchScript file to run.")]
    state: Annotated[
        Sequence[str] | None,
        tracing_option(
            "Make a tensor that the model keeps from call to call an input and an output; all for each one.",
            "entries",
            metavar="NAME",
            meaning="Names of tensors that the model keeps from call to call, to make them inputs and "
            'outputs; ``["all"]`` for each one.',
        ),
    ]
    noise: Annotated[
        Literal["input", "operator"] | None,
        tracing_option(
            "Random numbers of a PyTorch model: inputs of the file, or operators that draw them "
            "(--allow-random).",
            default_text="an error",
            meaning="Make random numbers of a PyTorch model inputs of the file, or write operators that draw "
            "them (``allow_random``); None refuses them.",
        ),
    ]
    signature: Annotated[
        str | None, tracing_option("Signature to read of a TFLite file with several.", metavar="NAME")
    ]


class SourceOptions(TracingOptions, total=False):
    """Keywords of functions that load a model whose dimensions may be dynamic."""

    dynamic_shapes: Annotated[
        "DynamicShapes | None",
        shapes_option(
            "Make a dimension of an input dynamic and name it, as in x:0=batch.",
            "entries",
            metavar="NAME:AXIS=SIZE",
            flag="--dynamic",
            is_common=True,
            meaning='Dimensions of inputs to make dynamic, such as ``{"x": {0: "batch"}}``. Caffe has none.',
        ),
    ]
    fix: Annotated[
        Mapping[str, int] | None,
        shapes_option(
            "Give a dynamic dimension a number, as in batch=1, where it cannot or need not stay dynamic.",
            "entries",
            metavar="NAME=N",
            meaning='Numbers of dynamic dimensions by name, such as ``{"batch": 1}``.',
        ),
    ]


class ShapeOptions(ProgressOptions, total=False):
    """Keywords of functions that change shapes of inputs."""

    input_shapes: Annotated[
        Mapping[str, Sequence[int]] | None,
        shapes_option(
            "Shape of an input, in place of the one in MODEL.",
            metavar="NAME=N,N,...",
            flag="--input-shape",
            is_common=True,
            meaning="Shapes by input, in place of those in the model.",
        ),
    ]


class EdgeOptions(ShapeOptions, total=False):
    """Keywords of functions that change shapes of inputs, or take a part of a model."""

    inputs: Annotated[
        Sequence[str] | None, input_option("Names of tensors: extract the subgraph that starts at them.")
    ]
    outputs: Annotated[
        Sequence[str] | None, input_option("Names of tensors: extract the subgraph that ends at them.")
    ]


PROGRESS = declared(ProgressOptions)
TRACING = tuple(each for each in declared(TracingOptions) if each not in PROGRESS)
