"""Target options of a conversion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from tmconvert.errors import UsageError

OLDEST_OPSET = 7
DEFAULT_OPSET = 17
AUTO = "auto"  # the lowest opset, from the default on, that can express the model
# Minor number N of the newest TFLite runtime 2.N whose operators we know. The count is TensorFlow's, with
# which LiteRT goes on: its 1.0 has the operators of 2.18, its 2.2 those of 2.23.
TFLITE_RUNTIME = 23
# The N of the default: two years old; all packages of TensorFlow and LiteRT since then run it. What it lacks
# is lowered to other operators (targets/tflite/data/element_types.txt has what each release runs).
DEFAULT_TFLITE_RUNTIME = 18
DEFAULT_SIGNATURE = "serving_default"  # of TFLite files

# the layout of inputs and outputs; the types of integer activations, of inputs and outputs, and of weights
IoLayout = Literal["source", "nhwc"]
IntegerType = Literal["int8", "uint8", "int16", "uint16"]
IoType = IntegerType | Literal["float32"]
WeightType = Literal["int8", "uint8"]
# the type of floats in the file; "source" keeps those of the source
FloatType = Literal["source", "float32", "float16", "bfloat16"]


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Raises UsageError TM6002 for a value of an option that is not among the choices."""
    if value not in choices:
        raise UsageError("TM6002", f"{name} is {value!r}", notes=[("help", f"use {' or '.join(choices)}")])


class Integers(NamedTuple):
    """Options of integer files.

    ``activations`` is "int8" or "int16" for TFLite, "uint8", "int8", "uint16" or "int16" for ONNX;
    ``io_type`` that of inputs and outputs: "int8", "uint8", "int16" or "float32". ``allow_float`` keeps
    quantized operators without an integer kernel in float. ``wide_weights`` keeps weights of -128, which
    TFLite does not allow. ``weight_type`` is "uint8" or "int8" for ONNX; "uint8" is for weights whose int8
    sums would saturate on some processors. ``reduce_range`` quantizes weights to seven bits.
    """

    activations: IntegerType = "int8"
    io_type: IoType = "int8"
    allow_float: bool = False
    wide_weights: bool = False
    weight_type: WeightType = "int8"
    reduce_range: bool = False

    @property
    def narrows_weights(self) -> bool:
        """Whether weights of -128 may overflow in kernels that accumulate products in 16 bits."""
        return self.activations == "int8" and not self.wide_weights


class Parameters(NamedTuple):
    """Options for the quantization parameters of a model that is written in float.

    ``path`` is a file for the parameters in the format called ``format``; ``bakes_weights`` rounds the
    weights to their QParams.
    """

    path: Path | None
    format: str
    bakes_weights: bool = False


class TargetOptions(NamedTuple):
    """The target, its version, and the layout of inputs and outputs.

    ``version`` is the ONNX opset, the minor number N of the TFLite runtime 2.N, or the number of the Caffe
    dialect. ``io_layout`` is "nhwc" (rank-4 inputs and outputs of models with spatial ops channels-last) or
    "source"; only TFLite has the choice. ``io_layouts`` are the layouts of single inputs and outputs, as
    pairs of name and layout. ``integers`` requests a quantized model. ``keep_int64`` keeps int64 tensors in
    TFLite. ``parameters`` requests the quantization parameters in a separate file. ``weights`` stores large
    weights as "float16", "int8", "int4" or, in TFLite, "int2", with ``weight_scales`` "max", "mse" or
    "asymmetric" (``convert/lowering/block_scales.py``). ``float_type`` is the type of floats in the file,
    None the target's default; ``float_io`` keeps inputs and outputs in float32. ``rules`` are patterns of
    modules and tensors with the type of their weights, or in which they compute; the last match applies.
    ``integer_weights`` is how ONNX files store weights that are integers with scales: "DequantizeLinear",
    "MatMulNBits", or "float32". ``external_data`` stores the weights of ONNX files in a
    second file; ``value_info`` stores the types of intermediate results. ``takes_lowest`` takes the lowest
    version, from ``version`` on, that can express the model. ``own`` are the options that the target itself
    declares, by name. ``allow_random`` accepts operators that draw random numbers, with the ``seed`` if it is
    not None. ``profile`` is the name of a profile, or the path of a file with one, whose forms are written.
    """

    target: str
    version: int
    io_layout: IoLayout = "source"
    io_layouts: tuple[tuple[str, IoLayout], ...] = ()
    integers: Integers | None = None
    keep_int64: bool = False
    parameters: Parameters | None = None
    weights: Literal["float16", "int8", "int4", "int2"] | None = None
    weight_scales: Literal["max", "mse", "asymmetric"] = "max"
    rules: tuple[tuple[str, str], ...] = ()
    float_type: FloatType | None = None
    float_io: bool = False
    integer_weights: str = "float32"
    external_data: bool = False
    value_info: bool = True
    takes_lowest: bool = False
    own: Mapping[str, Any] = MappingProxyType({})
    allow_random: bool = False
    seed: int | None = None
    profile: str = ""

    @property
    def is_plain_float(self) -> bool:
        """Whether the file has inputs, outputs and weights of the source, in types that runtimes run."""
        has_weights = self.integers is None and self.weights is None and not self.bakes_weights
        has_edges = not self.float_io and "state_as" not in self.own
        return has_weights and self.float_type != "bfloat16" and has_edges

    @property
    def keeps_qparams(self) -> bool:
        """Whether each tensor with its own quantization parameters must exist in the file."""
        return self.integers is not None or bool(self.extra_files)

    @property
    def keeps_ranges(self) -> bool:
        """Whether a float file has the ranges of quantized tensors as clamps, which parameters have."""
        return self.integers is None and self.parameters is None

    @property
    def extra_files(self) -> tuple[Path, ...]:
        """Returns the additional files besides the model."""
        return () if self.parameters is None or self.parameters.path is None else (self.parameters.path,)

    @property
    def bakes_weights(self) -> bool:
        return self.parameters is not None and self.parameters.bakes_weights

    def recorded(self) -> dict[str, object]:
        """The options as the file's metadata names them; layouts by name where some inputs have their own.

        ``*`` stands for the other inputs and outputs.
        """
        named = {"*": self.io_layout, **dict(self.io_layouts)} if self.io_layouts else self.io_layout
        return {
            "io_layout": named,
            "keep_int64": self.keep_int64,
            "integers": None if self.integers is None else self.integers._asdict(),
            "fake_quant_weights": self.bakes_weights,
            "unclamped": self.parameters is not None,
            "external_data": self.external_data,
            "no_value_info": not self.value_info,
            "weights": self.weights,
            "weight_scales": None if self.weight_scales == "max" else self.weight_scales,
            "rules": dict(self.rules),
            "float_type": self.float_type,
            "io_type": "float32" if self.float_io else None,
            "integer_weights": None if self.integer_weights == "float32" else self.integer_weights,
            "profile": self.profile or None,
            **self.own,
            **({"allow_random": True, "seed": self.seed} if self.allow_random else {}),
        }
