"""The public functions that run and transform models; ``tmconvert.api`` has the others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tmconvert.conversion.arguments import entry_point
from tmconvert.conversion.prepared_model import loaded
from tmconvert.conversion.request import Model
from tmconvert.transform.run_model import Inputs, run_model


@entry_point
def run(model: Model, inputs: Inputs, *, watch: Sequence[str] = ()) -> dict[str, np.ndarray]:
    """Runs a model by the reference kernels; returns its outputs by their names in written files.

    ``inputs`` are arrays by the names of inputs, or in order, or the path of an .npz file with such names or
    one array for each input. ``watch`` are names of tensors to return, too, or patterns of names, such as
    "layer1.*.relu_out": tensors in submodules have the path of these before their names; of several calls the
    last counts. Arrays have the element types that the model records.

    >>> tmconvert.run("net.tm", {"x": x}, watch=["layer1.*"])  # doctest: +SKIP

    Raises LoadError; UsageError TM6003, TM6011, TM6014 for inputs that do not fit, TM6050 for unknown names.
    """
    return run_model(loaded(model), inputs, watch)
