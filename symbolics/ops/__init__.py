"""The ops, one a file; ``OPS`` lists them all, in the order of the table that users see."""

from .batch_norm import batch_norm
from .binary import OPS as BINARY_OPS
from .conv2d import conv2d
from .linear import linear
from .relayout import relayout
from .relu6 import relu6
from .reshape import reshape
from .to import to
from .unary import OPS as UNARY_OPS
from .view import view

OPS = [conv2d, batch_norm, linear, *BINARY_OPS, *UNARY_OPS, relu6, reshape, to, view, relayout]
