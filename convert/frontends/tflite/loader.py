"""Builds a TracedModule from a TFLite file. Nothing in the file is ever executed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from tmconvert.errors.source import printable
from tmconvert.formats.mapped_file import blaming, map_file
from tmconvert.formats.tflite.faults import damaged
from tmconvert.formats.tflite.model_metadata import metadata_of
from tmconvert.formats.tflite.records import read_model
from tmconvert.frontends.frontend import LoadedModel, SourceFile
from tmconvert.frontends.tflite.graphs import GraphReader
from tmconvert.ir.ids import number


def load_tflite(path: str, signature: str = "", state: Sequence[str] = ()) -> LoadedModel:
    """Loads a TFLite model, or one signature of it, with the variables in ``state`` as inputs and outputs.

    Raises UsageError TM6014 for an unknown signature, LoadError TM1001 where the file cannot be read, TM1041
    for a file that is no valid model, TM1042 for parts that are not read.

    >>> load_tflite("model.tflite").module.graph  # doctest: +SKIP
    """
    data = map_file(path)
    with blaming(partial(damaged, path)):
        model = read_model(path, data, signature)
        reader = GraphReader(path, model, state)
        module = reader.module()
    module.source_file = path
    module.producer = printable(model.description[:200]) or "TFLite"
    module.metadata = metadata_of(path)
    number(module)
    main = model.subgraphs[model.main]
    inputs, outputs = ([main.label(each) for each in side] for side in (main.inputs, main.outputs))
    first = [main.tensors[each].shape[:1] for each in main.inputs]
    is_fixed = all(shape and shape[0] > 0 for shape in first)
    batches = {name: shape[0] for name, shape in zip(inputs, first, strict=True)} if is_fixed else {}
    files = [Path(path)], inputs, outputs, batches
    if not any(each.name.startswith("custom.") for each in main.operators):
        if reader.state_inputs:  # which LiteRT's interpreter of the file does not take
            return LoadedModel(module)
        return LoadedModel(module, SourceFile(*files))
    from tmconvert.frontends.tflite.source_file import DetectionFile, rows_of_detections

    source = DetectionFile(*files)
    source.rows = rows_of_detections(main)
    return LoadedModel(module, source)
