"""Packages of tiny configurations, each opened by its program: `tmconvert package`.

    python benchmarks/packages.py [NAME...] [--for onnxruntime-genai transformers.js]

The folders have random weights, as `save_pretrained` writes them. A row is right if the program is
installed, opens the package, and computes what PyTorch does; docs/how-to/packages.md has the variables that
name where it is installed. Prompts give different tokens: the last number of a decoder's row.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
import torchvision_ops
from rows import table

import tmconvert
from tmconvert.errors import TmconvertError
from tmconvert.packaging import generation

torchvision_ops.declare = lambda: None  # these models need none of them
from decoding_families import FAMILIES, HEADS, LATENT, OLDER, TINY, VOCABULARY, drawn_anew  # noqa: E402

MAMBA = {"mamba_n_groups": 1, "mamba_d_state": 4, "mamba_chunk_size": 8, "mamba_expand": 2}
USED_BY_THE_TABLE = (HEADS, LATENT, OLDER, MAMBA)
# name -> (the class of its configuration, what differs from TINY)
OTHERS: dict[str, tuple[str, dict[str, Any]]] = table(__file__, globals())
HYBRIDS = ("lfm2", "falcon-h1", "granite-hybrid")  # whose layers have other states than keys and values
UNEVEN = ("deepseek-v3", "minicpm3")  # whose keys and values have different sizes
DECODERS = (
    *("llama", "qwen2", "qwen3", "mistral", "gemma2", "gemma3", "phi3", "gpt2", "smollm3", "olmo2", "helium"),
    *("falcon", "gpt-neox", "opt", "stablelm", "cohere2", "starcoder2", "granitemoe", "glm4", "ernie4-5"),
    *("gptj", "gpt-neo", "gpt-oss", "bloom", "hunyuan", "nemotron", "exaone4"),
    *(name for name in OTHERS if name not in (*HYBRIDS, *UNEVEN)),
)
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
TEXT = {**SIZES, "vocab_size": 61, "max_position_embeddings": 64}
IMAGES = {**SIZES, "image_size": 32, "patch_size": 8}
# name -> (class of the model, class of its configuration, settings)
ENCODERS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "bert": ("BertModel", "BertConfig", TEXT),
    "bert-mlm": ("BertForMaskedLM", "BertConfig", TEXT),
    "roberta": ("RobertaForSequenceClassification", "RobertaConfig", TEXT),
    "mpnet": ("MPNetModel", "MPNetConfig", TEXT),
    "vit": ("ViTForImageClassification", "ViTConfig", IMAGES),
    "deit": ("DeiTModel", "DeiTConfig", IMAGES),
}
WIDE = {
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "vocab_size": 61,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "eos_token_id": None,
    "bos_token_id": 1,
    "decoder_start_token_id": 2,
}
T5 = {"vocab_size": 61, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4} | {
    "decoder_start_token_id": 2,
    "eos_token_id": None,
    "pad_token_id": 0,
}
SPEECH = {**WIDE, "num_mel_bins": 8, "max_source_positions": 20, "max_target_positions": 64}
CONVOLVED = {**WIDE, "input_feat_per_channel": 8, "input_channels": 1, "conv_channels": 16} | {
    "max_source_positions": 80,
    "max_target_positions": 64,
}
MOONSHINE = {
    **{
        key: TEXT[key]
        for key in ("vocab_size", "hidden_size", "intermediate_size", "max_position_embeddings")
    },
    **{
        f"{side}_num_{name}": count
        for side in ("encoder", "decoder")
        for name, count in (("hidden_layers", 2), ("attention_heads", 4), ("key_value_heads", 4))
    },
    "decoder_start_token_id": 2,
    "eos_token_id": None,
    "pad_token_id": 0,
}
UNTIED = {"tie_word_embeddings": False}  # tied ones would repeat tokens
ENCODER_DECODERS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "t5": ("T5ForConditionalGeneration", "T5Config", T5),
    "bart": ("BartForConditionalGeneration", "BartConfig", {**WIDE, **UNTIED}),
    "mbart": ("MBartForConditionalGeneration", "MBartConfig", WIDE),
    "m2m100": ("M2M100ForConditionalGeneration", "M2M100Config", WIDE),
    "pegasus": ("PegasusForConditionalGeneration", "PegasusConfig", WIDE),
    "marian": ("MarianMTModel", "MarianConfig", {**WIDE, **UNTIED, "scale_embedding": True}),
    "blenderbot": ("BlenderbotForConditionalGeneration", "BlenderbotConfig", WIDE),
    "blenderbot-small": ("BlenderbotSmallForConditionalGeneration", "BlenderbotSmallConfig", WIDE),
    "mt5": ("MT5ForConditionalGeneration", "MT5Config", T5),
    "t5-uneven": ("T5ForConditionalGeneration", "T5Config", {**T5, "d_kv": 6, "num_decoder_layers": 1}),
    "speech-to-text": ("Speech2TextForConditionalGeneration", "Speech2TextConfig", CONVOLVED),
    "whisper": ("WhisperForConditionalGeneration", "WhisperConfig", SPEECH),
    "moonshine": ("MoonshineForConditionalGeneration", "MoonshineConfig", MOONSHINE),
}
GPT2 = {"n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 61, "n_positions": 64, "eos_token_id": None}
# name -> (class of the model, that of the configuration of its encoder, settings); the decoder is GPT-2
JOINED = {
    "vit-gpt2": ("VisionEncoderDecoderModel", "ViTConfig", IMAGES),
    "bert-gpt2": ("EncoderDecoderModel", "BertConfig", TEXT),
}
GROUPED = {**TEXT, "num_key_value_heads": 2, "max_position_embeddings": 128, "eos_token_id": None}
IMAGE_TOKEN = {"image_token_id": 60}
# name -> (class of its configuration, that of images, that of text, settings)
VISION_LANGUAGE: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    "llava": ("LlavaConfig", "CLIPVisionConfig", "LlamaConfig", {}),
    "idefics3": ("Idefics3Config", "Idefics3VisionConfig", "LlamaConfig", {"scale_factor": 2}),
    "smolvlm": ("SmolVLMConfig", "SmolVLMVisionConfig", "LlamaConfig", {"scale_factor": 2}),
    "paligemma": ("PaliGemmaConfig", "SiglipVisionConfig", "GemmaConfig", {"projection_dim": 32}),
    "gemma3-images": ("Gemma3Config", "SiglipVisionConfig", "Gemma3TextConfig", {"mm_tokens_per_image": 4}),
}
SENTENCES = ("bert", "mpnet")
# decoders for LiteRT-LM, whose tokenizer has a word for each token
TEXTS = ("llama", "qwen2", "qwen3", "mistral", "gemma2", "gemma3", "phi3", "smollm3")
SPREAD, LEAST = 2, 4  # a factor of weights; different tokens of prompts, at least
generation.LENGTHS = (1, 2, 3, 5, 7, 9, 12, 15, 18, 20)  # of ten prompts
# name -> (file of the configuration, class of the model, task), with images of 64 x 64
DETECTORS = {
    "yolo11": ("yolo11n.yaml", "DetectionModel", "detect"),
    "yolo11-segment": ("yolo11n-seg.yaml", "SegmentationModel", "segment"),
    "yolo11-classify": ("yolo11n-cls.yaml", "ClassificationModel", "classify"),
    "yolo11-pose": ("yolo11n-pose.yaml", "PoseModel", "pose"),
    "yolo11-obb": ("yolo11n-obb.yaml", "OBBModel", "obb"),
    "yolo26": ("yolo26n.yaml", "DetectionModel", "detect"),
    "yolov5u": ("yolov5n.yaml", "DetectionModel", "detect"),
    "yolov8": ("yolov8n.yaml", "DetectionModel", "detect"),
    "yolov10": ("yolov10n.yaml", "DetectionModel", "detect"),
    "yolo-world": ("yolov8s-world.yaml", "WorldModel", "detect"),
    "rt-detr": ("yolov8n-rtdetr.yaml", "RTDETRDetectionModel", "detect"),
}
PIPELINES = ("stable-diffusion",)
KINDS = {
    "onnxruntime-genai": (*DECODERS, *VISION_LANGUAGE),
    "transformers.js": (
        *(*DECODERS, *HYBRIDS, *UNEVEN, *ENCODERS),
        *(name for name in VISION_LANGUAGE if name != "gemma3-images"),
        *(name for name in (*ENCODER_DECODERS, *JOINED) if name != "speech-to-text"),
    ),
    "optimum": (*DECODERS, *UNEVEN, *ENCODERS, *ENCODER_DECODERS, *JOINED),
    "sentence-transformers": SENTENCES,
    "ultralytics": tuple(DETECTORS),
    "diffusers": PIPELINES,
    "litert-lm": TEXTS,
}
WORDS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "a",
    "small",
    "text",
    ".",
    "another",
    "one",
    ",",
    "which",
    "has",
    "more",
    "words",
    "than",
    "the",
    "first",
]


def saved(name: str, folder: Path) -> None:
    """Writes the folder of a model with random weights, and a tokenizer for encoders of text.

    Raises ImportError where its library is not installed.
    """
    torch.manual_seed(0)
    if name in DETECTORS:
        _save_detector(*DETECTORS[name], folder)
        return
    if name in PIPELINES:
        _save_pipeline(folder)
        return
    import transformers

    if name in FAMILIES:
        FAMILIES[name]().save_pretrained(folder)
        if name in TEXTS:
            _numbered_words().save_pretrained(folder)
        return
    if name in OTHERS:
        kind, settings = OTHERS[name]
        config = getattr(transformers, kind)(**{**TINY, **settings})
        drawn_anew(transformers.AutoModelForCausalLM.from_config(config)).save_pretrained(folder)
        return
    if name in VISION_LANGUAGE:
        _with_images(*VISION_LANGUAGE[name]).save_pretrained(folder)
        return
    made = _joined(*JOINED[name]) if name in JOINED else None
    if made is None:
        model, config, settings = {**ENCODERS, **ENCODER_DECODERS}[name]
        made = getattr(transformers, model)(getattr(transformers, config)(**settings))
    drawn_anew(made)
    if name in ENCODER_DECODERS:  # whose tied embeddings repeat tokens otherwise
        for each in made.parameters():
            each.data.mul_(SPREAD)
    made.eval().save_pretrained(folder)
    if name in SENTENCES:
        _tokenizer().save_pretrained(folder)


def _joined(kind: str, encoder: str, settings: dict[str, Any]) -> torch.nn.Module:
    import transformers

    found = getattr(transformers, kind)
    decoder = transformers.GPT2Config(**GPT2, is_decoder=True, add_cross_attention=True)
    config = found.config_class.from_encoder_decoder_configs(
        getattr(transformers, encoder)(**settings), decoder
    )
    config.decoder_start_token_id, config.pad_token_id, config.eos_token_id = 2, 0, None
    return found(config)


def _with_images(kind: str, images: str, text: str, settings: dict[str, Any]) -> torch.nn.Module:
    import transformers

    config = getattr(transformers, kind)(
        vision_config=getattr(transformers, images)(**IMAGES).to_dict(),
        text_config=getattr(transformers, text)(**GROUPED, head_dim=8).to_dict(),
        **IMAGE_TOKEN,
        **settings,
    )
    return drawn_anew(transformers.AutoModelForImageTextToText.from_config(config))


def _save_detector(configuration: str, kind: str, task: str, file: Path) -> None:
    from ultralytics.nn import tasks

    made = drawn_anew(getattr(tasks, kind)(configuration, verbose=False), 0.02)
    made.args, made.names = {"imgsz": 64}, {number: f"class {number}" for number in range(len(made.names))}
    made.task = task
    torch.save({"model": made, "train_args": made.args}, file)


def _save_pipeline(folder: Path) -> None:
    import diffusers
    import transformers

    widths = {"block_out_channels": (8, 16), "norm_num_groups": 4}
    parts = {
        "unet": diffusers.UNet2DConditionModel(
            **widths,
            layers_per_block=1,
            sample_size=16,
            down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
            up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
            cross_attention_dim=32,
            attention_head_dim=4,
        ),
        "vae": diffusers.AutoencoderKL(
            **widths,
            down_block_types=("DownEncoderBlock2D",) * 2,
            up_block_types=("UpDecoderBlock2D",) * 2,
            latent_channels=4,
        ),
        "text_encoder": transformers.CLIPTextModel(
            transformers.CLIPTextConfig(**{**TEXT, "max_position_embeddings": 16, "eos_token_id": 2})
        ),
    }
    others = dict.fromkeys(("tokenizer", "safety_checker", "feature_extractor"))
    made = diffusers.StableDiffusionPipeline(
        **{name: drawn_anew(part, 0.05) for name, part in parts.items()},
        **others,
        scheduler=diffusers.DDIMScheduler(clip_sample=False, set_alpha_to_one=False),
        requires_safety_checker=False,
    )
    made.save_pretrained(folder)


def _tokenizer() -> Any:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    numbers = {word: number for number, word in enumerate(WORDS)}
    made = Tokenizer(models.WordLevel(numbers, unk_token="[UNK]"))
    made.normalizer, made.pre_tokenizer = normalizers.Lowercase(), pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    special = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    return PreTrainedTokenizerFast(tokenizer_object=made, **special)


def _numbered_words() -> Any:
    """Returns a tokenizer that puts token 1 before a text; the others are words such as <5>."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    numbers = {f"<{number}>": number for number in range(VOCABULARY)}
    made = Tokenizer(models.WordLevel(numbers, unk_token="<0>"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made.post_processor = processors.TemplateProcessing(single="<1> $A", special_tokens=[("<1>", 1)])
    return PreTrainedTokenizerFast(tokenizer_object=made, unk_token="<0>")


def row(name: str, kind: str, folder: Path) -> bool:
    """Makes a package, and prints what came of it."""
    start = time.process_time()
    options: dict[str, Any] = {}
    if kind == "transformers.js":
        options["dtypes"] = ["fp32", "q4"]
    if kind == "litert-lm":
        options = {"cache_length": 64, "prefill_lengths": [8, 32]}
    if kind == "ultralytics":
        folder = folder.rename(folder.with_suffix(".pt")) if folder.suffix != ".pt" else folder
        options["allow_code"] = True
    try:
        report = tmconvert.package(folder, folder.with_name(f"{name}-{kind}"), kind=kind, **options)
    except TmconvertError as error:
        is_right, text = False, str(error).replace("\n", " / ")[:200]
    else:
        text = "; ".join(each.text for each in report.checks)
        counts = [int(each) for each in re.findall(r"(\d+) different ones", text)]
        is_right = report.opened and min(counts, default=LEAST) >= LEAST
    print(
        f"| {name} | {kind} | {'yes' if is_right else 'NO'} | {text} | {time.process_time() - start:.0f} s |",
        flush=True,
    )
    return is_right


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--for", nargs="+", default=list(KINDS), choices=list(KINDS), dest="kinds")
    given = parser.parse_args()
    torch.set_num_threads(1)
    print("| model | program | right | what it computed | processor time |\n|---|---|---|---|---|")
    results = []
    for name in given.names or dict.fromkeys(each for kind in given.kinds for each in KINDS[kind]):
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary) / name
            try:
                saved(name, folder)
            except ImportError as error:
                print(f"| {name} | | left out | {error} | |", flush=True)
                continue
            results += [row(name, kind, folder) for kind in given.kinds if name in KINDS[kind]]
    print(f"{sum(results)} of {len(results)} are right")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
