"""Generates tokens in optimum, or runs a model once; needs nothing of tmconvert."""

import importlib
from importlib.metadata import version
from typing import Any

from question import packed, reply, unpacked

# the class of an encoder-decoder, by the input of its encoder
ENCODERS = {
    "input_ids": "ORTModelForSeq2SeqLM",
    "input_features": "ORTModelForSpeechSeq2Seq",
    "input_values": "ORTModelForSpeechSeq2Seq",
    "pixel_values": "ORTModelForVision2Seq",
}


def answer(question: dict[str, Any]) -> dict[str, Any]:
    torch = importlib.import_module("torch")
    library = importlib.import_module("optimum.onnxruntime")
    folder, task = question["folder"], question["task"]
    found: dict[str, Any] = {"version": version("optimum-onnx")}
    if task == "once":
        model = library.ORTModelForCustomTasks.from_pretrained(folder)
        outputs = model(**_tensors(question["parts"][""]["inputs"]))
        return {**found, "outputs": {"": {name: packed(tensor.numpy()) for name, tensor in outputs.items()}}}
    kinds = [kind for name, kind in ENCODERS.items() if name in question["inputs"][0]]
    model = getattr(library, kinds[0] if kinds else "ORTModelForCausalLM").from_pretrained(folder)
    found["tokens"] = []
    for prompt, inputs in zip(question["prompts"], question["inputs"], strict=True):
        tokens = torch.tensor([prompt])
        given = {"input_ids": tokens, "attention_mask": tokens.new_ones(tokens.shape)}
        if inputs:
            given = {**_tensors(inputs), "decoder_input_ids": tokens}
        found["tokens"].append(_generated(model, given, question)[len(prompt) :])
    return found


def _tensors(inputs: dict[str, Any]) -> dict[str, Any]:
    torch = importlib.import_module("torch")
    return {name: torch.from_numpy(unpacked(each)) for name, each in inputs.items()}


def _generated(model: Any, inputs: dict[str, Any], question: dict[str, Any]) -> list[int]:
    """Generates greedily, without what the settings of the folder add to logits."""
    transformers = importlib.import_module("transformers")
    settings = transformers.GenerationConfig(
        max_new_tokens=question["steps"],
        do_sample=False,
        eos_token_id=question["ends"] or None,
        pad_token_id=question["padding"],
        decoder_start_token_id=question["prompts"][0][0],
    )
    generate = transformers.GenerationMixin.generate  # that of speech expects more settings
    made = generate(model, generation_config=settings, use_model_defaults=False, **inputs)
    return list(made[0].tolist())


if __name__ == "__main__":
    reply(answer)
