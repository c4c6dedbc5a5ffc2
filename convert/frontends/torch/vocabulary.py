"""PyTorch's vocabulary: maps calls to adapters. This module does not need torch."""

from __future__ import annotations

from functools import cache
from typing import Any

from tmconvert.errors import TmconvertError
from tmconvert.frontends.shared.vocabulary import Adapter, AdapterVocabulary
from tmconvert.frontends.torch.names import aten_name, functional
from tmconvert.ir import CallFunction, CallMethod, Expr, TensorNode, TracedModule
from tmconvert.ir.complex_values import Complex
from tmconvert.ir.emitter import Emitter
from tmconvert.ir.tree import leaves, map_leaves
from tmconvert.symbolics.registry import catalogue, custom_op


class TorchVocabulary(AdapterVocabulary):
    """Converts the calls of torch: functions, tensor methods and ATen ops.

    A name is looked up as recorded, then as the name of an ATen op, then in the catalogue; an in-place name
    (``add_``) has the adapter of the functional one.
    """

    identifier = "torch"
    framework = "PyTorch"

    def find(self, expr: Expr, args: tuple[object, ...]) -> tuple[str, Adapter | None]:
        assert isinstance(expr, (CallFunction, CallMethod))
        is_method = isinstance(expr, CallMethod)
        word = expr.method if isinstance(expr, CallMethod) else expr.function
        if any(isinstance(leaf, (Complex, complex)) for leaf in leaves(args)):
            return f"{self.name(expr)} of complex tensors", _complex_adapter(word, is_method)
        adapter = _adapter(word, is_method)
        if adapter is None and args and isinstance(args[0], TracedModule):
            from tmconvert.frontends.torch.adapters.module_leaves import leaf_adapter

            adapter = leaf_adapter(self.name(expr), function_adapter)
        return self.name(expr), adapter

    def converted(self, g: Emitter, expr: Expr, args: tuple[object, ...], kwargs: dict[str, object]) -> Any:
        if any(getattr(getattr(leaf, "dtype", None), "kind", "") == "c" for leaf in leaves((args, kwargs))):
            from tmconvert.frontends.torch.adapters.elementwise.complex import received

            args, kwargs = map_leaves(lambda leaf: received(g, leaf), (args, kwargs))
        return super().converted(g, expr, args, kwargs)

    def resolved(self, g: Emitter, expr: Expr, args: tuple[object, ...], result: object) -> Any:
        if not any(isinstance(node, TensorNode) and node.holds_integers for node in expr.outputs):
            return result
        from tmconvert.frontends.shared.recorded_qparams import with_recorded_qparams
        from tmconvert.ir.fake_quant import requantize_to_even

        return with_recorded_qparams(g, expr, args, result, requantize_to_even)

    def knows(self, name: str, is_method: bool) -> bool:
        """Whether there is an adapter for a function, or a method of tensors."""
        if custom_op(aten_name(name, is_method)) is not None:
            return True
        return bool(_adapter(name, is_method) or _complex_adapter(name, is_method))

    def op_name(self, expr: Expr) -> str:
        return aten_name(expr.function, False) if isinstance(expr, CallFunction) else self.name(expr)

    def advice(self, error: TmconvertError) -> str:
        if "bfloat16" in error.message:
            return (
                "runtimes have few kernels for bfloat16: convert module.float(), whose weights have the "
                "same values"
            )
        return super().advice(error)

    def help(self, name: str) -> str:
        if name.startswith("torch.ops.") and not name.startswith("torch.ops.aten"):
            own = aten_name(name, False)
            return (
                f"register a conversion, also in a --plugin file: @tmconvert.register_symbolic({own!r}); "
                "tmconvert.trace_through follows the Python body of a custom_op"
            )
        if name.startswith("torch.nn.modules."):
            return (
                f"leave it out of leaf_modules, so that its calls are recorded, or register its meaning with "
                f"tmconvert.register_symbolic({name!r})"
            )
        if "." in name and not name.startswith(("torch.", "Tensor.")):
            return f"register its meaning with tmconvert.register_symbolic({name!r}), or trace through it"
        return "write this part of the model with functions that `tmconvert ops` lists"


VOCABULARY = TorchVocabulary()


def function_adapter(name: str) -> Adapter | None:
    """Returns the adapter of a function by its qualified name."""
    return _adapter(name, False)


@cache
def _complex_adapter(name: str, is_method: bool) -> Adapter | None:
    """Returns the adapter of a call with complex arguments."""
    from tmconvert.frontends.torch.adapters import COMPLEX
    from tmconvert.frontends.torch.adapters.adapter_factories import called
    from tmconvert.frontends.torch.adapters.elementwise.complex import made_of_real

    own = aten_name(name, is_method)
    found = COMPLEX.get(own) or made_of_real(own, _adapter(name, is_method))
    if found is not None:
        return called(found)
    plain = functional(own)
    return None if plain is None else _complex_adapter(plain, True) or _complex_adapter(plain, False)


@cache
def _adapter(name: str, is_method: bool) -> Adapter | None:
    from tmconvert.frontends.torch.adapters import ATEN, FUNCTIONS, METHODS
    from tmconvert.frontends.torch.adapters.adapter_factories import called, generic, in_place

    own = aten_name(name, is_method)
    table = METHODS if is_method else FUNCTIONS
    adapter = table.get(name) or ATEN.get(own)
    if adapter is not None:
        return called(adapter)
    op = catalogue().get(own if "::" in own else f"aten::{own}")
    if op is not None and custom_op(op.name) is None:
        return generic(op)
    plain = functional(own)
    found = None if plain is None else _adapter(plain, True) or _adapter(plain, False)
    return None if found is None else in_place(found)
