"""Writes the code of a model as a package, with its weights, that needs PyTorch only."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from tmconvert.errors import UsageError
from tmconvert.errors.values import type_and_value
from tmconvert.formats.tm.safetensors import Safetensors
from tmconvert.ir import TracedModule
from tmconvert.output.new_folder import refuse_existing, staged_folder
from tmconvert.symbolics.op import Op
from tmconvert.torch_code.class_source import Code, generate
from tmconvert.torch_code.names import Names, is_plain
from tmconvert.torch_code.prepare import DynamicShapes
from tmconvert.torch_code.runtime_functions import HELPERS

WEIGHTS = "weights.safetensors"
_READER = '''

WEIGHTS = Path(__file__).with_name("weights.safetensors")
DTYPES = {
    "BOOL": torch.bool,
    "I8": torch.int8,
    "U8": torch.uint8,
    "I16": torch.int16,
    "U16": torch.uint16,
    "I32": torch.int32,
    "I64": torch.int64,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F32": torch.float32,
    "F64": torch.float64,
}


def load_weights(module: nn.Module, path: Path = WEIGHTS) -> None:
    """Reads a safetensors file (a length, a JSON header, the elements) into a module."""
    with path.open("rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        first = file.tell()
        tensors = {**dict(module.named_parameters()), **dict(module.named_buffers())}
        for name, entry in header.items():
            start, end = entry["data_offsets"]
            file.seek(first + start)
            if end > start:
                values = torch.frombuffer(bytearray(file.read(end - start)), dtype=DTYPES[entry["dtype"]])
                tensors[name].data.copy_(values.reshape(entry["shape"]))
'''


def write_folder(
    module: TracedModule,
    folder: str | os.PathLike[str],
    class_name: str | None,
    catalogue: Mapping[str, Op],
    dynamic_shapes: DynamicShapes | None = None,
    fix: Mapping[str, int] | None = None,
) -> Code:
    """Writes the package ``folder`` and returns its code. Raises UsageError, UnsupportedError, WriteError.

    The folder is written with all of its files or not at all; an existing folder is an error.
    """
    if class_name is not None and not _is_class_name(class_name):
        raise UsageError(
            "TM6071",
            f"the name of a class must be an identifier of Python, got {type_and_value(class_name)}",
            notes=[("help", 'pass a name of letters and digits, such as "Net"')],
        )
    target = Path(folder)
    refuse_existing(target)
    code = generate(module, catalogue, class_name, dynamic_shapes, fix)
    files = {
        "__init__.py": f'"""A model written by tmconvert."""\n\nfrom .module import {code.class_name} as '
        f"{code.class_name}\n",
        "module.py": _with_reader(code),
    }
    with staged_folder(target) as staged:
        for name, text in files.items():
            (staged / name).write_text(text, encoding="utf-8")
        with (staged / WEIGHTS).open("wb") as file:
            Safetensors(code.weights).write(file)
    return code


def _is_class_name(name: object) -> bool:
    return isinstance(name, str) and is_plain(name) and name not in HELPERS and Names().new(name) == name


def _with_reader(code: Code) -> str:
    """Returns the text with a reader of the weights, which the constructor calls."""
    head = "from __future__ import annotations\n"
    text = code.text.replace(head, f"{head}\nimport json\nfrom pathlib import Path\n", 1)
    before, mark, after = text.partition(f"\n\nclass {code.class_name}(nn.Module):\n")
    constructor, forward, rest = after.partition("\n    def forward(")
    loads = "        load_weights(self)\n        self.eval()\n"
    note = '    """The model in evaluation mode; ``train()`` prepares it for training."""\n\n'
    return f"{before}{_READER}{mark}{note}{constructor}{loads}{forward}{rest}"
