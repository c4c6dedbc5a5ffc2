"""The site builds without a warning, and its search leads to the pages for users first."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.docs.pages import ROOT

lunr_builder = pytest.importorskip("lunr.builder", reason="the extra docs is not installed")
pytest.importorskip("material", reason="the extra docs is not installed")
pytest.importorskip("mkdocstrings", reason="the extra docs is not installed")

# a query, and the page that it leads to
FIRST = {
    "ascend": "devices/huawei-ascend",
    "batch": "how-to/open-sizes",
    "browser": "devices/browsers",
    "cache": "how-to/decoders",
    "calibration data": "how-to/calibrate",
    "coral": "devices/coral-edge-tpu",
    "decoder": "how-to/decoders",
    "dynamic batch": "how-to/open-sizes",
    "edge tpu": "devices/coral-edge-tpu",
    "ethos": "devices/arm-ethos-u",
    "float16": "how-to/precision",
    "fp16": "how-to/precision",
    "gpu": "devices/tflite-gpu",
    "hexagon": "devices/qualcomm-qnn",
    "install": "install",
    "int4": "how-to/precision",
    "int8": "quantization",
    "llama": "how-to/transformers",
    "mnn": "devices/ncnn-mnn",
    "ncnn": "devices/ncnn-mnn",
    "nhwc": "how-to/layouts",
    "nnie": "devices/hisilicon-nnie",
    "openvino": "devices/openvino",
    "quantization": "quantization",
    "rknn": "devices/rockchip-rknn",
    "simplify": "how-to/simplify",
    "surgery": "surgery",
    "tensorrt": "devices/tensorrt",
    "torchvision": "install",
    "transformers.js": "packages/transformers-js",
    "vela": "devices/arm-ethos-u",
    "webgpu": "devices/browsers",
    "whisper": "how-to/transformers",
}
DEVELOPERS = ("design/", "development/")


class Search(NamedTuple):
    """The search of mkdocs-material, whose engine is lunr: its index, and the settings of its theme."""

    index: Any
    separator: str

    @classmethod
    def of(cls, path: Path) -> Search:
        described = json.loads(path.read_text(encoding="utf-8"))
        separator = described["config"]["separator"]
        builder = lunr_builder.Builder()
        builder.ref("location")
        builder.b(0)
        fields: Mapping[str, Any] = described["config"]["fields"]
        for name, settings in fields.items():
            builder.field(name, boost=settings["boost"])
        for page in described["docs"]:
            words = {name: _words(page.get(name, ""), separator) for name in fields}
            builder.add({"location": page["location"], **words}, {"boost": page.get("boost", 1)})
        return cls(builder.build(), separator)

    def pages(self, query: str) -> list[str]:
        """The pages that answer a query, the best first."""
        words = _words(query, self.separator)
        scores: dict[str, float] = {}
        for result in self.index.search(" ".join(f"{word}*" for word in words)):
            found = [
                word for word in words if any(term.startswith(word) for term in result["match_data"].metadata)
            ]
            page, _, section = result["ref"].partition("#")
            boost = (not section) + len(found) / len(words)
            scores[page] = max(scores.get(page, 0), result["score"] * (1 + boost**2))
        return [page.removesuffix(".html") for page in sorted(scores, key=scores.__getitem__, reverse=True)]


def _words(text: str, separator: str) -> list[str]:
    """Splits a text as the theme does: without tags, with their texts apart."""
    parts = re.split(r"<[^>]*>", text.lower())
    return [word for part in parts for word in re.split(separator, part) if word]


@pytest.fixture(scope="module")
def search(tmp_path_factory: pytest.TempPathFactory) -> Search:
    site = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(site)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return Search.of(site / "search/search_index.json")


@pytest.mark.parametrize("query", FIRST)
def test_a_query_leads_to_a_page_for_users(search: Search, query: str) -> None:
    assert search.pages(query)[0] == FIRST[query]


@pytest.mark.parametrize(
    "query", ["quantization", "calibration", "layouts", "tracing", "op", "target", "verify"]
)
def test_pages_for_developers_come_later(search: Search, query: str) -> None:
    found = search.pages(query)
    assert not found[0].startswith(DEVELOPERS)
    assert any(page.startswith(DEVELOPERS) for page in found)
