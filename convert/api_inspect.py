"""The public functions that look at models and written files; ``tmconvert.api`` has the others."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tmconvert.conversion.arguments import entry_point
from tmconvert.conversion.load import load_model
from tmconvert.conversion.prepared_model import loaded
from tmconvert.conversion.request import Model
from tmconvert.frontends.torch.request import DynamicShapes, Tracing
from tmconvert.symbolics.registry import catalogue

if TYPE_CHECKING:
    from tmconvert.inspection.inspection import Inspection


@entry_point
def inspect(
    model: Model,
    *,
    example_inputs: Any = None,
    example_kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: DynamicShapes | None = None,
    freeze_control_flow: bool = False,
    allow_code: bool = False,
) -> Inspection:
    """Returns what is in a model or in a written file, of any kind: ``str`` of it is the text of the command.

    An ONNX or TFLite file, or a prototxt with its caffemodel, is described as it is stored, also where it has
    operators that cannot be converted.

    Args:
        model: A TracedModule, or the path of a file of any kind that is read or written.
        example_inputs: Inputs of a model that is traced; the other parameters are those of ``load``, too.
        example_kwargs: Inputs by name.
        dynamic_shapes: Sizes to leave open.
        freeze_control_flow: Record the branches that the example takes.
        allow_code: Allow the code of a TorchScript file to run.

    Returns:
        Inputs and outputs with dtype, shape, layout, scale and zero point; operators by type; parameters as
        PyTorch counts them; multiply-accumulates; bytes of weights and activations.

    Raises:
        LoadError: The file cannot be read.

    Example:
        >>> tmconvert.inspect("model.tflite").inputs  # doctest: +SKIP
        [TensorInfo(name='x', dtype='int8', shape=(1, 32, 32, 3), layout='NHWC', ...)]
    """
    from tmconvert.inspection.files import written_target

    if written_target(model) is not None:
        from tmconvert.inspection.written_file import inspect_file

        return inspect_file(Path(model))
    from tmconvert.inspection.source_model import inspect_source

    tracing = Tracing.of(example_inputs, example_kwargs, dynamic_shapes, freeze_control_flow, allow_code)
    if isinstance(model, (str, PathLike)):
        module = load_model(model, tracing, check=False)  # a look need not read all weights
        module.name_modules()
        return inspect_source(fspath(model), module, catalogue())
    return inspect_source("", loaded(model), catalogue())
