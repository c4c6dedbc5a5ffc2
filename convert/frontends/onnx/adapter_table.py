"""Tables of adapters by operator and by the opset from which they are valid."""

from __future__ import annotations

from collections.abc import Callable

from tmconvert.errors import InternalError
from tmconvert.frontends.shared.adapter_table import Adapter


class OperatorTable:
    """Adapters of ONNX operators.

    An adapter takes the emitter, the inputs by position (None for one that is omitted), and the attributes by
    name; the names are those of the operator's page. ``domain`` is prepended to the names passed to ``add``.
    """

    def __init__(self, domain: str = "onnx") -> None:
        self.domain = domain
        self.adapters: dict[str, dict[int, Adapter]] = {}

    def add(self, *names: str, since: int = 1) -> Callable[[Adapter], Adapter]:
        """Declares the decorated function as the adapter of operators, from an opset on."""

        def register(adapter: Adapter) -> Adapter:
            for name in names:
                versions = self.adapters.setdefault(f"{self.domain}.{name}", {})
                if since in versions:
                    raise InternalError("TM3005", f"two adapters for {self.domain}.{name} since {since}")
                versions[since] = adapter
            return adapter

        return register

    def lookup(self, name: str, opset: int) -> Adapter | None:
        """Returns the adapter of an operator at an opset, or None."""
        versions = self.adapters.get(name, {})
        since = max((each for each in versions if each <= opset), default=None)
        return None if since is None else versions[since]

    @classmethod
    def merged(cls, *tables: OperatorTable) -> OperatorTable:
        """Merges tables into one."""
        result = cls("")
        for table in tables:
            for name, versions in table.adapters.items():
                known = result.adapters.setdefault(name, {})
                if known.keys() & versions.keys():
                    raise InternalError("TM3005", f"two adapters for {name}")
                known.update(versions)
        return result
