"""The intermediate representation of a model, from the frontends to the lowering."""

from tmconvert.ir.expr import CallFunction, CallMethod, Constant, Expr, GetAttr, Input
from tmconvert.ir.graph import InternalGraph
from tmconvert.ir.node import ModuleNode, Node, TensorNode
from tmconvert.ir.traced_module import TracedModule
from tmconvert.ir.types import QParams, TensorType

__all__ = [
    "CallFunction", "CallMethod", "Constant", "Expr", "GetAttr", "Input", "InternalGraph", "ModuleNode",
    "Node", "QParams", "TensorNode", "TensorType", "TracedModule",
]  # fmt: skip
