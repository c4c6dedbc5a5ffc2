"""``tmconvert run``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tmconvert.cli.array_output import check_kind, described, write_file, write_to_stdout
from tmconvert.cli.keywords import inputs_of, tracing_of
from tmconvert.cli.messages import logging_to_stderr, progress
from tmconvert.cli.options import GroupedCommand, declared_options, model_argument
from tmconvert.cli.rendering import write, write_json, write_message
from tmconvert.conversion.output_paths import keep_model

if TYPE_CHECKING:
    import numpy as np

STREAM = "-"
MOST_VALUES = 100  # of an array that is printed in full


@click.command(
    "run",
    cls=GroupedCommand,
    example="tmconvert run model.tflite -i cat.png --std 1 -o y.npz",
    further=("inputs", "output"),
)
@model_argument
@declared_options("run")
def command(model: str, inputs: tuple[str, ...], output: str | None, json: bool, **given: Any) -> None:
    """Run MODEL on arrays, an image or random values, and write its outputs to OUT.npz, or print them.

    ONNX and TFLite files and prototxts run in their runtimes; layout and quantization are taken care of.
    Source models run by the reference kernels. Arrays in OUT.npz have the names of the outputs in written
    files, and of the watched tensors.
    """
    tracing, keywords = tracing_of("run", given)
    from tmconvert import api
    from tmconvert.output.atomic import check_writable
    from tmconvert.targets.recognize import written_target

    if output == STREAM and json:
        raise click.UsageError("--json writes to stdout, as -o - does")
    if output is not None and output != STREAM:
        check_kind(Path(output))
        for path in (model, *inputs):
            keep_model(path, Path(output))
        check_writable(output)
    options: dict[str, Any] = {name: keywords[name] for name in ("watch", "mean", "std") if name in keywords}
    with logging_to_stderr(False), progress(f"running {model}"):
        is_file = written_target(model) is not None and tracing.keys() <= {"signature"}
        options |= tracing if is_file else {}
        source: Any = model if is_file else api.load(model, **tracing)
        values = api.run(source, _arrays_of_stdin() if inputs == (STREAM,) else inputs_of(inputs), **options)
    is_scaled = "mean" in keywords or "std" in keywords
    if not is_scaled and _has_unscaled_image(source, inputs, options.get("signature", "")):
        write_message("pixels from 0 to 255; with --mean or --std: (pixel / 255 - mean) / std")
    if output == STREAM:
        write_to_stdout(values)
    elif output is not None:
        write_file(values, Path(output))
    if json:
        arrays = described(values, with_values=output is None)
        write_json({"model": model, "path": output, "arrays": arrays})
        return
    for name, array in values.items():
        line = f"{name}  {array.dtype.name}[{','.join(map(str, array.shape))}]"
        shown = [] if output is not None else _values(array)
        (write_message if output == STREAM else write)(line, *shown)


def _values(array: np.ndarray) -> list[str]:
    """Returns the values of an array as NumPy prints them, and the largest of a row of scores."""
    import numpy as np

    lines = np.array2string(array, precision=4, suppress_small=True, threshold=MOST_VALUES).split("\n")
    is_row = array.ndim > 0 and array.size == array.shape[-1] > 1 and array.dtype.kind in "iuf"
    best = [f"largest: {array.reshape(-1).max():.4g} at index {array.argmax()}"] if is_row else []
    return [f"  {line}" for line in (*lines, *best)]


def _has_unscaled_image(source: Any, inputs: tuple[str, ...], signature: str) -> bool:
    """Whether an image was passed to a model that need not take pixels as they are."""
    from tmconvert.calibration.images import IMAGES
    from tmconvert.inspection.given_inputs import takes_pixels
    from tmconvert.inspection.run_file import FileRunner
    from tmconvert.inspection.run_source import inputs_of

    if not any(Path(each).suffix.lower() in IMAGES for each in inputs):
        return False
    is_file = isinstance(source, str)
    infos = FileRunner(Path(source), signature=signature).inputs if is_file else inputs_of(source)
    return not takes_pixels(infos)


def _arrays_of_stdin() -> list[np.ndarray] | dict[str, np.ndarray]:
    """Reads an .npz archive; arrays without names, arr_0 and so on, are in the order of the inputs."""
    import io

    import numpy as np

    from tmconvert.errors import UsageError
    from tmconvert.frontends.shared.array_files import UNREADABLE, array_of

    try:
        with np.load(io.BytesIO(sys.stdin.buffer.read()), allow_pickle=False) as archive:
            found = {name: array_of(archive, name) for name in archive.files}
    except (*UNREADABLE, AttributeError) as error:
        raise UsageError("TM6011", f"stdin is not an .npz archive: {error}") from error
    is_unnamed = all(name == f"arr_{number}" for number, name in enumerate(found))
    return list(found.values()) if is_unnamed else found
