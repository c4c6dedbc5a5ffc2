"""Peak memory of converting a model that is larger than what the conversion may use.

    python benchmarks/large_model.py --gigabytes 3
    python benchmarks/large_model.py --gigabytes 3 --source onnx
    python benchmarks/large_model.py --decoder --gigabytes 14
    python benchmarks/large_model.py --decoder --gigabytes 14 --verify

Makes a chain of linear layers, its weights generated while they are written, and converts it to ONNX with
external data and to TFLite, each in a process of its own. The source is a container, or an ONNX file with
external data of another opset, whose weights are zero but for a row. Prints time and peak memory: what the
process holds for itself, and the whole of what is resident, in which the mapped pages of the model count.

With ``--decoder`` the source is a folder of transformers in bfloat16, a Llama with the widths of 7 billion
parameters and as many layers as fit. It becomes int4 packages of onnxruntime-genai and LiteRT-LM, with
scratch files of twice its size meanwhile.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx

import tmconvert
import tmconvert.api
from tmconvert.frontends.megengine.vocabulary import VOCABULARY
from tmconvert.ir import CallFunction, GetAttr, InternalGraph, ModuleNode, TensorNode, TracedModule
from tmconvert.ir.ownership import assign_owners

WIDTH = 8192
LAYER_BYTES = WIDTH * WIDTH * 4
LINEAR = "megengine.functional.nn.linear"


def make(path: Path, layers: int) -> None:
    """A container of ``layers`` matrices, each of which is one row of numbers seen WIDTH times."""
    model = TracedModule("Chain", "user.Chain", vocabulary=VOCABULARY)
    model.producer = "benchmarks/large_model.py"
    graph = InternalGraph("Chain")
    self_node = graph.add_input(ModuleNode("self", "user.Chain"))
    value = graph.add_input(TensorNode("x", (1, WIDTH), np.dtype("float32")))
    generator = np.random.default_rng(0)
    for i in range(layers):
        row = (generator.random(WIDTH, np.float32) + 0.5) / WIDTH  # positive: nothing cancels
        model.tensors[f"w{i}"] = np.broadcast_to(row, (WIDTH, WIDTH))
        weight = TensorNode(f"w{i}", (WIDTH, WIDTH), np.dtype("float32"))
        graph.insert(GetAttr(self_node, f"w{i}", result=weight, id=2 * i + 2))
        result = TensorNode(f"y{i}", (1, WIDTH), np.dtype("float32"))
        arguments = (value, weight, None, "default")
        graph.insert(CallFunction(LINEAR, arguments, label="nn.linear", result=result, id=2 * i + 3))
        value = result
    graph.set_result(value)
    model.graphs["((M,T,),{})"] = graph
    assign_owners(graph, model)
    model.save(path)


def make_onnx(path: Path, layers: int) -> None:
    """Writes an ONNX file of products with ``layers`` matrices, and their external data."""
    data = path.with_suffix(".weights")
    generator = np.random.default_rng(0)
    weights = []
    with data.open("wb") as file:
        file.truncate(layers * LAYER_BYTES)  # zeros, which take no room
        for i in range(layers):
            file.seek(i * LAYER_BYTES)
            file.write((generator.random(WIDTH, np.float32) / WIDTH).tobytes())
            weight = onnx.TensorProto(name=f"w{i}", dims=[WIDTH, WIDTH], data_type=onnx.TensorProto.FLOAT)
            weight.data_location = onnx.TensorProto.EXTERNAL
            place = {"location": data.name, "offset": i * LAYER_BYTES, "length": LAYER_BYTES}
            for key, value in place.items():
                weight.external_data.add(key=key, value=str(value))
            weights.append(weight)
    names = ["x", *(f"y{i}" for i in range(layers))]
    nodes = [onnx.helper.make_node("MatMul", [names[i], f"w{i}"], [names[i + 1]]) for i in range(layers)]
    ends = [
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["batch", WIDTH])
        for name in (names[0], names[-1])
    ]
    graph = onnx.helper.make_graph(nodes, "chain", ends[:1], ends[1:], weights)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(model.SerializeToString())


DECODER = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096,
    "intermediate_size": 11008, "num_attention_heads": 32, "num_key_value_heads": 32,
    "vocab_size": 32000, "rms_norm_eps": 1e-5,
    "max_position_embeddings": 4096, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
    "eos_token_id": 2,
}  # fmt: skip


def make_decoder(folder: Path, gigabytes: float) -> int:
    """Writes a folder of transformers, its weights one row of random numbers shifted; returns its bytes."""
    width, inner, words = (DECODER[name] for name in ("hidden_size", "intermediate_size", "vocab_size"))
    layer: dict[str, tuple[int, ...]] = {
        f"self_attn.{name}_proj.weight": (width, width) for name in ("q", "k", "v", "o")
    }
    layer |= {f"mlp.{name}_proj.weight": (inner, width) for name in ("gate", "up")}
    layer |= {"mlp.down_proj.weight": (width, inner)}
    layer |= {f"{name}_layernorm.weight": (width,) for name in ("input", "post_attention")}
    outside = {
        **dict.fromkeys(["model.embed_tokens.weight", "lm_head.weight"], (words, width)),
        "model.norm.weight": (width,),
    }
    of_layer = 2 * sum(map(math.prod, layer.values()))
    count = max(1, round((gigabytes * 1e9 - 2 * sum(map(math.prod, outside.values()))) / of_layer))
    shapes = {
        **outside,
        **{f"model.layers.{i}.{name}": each for i in range(count) for name, each in layer.items()},
    }
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({**DECODER, "num_hidden_layers": count}))
    header, place = {}, 0
    for name, shape in shapes.items():
        end = place + 2 * math.prod(shape)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [place, end]}
        place = end
    text = json.dumps(header).encode()
    random = np.random.default_rng(0)
    with (folder / "model.safetensors").open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for shape in shapes.values():
            row = (
                np.ones(shape[-1])
                if len(shape) == 1
                else random.standard_normal(2 * shape[-1]) / shape[-1] ** 0.5
            )
            bits = (row.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
            for number in range(1 if len(shape) == 1 else shape[0]):
                start = number % shape[-1] if len(shape) > 1 else 0
                file.write(bits[start : start + shape[-1]].tobytes())
    return place


def write_tokenizer(folder: Path) -> None:
    """Writes a tokenizer of as many words as the decoder has, which a .litertlm file contains."""
    words = {f"w{i}": i for i in range(DECODER["vocab_size"])}
    model = {"type": "WordLevel", "vocab": words, "unk_token": "w0"}
    (folder / "tokenizer.json").write_text(
        json.dumps({"version": "1.0", "pre_tokenizer": {"type": "WhitespaceSplit"}, "model": model})
    )


def measure_decoder(folder: Path, gigabytes: float, programs: list[str], verify: bool) -> None:
    source, out = folder / "decoder", folder / "package"
    size = make_decoder(source, gigabytes)
    write_tokenizer(source)
    for program in programs:
        command = [sys.executable, "-m", "tmconvert", "package", str(source), "-o", str(out)]
        options = ["--for", program, "--weights", "int4", *([] if verify else ["--no-verify"])]
        options += ["--cache-length", "1024"] if program == "litert-lm" else []
        seconds, own, resident, processors = measured([*command, *options], shows=verify)
        made = sum(path.stat().st_size for path in out.iterdir())
        shutil.rmtree(out)
        print(
            f"{program}: {size / 1e9:.2f} GB of bfloat16 to {made / 1e9:.2f} GB of int4: {seconds:.0f} s, "
            f"{size / 1e9 / seconds:.3f} GB/s, "
            f"{processors:.0f} s of processors, {own / 1024:.2f} GiB of its own, "
            f"{resident / 1024:.2f} GiB resident"
        )


def measured(command: list[str], *, shows: bool = False) -> tuple[float, float, float, float]:
    """(seconds, peak MiB of its own memory, peak MiB resident, seconds of processors) of one process.

    Its own memory includes that of the runtimes and programs that it starts.
    """
    started, own = time.perf_counter(), 0.0
    with subprocess.Popen(command, stdout=None if shows else subprocess.DEVNULL) as process:
        while True:
            own = max(own, _own_memory(process.pid))
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            time.sleep(0.01)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"failed with status {process.returncode}: {' '.join(command)}")
    processors = usage.ru_utime + usage.ru_stime
    return time.perf_counter() - started, own, usage.ru_maxrss / 1024, processors


def _own_memory(pid: int) -> float:
    """MiB of memory that is no page of a file, of a process and those that it started."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return 0.0
    line = next((line for line in status.splitlines() if line.startswith("RssAnon")), "RssAnon: 0 kB")
    return int(line.split()[1]) / 1024 + sum(_own_memory(int(child)) for child in children)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=3.0)
    parser.add_argument("--folder", type=Path, help="where there is room for twice as much")
    parser.add_argument("--source", choices=["container", "onnx"], default="container")
    parser.add_argument("--decoder", action="store_true", help="a folder of transformers in bfloat16")
    parser.add_argument("--verify", action="store_true", help="verify packages, and print what is said")
    parser.add_argument("--for", dest="programs", nargs="+", default=["onnxruntime-genai", "litert-lm"])
    parser.add_argument("--make", type=Path, help="only make the container there")
    options = parser.parse_args()
    layers = math.ceil(options.gigabytes * 1e9 / LAYER_BYTES)
    if options.make:
        make(options.make, layers)
        return
    if options.decoder:
        with tempfile.TemporaryDirectory(dir=options.folder) as made_in:
            measure_decoder(Path(made_in), options.gigabytes, options.programs, options.verify)
        return
    print(f"imports alone: {measured([sys.executable, '-c', 'import tmconvert.api, onnx'])[2]:.0f} MiB")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        tool = [sys.executable, "-m", "tmconvert"]
        model, again = Path(folder) / "large.tm", Path(folder) / "again.tm"
        if options.source == "onnx":
            model = Path(folder) / "source.onnx"
            make_onnx(model, layers)
        else:
            own = ["--make", str(model), "--gigabytes", str(options.gigabytes)]
            report("make the container", [sys.executable, __file__, *own])
        print(f"{'':26} {layers * LAYER_BYTES / 2**20:.0f} MiB of {layers} layers")
        report("inspect it", [*tool, "inspect", str(model)])
        if options.source == "container":
            report("save it again", [*tool, "save", str(model), str(again)])
            again.unlink()
        out, data = Path(folder) / "large.onnx", ["--external-data", "--no-verify", "--opset", "13"]
        report("convert it to ONNX", [*tool, "onnx", str(model), str(out), *data])
        for path in Path(folder).glob("large.onnx*"):
            path.unlink()
        out = Path(folder) / "large.tflite"
        report("convert it to TFLite", [*tool, "tflite", str(model), str(out), "--no-verify"])


def report(what: str, command: list[str]) -> None:
    seconds, own, resident, _ = measured(command)
    print(f"{what:26} {seconds:6.1f} s {own:7.0f} MiB of its own {resident:7.0f} MiB resident")


if __name__ == "__main__":
    assert tmconvert.__version__
    main()
