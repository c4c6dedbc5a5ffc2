"""The record of a conversion to integers, layer by layer: for the report as JSON, and for its page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tmconvert._version import __version__
from tmconvert.conversion.format_numbers import counted, size
from tmconvert.conversion.report_text import version_text
from tmconvert.conversion.suggested_rules import untried
from tmconvert.verification.verify import Verification

if TYPE_CHECKING:
    from tmconvert.conversion.report import Report


def layer_report(report: Report, verification: Verification) -> dict[str, Any]:
    """Returns the report of a conversion that was verified layer by layer, without infinite numbers."""
    return {
        "model": report.paths[0].name,
        "runtime": verification.runtime,
        "inputs": verification.inputs,
        "summary": [list(each) for each in _summary(report, verification)],
        "outputs": [each.to_json() for each in verification.quality],
        "advice": report.advice or untried(verification),
        "layers": [layer.to_json() for layer in verification.noise],
        "quantization": _quantization(report, verification),
        "histograms": {
            layer.name: layer.histogram.to_json()
            for layer in verification.noise
            if layer.histogram is not None
        },
    }


def _quantization(report: Report, verification: Verification) -> dict[str, Any]:
    """Returns the quantization parameters that the file has for each layer, by its name."""
    if not report.paths[0].is_file():
        return {}
    from tmconvert.viewer.written_file import written_graph

    found = {
        tensor.name: tensor.qparams for tensor in written_graph(report.paths[0]).tensors if tensor.qparams
    }
    return {layer.name: found[layer.name] for layer in verification.noise if layer.name in found}


def _summary(report: Report, verification: Verification) -> Iterator[tuple[str, str]]:
    for each in verification.quality:
        facts = [f"{each.decibels:.1f} dB"]
        if each.cosine is not None:
            facts.append(f"cosine {each.cosine:.6f}")
        if each.agreement is not None:
            facts.append(f"best class agrees in {each.equal} of {each.rows}")
        yield f"output {each.name}", ", ".join(facts)
    layers = verification.noise
    in_float = [layer for layer in layers if not layer.step]
    yield "layers", f"{len(layers)}, {counted(len(in_float), 'layer')} in float"
    yield "format", version_text(report.target, report.version)
    yield "parameters", f"{report.parameters:,}"
    files = [path for path in report.paths if path.is_file()]
    yield "size", ", ".join(size(path.stat().st_size) for path in files) if files else "not written"
    for name, value in report.settings.items():
        if shown := _setting(value):
            yield name, shown
    yield "tmconvert", __version__


def _setting(value: Any) -> str:
    """Returns a setting as text; a group without those that are off or empty."""
    if isinstance(value, Mapping):
        entries = ((name, _setting(each)) for name, each in value.items())
        return ", ".join(f"{name} {text}" for name, text in entries if text)
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return "" if value is None or value is False else str(value)
