"""Classes of the graph that a higher layer extends for users."""

from __future__ import annotations

from typing import Any, TypeVar

Made = TypeVar("Made", bound="Extensible")
_extensions: dict[type, type] = {}


class Extensible:
    """A class whose instances are those of its extension, once that is imported.

    Frontends, passes and readers construct the classes of ``tmconvert.ir``, and need nothing else. The
    classes of ``tmconvert.surgery`` extend them with what users search and edit models with; from their
    import on, the same constructors make models of these. An extension adds methods only, no fields.

    >>> class TensorNode(Node, ir.TensorNode, extends=ir.TensorNode): ...  # doctest: +SKIP
    """

    __slots__ = ()

    def __new__(cls: type[Made], *args: Any, **kwargs: Any) -> Made:
        made: Made = object.__new__(extension_of(cls))
        return made

    def __init_subclass__(cls, *, extends: type[Extensible] | None = None) -> None:
        super().__init_subclass__()
        if extends is not None:
            _extensions[extends] = cls


def extension_of(cls: type[Made]) -> type[Made]:
    """Returns the class of new instances: the extension of a class, or the class itself."""
    return _extensions.get(cls, cls)
