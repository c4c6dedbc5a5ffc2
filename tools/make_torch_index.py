"""Makes ``convert/frontends/torch/adapters/index.py``: which family of adapters has which names.

python tools/make_torch_index.py            (--print: to stdout)
"""

from __future__ import annotations

import sys
import textwrap
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from tmconvert.frontends.shared.adapter_table import Table  # noqa: E402

FOLDER = ROOT / "convert/frontends/torch/adapters"
OUTPUT = FOLDER / "index.py"
KINDS = ("ATEN", "FUNCTIONS", "METHODS", "COMPLEX")
HEAD = '''"""Maps function names to adapter families, so that a family is imported on first use.

Made by tools/make_torch_index.py; do not edit.
"""
'''


def made() -> str:
    """The file's text. Raises InternalError TM3005 where two families have a name."""
    package = "tmconvert.frontends.torch.adapters"
    families = {
        path.stem: import_module(f"{package}.{path.stem}")
        for path in sorted(FOLDER.glob("*.py"))
        if path.stem not in ("__init__", "index")
    }
    lines = []
    for kind in KINDS:
        tables = {family: vars(module)[kind] for family, module in families.items() if kind in vars(module)}
        Table.merged(*tables.values())
        lines += ["", f"{kind} = {{"]
        for family, table in ((family, table) for family, table in tables.items() if table):
            lines += [f'    "{family}": """', *textwrap.wrap(" ".join(table), 110), '""",']
        lines.append("}")
    return HEAD + "\n".join(lines) + "\n"


if __name__ == "__main__":
    if sys.argv[1:] == ["--print"]:
        sys.stdout.write(made())
    else:
        OUTPUT.write_text(made(), encoding="utf-8")
