"""The HTML report: a self-contained page with charts, without scripts, fonts or images."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tmconvert.verification.noise import Noise

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --paper: #fff; --rule: #d5dae1;
  --local: #2a78b8; --whole: #d0622b }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e8ee; --paper: #14181e; --rule: #3a424d; --local: #6fb2e8; --whole: #f0935f } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 1080px; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.4rem; margin: 0 } h2 { font-size: 1.05rem; margin: 2rem 0 .5rem }
figure { margin: 0; overflow-x: auto } svg text { fill: var(--ink); font: 11px system-ui, sans-serif }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums }
th, td { text-align: right; padding: .2rem .6rem; border-bottom: 1px solid var(--rule) }
th:first-child, td:first-child, th:nth-child(2), td:nth-child(2) { text-align: left }
.key { display: inline-block; width: .8em; height: .8em; margin: 0 .3em 0 1em }
"""
_HEIGHT, _LEFT, _FOOT = 240, 44, 14
_MOST = 60.0  # dB at the top of the chart: layers without noise end there


def page(title: str, measured: str, layers: tuple[Noise, ...]) -> str:
    """Returns HTML with the ``measured`` data: signal-to-noise ratios, clipping and range use as charts, and
    a table.
    """
    name = escape(title)
    worst = min(layers, key=lambda layer: layer.local, default=None)
    summary = escape(measured)
    if worst is not None:
        summary += f" The most noise is added by {escape(worst.name)}: {_db(worst.local)} dB."
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{name}: quantization</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head><body>\n'
        f"<h1>{name}</h1><p>{summary}</p>\n"
        '<h2>Signal to noise<span class="key" style="background: var(--local)"></span>of each layer by itself'
        '<span class="key" style="background: var(--whole)"></span>against the float model</h2>\n'
        f"{_ratios(layers)}\n<h2>Share of the integers' range that is used</h2>\n{_shares(layers)}\n"
        f"<h2>Layers</h2>\n{_table(layers)}\n</body></html>\n"
    )


def _db(ratio: float) -> str:
    return f"{ratio:.1f}" if math.isfinite(ratio) else ("no noise" if ratio > 0 else "no signal")


def _ratios(layers: tuple[Noise, ...]) -> str:
    top = max([_MOST, *(layer.local for layer in layers if math.isfinite(layer.local))])
    step = _step(layers)
    drawn = [_scale(top, [f"{db} dB" for db in range(0, int(top) + 1, 10)], 10 / top, len(layers) * step)]
    for kind in ("local", "whole"):
        points = []
        for number, layer in enumerate(layers):
            ratio = min(max(getattr(layer, kind), 0.0), top)
            x, y = _LEFT + (number + 0.5) * step, _HEIGHT * (1 - ratio / top) + _FOOT
            points.append(f"{x:.1f},{y:.1f}")
            words = f"{escape(layer.name)} ({escape(layer.function)}): {_db(getattr(layer, kind))} dB"
            dot = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="var(--{kind})">'
            drawn.append(f"{dot}<title>{words}</title></circle>")
        drawn.append(f'<polyline points="{" ".join(points)}" fill="none" stroke="var(--{kind})"/>')
    return _figure(drawn, len(layers) * step, "Signal to noise of each layer, in dB")


def _shares(layers: tuple[Noise, ...]) -> str:
    step = _step(layers)
    drawn = [_scale(1, [f"{share} %" for share in range(0, 101, 25)], 0.25, len(layers) * step)]
    for number, layer in enumerate(layers):
        height = _HEIGHT * layer.used if layer.step else 0.0
        x, y = _LEFT + (number + 0.15) * step, _HEIGHT - height + _FOOT
        words = f"{escape(layer.name)}: {layer.used:.1%} used, {layer.clipped:.3%} clipped"
        colour = "whole" if layer.clipped > 0 else "local"
        drawn.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{step * 0.7:.1f}" height="{height:.1f}" '
            f'fill="var(--{colour})"><title>{words}</title></rect>'
        )
    return _figure(drawn, len(layers) * step, "Share of the range that is used; layers that clip stand out")


def _step(layers: tuple[Noise, ...]) -> float:
    """Returns the width of a layer in a chart."""
    return max(1000 / max(len(layers), 1), 8.0)


def _scale(top: float, labels: list[str], share: float, width: float) -> str:
    """Draws the horizontal lines of a chart, from the bottom."""
    drawn = []
    for number, label in enumerate(labels):
        y = _HEIGHT * (1 - number * share) + _FOOT
        drawn.append(
            f'<line x1="{_LEFT}" x2="{_LEFT + width:.0f}" y1="{y:.1f}" y2="{y:.1f}" stroke="var(--rule)"/>'
            f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{label}</text>'
        )
    return "".join(drawn)


def _figure(drawn: list[str], width: float, title: str) -> str:
    full, height = width + _LEFT, _HEIGHT + 2 * _FOOT
    return (
        f'<figure><svg width="{full:.0f}" height="{height}" viewBox="0 0 {full:.0f} {height}" role="img" '
        f'aria-label="{escape(title)}">{"".join(drawn)}</svg></figure>'
    )


def _table(layers: tuple[Noise, ...]) -> str:
    head = ("layer", "op", "local dB", "accumulated dB", "clipped", "range used")
    rows = []
    for layer in layers:
        shares = (f"{layer.clipped:.3%}", f"{layer.used:.1%}") if layer.step else ("in float", "in float")
        cells = (layer.name, layer.function, _db(layer.local), _db(layer.whole), *shares)
        rows.append("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>")
    titles = "".join(f"<th>{each}</th>" for each in head)
    return f"<table><thead><tr>{titles}</tr></thead><tbody>\n{chr(10).join(rows)}\n</tbody></table>"
