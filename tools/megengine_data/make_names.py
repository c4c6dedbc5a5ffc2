"""Writes vocabulary.json, what MegEngine's releases from 1.6 to 1.13 let a file name.

Reads the sources of MegEngine in a clone of its repository with tags; needs neither MegEngine nor tmconvert:

    python make_names.py CLONE

``functions``, ``methods`` (of tensors), ``modules`` (classes) and ``operators`` (of an Apply), each with the
first and the last of the releases below that has it; the public ones, by the names that a file holds.
"""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

RELEASES = ("1.6.0", "1.7.0", "1.8.2", "1.9.1", "1.10.0", "1.11.1", "1.12.4", "1.13.4")
PYTHON = "imperative/python/"
OPERATORS = "src/core/include/megbrain/ir/ops.td"


def git(clone, *args):
    return subprocess.run(["git", "-C", clone, *args], check=True, capture_output=True, text=True).stdout


def defined(clone, tag, package, kind):
    """The public functions or classes at the top of the files of a package."""
    folder = PYTHON + package.replace(".", "/") + "/"
    for path in git(clone, "ls-tree", "-r", "--name-only", tag, folder).split():
        module = path[len(PYTHON) : -len(".py")].replace("/", ".")
        if not path.endswith(".py") or any(word.startswith("_") for word in module.split(".")):
            continue
        for part in ast.parse(git(clone, "show", f"{tag}:{path}")).body:
            if isinstance(part, kind) and not part.name.startswith("_"):
                yield f"{module}.{part.name}"


def methods(clone, tag):
    """The methods of tensors that a trace records."""
    folder = PYTHON + "megengine/traced_module/"
    for path in git(clone, "ls-tree", "-r", "--name-only", tag, folder).split():
        source = git(clone, "show", f"{tag}:{path}")
        for part in ast.parse(source).body:
            targets = [getattr(target, "id", "") for target in getattr(part, "targets", [])]
            if targets in (["BUILTIN_ARRAY_METHOD"], ["BUILTIN_TENSOR_WRAP_METHOD"]):
                yield from ast.literal_eval(part.value)


def operators(clone, tag):
    text = git(clone, "show", f"{tag}:{OPERATORS}")
    return re.findall(r"^def\s+(\w+)\s*:\s*(?:MgbHashableOp|FancyIndexingBase)<", text, re.M)


def main(clone):
    names = {}
    for release in RELEASES:
        tag = f"v{release}"
        found = {
            "functions": defined(clone, tag, "megengine.functional", ast.FunctionDef),
            "methods": methods(clone, tag),
            "modules": defined(clone, tag, "megengine.module", ast.ClassDef),
            "operators": operators(clone, tag),
        }
        for kind, each in found.items():
            for name in each:
                first, _ = names.setdefault(kind, {}).get(name, (release, release))
                names[kind][name] = (first, release)
    rows = {kind: dict(sorted(each.items())) for kind, each in names.items()}
    lines = [
        f'"{kind}": {{\n' + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in each.items()) + "\n}"
        for kind, each in rows.items()
    ]
    target = Path(__file__).resolve().parents[2] / "tests/data/made/vocabulary.json"
    target.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main(sys.argv[1])
