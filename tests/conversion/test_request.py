"""A request is made from keywords, or from what a written file records, with the same options."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

import tmconvert
from tmconvert.conversion.options.commands import conversion_options
from tmconvert.conversion.request import ConversionRequest, io_overrides_of, stored_options
from tmconvert.errors import UsageError
from tmconvert.targets.option import Option
from tmconvert.targets.registry import target_named

DATA = Path(__file__).parent.parent / "data"


def request(target: str, *paths: str, **arguments: Any) -> ConversionRequest:
    return ConversionRequest.of(target, DATA / "op_s_conv_bn_relu.tm", paths or ("o",), arguments)


def test_a_request_is_frozen() -> None:
    made = request("onnx")
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.verify = False  # type: ignore[misc]


def test_paths() -> None:
    assert request("onnx", "o.onnx").paths == (Path("o.onnx"),)
    assert request("caffe", "o.prototxt").paths == (Path("o.prototxt"), Path("o.caffemodel"))
    assert request("caffe", "o.prototxt", "w.caffemodel").paths == (Path("o.prototxt"), Path("w.caffemodel"))


ENCODINGS: list[tuple[str, dict[str, Any]]] = [
    ("onnx", {"quantized": True}),
    ("onnx", {"quantized": True, "activations": "int8", "weight_type": "uint8", "opset": 13}),
    ("onnx", {"quantized": True, "reduce_range": True}),
    ("onnx", {"fake_quant_weights": True, "opset": 12}),
    ("tflite", {"quantized": True, "io_layout": "source"}),
    ("tflite", {"quantized": True, "activations": "int16", "io_type": "float32", "allow_float": True}),
    ("tflite", {"quantized": True, "io_type": "uint8", "wide_weights": True, "keep_int64": True}),
    ("tflite", {"weights": "int8", "runtime": "2.12", "io_layout": {"x": "source"}}),
    ("tflite", {"fake_quant_weights": True}),
    ("caffe", {"fake_quant_weights": True, "dialect": "nnie"}),
]


@pytest.mark.parametrize(("target", "arguments"), ENCODINGS)
def test_options_are_read_back_from_what_a_file_records(target: str, arguments: dict[str, Any]) -> None:
    options, known = request(target, **arguments).options, target_named(target)
    stored = {target: known.version_name(options.version), **options.recorded()}
    assert stored_options(known, stored) == options


@pytest.mark.parametrize(
    "stored", [{}, {"integers": None}, {"onnx": 17, "io_layout": "source"}, {"integers": 3}]
)
def test_a_plain_float_file_has_no_options_to_convert_again_with(stored: dict[str, Any]) -> None:
    assert stored_options(target_named("onnx"), stored) is None


def test_what_a_file_of_another_version_records() -> None:
    with pytest.raises(UsageError, match="activations is 'int4'"):
        stored_options(target_named("onnx"), {"onnx": 17, "integers": {"activations": "int4"}})


@pytest.mark.parametrize("target", ["onnx", "tflite"])
def test_declared_defaults_are_those_that_apply(target: str) -> None:
    integers = request(target, quantized=True).options.integers
    assert integers is not None
    declared = {option.name: option.default_text for option in conversion_options(target)}
    assert integers.activations == declared["activations"]


def needing(target: str) -> list[Option]:
    return [each for each in conversion_options(target) if each.needs and each.is_keyword]


@pytest.mark.parametrize(
    ("target", "option"),
    [(target, option) for target in ("onnx", "tflite", "caffe") for option in needing(target)],
    ids=lambda value: getattr(value, "name", value),
)
def test_options_need_others(target: str, option: Option) -> None:
    value = True if option.kind == "switch" else (option.choices or ("aimet",))[0]
    with pytest.raises(UsageError, match=f"{option.name} is .*, but applies only with {option.needs}"):
        request(target, **{option.name: value})


def value_for(target: str, name: str) -> object:
    """A value that an option takes."""
    option = next(each for each in conversion_options(target) if each.name == name)
    return option.choices[0] if option.choices else True


@pytest.mark.parametrize("target", ["onnx", "tflite", "caffe"])
def test_choices_are_checked(target: str) -> None:
    for option in conversion_options(target):
        if option.choices and option.is_keyword:
            needed = {option.needs: value_for(target, option.needs)} if option.needs else {}
            with pytest.raises(UsageError) as caught:
                request(target, **needed, **{option.name: "no such value"})
            assert "no such value" in str(caught.value)
            assert all(choice in str(caught.value) for choice in option.choices[:1])


def test_the_request_of_a_written_file(tmp_path: Path) -> None:
    model = DATA / "op_s_conv_bn_relu.tm"
    tmconvert.to_tflite(model, tmp_path / "m.tflite", weights="float16", rename={"x": "image"}, verify=False)
    made = ConversionRequest.of_file(
        model, tmp_path / "m.tflite", None, io_overrides_of(None, None, None), None
    )
    assert (made.target.name, made.options.weights) == ("tflite", "float16")
    assert made.overrides.rename == {"x": "image"}
