"""The public function that draws models, available as ``tmconvert.view``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tmconvert.conversion.arguments import entry_point
from tmconvert.conversion.output_paths import check_names, keep_model
from tmconvert.conversion.prepared_model import model_of
from tmconvert.conversion.request import Model
from tmconvert.frontends.torch.request import DynamicShapes, Tracing
from tmconvert.ir import TracedModule
from tmconvert.ir.notebook import register_notebook_form
from tmconvert.output.atomic import check_writable

if TYPE_CHECKING:
    from tmconvert.viewer.html_page import HtmlPage


@entry_point
def view(
    model: Model,
    path: str | PathLike[str] | None = None,
    *,
    source: Model | None = None,
    reports: Sequence[str | PathLike[str]] = (),
    example_inputs: Any = None,
    example_kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: DynamicShapes | None = None,
    freeze_control_flow: bool = False,
    allow_code: bool = False,
) -> HtmlPage:
    """Draws a model as one HTML page, which loads nothing from a network, and writes it to ``path`` if given.

    ``model`` is a model, or an ONNX or TFLite file or a prototxt, which is drawn as it is stored; ``source``
    is the model that such a file was converted from, drawn next to it. ``reports`` are JSON files of
    ``Report.write_layers``, at most two, whose noise colours the layers. The page is returned; a notebook
    shows it. The other parameters are for models that are traced; see ``load``. The same model gives the same
    page. Raises LoadError, UsageError, WriteError.

    >>> tmconvert.view("model.tflite", "model.html", source="model.tm")  # doctest: +SKIP
    """
    from tmconvert.viewer.html_page import HtmlPage
    from tmconvert.viewer.reports import read_reports
    from tmconvert.viewer.view import view_text
    from tmconvert.viewer.written_file import is_written_file

    if path is not None:
        check_names("HTML", (".html", ".htm"), [Path(path)])
        keep_model(model, Path(path))
        check_writable(path)
    tracing = Tracing.of(example_inputs, example_kwargs, dynamic_shapes, freeze_control_flow, allow_code)
    read = read_reports(reports)
    is_path = isinstance(model, str | PathLike)
    written = Path(model) if is_path and is_written_file(Path(model)) else None
    if written is None:
        source = model
    module = None if source is None else model_of(source, tracing)[0]
    page = HtmlPage(view_text(module, written, read, Path(model).name if is_path else "", _name(source)))
    if path is not None:
        page.save(path)
    return page


def _name(source: Model | None) -> str:
    """Returns what to call a source: the name of its file, or its own."""
    if isinstance(source, str | PathLike):
        return Path(source).name
    return source.name or source.class_name if isinstance(source, TracedModule) else type(source).__name__


def _notebook_form(shown: object) -> str | None:
    """Returns the page of a model, graph or report for a notebook; None where it cannot be drawn."""
    from tmconvert.conversion.notebook import notebook_page  # which loads the readers of all files

    return notebook_page(shown)


register_notebook_form(_notebook_form)
