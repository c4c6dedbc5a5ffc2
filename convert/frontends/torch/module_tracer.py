"""The class ``tmconvert.Tracer``. This module does not need torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tmconvert.errors import UsageError
from tmconvert.errors.values import type_and_value
from tmconvert.frontends.torch.customization import check_leaf, is_builtin
from tmconvert.frontends.torch.entry import trace_object
from tmconvert.frontends.torch.request import DynamicShapes, Tracing
from tmconvert.ir import TracedModule


class Tracer:
    """Traces PyTorch modules; subclasses override ``is_leaf_module`` to select modules that are recorded as
    one call.

    Args:
        leaf_modules: Classes, modules, or paths of modules that are not traced through.

    Raises:
        UsageError: TM6009 for another ``leaf_modules``.

    Example:
        >>> class NoAttention(tmconvert.Tracer):
        ...     def is_leaf_module(self, m, qualname):
        ...         return qualname.endswith(".attention") or super().is_leaf_module(m, qualname)
        >>> NoAttention().trace(module, x)  # doctest: +SKIP
    """

    def __init__(self, leaf_modules: Sequence[object] = ()) -> None:
        if isinstance(leaf_modules, str) or not isinstance(leaf_modules, Sequence):
            wanted = "a list of classes, modules or paths"
            raise UsageError("TM6009", f"leaf_modules must be {wanted}, got {type_and_value(leaf_modules)}")
        for leaf in leaf_modules:
            check_leaf(leaf)
        self.leaf_modules = tuple(leaf_modules)

    def is_leaf_module(self, m: object, qualname: str) -> bool:
        """Returns whether a call of a module is recorded as one call.

        Args:
            m: The module.
            qualname: Its dotted path in the traced module.
        """
        return is_builtin(m, qualname) or any(
            qualname == leaf if isinstance(leaf, str) else type(m) is leaf or m is leaf
            for leaf in self.leaf_modules
        )

    def trace(
        self,
        root: object,
        *example_inputs: object,
        dynamic_shapes: DynamicShapes | None = None,
        fix: Mapping[str, int] | None = None,
        freeze_control_flow: bool = False,
        training: bool = False,
        state: Sequence[str] | None = None,
        noise: str | None = None,
        roll_loops: bool = False,
        **example_kwargs: object,
    ) -> TracedModule:
        """Traces a module; see ``tmconvert.trace``.

        Args:
            root: The module.
            *example_inputs: The inputs to run it with.
            dynamic_shapes: Sizes to leave open, such as ``{"x": {0: "batch"}}``.
            fix: Numbers of dynamic sizes by name.
            freeze_control_flow: Record the branches that the example takes.
            training: Keep the mode of modules in training mode.
            state: Names of tensors that become inputs and outputs.
            noise: ``"input"`` makes random tensors inputs.
            roll_loops: Make loops of the equal rounds of Python loops.
            **example_kwargs: Inputs by the names of the arguments of ``forward``.

        Returns:
            The traced model.

        Raises:
            TmconvertError: What ``tmconvert.trace`` raises.
        """
        given = (example_inputs, example_kwargs, dynamic_shapes, freeze_control_flow, False, training)
        tracing = Tracing.of(*given, fix=fix, state=state, noise=noise, roll_loops=roll_loops)
        model = trace_object(root, tracing._replace(is_leaf=self.is_leaf_module))
        model.name_modules()
        return model
