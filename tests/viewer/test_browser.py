"""The page in a real browser: what it draws, what keys and clicks do, and what it costs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tmconvert
from tests.viewer.browser import Browser, browser, chromium
from tests.viewer.models import HOSTILE, chain

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(chromium() is None, reason="no Chromium is installed"),
]
SAMPLES = Path(__file__).parents[2] / "samples"
FIRST_PAINT = 1000  # milliseconds
MEMORY = 150e6  # bytes
# the labels of edges, with the letter x between the extents
SHAPES = r"[...document.querySelectorAll('.shape')].map((each) => each.textContent.replaceAll('\u00d7', 'x'))"


@pytest.fixture(scope="module")
def shown() -> Iterator[Browser]:
    with browser() as made:
        yield made


def page(model: Path, tmp_path: Path, **options: Any) -> Path:
    path = tmp_path / "page.html"
    tmconvert.view(model, path, **options)
    return path


def check(shown: Browser) -> None:
    assert shown.problems() == []
    assert shown.requests() == []


@pytest.mark.parametrize("has_modules", [True, False])
@pytest.mark.parametrize("count", [50, 500, 5000])
def test_large_graphs(count: int, has_modules: bool, shown: Browser, tmp_path: Path) -> None:
    path = page(chain(tmp_path / "m.onnx", count, has_modules=has_modules), tmp_path)
    for width, theme in ((1280, "light"), (390, "dark")):
        shown.open(path, width=width, theme=theme)
        shown.frame()
        paint = shown.run("performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0")
        assert paint < FIRST_PAINT
        shown.run("views[0].toggleAll(true)")
        shown.frame()
        shown.call("HeapProfiler.collectGarbage")
        metrics = {each["name"]: each["value"] for each in shown.call("Performance.getMetrics")["metrics"]}
        assert metrics["JSHeapUsedSize"] < MEMORY
        assert shown.run("document.querySelectorAll('svg.graph *').length") < 4000
        assert shown.run("document.documentElement.scrollWidth") <= width
        check(shown)


def test_modules_fold_and_unfold(shown: Browser, tmp_path: Path) -> None:
    shown.open(page(SAMPLES / "digits.tm", tmp_path))
    types = "[...document.querySelectorAll('.node .type')].map((each) => each.textContent)"
    assert "Conv2d" not in shown.run(types)
    shown.click(".module.folded .fold")
    assert shown.run("document.querySelectorAll('.module.open').length") == 1
    assert {"Conv2d", "BatchNorm2d", "relu"} <= set(shown.run(types))
    assert shown.run("document.querySelector('#live').textContent") == "stem unfolded"
    shown.click(".module.open .fold")
    assert "Conv2d" not in shown.run(types)
    check(shown)


def test_keys_walk_the_graph(shown: Browser, tmp_path: Path) -> None:
    shown.open(page(SAMPLES / "digits.tm", tmp_path))
    shown.run("views[0].svg.focus()")
    shown.key("Home")
    assert shown.run("views[0].selected.name") == "stem"
    shown.key("Enter")
    assert shown.run("views[0].selected.isOpen") is True
    shown.key("ArrowDown")
    assert shown.run("views[0].selected.type") == "Conv2d"
    shown.key("ArrowDown")
    assert shown.run("views[0].selected.type") == "BatchNorm2d"
    shown.key("ArrowUp")
    assert shown.run("document.querySelector('#details h2').textContent") == "Conv2d"
    assert "24" in shown.run("document.querySelector('#details').textContent")
    shown.key("Backspace")
    assert shown.run("views[0].selected.name") == "stem"
    shown.key("Escape")
    assert shown.run("views[0].selected") is None
    check(shown)


def test_search_finds_and_opens(shown: Browser, tmp_path: Path) -> None:
    shown.open(page(SAMPLES / "digits.tm", tmp_path))
    shown.key("/")
    assert shown.run("document.activeElement.id") == "search"
    for letter in "residual conv2d":
        shown.call("Input.insertText", text=letter)
    shown.frame()
    assert shown.run("document.querySelectorAll('#results [role=option]').length") == 2
    shown.key("ArrowDown")
    shown.key("Enter")
    assert shown.run("views[0].selected.type") == "Conv2d"
    assert shown.run("document.querySelectorAll('.selected').length") == 1
    check(shown)


def test_names_with_markup_are_shown_as_text(shown: Browser, tmp_path: Path) -> None:
    shown.open(page(chain(tmp_path / "m.onnx", 16), tmp_path))
    shown.run("views[0].toggleAll(true)")
    shown.run("searchFor('taken')")
    assert shown.run("document.querySelectorAll('#results [role=option]').length") > 0
    shown.run("choose(0)")
    shown.frame()
    assert HOSTILE in shown.run("document.querySelector('#details').textContent")
    assert shown.run("document.title") == "m.onnx"
    check(shown)


def test_a_source_next_to_its_file(shown: Browser, tmp_path: Path) -> None:
    model = SAMPLES / "digits.tm"
    tmconvert.to_tflite(model, tmp_path / "d.tflite", verify=False)
    path = page(tmp_path / "d.tflite", tmp_path, source=model)
    shown.open(path)
    shown.run("views[1].go(graphs[1].nodes[0])")
    shown.frame()
    assert shown.run("document.querySelectorAll('.pane[data-pane=\"0\"] .marked').length") == 3
    shown.open(path, width=390)
    assert shown.run("getComputedStyle(document.querySelector('.pane[data-pane=\"0\"]')).display") == "none"
    shown.click(".pane[data-pane='1'] .swap")
    assert shown.run("getComputedStyle(document.querySelector('.pane[data-pane=\"0\"]')).display") == "flex"
    check(shown)


def test_the_drawing_is_saved_with_its_colours(shown: Browser, tmp_path: Path) -> None:
    shown.open(page(SAMPLES / "digits.tm", tmp_path), theme="dark")
    shown.run("views[0].toggleAll(true)")
    text = shown.run(
        "new XMLSerializer().serializeToString(svgOf(views[0], layoutOf(graphs[0], graphs[0].modules[0])))"
    )
    assert text.count('data-key="n') == 23
    assert 'fill="rgb(' in text
    assert "var(--" not in text
    check(shown)


def test_edges_have_shapes(shown: Browser, tmp_path: Path) -> None:
    shown.open(page(SAMPLES / "digits.tm", tmp_path))
    assert shown.run(SHAPES)[:3] == ["1x24x8x8", "1x24x8x8", "1x24x4x4"]
    shown.run("views[0].zoom(0.5)")
    shown.frame()
    assert shown.run(SHAPES) == []  # too small to be read
    shown.run("views[0].fit()")
    shown.click("#tools [title='Show the shapes of tensors on edges']")
    assert shown.run(SHAPES) == []
    check(shown)


def test_edges_have_types_where_they_change(shown: Browser, tmp_path: Path) -> None:
    net = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 1), torch.nn.ReLU())
    model = tmconvert.calibrate(tmconvert.trace(net, torch.ones(1, 1, 4, 4)), [np.ones((1, 1, 4, 4), "f4")])
    tmconvert.to_onnx(model, tmp_path / "q.onnx", quantized=True, verify=False)
    shown.open(page(tmp_path / "q.onnx", tmp_path))
    shown.run("views[0].toggleAll(true)")
    shown.frame()
    labels = set(shown.run(SHAPES))
    assert {"1x2x4x4", "u8 1x2x4x4"} & labels and any(each.startswith("u8 ") for each in labels)
    assert any(each.startswith("f32 ") for each in labels)  # dequantized
    check(shown)


def test_labels_lie_on_nothing(shown: Browser, tmp_path: Path) -> None:
    shown.open(page(chain(tmp_path / "m.onnx", 16), tmp_path))
    shown.run("views[0].toggleAll(true)")
    shown.frame()
    overlaps = """(() => {
      const boxes = (query) => [...document.querySelectorAll(query)].map((at) => at.getBoundingClientRect());
      const beside = (one, other) => one.left >= other.right || other.left >= one.right;
      const apart = (one, other) => one.top + 2 >= other.bottom || other.top >= one.bottom - 2;
      const others = [...boxes('.node'), ...boxes('.module.folded')];
      const isFree = (one) => others.every((other) => beside(one, other) || apart(one, other));
      return boxes('.shape').filter((one) => !isFree(one)).length; })()"""
    assert shown.run("document.querySelectorAll('.shape').length") > 4
    assert shown.run(overlaps) == 0
    check(shown)


def test_layers_are_sorted_and_filtered(shown: Browser, tmp_path: Path) -> None:
    images = np.load(SAMPLES / "digits_test.npz")["images"][:4, None] / np.float32(16)
    model = tmconvert.calibrate(SAMPLES / "digits.tm", {"x": images.astype(np.float32)})
    report = tmconvert.to_tflite(model, tmp_path / "q.tflite", quantized=True)
    report.write_layers(tmp_path / "q.html")
    shown.open(tmp_path / "q.html")
    assert shown.run("document.getElementById('layers').hidden") is False
    assert shown.run("document.getElementById('graphs').hidden") is True
    column = "[...document.querySelectorAll('.layers tbody tr')].map((row) => row.cells[6].textContent)"
    shown.click(".layers th:nth-child(7) button")
    ascending = [float(each.split()[0]) for each in shown.run(column) if "dB" in each]
    assert ascending == sorted(ascending)
    shown.click(".layers th:nth-child(7) button")
    assert shown.run("document.querySelector('.layers th:nth-child(7)').ariaSort") == "descending"
    shown.run("document.getElementById('filter').focus()")
    shown.call("Input.insertText", text="residual")
    shown.frame()
    assert 0 < shown.run("document.querySelectorAll('.layers tbody tr').length") < len(ascending)
    shown.click(".layers tbody .link")
    assert shown.run("document.querySelectorAll('.channels rect').length") > 20
    assert shown.run("document.querySelectorAll('.heat').length") > 0
    # the graph, which was not drawn before, shows the node of the layer
    visible = "(() => { const box = document.querySelector('.selected').getBoundingClientRect(); "
    visible += "return box.top > 50 && box.bottom < innerHeight && box.left > 0; })()"
    assert shown.run(visible) is True
    check(shown)
