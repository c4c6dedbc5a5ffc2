"""Packages of diffusers: the parts of a pipeline in the folders that the pipelines of optimum read."""

from __future__ import annotations

from tmconvert.errors import LoadError
from tmconvert.errors.source import Source
from tmconvert.frontends.torch.entry import trace_pipeline
from tmconvert.packaging.consumer import Consumer
from tmconvert.packaging.kind import Converted, Kind, Modules, write_json
from tmconvert.packaging.source import INDEX, PackageSource, copied_files, find_folder, json_object
from tmconvert.packaging.tasks import PIPELINE

# parts by the folder of the source that has their configuration
PARTS = {"text_encoder": "text_encoder", "unet": "unet", "vae_encoder": "vae", "vae_decoder": "vae"}
COPIED = ("tokenizer", "scheduler", "feature_extractor")
_LIBRARIES = ("transformers", "diffusers")
# settings of a U-Net that takes more than images, a time and the states of a text
_CONDITIONS = ("class_embed_type", "num_class_embeds", "addition_embed_type", "encoder_hid_dim_type")
_UNKNOWN = ("text_encoder_2", "image_encoder", "transformer", "controlnet", "prior")


def _find(name: str, *, download: bool, allow_code: bool) -> PackageSource:
    """Returns the folder of a pipeline. Raises LoadError TM1001, TM1028, TM1030."""
    folder = find_folder(name, INDEX, download=download)
    index = json_object(folder / INDEX)
    for key, value in index.items():
        if isinstance(value, list) and (value or [""])[0] not in (None, *_LIBRARIES):
            reason = f"{INDEX}: {key:.80} would run code of {value[:1]!s:.80}"
            raise LoadError("TM1028", reason, source=Source(str(folder)))
    return PackageSource(folder, {**index, "architectures": [str(index.get("_class_name", "?"))]}, {})


def _classes(source: PackageSource) -> dict[str, str]:
    """Returns the names of the classes of the parts by folder; those that the pipeline lacks are empty."""
    found = {name: source.configuration.get(name) for name in PARTS.values()}
    return {name: str(each[1] or "") if isinstance(each, list) else "" for name, each in found.items()}


def _refusal(source: PackageSource) -> str:
    missing = [name for name, each in _classes(source).items() if not each]
    if missing:
        return f"it takes pipelines with a text encoder, a U-Net and a VAE, and this has no {missing[0]}"
    more = [name for name in _UNKNOWN if (source.configuration.get(name) or [None])[0]]
    if more:
        return f"its {more[0]} is not known"
    settings = json_object(source.folder / "unet" / "config.json")
    conditions = [name for name in _CONDITIONS if settings.get(name) is not None]
    return f"its U-Net has inputs that are not known ({conditions[0]})" if conditions else ""


def _trace(source: PackageSource, task: str) -> Modules:
    return trace_pipeline(source.folder, _classes(source))


def _write(made: Converted) -> None:
    folder, source = made.folder, made.source
    for part, origin in PARTS.items():
        write_json(folder / part / "config.json", json_object(source.folder / origin / "config.json"))
    for name in COPIED:
        (folder / name).mkdir()
        for file, content in copied_files(source.folder / name):
            (folder / name / file).write_bytes(content)
        if not any((folder / name).iterdir()):
            (folder / name).rmdir()
    index = {name: each for name, each in source.configuration.items() if name != "architectures"}
    index |= {"safety_checker": [None, None], "requires_safety_checker": False}
    write_json(folder / INDEX, index)


KIND = Kind(
    "diffusers",
    Consumer("optimum", "open_diffusers.py", "pip install optimum-onnx diffusers"),
    {PIPELINE: {part: f"{part}/model.onnx" for part in PARTS}},
    options={"accept_range": True},  # of the batch: layers of diffusers compute large ones in another way
    find=_find,
    refusal=_refusal,
    task=lambda source: PIPELINE,
    trace=_trace,
    write=_write,
)
