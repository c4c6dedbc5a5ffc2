"""The classes of models as users have them, with the names of MegEngine and torch.fx.

Importing this package makes them the classes of all new models; see ``tmconvert.ir.extensible``.
"""

from tmconvert.surgery.exprs import CallFunction, CallMethod, Constant, Expr, GetAttr, Input
from tmconvert.surgery.graph import InternalGraph
from tmconvert.surgery.module import TracedModule
from tmconvert.surgery.nodes import ModuleNode, Node, TensorNode

__all__ = [
    "CallFunction", "CallMethod", "Constant", "Expr", "GetAttr", "Input", "InternalGraph", "ModuleNode",
    "Node", "TensorNode", "TracedModule",
]  # fmt: skip
