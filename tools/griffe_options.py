"""Extension of griffe (mkdocs.yml): functions of ``**options`` are shown with all options, as by ``help``."""

from __future__ import annotations

import importlib
import inspect
import sys
from pathlib import Path
from typing import Any

import griffe

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))


class ExpandOptions(griffe.Extension):  # type: ignore[misc]
    """Replaces the parameters and the docstring in the source by those that the function has."""

    def on_function_instance(self, *, func: griffe.Function, **_: Any) -> None:
        if func.docstring is None or not any("expand_options" in str(each.value) for each in func.decorators):
            return
        function = getattr(importlib.import_module(func.module.path), func.name)
        func.docstring.value = function.__doc__
        func.parameters = griffe.Parameters(
            *(
                griffe.Parameter(
                    each.name,
                    annotation=each.annotation,
                    kind=griffe.ParameterKind(each.kind.description),
                    default=None if each.default is each.empty else repr(each.default),
                )
                for each in inspect.signature(function).parameters.values()
            )
        )
