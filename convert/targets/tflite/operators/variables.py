"""Operators of variables, which last from run to run (``state_variables.py``)."""

from __future__ import annotations

from tmconvert.targets.tflite.operators.record import OperatorSpec

SPECS = (
    OperatorSpec("CALL_ONCE", releases="2.5", data=()),
    OperatorSpec("VAR_HANDLE", releases="2.6", data=()),
    OperatorSpec("READ_VARIABLE", releases="2.6", data=()),
    OperatorSpec("ASSIGN_VARIABLE", releases="2.6", data=(1,)),
)
