"""One wrong number in any layer is refused: by ``verify``, and by the conversion that would write it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
import onnx
import pytest

import tmconvert
from benchmarks import quantized_corpus
from tests.models import corpus
from tests.verification.tampering import Tampering, of_onnx, of_tflite, wrong_numbers
from tmconvert.errors import VerificationError
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value

schema = pytest.importorskip("ai_edge_litert.schema_py_generated")
MADE = quantized_corpus.MADE
SOURCES = {
    "small": corpus.model("qat_small_ema"),  # convolutions, of one channel each, a product of matrices
    "asymmetric": corpus.model("qat_small_asym_quint8"),
    "turned": MADE / "qat_turned.tm",
    "in part": corpus.model("qat_partial_float"),
    "a table of two": MADE / "qat_angles.tm",
    "four bits": MADE / "bits/all_4.tm",
    "sixteen bits": MADE / "bits/act_16.tm",
}
EACH = 5  # of as many, one: another one in each file


def options(target: str) -> dict[str, Any]:
    return {"quantized": True, "opset": 21} if target == "onnx" else {"quantized": True}


def written(name: str, target: str, path: Path) -> None:
    getattr(tmconvert, f"to_{target}")(SOURCES[name], path, **options(target))


def loaded(target: str, path: Path) -> tuple[Any, Iterator[Tampering]]:
    if target == "onnx":
        model: Any = onnx.load(path)
        return model, of_onnx(model)
    model = schema.ModelT.InitFromPackedBuf(path.read_bytes(), 0)
    return model, of_tflite(model)


def save(model: Any, target: str, path: Path) -> None:
    if target == "onnx":
        onnx.save(model, path)
        return
    builder = flatbuffers.Builder(1 << 16)
    builder.Finish(model.Pack(builder), b"TFL3")
    path.write_bytes(builder.Output())


@pytest.mark.slow
@pytest.mark.parametrize("target", ["tflite", "onnx"])
@pytest.mark.parametrize("name", SOURCES)
def test_a_file(name: str, target: str, tmp_path: Path) -> None:
    path = tmp_path / "m"
    written(name, target, path)
    model, tamperings = loaded(target, path)
    source, passed, count = tmconvert.load(SOURCES[name]), list[str](), 0
    for tampering in islice(tamperings, list(SOURCES).index(name) % EACH, None, EACH):
        tampering.apply()
        save(model, target, path)
        tampering.undo()
        count += 1
        try:
            tmconvert.verify(source, path)
        except VerificationError as error:
            assert error.code == "TM4001", tampering.what
        else:
            passed.append(tampering.what)
    assert not passed and count > 2
    save(model, target, path)
    assert tmconvert.verify(source, path)


# ---- what a conversion makes itself

Change = Callable[[], None]


def doubled(value: Value, at: int) -> Change:
    def change() -> None:
        assert value.quantization is not None
        scale = value.quantization.scale.copy()
        scale[at] *= 2
        value.quantization = value.quantization._replace(scale=scale)

    return change


def shifted(value: Value) -> Change:
    def change() -> None:
        assert value.quantization is not None
        zero = value.quantization.zero_point
        moved = np.zeros(len(value.quantization.scale), np.int64) if zero is None else zero.copy()
        moved[0] += 1
        value.quantization = value.quantization._replace(zero_point=moved)

    return change


def stored(value: Value, array: np.ndarray) -> Change:
    assert value.stored is not None
    dtype = value.stored.dtype

    def change() -> None:
        value.stored = array.astype(dtype)

    return change


def tensors(graph: TargetGraph) -> list[tuple[Value, Operator]]:
    found: dict[int, tuple[Value, Operator]] = {}
    for operator in graph.operators:
        for value in (*operator.inputs, *operator.outputs):
            if value is not None:
                found.setdefault(id(value), (value, operator))
    return list(found.values())


def changes_tflite(graph: TargetGraph) -> Iterator[tuple[str, Change]]:
    for value, operator in tensors(graph):
        if value.quantization is None:
            continue
        where = f"{operator.type} {value.name}"
        yield f"{where} scale", doubled(value, -1)
        yield f"{where} zero point", shifted(value)
        for what, array in wrong_numbers(value.stored) if value.stored is not None else ():
            yield f"{where} {what}", stored(value, array)


def changes_onnx(graph: TargetGraph) -> Iterator[tuple[str, Change]]:
    for value, operator in tensors(graph):
        if operator.type not in ("QuantizeLinear", "DequantizeLinear") or value.stored is None:
            continue
        role = operator.inputs.index(value)
        array = value.stored.copy()
        if role == 0:
            for what, other in wrong_numbers(array):
                yield f"{value.name} {what}", stored(value, other)
            continue
        if role == 1:
            array.reshape(-1)[-1] *= 2
        yield value.name, stored(value, array if role == 1 else array.astype(np.int64) + 1)


PLACES = {
    "tflite": ("tmconvert.targets.tflite.integer.stages.to_integers", changes_tflite),
    "onnx": ("tmconvert.targets.onnx.encodings.to_qdq", changes_onnx),
}


@pytest.mark.slow
@pytest.mark.parametrize("target", PLACES)
@pytest.mark.parametrize("name", SOURCES)
def test_a_conversion(name: str, target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The graph is wrong that is written, and that the file is the same as."""
    import importlib

    place, changes = PLACES[target]
    module, function = place.rsplit(".", 1)
    right = getattr(importlib.import_module(module), function)
    at = list(SOURCES).index(name) % EACH
    told, passed, count = list[str](), list[str](), at + 1

    def wrong(*arguments: Any, **keywords: Any) -> Any:
        nonlocal count
        made = right(*arguments, **keywords)
        all = list(changes(made.graph))
        count = len(all)
        told.append(all[at][0])
        all[at][1]()
        return made

    monkeypatch.setattr(place, wrong)
    while at < count:
        try:
            written(name, target, tmp_path / "m")
            passed.append(told[-1])
        except VerificationError as error:
            assert error.code == "TM4001", told[-1]
        at += EACH
    assert not passed and count > 10 and not list(tmp_path.iterdir())
