"""Decodes prompts in optimum, or runs a model once; needs nothing of tmconvert."""

import importlib
from importlib.metadata import version
from typing import Any

from question import packed, reply, unpacked


def answer(question: dict[str, Any]) -> dict[str, Any]:
    torch = importlib.import_module("torch")
    from optimum.onnxruntime import ORTModelForCausalLM, ORTModelForCustomTasks

    found: dict[str, Any] = {"version": version("optimum-onnx")}
    if question["task"] == "generation":
        model = ORTModelForCausalLM.from_pretrained(question["folder"])
        found["tokens"] = [
            _decoded(model, torch.tensor([each]), question["steps"]) for each in question["prompts"]
        ]
        return found
    model = ORTModelForCustomTasks.from_pretrained(question["folder"])
    outputs = model(**{name: torch.from_numpy(unpacked(each)) for name, each in question["inputs"].items()})
    return {**found, "outputs": {name: packed(tensor.numpy()) for name, tensor in outputs.items()}}


def _decoded(model: Any, tokens: Any, steps: int) -> list[int]:
    made = model.generate(
        tokens,
        attention_mask=tokens.new_ones(tokens.shape),
        max_new_tokens=steps,
        do_sample=False,
        repetition_penalty=1.0,
    )
    return made[0, tokens.shape[1] :].tolist()


if __name__ == "__main__":
    reply(answer)
