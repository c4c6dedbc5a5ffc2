"""The HTML page: one file with its scripts and styles, which loads nothing from a network.

A content security policy allows the scripts of the package alone, by their digests. Texts of a model are in
a JSON block without ``<``, and the scripts show them as text.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

# in the order in which they run; each defines functions that the next ones use
SCRIPTS = (
    "dagre.min.js", "model.js", "layout.js", "draw.js", "details.js", "search.js", "report.js", "main.js",
)  # fmt: skip
STYLES = ("page.css",)
LICENSE = "dagre-LICENSE.txt"


def page(document: Mapping[str, Any]) -> str:
    """Returns the HTML text for a document of ``tmconvert.viewer.document``."""
    scripts = [_asset(name) for name in SCRIPTS]
    style = "\n".join(_asset(name) for name in STYLES)
    allowed = " ".join(map(_digest, scripts))
    policy = (
        f"default-src 'none'; script-src {allowed}; style-src {_digest(style)}; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="referrer" content="no-referrer">',
            f"<title>{html.escape(str(document['title']))}</title>",
            '<link rel="icon" href="data:,">',
            f"<style>{style}</style>",
            "</head>",
            "<body>",
            _asset("body.html").rstrip(),
            f'<script type="application/json" id="document">{json_text(document)}</script>',
            f"<!--\nThe layout library dagre, in the first script below:\n{_asset(LICENSE).strip()}\n-->",
            *(f"<script>{script}</script>" for script in scripts),
            "</body>",
            "</html>",
            "",
        ]
    )


def json_text(document: Mapping[str, Any]) -> str:
    """Returns JSON that is safe in a script element: no text in it ends the element or begins a comment.

    >>> json_text({"name": "</script>"})
    '{"name":"\\\\u003c/script>"}'
    """
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return "".join(_ESCAPES.get(char, char) for char in text) if _needs_escapes(text) else text


_ESCAPES = {"<": "\\u003c", "\u2028": "\\u2028", "\u2029": "\\u2029", "\x7f": "\\u007f"}
_ESCAPES |= {
    chr(code): f"\\u{code:04x}" for code in range(0xD800, 0xE000)
}  # halves of pairs, which UTF-8 lacks


def _needs_escapes(text: str) -> bool:
    return any(char in text for char in ("<", "\u2028", "\u2029", "\x7f")) or not text.isascii()


@cache
def _asset(name: str) -> str:
    return (files("tmconvert.viewer") / "assets" / name).read_text("utf-8")


def _digest(text: str) -> str:
    """Returns the source expression of a script or style for the policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
