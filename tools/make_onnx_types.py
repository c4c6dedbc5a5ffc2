"""Makes ``convert/targets/onnx/data/element_types.txt``: the types of ONNX's operators, and those that run.

    python tools/make_onnx_types.py            (--print: to stdout)
    PYTHON tools/make_onnx_types.py --measure  (in a Python that has an older ONNX Runtime)

What the standard allows is in ``onnx.defs``. What ONNX Runtime lacks on the CPU is measured: a model of
one operator for each operator, version, type variable and element type, which it loads or says that
it has no kernel for. A type has to run in every release that was measured and has the operator at all;
what older ones lack is in ``onnx_runtimes/``, a file for each, since none of them installs beside another.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
import onnxruntime
from onnx import defs, helper
from onnx.defs import OpSchema

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.opsets import newest_runnable
from tmconvert.targets.onnx.passes.casts import DTYPE_LETTERS
from tmconvert.targets.options import OLDEST_OPSET

OUTPUT = Path(__file__).resolve().parents[1] / "convert/targets/onnx/data/element_types.txt"
RUNTIMES = Path(__file__).parent / "onnx_runtimes"

Lacking = dict[tuple[str, int, str], str]  # letters, by operator, version and type variable

_TYPES = {
    "float16": "tensor(float16)",
    "float32": "tensor(float)",
    "float64": "tensor(double)",
    **{name: f"tensor({name})" for name in ("int8", "int16", "int32", "int64", "uint8", "bool")},
}
_NAMES = {text: name for name, text in _TYPES.items()}
_NO_KERNEL = "NOT_IMPLEMENTED"
_REQUIRED_ATTRIBUTES = {
    OpSchema.AttrType.FLOAT: 1.0,
    OpSchema.AttrType.INT: 1,
    OpSchema.AttrType.INTS: [1, 1],
    OpSchema.AttrType.STRING: "ij",
    OpSchema.AttrType.STRINGS: ["x"],
}


def letters(types: Any) -> str:
    """The element types that tmconvert has, a letter each."""
    return "".join(letter for name, letter in DTYPE_LETTERS.items() if _TYPES[name] in types)


def variable(parameter: OpSchema.FormalParameter) -> str:
    """What binds the type of an input or output: a type variable, or the name of a type."""
    return _NAMES.get(parameter.type_str, parameter.type_str.replace("(", "_").replace(")", ""))


def signature(schema: OpSchema) -> tuple[str, dict[str, str]]:
    """("T,T>T", {"T": "efd"}) of a schema."""
    sides = []
    for parameters in (schema.inputs, schema.outputs):
        sides.append(",".join(variable(each) for each in parameters))
    types = {each.type_param_str: letters(each.allowed_type_strs) for each in schema.type_constraints}
    return ">".join(sides), {name: found for name, found in types.items() if found}


def schemas() -> Iterator[tuple[str, list[OpSchema]]]:
    """Each operator of the default domain with its versions from the oldest opset on."""
    versions: dict[str, dict[int, OpSchema]] = defaultdict(dict)
    for schema in defs.get_all_schemas_with_history():
        if schema.domain == "":
            versions[schema.name][schema.since_version] = schema
    for name in sorted(versions):
        oldest = max((since for since in versions[name] if since <= OLDEST_OPSET), default=0)
        rows = [versions[name][since] for since in sorted(versions[name]) if since >= oldest]
        control_flow = any(each.type == OpSchema.AttrType.GRAPH for each in rows[-1].attributes.values())
        tensors = letters([text for each in rows[-1].inputs for text in each.types])
        if tensors and not control_flow and not rows[0].deprecated:
            yield name, [row for row in rows if not row.deprecated]


def lacking(schema: OpSchema, name: str, allowed: str) -> str:
    """The types of ``allowed`` for which ONNX Runtime has no kernel, as the type variable ``name``."""
    return "".join(letter for letter in allowed if not runs(schema, {name: letter}))


def runs(schema: OpSchema, chosen: dict[str, str]) -> bool:
    """Whether ONNX Runtime loads a model of this operator, or fails for another reason than its types."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        onnxruntime.InferenceSession(model(schema, chosen), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        return _NO_KERNEL not in type(error).__name__.upper() and "Could not find an impl" not in str(error)
    return True


def model(schema: OpSchema, chosen: dict[str, str]) -> bytes:
    """A model of one operator whose type variables are ``chosen``, or else usual types."""
    by_letter = {letter: name for name, letter in DTYPE_LETTERS.items()}

    def type_of(parameter: OpSchema.FormalParameter) -> int:
        usual = next((each for each in "fl?iBdebh" if _TYPES[by_letter[each]] in parameter.types), "f")
        letter = chosen.get(parameter.type_str, usual)
        dtype = "float" if by_letter[letter] == "float32" else by_letter[letter]
        dtype = "double" if dtype == "float64" else dtype
        return int(getattr(onnx.TensorProto, dtype.upper()))

    wanted = [each for each in schema.inputs if each.option != OpSchema.FormalParameterOption.Optional]
    inputs = []
    names = []
    for i, parameter in enumerate(schema.inputs):
        if parameter in wanted or parameter.type_str in chosen or i < schema.min_input:
            names.append(f"x{i}")
            inputs.append(helper.make_tensor_value_info(f"x{i}", type_of(parameter), None))
        else:
            names.append("")
    outputs = [f"y{i}" for i in range(max(1, schema.min_output))]
    attributes = {
        name: _REQUIRED_ATTRIBUTES.get(each.type, 1)
        for name, each in schema.attributes.items()
        if each.required
    }
    node = helper.make_node(schema.name, names, outputs, **attributes)
    described = [onnx.ValueInfoProto(name=name) for name in outputs]
    graph = helper.make_graph([node], "g", inputs, described)
    imports = [helper.make_opsetid("", max(schema.since_version, OLDEST_OPSET))]
    ir_version = helper.find_min_ir_version_for(imports)
    return helper.make_model(graph, opset_imports=imports, ir_version=ir_version).SerializeToString()


def measured() -> Lacking:
    """What the installed release lacks; a version of an operator that it lacks for every type is left out."""
    newest = newest_runnable()
    found: Lacking = {}
    for name, versions in schemas():
        for schema in versions:
            _, types = signature(schema)
            bound = {each.type_str for each in schema.inputs}
            missing = {each: lacking(schema, each, types[each]) for each in types if each in bound}
            has_none = any(set(types[each]) - {*missing[each], "e"} == set() for each in missing)
            if schema.since_version <= newest and not has_none:  # float16 is cast to what it lacks
                found |= {(name, schema.since_version, each): missing[each] for each in missing}
    return found


def saved(path: Path) -> Lacking:
    """What ``save`` wrote."""
    found: Lacking = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        name, since, text = line.split(" ")
        each, _, letters = text.partition("=")
        found[name, int(since), each] = letters
    return found


def save(found: Lacking, path: Path) -> None:
    lines = [f"{name} {since} {each}={letters}\n" for (name, since, each), letters in found.items()]
    path.write_text("".join(lines), encoding="utf-8")


def releases() -> dict[str, Lacking]:
    """By version, the installed release and the saved ones."""
    made = {path.stem: saved(path) for path in sorted(RUNTIMES.glob("*.txt"))}
    return {**made, onnxruntime.__version__: measured()}


def rows(known: dict[str, Lacking]) -> Iterator[str]:
    """The lines of the table; a version that changes nothing has none."""
    for name, versions in schemas():
        last, missing = "", {}
        for schema in versions:
            sides, types = signature(schema)
            keys = {each: (name, schema.since_version, each) for each in types}
            if any(key in found for found in known.values() for key in keys.values()):
                missing = {
                    each: [
                        letter
                        for letter in types[each]
                        if any(letter in found.get(key, "") for found in known.values())
                    ]
                    for each, key in keys.items()
                }
            text = " ".join(
                f"{each}={allowed}" + ("" if not missing.get(each) else f"/{''.join(missing[each])}")
                for each, allowed in types.items()
            )
            if (sides, text) != last:
                yield f"{name} {schema.since_version} {sides} {text}".strip()
            last = (sides, text)


def text() -> str:
    """The text of the file: the releases, and a line for each form of an operator."""
    known = releases()
    return "\n".join([f"onnx {onnx.__version__}, ONNX Runtime {' '.join(known)}", *rows(known), ""])


if __name__ == "__main__":
    if sys.argv[1:] == ["--print"]:
        sys.stdout.write(text())
    elif sys.argv[1:] == ["--measure"]:
        save(measured(), RUNTIMES / f"{onnxruntime.__version__}.txt")
    else:
        OUTPUT.write_text(text(), encoding="utf-8")
