"""The public function that draws models, available as ``tmconvert.view``."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from tmconvert.conversion.options.arguments import entry_point
from tmconvert.conversion.options.declared import expand_options
from tmconvert.conversion.options.tracing import SourceOptions
from tmconvert.conversion.output_paths import check_names, keep_model
from tmconvert.conversion.prepared_model import model_of
from tmconvert.conversion.request import Model, tracing_of
from tmconvert.errors import UsageError
from tmconvert.ir import TracedModule
from tmconvert.output.atomic import check_writable

SUFFIXES = (".html", ".htm")
PICTURES = (".svg", ".png", ".jpg", ".jpeg", ".gif", ".pdf", ".webp")

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tmconvert.viewer.html_page import HtmlPage


@entry_point
@expand_options(SourceOptions)
def view(
    model: Model,
    path: str | PathLike[str] | None = None,
    *,
    source: Model | None = None,
    reports: Sequence[str | PathLike[str]] = (),
    **options: Unpack[SourceOptions],
) -> HtmlPage:
    """Draws a model as one HTML page, which loads nothing from a network. The same model gives the same page.

    Args:
        model: A model, or an ONNX or TFLite file or a prototxt, which is drawn as it is stored.
        path: A file to write the page to.
        source: The model that such a file was converted from, to be drawn next to it.
        reports: JSON files of ``Report.write_layers`` or of ``tmconvert compare --json``, at most two, whose
            noise colours the layers.

    Returns:
        The page; a notebook shows it.

    Raises:
        LoadError: A model or report cannot be read.
        UsageError: Arguments are invalid.
        WriteError: The page cannot be written.

    Example:
        >>> tmconvert.view("model.tflite", "model.html", source="model.tm")  # doctest: +SKIP
    """
    from tmconvert.targets.recognize import written_target
    from tmconvert.viewer.html_page import HtmlPage
    from tmconvert.viewer.reports import read_reports
    from tmconvert.viewer.view import view_text

    if path is not None:
        _check_name(Path(path))
        keep_model(model, Path(path))
        check_writable(path)
    tracing = tracing_of(options)
    read = read_reports(reports)
    file = Path(model) if isinstance(model, str | PathLike) else None
    written = file if written_target(file) is not None else None
    if written is None:
        source = model
    module = None if source is None else model_of(source, tracing)[0]
    page = HtmlPage(view_text(module, written, read, "" if file is None else file.name, _name(source)))
    if path is not None:
        page.save(path)
    return page


def _check_name(path: Path) -> None:
    """Raises UsageError TM6002 for a name that is not that of a page, such as that of a picture."""
    check_names("pages", SUFFIXES, [path])
    if path.suffix.lower() in PICTURES:
        raise UsageError(
            "TM6002",
            f"{path} has the suffix {path.suffix}; that of pages is .html",
            notes=[
                ("help", f"use {path.with_suffix('.html').name}; the SVG button of the page saves a picture")
            ],
        )


def _name(source: Model | None) -> str:
    """Returns what to call a source: the name of its file, or its own."""
    if isinstance(source, str | PathLike):
        return Path(source).name
    return source.name or source.class_name if isinstance(source, TracedModule) else type(source).__name__
