"""Recurrent layers and control flow."""

from __future__ import annotations

from tmconvert.targets.tflite.operators.record import OperatorSpec
from tmconvert.targets.tflite.operators.version_rules import (
    ASYMMETRIC,
    FLOAT_BY_INT8,
    HYBRID_LSTM,
    HYBRID_RNN,
    both,
    differs,
    is_type,
    pair,
)

SPECS = (
    OperatorSpec(
        "LSTM",
        releases="1.7 1.10 1.14 2.3",
        versions=(
            (2, differs("kernel_type", "FULL")),
            (5, pair("int16", "int8", at=2)),
            (4, both(HYBRID_LSTM, ASYMMETRIC)),
            (3, HYBRID_LSTM),
        ),
        states=(18, 19),
    ),
    OperatorSpec(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        releases="1.13.1 1.14 2.3 2.12",
        versions=(
            (5, pair("int16", "int8", at=2)),
            (4, differs("diagonal_recurrent_tensors", False)),
            (3, both(HYBRID_LSTM, ASYMMETRIC)),
            (2, HYBRID_LSTM),
        ),
        states=(18, 19),
    ),
    OperatorSpec(
        "BIDIRECTIONAL_SEQUENCE_LSTM", releases="1.14 1.14 1.14", versions=HYBRID_RNN, states=(35, 36, 37, 38)
    ),
    OperatorSpec("RNN", releases="1.5 1.14 2.3", versions=HYBRID_RNN, states=(4,)),
    OperatorSpec(
        "UNIDIRECTIONAL_SEQUENCE_RNN",
        options_name="SequenceRNNOptions",
        releases="1.14 1.14 2.3",
        versions=HYBRID_RNN,
        states=(4,),
    ),
    OperatorSpec("BIDIRECTIONAL_SEQUENCE_RNN", releases="1.14 1.14 2.3", versions=HYBRID_RNN, states=(4, 8)),
    OperatorSpec(
        "SVDF",
        releases="1.5 1.14 2.2 2.3",
        versions=((3, is_type("int8")), (4, both(FLOAT_BY_INT8, ASYMMETRIC)), (2, FLOAT_BY_INT8)),
        states=(4,),
    ),
    OperatorSpec("IF", releases="1.15"),
    OperatorSpec("WHILE", releases="1.15"),
)
