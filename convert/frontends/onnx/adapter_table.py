"""Tables of adapters by operator and by the opset from which they are valid."""

from __future__ import annotations

from collections.abc import Callable

from tmconvert.errors import InternalError
from tmconvert.frontends.shared.adapter_table import Adapter


class OperatorTable(dict[str, dict[int, Adapter]]):
    """Adapters of ONNX operators, by name and by the opset from which they are valid.

    An adapter takes the emitter, the inputs by position (None for one that is omitted), and the attributes by
    name; the names are those of the operator's page. ``domain`` is prepended to the names passed to ``add``.
    """

    def __init__(self, domain: str = "onnx") -> None:
        super().__init__()
        self.domain = domain

    def add(self, *names: str, since: int = 1) -> Callable[[Adapter], Adapter]:
        """Declares the decorated function as the adapter of operators, from an opset on."""

        def register(adapter: Adapter) -> Adapter:
            for name in names:
                versions = self.setdefault(f"{self.domain}.{name}", {})
                if since in versions:
                    raise InternalError("TM3005", f"two adapters for {self.domain}.{name} since {since}")
                versions[since] = adapter
            return adapter

        return register
