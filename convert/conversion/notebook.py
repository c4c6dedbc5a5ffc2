"""Pages of models, graphs and reports of conversions, for notebooks."""

from __future__ import annotations

from tmconvert.conversion.report import Report
from tmconvert.errors import TmconvertError
from tmconvert.ir import InternalGraph, TracedModule
from tmconvert.viewer.html_page import framed
from tmconvert.viewer.view import view_text


def notebook_page(shown: object) -> str | None:
    """Returns a frame with the page of a model, a graph, or the file of a conversion.

    It is None where the object cannot be drawn; a notebook then prints it.
    """
    try:
        if isinstance(shown, TracedModule):
            return None if shown.graph is None else framed(view_text(shown, None, (), shown.name))
        if isinstance(shown, InternalGraph):
            return framed(view_text(shown, None, (), shown.name))
        if isinstance(shown, Report) and not shown.stopped and shown.paths[0].is_file():
            return framed(shown.page_text())
    except TmconvertError:
        return None
    return None
