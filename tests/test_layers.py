"""Which folders may import which: one table, checked for every import, lazy ones and those for types too."""

from __future__ import annotations

from functools import cache

import pytest

from tests.source_tree import FILES, Import, all_imports, module_name

# From the bottom to the top. A module is of the layer with the longest prefix, and may import its own layer
# and those above it in this list. Modules of one target may not import those of another.
LAYERS: dict[str, tuple[str, ...]] = {
    "base": ("_version", "conveniences", "garbage_collection", "progress", "signals"),
    "errors": ("errors",),
    "ir": ("ir",),
    "symbolics": ("symbolics",),
    "output": ("output",),
    "formats": ("formats",),
    "frontends": ("frontends",),
    "container": ("container",),
    "passes": ("passes",),
    "lowering": ("lowering",),
    "input and output overrides": ("conversion.io_overrides", "conversion.io_names"),
    "code": ("torch_code",),
    "surgery": ("surgery",),
    "the interface of targets": tuple(
        f"targets.{name}"
        for name in (
            "option",
            "options",
            "recognize",
            "registry",
            "target",
            "usage",
            "violation",
            "written_model",
        )
    ),
    "profiles": ("profiles",),
    "verification": ("verification",),
    "targets": ("targets",),
    "quantization parameters": ("qparams",),
    "calibration": ("calibration",),
    "transform": ("transform",),
    "viewer": ("viewer",),
    "conversion": ("conversion",),
    "inspection": ("inspection",),
    "mixed precision": ("mixed_precision",),
    "whole models": ("difference", "lock", "reduction", "streaming"),
    "packaging": ("packaging",),
    "api": (
        *(
            "api",
            "api_conveniences",
            "api_convert",
            "api_diff",
            "api_inspect",
            "api_lock",
            "api_package",
            "api_reduce",
            "api_stream",
            "api_transform",
            "api_view",
        ),
        "compat",
        "observation",
    ),
    "command line": ("cli", "__main__"),
}
# What a layer holds, for the table in ARCHITECTURE.md, which tools/generate_docs.py makes
CONTENTS = {
    "base": "version, progress, signals, garbage collection, registered conveniences",
    "errors": "exceptions, source locations, explanations of error codes",
    "ir": "the core of models: graph, nodes, expressions, types, sizes, verifier, interpreter, text form",
    "symbolics": "one file an op: signature, type rule, reference, lowering to each target",
    "output": "atomic output files, streamed weights, the protobuf stream",
    "formats": "the only readers of files: bytes become records, or the other way; no graph, no runtime",
    "frontends": "one folder a source: class Frontend, reader or tracer, adapters, vocabulary",
    "container": "the file of `tmconvert save`: format, reader, writer",
    "passes": "graph rewrites that several targets share, and the pass manager",
    "lowering": "aten graph to TargetGraph, the Builder, origins of tensors",
    "input and output overrides": "shapes, dynamic dimensions, subgraphs and names that a caller requests",
    "code": "Python code of PyTorch for a graph: modules to train, packages, their text",
    "surgery": "the classes of models as users have them: search, edits, names of torch.fx, printed forms",
    "the interface of targets": "class Target, its options and registry",
    "profiles": "what accelerators and small runtimes run, as data, and the rules that judge files by it",
    "verification": "references, comparison, the protocol of a runtime, reports",
    "targets": "one folder a target: builder, passes, encodings, writer, reader, runtime",
    "quantization parameters": "files of quantization parameters, one format a file",
    "calibration": "range estimation on data, equalization, bias correction",
    "transform": "runs, patterns, passes and decompositions, as operations on a model",
    "viewer": "the page of `tmconvert view`: graphs as JSON, scripts and styles",
    "conversion": "the stages of a conversion, the request, the report",
    "inspection": "what models and written files hold; they are run, timed and compared",
    "mixed precision": "the search for layers that need int16 or float in an integer file",
    "whole models": "differences of models, records of conversions, reductions, step models of streams",
    "packaging": "folders that a program opens, one kind a file, each opened by its program",
    "api": "the public functions, and those of other tools",
    "command line": "click commands, one a file",
}
# (importing module, imported module): the reason
UPWARD = {
    (
        "tmconvert.targets.target",
        "tmconvert.verification.verify",
    ): "an encoding has its verification as a method",
    (
        "tmconvert.targets.target",
        "tmconvert.verification.baked",
    ): "an encoding has its verification as a method",
}
SHARED = {"shared"}
# (importing module, imported module) within frontends: the reason
BETWEEN_SIBLINGS = {
    (
        "tmconvert.frontends.megengine.writing.aten_to_megengine",
        "tmconvert.frontends.torch.names",
    ): "a torch function that an edit inserts is written as the equal one of MegEngine",
}
# packages whose builders and graphs are the types of the ``g`` that symbolics are given
TYPES_OF_BUILDERS = (
    "tmconvert.lowering",
    "tmconvert.targets.onnx.builder",
    "tmconvert.targets.tflite.builder",
)
LARGEST_CYCLE = 8  # modules


@cache
def layer(module: str) -> int | None:
    name = module.removeprefix("tmconvert").lstrip(".")
    matching = {
        prefix: number
        for number, prefixes in enumerate(LAYERS.values())
        for prefix in prefixes
        if name == prefix or name.startswith(f"{prefix}.")
    }
    return matching[max(matching, key=len)] if matching else None


@cache
def ours() -> list[tuple[str, Import]]:
    """The imports of the package within itself, each with the module that has it."""
    pairs = [(module_name(item.path), item) for item in all_imports()]
    return [(module, item) for module, item in pairs if item.is_of("tmconvert") and module != "tmconvert"]


def test_every_module_is_of_a_layer() -> None:
    names = {module_name(path) for path in FILES} - {"tmconvert", "tmconvert.targets", "tmconvert.conversion"}
    assert not [name for name in names if layer(name) is None]


def is_upward(module: str, item: Import) -> bool:
    if item.module in ("tmconvert", "tmconvert.api"):  # the package itself; the command line's only import
        return False
    mine, other = layer(module), layer(item.module)
    assert mine is not None and other is not None, str(item)
    return other > mine


def test_no_import_runs_upward() -> None:
    found = []
    for module, item in ours():
        is_type = item.for_types_only and item.is_of(*TYPES_OF_BUILDERS)
        if is_upward(module, item) and (module, item.module) not in UPWARD and not is_type:
            if item.for_types_only and item.is_of(
                "tmconvert.verification", "tmconvert.targets.written_model"
            ):
                continue  # methods of Target are declared with these
            found.append(str(item))
    assert found == []


def test_each_exception_is_needed() -> None:
    used = {(module, item.module) for module, item in ours()}
    assert [pair for pair in (*UPWARD, *BETWEEN_SIBLINGS) if pair not in used] == []


@cache
def siblings(parent: str) -> set[str]:
    """The packages directly below a package, without those that all of them share."""
    below = {module_name(path).removeprefix(f"{parent}.") for path in FILES if path.parent.name != "convert"}
    return {name.split(".")[0] for name in below if "." in name and not name.startswith("tmconvert")} - SHARED


@pytest.mark.parametrize("parent", ["targets", "frontends", "formats"])
def test_no_sibling_imports_another(parent: str) -> None:
    names = siblings(f"tmconvert.{parent}")
    assert len(names) >= 2
    found = [
        str(item)
        for module, item in ours()
        for name in names
        if module.startswith(f"tmconvert.{parent}.{name}.")
        and item.is_of(*(f"tmconvert.{parent}.{other}" for other in names - {name}))
        and (module, item.module) not in BETWEEN_SIBLINGS
    ]
    assert found == []


def test_what_siblings_share_imports_none_of_them() -> None:
    found = [
        (module, item.module)
        for module, item in ours()
        if module.startswith("tmconvert.frontends.shared.")
        and item.is_of(*(f"tmconvert.frontends.{name}" for name in siblings("tmconvert.frontends")))
        and (module, item.module) not in BETWEEN_SIBLINGS
    ]
    assert found == []


def test_a_target_imports_no_frontend() -> None:
    found = [
        str(item)
        for module, item in ours()
        if module.startswith("tmconvert.targets.") and item.is_of("tmconvert.frontends")
    ]
    assert found == []


def test_no_large_cycle_of_modules() -> None:
    edges: dict[str, set[str]] = {module_name(path): set() for path in FILES}
    for module, item in ours():
        if not item.for_types_only and item.module in edges:
            edges[module].add(item.module)
    largest = max(strongly_connected(edges), key=len)
    assert len(largest) < LARGEST_CYCLE, sorted(largest)


def strongly_connected(edges: dict[str, set[str]]) -> list[set[str]]:
    """Tarjan's algorithm, in the order of its paper: Depth-first search and linear graph algorithms, 1972."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    waiting: set[str] = set()  # what is on the stack
    found: list[set[str]] = []

    def visit(module: str) -> None:
        index[module] = low[module] = len(index)
        stack.append(module)
        waiting.add(module)
        for other in sorted(edges[module]):
            if other not in index:
                visit(other)
            if other in waiting:
                low[module] = min(low[module], low[other])
        if low[module] == index[module]:
            start = stack.index(module)
            found.append(set(stack[start:]))
            waiting.difference_update(found[-1])
            del stack[start:]

    for module in edges:
        if module not in index:
            visit(module)
    return found
