"""Texts of programs that run a written file, shared by the targets."""

from __future__ import annotations

import json
from collections.abc import Sequence

from tmconvert.targets.written_model import TensorInfo

LANGUAGES = ("python", "cpp", "kotlin")


def literal(text: str) -> str:
    """Returns a string literal that Python, C++ and Kotlin read alike."""
    return json.dumps(text, ensure_ascii=False).replace("$", "\\u0024")


def python_array(tensor: TensorInfo) -> str:
    """Returns the expression for an array of zeros as the program has it: float for integers with a scale."""
    dtype = "float32" if len(tensor.scale) == 1 else tensor.dtype or "float32"
    note = f"  # {tensor.layout}" if tensor.layout else ""
    return f"np.zeros({tensor.example_shape}, np.{dtype}){note}"


def python_fed(tensor: TensorInfo, name: str) -> str:
    """Returns the expression for what is fed, from the array ``name``."""
    if len(tensor.scale) != 1:
        return name
    low, high = integer_range(tensor.dtype)
    scaled = f"np.round({name} / {tensor.scale[0]:.9g}) + {tensor.zero_point[0]}"
    return f"np.clip({scaled}, {low}, {high}).astype(np.{tensor.dtype})"


def python_read(tensor: TensorInfo, expression: str) -> str:
    """Returns the expression for the real values of an output."""
    if len(tensor.scale) != 1:
        return expression
    return f"({expression}.astype(np.float32) - {tensor.zero_point[0]}) * {tensor.scale[0]:.9g}"


def cpp_main(lines: Sequence[str]) -> list[str]:
    """Returns the lines as a main function of C++."""
    return ["int main() {", *(f"  {line}" for line in lines), "}"]


def real_value(tensor: TensorInfo) -> str:
    """Returns how a real value follows from an integer: ``real = 0.5 * (q + 128)``; empty without a scale."""
    if len(tensor.scale) != 1:
        return ""
    point = tensor.zero_point[0]
    return f"real = {tensor.scale[0]:.9g} * (q {'-' if point > 0 else '+'} {abs(point)})"


def integer_range(dtype: str) -> tuple[int, int]:
    """Returns the least and the largest value of an integer type."""
    bits = int(dtype.removeprefix("u").removeprefix("int"))
    return (0, 2**bits - 1) if dtype.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def variables(tensors: Sequence[TensorInfo], prefix: str) -> list[str]:
    """Returns names for variables: those of the tensors where they are plain words, else numbered ones."""
    names = [each.name for each in tensors]
    plain = all(name.isidentifier() and name.isascii() and name not in _TAKEN for name in names)
    return names if plain and len(set(names)) == len(names) else [f"{prefix}{i}" for i in range(len(names))]


# words of the three languages, and names that the programs use
_TAKEN = frozenset(
    {
        *(
            "np",
            "run",
            "session",
            "net",
            "interpreter",
            "env",
            "options",
            "memory",
            "outputs",
            "inputs",
            "val",
        ),
        *(
            "in",
            "is",
            "as",
            "if",
            "for",
            "while",
            "class",
            "return",
            "int",
            "float",
            "double",
            "bool",
            "auto",
        ),
        *("fun", "var", "when", "object", "this", "new", "delete", "def", "del", "pass", "lambda", "from"),
        *("import", "not", "and", "or", "with", "yield", "global", "try", "do", "true", "false", "null"),
        *("None", "True", "False", "else", "elif", "except", "raise", "finally", "break", "continue", "char"),
        *("long", "short", "void", "const", "static", "struct", "union", "enum", "switch", "case", "default"),
        *("goto", "using", "namespace", "template", "typename", "operator", "public", "private", "protected"),
    }
)
