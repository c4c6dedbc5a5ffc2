"""Makes ``convert/frontends/*/adapters/index.json``: which family of adapters has which names.

python tools/make_adapter_indexes.py            (--print torch: to stdout)
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from tmconvert.frontends.onnx.adapter_table import OperatorTable  # noqa: E402
from tmconvert.frontends.shared.adapter_table import Table  # noqa: E402

# by frontend and table: the tables of the families that make it up
TABLES = {
    "torch": {name: (name,) for name in ("ATEN", "FUNCTIONS", "METHODS", "COMPLEX")},
    "megengine": {"FUNCTIONS": ("FUNCTIONS", "OPERATORS"), "METHODS": ("METHODS",), "MODULES": ("MODULES",)},
    "onnx": {"OPERATORS": ("OPERATORS",)},
    "tflite": {"OPERATORS": ("OPERATORS",)},
    "caffe": {"LAYERS": ("LAYERS",)},
}


def output(frontend: str) -> Path:
    return ROOT / "convert/frontends" / frontend / "adapters/index.json"


def made(frontend: str) -> str:
    """The file's text. Raises ValueError where two families have a name."""
    folder = output(frontend).parent
    names = [
        ".".join(path.relative_to(folder).with_suffix("").parts)
        for path in sorted(folder.rglob("*.py"))
        if path.stem != "__init__"
    ]
    families = {
        name: vars(import_module(f"tmconvert.frontends.{frontend}.adapters.{name}")) for name in names
    }
    index: dict[str, dict[str, str]] = {}
    for table, parts in TABLES[frontend].items():
        index[table] = {}
        known: dict[str, str] = {}
        for family, held in families.items():
            tables = [held[part] for part in parts if part in held]
            assert all(isinstance(each, (Table, OperatorTable)) for each in tables), family
            names = list(chain.from_iterable(tables))
            for name in names:
                if known.setdefault(name, family) != family:
                    raise ValueError(f"{name} has adapters in {known[name]}.py and {family}.py")
            if names:
                index[table][family] = " ".join(names)
    return json.dumps(index, indent=1) + "\n"


if __name__ == "__main__":
    if sys.argv[1:2] == ["--print"]:
        sys.stdout.write(made(sys.argv[2]))
    else:
        for each in TABLES:
            output(each).write_text(made(each), encoding="utf-8")
