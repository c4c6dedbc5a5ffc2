"""``tmconvert run``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tmconvert.cli.keywords import tracing_of
from tmconvert.cli.messages import logging_to_stderr, progress
from tmconvert.cli.options import GroupedCommand, declared_options, model_argument
from tmconvert.cli.rendering import write, write_json
from tmconvert.conversion.output_paths import check_names, keep_model


@click.command(
    "run", cls=GroupedCommand, example="tmconvert run model.tm -i x.npz -o y.npz --watch layer1_out"
)
@model_argument
@declared_options("run")
def command(model: str, inputs: str, output: str, json: bool, **given: Any) -> None:
    """Run MODEL on the arrays of IN.npz by the reference kernels, and write its outputs to OUT.npz.

    Arrays in OUT.npz have the names of the outputs in written files, and of the watched tensors; the name of
    a tensor in a submodule begins with the path of the submodule.
    """
    tracing, keywords = tracing_of("run", {"inputs": inputs, "output": output, **given})
    from tmconvert import api
    from tmconvert.output.array_archive import write_arrays
    from tmconvert.output.atomic import check_writable

    check_names("npz", (".npz",), [Path(output)])
    keep_model(model, Path(output))
    keep_model(inputs, Path(output))
    check_writable(output)
    with logging_to_stderr(False), progress(f"running {model}"):
        values = api.run(api.load(model, **tracing), inputs, watch=keywords.get("watch", ()))
    write_arrays(values, output)
    if json:
        arrays = [
            {"name": name, "dtype": array.dtype.name, "shape": list(array.shape)}
            for name, array in values.items()
        ]
        write_json({"model": model, "path": output, "arrays": arrays})
        return
    for name, array in values.items():
        write(f"{name}  {array.dtype.name}[{','.join(map(str, array.shape))}]")
