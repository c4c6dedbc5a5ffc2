"""Each format of parameters: what it writes it reads back, and what it cannot say is refused by name."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tmconvert.errors import UsageError
from tmconvert.qparams.file import encoded, read_parameters
from tmconvert.qparams.formats import FORMATS, format_called
from tmconvert.qparams.formats.format import Format
from tmconvert.qparams.records import ACTIVATION, BIAS, UNKNOWN, WEIGHT, Record, integer_name

SCALES = st.floats(2.0**-20, 2.0**20, width=32)
NAMES = st.text("abcxyz019._/-", min_size=1, max_size=12)


def record(name: str, role: str, scales: tuple[float, ...], **options: object) -> Record:
    """Of int8 around 0, but for ``options``."""
    zeros = (0,) * len(scales)
    return replace(Record(name, role, "int8", scales, zeros, -128, 127, symmetric=True), **options)  # type: ignore[arg-type]


@st.composite
def grids(draw: st.DrawFn, name: str, role: str) -> Record:
    """A tensor as some source may quantize it."""
    count = draw(st.integers(1, 3)) if role != ACTIVATION else 1
    scales = tuple(draw(SCALES) for _ in range(count))
    if role == BIAS:
        low, high, symmetric = -(2**31), 2**31 - 1, True
    else:
        bits = draw(st.sampled_from([8, 8, 8, 4, 16]))
        low = draw(st.sampled_from([0, -(2 ** (bits - 1)), 1 - 2 ** (bits - 1)]))
        high = 2**bits - 1 if low == 0 else 2 ** (bits - 1) - 1
        symmetric = draw(st.booleans()) and low < 0
    zero = 0 if symmetric or role == BIAS else draw(st.integers(low, high))
    axis = 0 if count > 1 else None
    return Record(
        name,
        role,
        integer_name(low, high),
        scales,
        (zero,) * count,
        low,
        high,
        axis,
        symmetric,
        (count, 3, 3, 3),
    )


@st.composite
def networks(draw: st.DrawFn) -> list[Record]:
    """Records of a chain of layers."""
    names = draw(st.lists(NAMES, min_size=2, max_size=5, unique=True))
    found = [replace(draw(grids(names[0], ACTIVATION)), shape=(1, 3, 8, 8), consumers=(f"{names[1]}_layer",))]
    for number, name in enumerate(names[1:], start=1):
        layer = f"{name}_layer"
        after = (f"{names[number + 1]}_layer",) if number + 1 < len(names) else ()
        for role, suffix in ((WEIGHT, ":w"), (BIAS, ":b")):
            made = draw(grids(name + suffix, role))
            found.append(replace(made, consumers=(layer,), operator="Conv"))
        made = replace(draw(grids(name, ACTIVATION)), shape=(1, 3, 8, 8))
        found.append(replace(made, producer=layer, consumers=after, operator="Conv"))
    return found


def reals(each: Record) -> list[tuple[float, int, int]]:
    """Scales, and the range counted from 0."""
    pairs = zip(each.scales, each.zero_points, strict=True)
    return [(scale, each.quant_min - zero, each.quant_max - zero) for scale, zero in pairs]


def carried(records: list[Record], format: Format) -> list[Record]:
    """What of the records the format has a place for, and can say."""
    return [each for each in format.placed(records) if not format.problem(each)]


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
@given(records=networks())
@settings(max_examples=60, deadline=None)
def test_written_read_and_written_again(name: str, records: list[Record]) -> None:
    format = format_called(name)
    if format.by_layer:  # a layer that lacks one of the two is refused
        records = [each for each in records if not format.problem(each)]
        taken = {layer for each in records if each.role == ACTIVATION for layer in each.consumers}
        records = [each for each in records if each.role != WEIGHT or set(each.consumers) <= taken]
    kept = carried(records, format)
    data = encoded(kept, format)
    assert data == encoded(kept, format) and b"\r" not in data
    back = format.read(data.decode())
    assert encoded(back, format) == data
    if format.by_layer:
        return
    said = {each.name: each for each in back}
    assert set(said) == {each.name for each in kept}
    for each in kept:
        again = said[each.name]
        assert again.scales == each.scales
        assert again.role in (each.role, UNKNOWN)
        if again.dtype:  # a range without the lowest may be said as all of it
            assert [one[2] for one in reals(again)] == [one[2] for one in reals(each)]
            lows = [(one[1], other[1]) for one, other in zip(reals(again), reals(each), strict=True)]
            assert all(one == other or (each.is_narrow and one == other - 1) for one, other in lows)


@pytest.mark.parametrize("name", FORMATS)
@given(records=networks())
@settings(max_examples=20, deadline=None)
def test_a_format_knows_its_own(name: str, records: list[Record]) -> None:
    format = format_called(name)
    kept = [each for each in records if not format.problem(each)]
    taken = {layer for each in kept if each.role == ACTIVATION for layer in each.consumers}
    kept = format.placed([each for each in kept if each.role != WEIGHT or set(each.consumers) <= taken])
    if kept and (name != "ascend-caffe" or any(each.role == WEIGHT for each in kept)):
        text = encoded(kept, format).decode()
        if format.read(text):
            found = json.loads(text) if text.startswith("{") else {}
            assert [each.name for each in FORMATS.values() if each.recognises(text, found)] == [name]


# ---- what they look like

STEM = record(
    "stem out", ACTIVATION, (0.0183,), zero_points=(116,), dtype="uint8", quant_min=0, quant_max=255
)
PLAIN = record("x", ACTIVATION, (0.25,), consumers=("c1",), shape=(1, 3, 4, 5))
KERNEL = record("c1.w", WEIGHT, (0.5, 0.125), axis=0, consumers=("c1",), shape=(2, 3, 1, 1), operator="Conv")
RESULT = record("y", ACTIVATION, (2.0,), producer="c1", operator="Conv")
EXPECTED = {
    "tensorrt": "TRT-8601-EntropyCalibration2\nx: 3e800000\ny: 40000000\n",
    "tensorrt-ranges": "x: 31.75\ny: 254.0\n",
    "ncnn": "c1_param_0 2.0 8.0\nc1 4.0\n",
    "tpu-mlir": "###\n# op_name    threshold    min    max\nx 31.75 -32.0 31.75\ny 254.0 -256.0 254.0\n",
    "ascend": 'record {\n  key: "c1"\n  value {\n    scale_d: 0.25\n    offset_d: 0\n    scale_w: 0.5\n'
    "    scale_w: 0.125\n    offset_w: 0\n    offset_w: 0\n  }\n}\n",
}
DOCUMENTS = {
    "tensorrt-json": {"act_quant_info": {"x": 31.75, "y": 254.0}},
    "onnxruntime": {
        "x": [{"scale": 0.25, "zero_point": 128}],
        "c1.w": [{"axis": 0, "scale": 0.5, "zero_point": 0}, {"axis": 0, "scale": 0.125, "zero_point": 0}],
        "y": [{"scale": 2.0, "zero_point": 128}],
    },
    "mnn": {
        "shape": {"channels": 3, "height": 4, "width": 5},
        "y input_tensor_0": 0.25,
        "y output_tensor_0": 2.0,
    },
}


@pytest.mark.parametrize("name", [*EXPECTED, *DOCUMENTS])
def test_the_text(name: str) -> None:
    format = format_called(name)
    text = encoded(format.placed([PLAIN, KERNEL, RESULT]), format).decode()
    if name in EXPECTED:
        assert text == EXPECTED[name]
    else:
        assert json.loads(text) == DOCUMENTS[name]


def test_encodings_count_from_zero() -> None:
    (item,) = json.loads(encoded([STEM], format_called("aimet")))["activation_encodings"]["stem out"]
    assert (item["offset"], item["bitwidth"], item["is_symmetric"]) == (-116, 8, "True")
    (entry,) = json.loads(encoded([PLAIN], format_called("aimet-1.0")))["activation_encodings"]
    assert (entry["offset"], entry["is_sym"], entry["enc_type"]) == ([-128], True, "PER_TENSOR")
    narrow = record("w", WEIGHT, (0.5,), dtype="int8_narrow", quant_min=-127)
    (item,) = json.loads(encoded([narrow], format_called("aimet")))["param_encodings"]["w"]
    assert (item["offset"], item["min"], item["max"]) == (-128, -64.0, 63.5)


def test_encodings_in_the_words_of_onnx() -> None:
    text = json.loads(encoded([STEM, PLAIN, KERNEL], format_called("aimet-2.0")))
    assert text["version"] == "2.0.0"
    stem, plain, kernel = text["encodings"]
    assert stem == {
        "name": "stem out",
        "output_dtype": "uint8",
        "y_scale": STEM.scales[0],
        "y_zero_point": 116,
    }
    assert (plain["output_dtype"], plain["y_zero_point"]) == ("uint8", 128)
    assert kernel == {
        "axis": KERNEL.axis,
        "name": KERNEL.name,
        "output_dtype": "int8",
        "y_scale": list(KERNEL.scales),
    }


# ---- what they cannot say

SIXTEEN = record("wide", ACTIVATION, (0.5,), dtype="int16", quant_min=-32768, quant_max=32767)
REFUSED = [
    ("tensorrt", STEM, "its zero point 116 is not in the middle of 0 to 255"),
    ("tensorrt-json", SIXTEEN, "its range is -32768 to 32767, but the format implies 8 bits"),
    ("tensorrt", replace(PLAIN, name="two\nlines"), "its name breaks lines"),
    ("tpu-mlir", STEM, "its name contains spaces"),
    (
        "aimet",
        replace(PLAIN, scales=(0.5, 0.25), zero_points=(0, 0)),
        "it has 2 scales (per-channel)",
    ),
    ("aimet-2.0", replace(KERNEL, axis=None), "the axis of its channels is unknown"),
    ("aimet-2.0", replace(PLAIN, quant_min=0, dtype="uint7"), "it has 7 bits"),
    ("aimet-1.0", replace(PLAIN, quant_max=100), "its range -128 to 100 does not use all of 8 bits"),
    ("ppq", SIXTEEN, "it has 16 bits, but the maximum is 8"),
    ("onnxruntime", replace(KERNEL, axis=None), "the axis of its channels is unknown"),
    ("ncnn", replace(KERNEL, consumers=()), "the layers that use it are unknown"),
    (
        "ncnn",
        replace(KERNEL, scales=(0.5,), zero_points=(0,), shape=None),
        "its number of channels is unknown",
    ),
    (
        "ncnn",
        replace(KERNEL, consumers=("a b",)),
        "the name of its layer 'a b' contains spaces, or has more than 247 bytes",
    ),
    ("ascend", KERNEL, "the input of its layer c1 is not quantized"),
    ("ascend", replace(KERNEL, shape=(2, 3)), "it has 2 scales, but a fully connected layer must have one"),
    ("ascend", replace(PLAIN, scales=(1e-9,)), "its scale 1e-09 is not between 2**-23 and 2**23"),
    ("mgeconvert", replace(PLAIN, role=UNKNOWN), "its file does not state whether it is a weight"),
    ("mgeconvert", replace(PLAIN, scales=(0.0,)), "its scale is 0.0"),
]


@pytest.mark.parametrize(("name", "tensor", "reason"), REFUSED, ids=str)
def test_what_cannot_be_said_names_the_tensor(name: str, tensor: Record, reason: str) -> None:
    format = format_called(name)
    with pytest.raises(UsageError) as caught:
        encoded([tensor], format)
    assert caught.value.code == "TM6041"
    assert caught.value.message == f"{format.title}: this format cannot carry {tensor.name!r}: {reason}"


def test_groups_must_share_a_scale_in_ncnn() -> None:
    grouped = replace(KERNEL, scales=(0.5, 0.5, 0.25, 0.25), zero_points=(0,) * 4, shape=(4, 2, 1, 1))
    given = replace(PLAIN, shape=(1, 4, 8, 8))
    assert encoded([given, grouped], format_called("ncnn")) == b"c1_param_0 2.0 4.0\nc1 4.0\n"
    with pytest.raises(UsageError, match="it has 4 scales, but ncnn requires one for each of 2 groups"):
        encoded([given, replace(grouped, scales=(0.5, 0.25, 0.25, 0.25))], format_called("ncnn"))


# ---- files of others, and damaged ones


def test_minimal_encodings_of_other_exporters(tmp_path: Path) -> None:
    path = tmp_path / "q.json"
    encodings = {"x": [{"bitwidth": 8, "min": -1.0, "max": 4.1}]}
    path.write_text(json.dumps({"activation_encodings": encodings, "param_encodings": {}}))
    (found,), format = read_parameters(path)
    assert format.name == "aimet" and found.scales == ((4.1 - -1.0) / 255,) and found.zero_points == (50,)


def test_genuine_encodings_have_offsets_with_a_point(tmp_path: Path) -> None:
    path = tmp_path / "q.json"
    entry = {"bw": 8, "dtype": "INT", "enc_type": "PER_TENSOR", "is_sym": False, "name": "x"}
    activations = [{**entry, "offset": [-119.0], "scale": [0.5]}]
    path.write_text(json.dumps({"activation_encodings": activations, "param_encodings": []}))
    assert read_parameters(path)[0][0].zero_points == (119,)
    activations[0]["offset"] = [-119.5]
    path.write_text(json.dumps({"activation_encodings": activations, "param_encodings": []}))
    with pytest.raises(UsageError, match="must be an integer"):
        read_parameters(path)


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        ({"y_scale": 0.5}, "has no 'output_dtype'"),
        ({"output_dtype": "float8e4m3fn", "y_scale": 0.5}, "has the type float8e4m3fn: it is not quantized"),
        ({"output_dtype": "int4", "y_scale": [0.5], "block_size": 32}, "has block quantization"),
        ({"output_dtype": "int4", "per_block_int_scale": [1]}, "has block quantization"),
        ({"output_dtype": "int8", "y_scale": [[0.5]]}, "must be a number"),
        ({"output_dtype": "int8", "y_scale": [0.5, 1.0], "y_zero_point": [0, 0, 0]}, "2 scales and 3 zero"),
    ],
    ids=str,
)
def test_encodings_of_other_kinds(entry: dict[str, object], text: str, tmp_path: Path) -> None:
    path = tmp_path / "q.json"
    path.write_text(json.dumps({"version": "2.0.0", "encodings": [{"name": "w", **entry}]}))
    with pytest.raises(UsageError, match="TM6042") as raised:
        read_parameters(path)
    assert text in str(raised.value)


def test_a_genuine_cache_drops_leading_zeros(tmp_path: Path) -> None:
    path = tmp_path / "q.cache"
    path.write_text("TRT-7103-MinMaxCalibration\na: b: 3c010204\n(Unnamed Layer* 3) [Conv]_output: 0\n")
    first, second = read_parameters(path)[0]
    assert first.name == "a: b" and np.float32(first.scales[0]).view(np.uint32) == 0x3C010204
    assert second.name == "(Unnamed Layer* 3) [Conv]_output" and second.scales == (0.0,)


MGE = '{"x": {"dtype": "int8", "qmin": -128, "qmax": 127, "scale": %s, "zero_point": %s, "is_weight": false}}'
FLOAT_061 = '{"activation_encodings": {"x": [{"bitwidth": 16, "dtype": "float"}]}, "param_encodings": {}}'
FLOAT_100 = '{"activation_encodings": [], "param_encodings": [{"name": "x", "dtype": "FLOAT"}]}'
DAMAGED = [
    ("", None, "its content is not in any of the formats"),
    ("\x00\x01", None, "its content is not in any of the formats"),
    ("{" * 100000, "mgeconvert", "it is not valid JSON"),
    ("[" * 100000, "mgeconvert", "it is nested too deeply"),
    ("[1]", "mgeconvert", "the file must be an object"),
    ("{}", "mgeconvert", "it has no tensors"),
    (MGE % ("NaN", "0"), None, "NaN"),
    (MGE % ("1e999", "0"), None, "'scale' of 'x' is not finite"),
    (MGE % ("-1", "0"), None, "the scale of 'x' is -1.0"),
    (MGE % ("true", "0"), None, "'scale' of 'x' must be a number"),
    (MGE % ("0.5", "128"), None, "the zero point 128 of 'x' is not within -128 to 127"),
    (MGE % ("0.5", "[0, 0]"), None, "'x' has 1 scales and 2 zero points"),
    (MGE % ("0.5", "9" * 5000), "mgeconvert", "it is not valid JSON"),
    (MGE.replace('"qmin": -128, ', "") % ("1", "0"), None, "'x' has no 'qmin'"),
    ('{"x": {"is_weight": 1}, "x": {"is_weight": 1}}', "mgeconvert", "'x' is defined twice"),
    ("TRT-1-X\nx 3c010204\n", None, "line 2 must be 'name: value'"),
    ("TRT-1-X\nx: 3c01020z\n", None, "line 2: '3c01020z' is not a float32 in hexadecimal"),
    ("TRT-1-X\nx: 3c010204\nx: 3c010204\n", None, "'x' is defined twice"),
    ("TRT-1-X\nx: 7f800000\n", None, "the scale of 'x' is inf"),
    ("c_param_0 1.0 x\n", None, "line 1: the fields after 'c_param_0' must be numbers"),
    ("c_param_0 0\n", None, "line 1: 'c_param_0' needs positive numbers"),
    ('record { key: "c" value { scale_d: 1 } }', None, "'c' needs scale_d, offset_d, and as many offset_w"),
    ('record { key: "c"\n value {', None, "line 2: expected a field or '}', found 'the end of the file'"),
    ('record { key: "c" value { scale_d: x } }', None, "'scale_d' of value of record 1 must be a number"),
    ("record {" * 99, None, "line 1: messages are nested more than 64 deep"),
    ("record { key: '\\q' }", None, "'key' of record 1 must be a string"),
    ('record { key: "\\q" }', None, "line 1: the string has an invalid escape sequence"),
    ("# op_name threshold min max\nx 1 2\n", None, "line 2 must be 'name threshold min max'"),
    ("# op_name threshold min max\nx 1 2 2\n", None, "line 2: the range of 'x' is empty"),
    ('{"quant_info": {"x": {"quant_flag": false}}}', None, "'x' is not quantized"),
    (FLOAT_061, None, "has the type float"),
    (FLOAT_100, None, "has the type FLOAT"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "format", "reason"), DAMAGED, ids=range(len(DAMAGED)))
def test_damaged_files(text: str, format: str | None, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "q"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        read_parameters(path, format)
    assert caught.value.code == "TM6042" and str(caught.value.source) == str(path)
    assert reason in caught.value.message


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
@given(text=st.one_of(st.text(max_size=60), st.from_regex(r'[\[{"a:,0-9.\- \n}\]#_]{0,60}')))
@settings(max_examples=150, deadline=None)
def test_no_text_breaks_a_reader(name: str, text: str) -> None:
    format = format_called(name)
    try:
        records = format.read(text)
    except ValueError as error:
        assert type(error).__name__ == "Unreadable"
    else:
        assert all(isinstance(each, Record) for each in records)
    assert format.recognises(text, {}) in (True, False)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(b" " * ((32 << 20) + 1))
    (tmp_path / "long").write_bytes(b"a: 1\n" * 500_001)
    (tmp_path / "latin").write_bytes(b"\xff\xfe")
    reasons = {
        "none": "No such file",
        "big": "more than 32 MiB",
        "long": "500000 lines",
        "latin": "not valid UTF-8",
    }
    for name, reason in reasons.items():
        with pytest.raises(UsageError, match=reason) as caught:
            read_parameters(tmp_path / name)
        assert caught.value.code == "TM6042"


def test_there_is_no_such_format() -> None:
    with pytest.raises(UsageError, match="there is no format 'yaml' of quantization parameters"):
        format_called("yaml")
