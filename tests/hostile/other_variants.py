"""Files of strangers in the other formats: pickles, archives, TFLite, images, and ONNX graphs that are none.

Each table has the bytes of a file, or what makes them, by what is wrong with it.
"""

from __future__ import annotations

import io
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.frontends.onnx.models import of_nodes
from tests.frontends.tflite.raw import Operator, Tensor, saved
from tests.hostile.variants import HUGE, npy, npz, of_shape
from tests.hostile.variants import SHAPE as HEADER
from tests.hostile.variants import node as step

MARK = "open('ran', 'w').close()"


# ---- pickles, as files of MegEngine and as checkpoints


def _called(name: str, argument: str) -> bytes:
    module, _, function = name.rpartition(".")
    return f"c{module}\n{function}\n(S{argument!r}\ntR.".encode()


def _named(name: str, argument: str) -> bytes:
    """Returns the call with the opcodes of protocol 4."""
    module, _, function = name.rpartition(".")
    texts = b"".join(b"\x8c" + bytes([len(text)]) + text.encode() for text in (module, function))
    return b"\x80\x04" + texts + b"\x93\x8c" + bytes([len(argument)]) + argument.encode() + b"\x85R."


CALLS = {
    "os.system": "echo>ran",
    "posix.system": "echo>ran",
    "subprocess.Popen": "true",
    "builtins.eval": MARK,
    "builtins.exec": MARK,
    "builtins.compile": MARK,
    "builtins.__import__": "evil",
    "importlib.import_module": "evil",
    "runpy.run_path": "evil.py",
    "numpy.load": "evil.npy",
    "torch.load": "evil.pth",
    "torch.hub.load": "evil",
    "ctypes.CDLL": "evil.so",
    "pickle.loads": "evil",
    "webbrowser.open": "http://x",
    "urllib.request.urlopen": "http://127.0.0.1:9",
    "socket.create_connection": "127.0.0.1",
    "megengine.traced_module.traced_module.os.system": "echo>ran",
    "megengine.functional.__builtins__.eval": MARK,
    "numpy.core.multiarray.scalar": "x",
    "code.interact": "x",
    "pathlib.Path.unlink": "good.onnx",
}
PICKLES = {
    **{f"{name} called": _called(name, argument) for name, argument in CALLS.items()},
    **{f"{name} called in protocol 4": _named(name, argument) for name, argument in CALLS.items()},
    "an instance": b"(S'echo>ran'\nios\nsystem\n.",
    "an object": b"(cos\nsystem\nS'echo>ran'\no.",
    "a new object": b"cos\nsystem\n(S'echo>ran'\nt\x81.",
    "a state": b"cbuiltins\nobject\n)\x81}S'__setstate__'\ncos\nsystem\nsb.",
    "a persistent identifier": b"Pevil\n.",
    "an extension": b"\x82\x01.",
    "an integer of many digits": b"I" + b"1" * 100_000 + b"\n.",
    "a long of a huge length": b"\x8b" + struct.pack("<i", 2**31 - 1) + b"1.",
    "a negative length": b"\x8b" + struct.pack("<i", -5) + b"1.",
    "a text of a huge length": b"\x80\x04\x8d" + struct.pack("<Q", HUGE) + b"x.",
    "a frame of a huge length": b"\x80\x04\x95" + struct.pack("<Q", HUGE) + b".",
    "a memo of a huge index": b"\x80\x04Nr" + struct.pack("<I", 2**32 - 1) + b".",
    "a stack that is empty": b"0" * 100 + b".",
    "a list in itself": b"]q\x00h\x00a.",
    "tuples in tuples": b"N" + b"\x85" * 100_000 + b".",
    "doubled tuples": b"N" + b"q\x00h\x00\x86" * 60 + b".",
    "lists in lists": b"]" * 100_000 + b"a" * 99_999 + b".",
    "marks": b"(" * 200_000 + b".",
    "no end": b"\x80\x04N" * 1000,
    "an unknown protocol": b"\x80\xff.",
    "a traced module of nothing": _named("megengine.traced_module.traced_module.TracedModule", "x"),
}


# ---- archives: containers, programs of torch.export and TorchScript


def archive(members: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as made:
        for name, data in members.items():
            made.writestr(zipfile.ZipInfo(name), data, method)
    return stream.getvalue()


def _linked(name: str, goal: str) -> bytes:
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as made:
        made.writestr(info, goal)
    return stream.getvalue()


def _with_length(data: bytes, length: int) -> bytes:
    """Returns an archive whose directory states another length of its first member."""
    at = data.index(b"PK\x01\x02")
    return data[: at + 24] + struct.pack("<I", length) + data[at + 28 :]


EVIL = PICKLES["os.system called"]
SCRIPT = "class Net(Module):\n  def forward(self, x):\n    return ops.aten.relu(x)\n"
SAFE = struct.pack("<Q", 2) + b"{}"
ARCHIVES = {
    "a checkpoint": archive({"archive/data.pkl": EVIL, "archive/version": b"3"}),
    "TorchScript": archive(
        {"net/code/__torch__.py": SCRIPT.encode(), "net/data.pkl": EVIL, "net/constants.pkl": EVIL}
    ),
    "a program of pickles": archive(
        {"net/models/model.json": EVIL, "net/data/weights/weight_0": EVIL, "net/archive_format": b"pt2"}
    ),
    "a program that is a list": archive({"net/models/model.json": b"[]", "net/archive_format": b"pt2"}),
    "a program that is deep": archive(
        {"net/models/model.json": b"[" * 100_000, "net/archive_format": b"pt2"}
    ),
    "a program of null": archive({"serialized_exported_program.json": b"null", "version": b"8.9"}),
    "a program with a pickle of constants": archive(
        {
            "serialized_exported_program.json": b'{"graph_module": {"graph": {"inputs": [1]}}}',
            "serialized_state_dict.pt": EVIL,
            "version": b"8.9",
        }
    ),
    "a container of null": archive({"tm.json": b"null", "weights.safetensors": SAFE}),
    "a container that is deep": archive({"tm.json": b'{"a":' * 50_000, "weights.safetensors": SAFE}),
    "a container of huge numbers": archive(
        {"tm.json": b'{"version": ' + b"9" * 5000 + b"}", "weights.safetensors": SAFE}
    ),
    "weights beyond the file": archive(
        {
            "tm.json": b'{"version": 1}',
            "weights.safetensors": struct.pack("<Q", HUGE) + b"{}",
        }
    ),
    "a member above the folder": archive({"../../elsewhere/x": b"x", "../../ran": b"x"}),
    "an absolute member": archive({"/tmp/elsewhere-of-hostile": b"x"}),
    "a link": _linked("tm.json", "../secret/weights"),
    "equal members": archive({"tm.json": b"{}"}) + archive({"tm.json": b"[]"}),
    "control characters": archive({"\x1b]0;x\x07/data.pkl": EVIL}),
    "a bomb": lambda: archive({"net/models/model.json": b" " * (80 << 20)}, zipfile.ZIP_DEFLATED),
    "a bomb as a container": lambda: archive({"tm.json": b" " * (80 << 20)}, zipfile.ZIP_DEFLATED),
    "a length that is a lie": _with_length(archive({"tm.json": b"{}"}), 2**31),
    "an empty archive": archive({}),
    "no directory": archive({"tm.json": b"{}"})[:-20],
}


# ---- TFLite


def tflite_file(
    tensors: list[Tensor] | None = None,
    operators: list[Operator] | None = None,
    ends: tuple[list[int], list[int]] = ([0], [1]),
) -> Callable[[Path], Path]:
    given = [Tensor("x", "float32", [2]), Tensor("y", "float32", [2])] if tensors is None else tensors
    steps = [Operator("RELU", [0], [1])] if operators is None else operators
    return lambda path: saved(path, given, steps, ends)


def _two(shape: list[int], other: list[int], name: str = "y") -> list[Tensor]:
    return [Tensor("x", "float32", shape), Tensor(name, "float32", other)]


_RESHAPES = {
    "huge": np.array([2**31 - 1] * 3, np.int32),
    "negative": np.array([-7, -2], np.int32),
    "of no elements": np.array([0, 2**31 - 1], np.int32),
}
TFLITE = {
    "a huge size": tflite_file(_two([2**31 - 1] * 4, [2])),
    "a negative size": tflite_file(_two([-7, 3], [-7, 3])),
    "rank 40": tflite_file(_two([1] * 40, [1] * 40)),
    "an input that is no tensor": tflite_file(operators=[Operator("RELU", [99], [1])]),
    "a negative operand": tflite_file(operators=[Operator("ADD", [-1, -1], [1])]),
    "an output that is no tensor": tflite_file(ends=([0], [77])),
    "an output that nothing computes": tflite_file(operators=[Operator("RELU", [0], [0])]),
    "a cycle": tflite_file(
        [*_two([2], [2]), Tensor("z", "float32", [2])],
        [Operator("ADD", [0, 2], [1]), Operator("RELU", [1], [2])],
    ),
    "a tensor that is computed twice": tflite_file(
        operators=[Operator("RELU", [0], [1]), Operator("NEG", [0], [1])]
    ),
    "equal names": tflite_file(_two([2], [2], "x")),
    "control characters": tflite_file(_two([2], [2], "\x1b]0;x\x07\n")),
    "no name": tflite_file(_two([2], [2], "")),
    "names of other scripts": tflite_file(_two([2], [2], "\u202egnp.\U0001f600\u0000")),
    "a long name": tflite_file(_two([2], [2], "y" * 100_000)),
    "no operands": tflite_file(operators=[Operator("CONV_2D", [], [1])]),
    "an unknown operator": tflite_file(operators=[Operator("system", [0], [1], b"")]),
    "options of a custom operator": tflite_file(
        operators=[Operator("TFLite_Detection_PostProcess", [0, 0, 0], [1], b"\xff" * 100)]
    ),
    "a constant with too few bytes": tflite_file(
        [*_two([2], [2]), Tensor("w", "float32", [2**20], np.zeros(1, np.float32))],
        [Operator("ADD", [0, 2], [1])],
    ),
    "a sparse constant of a huge size": tflite_file(
        [
            *_two([2], [2]),
            Tensor("w", "float32", [2**15, 2**15], np.ones(1, np.float32), ([0, 1], [], [2**15, 2**15])),
        ],
        [Operator("ADD", [0, 2], [1])],
    ),
    **{
        f"a reshape that is {name}": tflite_file(
            [*_two([2], [2]), Tensor("s", "int32", [len(shape)], shape)], [Operator("RESHAPE", [0, 2], [1])]
        )
        for name, shape in _RESHAPES.items()
    },
    **{
        f"{name} of one operand": tflite_file(operators=[Operator(name, [0], [1])])
        for name in ("CONCATENATION", "TRANSPOSE", "GATHER", "PAD", "WHILE", "IF", "TILE", "STRIDED_SLICE")
    },
}


# ---- ONNX: graphs that are no graphs, and names


def _graph(*nodes: onnx.NodeProto, outputs: tuple[str, ...] = ("y",)) -> Callable[[], onnx.ModelProto]:
    return lambda: of_nodes(nodes, {"x": [2]}, outputs)


def _if(depth: int) -> onnx.ModelProto:
    """A model of conditions in both branches of conditions, which has 2 ** ``depth`` of them."""
    body = helper.make_graph([step("Relu", out="t")], "g", [], [helper.make_tensor_value_info("t", 1, [2])])
    for _ in range(depth):
        inner = helper.make_node("If", ["c"], ["t"], then_branch=body, else_branch=body)
        body = helper.make_graph([inner], "g", [], [helper.make_tensor_value_info("t", 1, [2])])
    model = of_nodes(
        [helper.make_node("If", ["c"], ["y"], then_branch=body, else_branch=body)], {"x": [2]}, ["y"]
    )
    model.graph.initializer.append(numpy_helper.from_array(np.array(True), "c"))
    return model


def _typed(kind: int) -> Callable[[], onnx.ModelProto]:
    def make() -> onnx.ModelProto:
        model = of_shape([2])
        model.graph.initializer.append(TensorProto(name="w", data_type=kind, dims=[2], raw_data=b"\0" * 8))
        model.graph.node[0].CopyFrom(step("Add", "x w"))
        return model

    return make


def _recursive() -> onnx.ModelProto:
    own = [helper.make_opsetid("own", 1), helper.make_opsetid("", 18)]
    call = helper.make_node("f", ["x"], ["y"], domain="own")
    return of_nodes(
        [call], {"x": [2]}, ["y"], functions=[helper.make_function("own", "f", ["x"], ["y"], [call], own)]
    )


def _metadata() -> onnx.ModelProto:
    model = of_shape([2])
    for key in ("tmconvert", "tmconvert.options", "hidden", "pkg.onnxscript", "source_file"):
        model.metadata_props.add(
            key=key, value='{"source": "../secret/weights", "calibration": "' + "[" * 9000
        )
    model.producer_name, model.doc_string = "\x1b[2J", "\x07" * 100
    return model


NAMES = [
    "../../elsewhere",
    "/dev/null",
    "a\x1b[2Jb",
    "\u202egnp",
    "'; import os #",
    "y" * 70_000,
    "<script>x</script>",
    "\n\r",
]
MORE_ONNX: dict[str, Callable[[], onnx.ModelProto]] = {
    "a cycle": _graph(step("Add", "x z"), step("Relu", "y", "z")),
    "a cycle of one": _graph(step("Relu", "y")),
    "equal results": _graph(step("Relu"), step("Neg")),
    "equal outputs": _graph(step("Relu"), outputs=("y", "y")),
    "an unknown output": _graph(step("Relu"), outputs=("q",)),
    "no outputs": _graph(step("Relu"), outputs=()),
    "an empty name": _graph(step("Relu", out="")),
    "a result that is the input": _graph(step("Relu", out="x"), outputs=("x",)),
    "deep conditions": lambda: _if(6),
    "a function of itself": _recursive,
    "metadata": _metadata,
    **{f"elements of type {kind}": _typed(kind) for kind in (0, 8, 14, 16, 17, 23, 99)},
    **{
        f"an output {name[:20]!r}": (lambda name=name: of_nodes([step("Relu", out=name)], {"x": [2]}, [name]))
        for name in NAMES
    },
    **{
        f"{operator} of nothing": _graph(helper.make_node(operator, [], ["y"]))
        for operator in (
            "Conv",
            "Loop",
            "If",
            "Scan",
            "Gather",
            "Reshape",
            "LSTM",
            "Resize",
            "Einsum",
            "Concat",
        )
    },
    **{
        f"Einsum {text[:12]!r}": (lambda text=text: of_shape([2, 2], step("Einsum", equation=text)))
        for text in ("", "->", "ii...->", "ij->ijk", "a" * 5000 + "->a", "\x1b->", "i,j,k->i")
    },
    "a resize to much": lambda: _resized(1e30),
    "a resize to nan": lambda: _resized(float("nan")),
    "a sequence": _graph(step("SequenceConstruct", "x", "s"), step("SequenceAt", "s s")),
    "a text": lambda: of_shape([2], step("StringNormalizer")),
    "Python": lambda: of_shape(
        [2], helper.make_node("PyOp", ["x"], ["y"], domain="com.microsoft", module="evil")
    ),
    "an attribute of a reference": lambda: of_shape([2], _reference()),
}


def _reference() -> onnx.NodeProto:
    made = step("LeakyRelu")
    made.attribute.append(onnx.AttributeProto(name="alpha", ref_attr_name="nothing", type=1))
    return made


def _resized(scale: float) -> onnx.ModelProto:
    model = of_shape([1, 1, 2, 2], helper.make_node("Resize", ["x", "", "s"], ["y"], mode="linear"))
    scales = np.array([1, 1, scale, scale], np.float32)
    model.graph.initializer.append(numpy_helper.from_array(scales, "s"))
    return model


# ---- samples


def png(width: int, height: int, data: bytes = b"") -> bytes:
    def chunk(kind: bytes, content: bytes) -> bytes:
        return (
            struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
        )

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(data))
        + chunk(b"IEND", b"")
    )


IMAGES = {
    "a huge image": png(2**31 - 1, 2**31 - 1),
    "a large image": png(60_000, 60_000),
    "no pixels": png(0, 0),
    "too few bytes": png(100, 100, b"\0" * 10),
    "PostScript": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n(ran) (w) file closefile\n",
    "SVG": b"<svg xmlns='http://www.w3.org/2000/svg'><image href='file:///etc/passwd'/></svg>",
    "a pickle": EVIL,
    "nothing": b"",
}
SAMPLES = {
    "a pickle": EVIL,
    "objects": npz(x=npy(HEADER.replace("<f4", "|O") % "(2,)", EVIL)),
    "texts": npz(x=npy(HEADER.replace("<f4", "<U4") % "(2,)", b"\0" * 32)),
    "dates": npz(x=npy(HEADER.replace("<f4", "<M8[D]") % "(2,)", b"\0" * 16)),
    "records": npz(x=npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }", b"\0" * 8)),
    "a member above the folder": archive({"../../elsewhere/x.npy": npy(HEADER % "(2,)", b"\0" * 8)}),
    "many names": archive({f"{number}.npy": npy(HEADER % "(2,)", b"\0" * 8) for number in range(500)}),
    "control characters": archive({"\x1b]0;x\x07.npy": npy(HEADER % "(2,)", b"\0" * 8)}),
    "infinite": npz(x=npy(HEADER % "(2,)", struct.pack("<ff", float("inf"), float("nan")))),
    "no samples": npz(x=npy(HEADER % "(0, 2)")),
    "a bomb": lambda: archive(
        {"x.npy": npy(HEADER % "(20000000, 2)", b"\0" * (160 << 20))}, zipfile.ZIP_DEFLATED
    ),
    "a version of the future": npz(x=b"\x93NUMPY\x09\x00" + b"\xff" * 20),
}
