"""Folders of transformers from strangers: nothing in them is executed, and nothing else is opened."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tmconvert
from tests.cli.runner import environment
from tests.frontends.torch.test_pretrained import SMALL
from tmconvert.errors import LoadError

ROOT = Path(tmconvert.__file__).absolute().parents[1]
MARK = "open('ran', 'w').close()"
BERT = {"model_type": "bert", "architectures": ["BertModel"], **SMALL, "vocab_size": 31}
DETR = {"model_type": "detr", "architectures": ["DetrModel"], "use_timm_backbone": False}
TIMM = {"model_type": "timm_wrapper", "architectures": ["TimmWrapperModel"], "architecture": "resnet18"}
DPT = {"model_type": "dpt", "architectures": ["DPTModel"], "use_timm_backbone": False}
GLUE = {"model_type": "lightglue", "architectures": ["LightGlueForKeypointMatching"]}
CODE = {
    "auto_map": {"AutoConfig": "code--code.Config", "AutoModel": "code--code.Model"},
    "model_type": "mine",
}

# name -> (the key that is named, the configuration)
ATTACKS: dict[str, tuple[str, dict[str, Any]]] = {
    "code of a backbone": (
        "backbone_kwargs",
        {
            **DPT,
            "backbone": "code",
            "use_pretrained_backbone": True,
            "backbone_kwargs": {"trust_remote_code": True},
        },
    ),
    "code of a backbone's configuration": (
        "backbone_kwargs",
        {**DPT, "backbone": "code", "backbone_kwargs": {"trust_remote_code": True}},
    ),
    "code of a detector": (
        "trust_remote_code",
        {**GLUE, "trust_remote_code": True, "keypoint_detector_config": {**CODE, "_name_or_path": "code"}},
    ),
    "pickle": ("model_args", {**TIMM, "model_args": {"checkpoint_path": "evil.pth"}}),
    "pickle of pretrained weights": (
        "model_args",
        {**TIMM, "model_args": {"pretrained": True, "pretrained_cfg": {"file": "evil.pth"}}},
    ),
    "folder of timm": ("architecture", {**TIMM, "architecture": "local-dir:code"}),
    "download of timm": ("architecture", {**TIMM, "architecture": "hf-hub:x/y"}),
    "download of a backbone": ("backbone", {**DETR, "backbone": "x/y"}),
    "download of a backbone's weights": (
        "backbone",
        {**DETR, "backbone": "x/y", "use_pretrained_backbone": True},
    ),
    "download of a backbone of timm": (
        "backbone_config.backbone",
        {**DETR, "backbone_config": {"model_type": "timm_backbone", "backbone": "hf-hub:x/y"}},
    ),
    "kernels": ("attn_implementation", {**BERT, "attn_implementation": "x/y"}),
    "kernels of a part": ("_attn_implementation", {**BERT, "_attn_implementation": {"": "x/y"}}),
    "quantized": (
        "quantization_config",
        {**BERT, "quantization_config": {"quant_method": "bitsandbytes"}},
    ),
    "weights elsewhere": ("transformers_weights", {**BERT, "transformers_weights": "../evil.safetensors"}),
    "configuration elsewhere": (
        "configuration_files",
        {**BERT, "configuration_files": ["config.0.0.0.json"]},
    ),
    "dunder": ("__class__", {**BERT, "__class__": "x"}),
    "huge": ("vocab_size", {**BERT, "vocab_size": 1 << 63}),
    "endless classes": ("num_labels", {**BERT, "num_labels": 1 << 40}),
    "endless layers": ("num_hidden_layers", {**BERT, "num_hidden_layers": 10**8}),
    "endless layers of a part": ("text_config.n_layers", {**BERT, "text_config": {"n_layers": 10**8}}),
    "endless stages": ("depths", {**BERT, "depths": [2, 10**8]}),
    "type": ("model_type", {"model_type": "../x"}),
    "type of a part": ("text_config.model_type", {**BERT, "text_config": {"model_type": 3}}),
    "class": ("architectures", {**BERT, "architectures": ["x" * 4000]}),
    "number as a class": ("architectures", {**BERT, "architectures": [1]}),
    "nested classes": ("architectures", {**BERT, "architectures": [[["BertModel"]]]}),
    "escape sequence as a class": ("architectures", {**BERT, "architectures": ["\x1b[2J"]}),
}
# without a key that is refused: transformers decides
OTHERS: dict[str, dict[str, Any]] = {
    "code": CODE,
    "backbone in the current folder": {**DETR, "backbone": "code"},
    "weights of a backbone of timm": {
        **DETR,
        "use_timm_backbone": True,
        "use_pretrained_backbone": True,
        "backbone": "resnet18",
    },
    "automatic class": {**BERT, "architectures": ["AutoConfig"]},
    "automatic model": {**BERT, "architectures": ["AutoModel"]},
    "tokenizer": {**BERT, "architectures": ["BertTokenizer"]},
    "module": {**BERT, "architectures": ["utils"]},
    "unknown class": {**BERT, "architectures": ["MineModel"]},
    "class of TensorFlow": {**BERT, "architectures": ["TFBertModel"]},
    "another model": {**BERT, "architectures": ["GPT2Model"]},
    "huge sizes": {**BERT, "vocab_size": 1 << 62},
    "options that are methods": {**BERT, "to_dict": 1, "get_text_config": "x", "sub_configs": {"a": "b"}},
    "wrong types": {**BERT, "hidden_size": "x", "id2label": [[]], "attribute_map": 3},
    "nested": {**BERT, "text_config": json.loads('{"a":' * 300 + "1" + "}" * 300)},
}
# Converts each folder that is named, and prints the error and what passed the confinement.
PROGRAM = """
import json, os, sys
import tmconvert
from tmconvert.frontends.torch.tracing.programs import confinement
from tmconvert.frontends.torch import pretrained_configuration

if sys.argv[1] == "unchecked":  # what the confinement alone holds
    pretrained_configuration.RULES.clear()
confinement._install()  # events that it refuses are not heard below
base, heard = os.getcwd(), []
OWN = ("config.json", "model.safetensors")

def hear(event, args):
    if event in ("pickle.find_class", "socket.connect", "socket.getaddrinfo", "subprocess.Popen"):
        heard.append(event)
    path = args[0] if event == "open" else getattr(args[0], "co_filename", 0) if event == "exec" else 0
    if isinstance(path, str) and not path.startswith("<") and os.path.abspath(path).startswith(base + os.sep):
        if event == "exec" or os.path.basename(path) not in OWN or "net-" not in path:
            heard.append(f"{event} {path}")

import transformers, timm, safetensors.torch, torchvision
sys.addaudithook(hear)
for folder in sys.argv[2:]:
    try:
        tmconvert.load(folder)
        code, text = "", "converted"
    except tmconvert.errors.TmconvertError as error:
        code, text = error.code, str(error)
    except BaseException as error:
        code, text = type(error).__name__, str(error)
    ran = os.path.exists("ran")
    print(json.dumps({"folder": folder, "code": code, "text": text, "heard": heard, "ran": ran}))
    heard.clear()
"""


class Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return exec, (MARK,)


def write_weights(path: Path) -> None:
    path.write_bytes((2).to_bytes(8, "little") + b"{}")


def write_folder(path: Path, config: dict[str, Any]) -> Path:
    path.mkdir(parents=True)
    (path / "config.json").write_text(json.dumps(config))
    write_weights(path / "model.safetensors")
    (path / "code.py").write_text(MARK)
    return path


@pytest.mark.parametrize("name", ATTACKS)
def test_what_asks_for_code_or_files_is_refused_by_its_key(tmp_path: Path, name: str) -> None:
    key, config = ATTACKS[name]
    for number, document in enumerate((config, {"model_type": "x", "parts": [{"part": config}]})):
        with pytest.raises(LoadError) as caught:
            tmconvert.load(write_folder(tmp_path / str(number), document))
        assert caught.value.code == "TM1028"
        assert f"config.json: {'parts.part.' * number}{key}" in caught.value.message
        assert len(caught.value.message) < 900 and "\x1b" not in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["checked", "unchecked"])
def test_folders_execute_open_and_connect_to_nothing(tmp_path: Path, mode: str) -> None:
    for package in ("transformers", "timm"):
        pytest.importorskip(package)
    configs = {**{name: config for name, (_, config) in ATTACKS.items()}, **OTHERS}
    folders = [
        write_folder(tmp_path / f"net-{number}", config).name
        for number, config in enumerate(configs.values())
    ]
    write_folder(tmp_path / "code", {**CODE, "architecture": "resnet18"})
    (tmp_path / "evil.pth").write_bytes(pickle.dumps(Evil()))
    write_weights(tmp_path / "evil.safetensors")
    (tmp_path / "program.py").write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "program.py", mode, *folders],
        cwd=tmp_path,
        env=environment(PYTHONPATH=str(ROOT)),
        capture_output=True,
        text=True,
        check=False,
    )
    found = [json.loads(line) for line in done.stdout.splitlines()]
    for name, each in zip(configs, found, strict=True):
        assert (each["code"], each["heard"], each["ran"]) == ("TM1028", [], False), (name, each)
    assert not done.stderr
