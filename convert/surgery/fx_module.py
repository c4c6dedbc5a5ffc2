"""The names of ``torch.fx.GraphModule``; ``docs/from-torch-fx.md`` compares all names."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from tmconvert.errors import UsageError
from tmconvert.ir import ModuleNode
from tmconvert.surgery.module_access import ModuleAccess

if TYPE_CHECKING:
    from tmconvert.surgery.module import TracedModule


class FxModule(ModuleAccess):
    """Names of ``torch.fx.GraphModule``."""

    def recompile(self) -> None:
        """Checks the graphs of all modules. Edits take effect at once, so no code has to be generated.

        Raises GraphError, see ``InternalGraph.lint``.
        """
        for _, module in self.modules():
            for graph in module.graphs.values():
                graph.lint()

    def eval(self) -> TracedModule:
        """Returns the model, which always computes as in evaluation."""
        return cast("TracedModule", self)

    def train(self, mode: bool = True) -> TracedModule:
        """Returns the model for evaluation mode; ``to_torch()`` makes a module that trains.

        Args:
            mode: False for evaluation mode.

        Raises:
            UsageError: TM6061 for training mode.

        Example:
            >>> net = tm.to_torch().train()  # doctest: +SKIP
        """
        if mode:
            raise UsageError(
                "TM6061",
                f"{self!r} computes as in evaluation, and cannot be set to training",
                notes=[("help", "train tm.to_torch(), and trace it again")],
            )
        return cast("TracedModule", self)

    def print_readable(self, print_output: bool = True) -> str:
        """Prints the model as a ``torch.nn.Module``, and returns the text.

        Args:
            print_output: False only returns the text.

        Raises:
            UnsupportedError: Calls that PyTorch lacks.

        Example:
            >>> text = tm.print_readable(print_output=False)  # doctest: +SKIP
        """
        code = cast("TracedModule", self).code
        if print_output:
            print(code)
        return code

    def add_submodule(self, path: str, module: TracedModule) -> bool:
        """Adds a module at a path; returns False if its parent module does not exist.

        Args:
            path: The dotted path.
            module: The module.
        """
        holder, _, name = path.rpartition(".")
        try:
            owner = self.get(holder) if holder else self
        except KeyError:
            return False
        owner.add_module(name, module)
        return True

    def delete_submodule(self, path: str) -> bool:
        """Removes the submodule at a path; returns False where there is none, or a graph uses it.

        Args:
            path: The dotted path.
        """
        holder, _, name = path.rpartition(".")
        try:
            owner, module = self.get(holder) if holder else self, self.get(path)
        except KeyError:
            return False
        child = owner.children.get(name)
        if child is None or module is not child or _used(self) & {id(each) for _, each in child.modules()}:
            return False
        del owner.children[name]
        return True

    def delete_all_unused_submodules(self) -> None:
        """Removes the submodules that no graph of the model uses, in whole or in part."""
        used = _used(self)
        for _, module in list(self.modules()):
            for name, child in list(module.children.items()):
                if not used & {id(each) for _, each in child.modules()}:
                    del module.children[name]


def _used(top: FxModule) -> set[int]:
    """Returns the ids of the modules that graphs of the model read, and of those inside of builtin ones."""
    nodes = [] if top.graph is None else top.graph.nodes(recursive=True).as_list()
    owners = [node.owner for node in nodes if isinstance(node, ModuleNode) and node.owner is not None]
    inside = [each for owner in owners if not owner.graphs for _, each in owner.modules()]
    return {id(each) for each in (top, *owners, *inside)}
