"""Makes convert/formats/tflite/data/option_tables.txt: the names of TFLite's operators and their options.

    python tools/make_tflite_schema.py      (--print: to stdout)

They are read from the schema that comes with ai_edge_litert, so a newer LiteRT brings its new tables. Left
out are strings but those of variables, nested tables and lists of other than int32 and float32.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from ai_edge_litert import schema_py_generated as schema

OUTPUT = Path(__file__).resolve().parents[1] / "convert/formats/tflite/data/option_tables.txt"
ENUM_FIELDS = {
    "padding": "padding",
    "fused_activation_function": "activation",
    "mode": "mirror",
    "weights_format": "weights_format",
    "kernel_type": "lstm_kernel",
    **dict.fromkeys(("in_data_type", "out_data_type", "output_type", "out_type"), "type"),
    **dict.fromkeys(("idx_out_type", "quantized_bias_type"), "type"),
}
# Fields whose default in the schema would be a silent mistake: a stride of 0, a softmax's beta of 0.
REQUIRED = {
    *("padding", "stride_d", "stride_w", "stride_h", "depth_multiplier", "filter_width", "filter_height"),
    *("rank", "beta", "alpha", "radius", "block_size", "num_splits", "output_type", "out_type", "num_bits"),
    *("values_count", "num", "mode"),
}
LISTS = {"Optional[List[int]]": "int32s", "Optional[List[float]]": "float32s"}


def tables() -> Iterator[str]:
    text = inspect.getsource(schema)
    numbers = {name: code for name, code in vars(schema.BuiltinOptions).items() if isinstance(code, int)}
    for name, number in sorted(numbers.items(), key=lambda item: item[1]):
        if number:
            yield f"{name} {number}"
            yield from fields(name, text)


def fields(table: str, text: str) -> Iterator[str]:
    adder = rf"def {table}Add(\w+)\(.*\):\n    builder\.Prepend(\w+)Slot\((\d+), .*, ([\w.]+)\)\n"
    for camel, stored, slot, default in re.findall(adder, text):
        name = re.sub(r"(?<!^)([A-Z])", r"_\1", camel).lower()
        kind = kind_of(table, name, camel, stored)
        if kind is not None:
            number = {"True": "1", "False": "0"}.get(default, default.removesuffix(".0"))
            yield f"  {slot} {name}:{kind}" + (f"={number}" if number != "0" else "")


def kind_of(table: str, name: str, camel: str, stored: str) -> str | None:
    """The kind of a field, as schema.py knows it; None where the writer cannot store it."""
    if name.endswith("_subgraph_index"):
        return "graph!"
    if table == "VarHandleOptions":
        return "text"
    if stored == "UOffsetTRelative":
        attribute = camel[0].lower() + camel[1:]
        listed = re.search(
            rf"self\.{attribute} = \w+  # type: (\S+)", inspect.getsource(getattr(schema, f"{table}T"))
        )
        return None if listed is None or name == "quant_spec" else LISTS.get(listed[1])
    kind = ENUM_FIELDS.get(name, stored.lower())
    return kind + "!" * (name in REQUIRED)


def text() -> str:
    """The text of the file: the names of the builtin operators, whose codes have no gap, and the tables."""
    names = {code: name for name, code in vars(schema.BuiltinOperator).items() if isinstance(code, int)}
    return "\n".join([" ".join(names[code] for code in range(len(names))), *tables(), ""])


if __name__ == "__main__":
    if "--print" in sys.argv:
        sys.stdout.write(text())
    else:
        OUTPUT.write_text(text(), encoding="utf-8")
