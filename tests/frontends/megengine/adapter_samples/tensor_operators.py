"""Operators of Tensor that are functions of megengine.functional.elemwise."""

from .common import FLAGS, UNARY, WHOLE, call, rows
from .elemwise import COMPARED, DIVISIONS, MODULI, POWERS, SHIFTED, SHIFTS, TENSOR_POWERS, is_tensor

MODULUS = [each for each in DIVISIONS + MODULI if is_tensor(each.args[0])]
POWER = [each for each in POWERS + TENSOR_POWERS if is_tensor(each.args[0])]
SHIFT = [each for each in SHIFTED if is_tensor(each.args[0])]
ORDERED = [each for each in COMPARED if is_tensor(each.args[0])]
SHIFT_BY = [call(SHIFTS, 3), call(SHIFTS, WHOLE)]
LOGICAL = [call(FLAGS, FLAGS[::-1]), call(FLAGS, FLAGS[0])]

OPERATORS = {
    **rows(__file__, "OPERATORS", globals()),
    **dict.fromkeys(("__mod__", "__imod__"), MODULUS),
    **dict.fromkeys(("__lshift__", "__ilshift__", "__rshift__", "__irshift__"), SHIFT),
    **dict.fromkeys(("__rlshift__", "__rrshift__"), SHIFT_BY),
    **dict.fromkeys(("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"), ORDERED),
    **{f"__{prefix}{name}__": LOGICAL for prefix in ("", "i", "r") for name in ("and", "or", "xor")},
    **dict.fromkeys(("__round__", "__floor__", "__ceil__", "__pos__"), UNARY),
}

SAMPLES = {f"Tensor.{name}": calls for name, calls in OPERATORS.items()}
