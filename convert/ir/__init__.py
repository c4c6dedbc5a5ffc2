"""The one representation of a model, from the frontends to the lowering."""

from .expr import CallFunction, CallMethod, Constant, Expr, GetAttr, Input
from .graph import InternalGraph
from .node import ModuleNode, Node, TensorNode
from .traced_module import TracedModule
from .types import QParams, TensorType

__all__ = [
    "CallFunction",
    "CallMethod",
    "Constant",
    "Expr",
    "GetAttr",
    "Input",
    "InternalGraph",
    "ModuleNode",
    "Node",
    "QParams",
    "TensorNode",
    "TensorType",
    "TracedModule",
]
