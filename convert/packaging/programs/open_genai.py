"""Decodes prompts in onnxruntime-genai; needs nothing of tmconvert."""

from typing import Any

from question import reply, unpacked


def answer(question: dict[str, Any]) -> dict[str, Any]:
    import numpy as np
    import onnxruntime_genai as genai

    model = genai.Model(question["folder"])
    found: dict[str, Any] = {"version": getattr(genai, "__version__", ""), "tokens": []}
    for number, prompt in enumerate(question["prompts"]):
        params = genai.GeneratorParams(model)
        params.set_search_options(
            max_length=len(prompt) + question["steps"], do_sample=False, repetition_penalty=1.0
        )
        generator = genai.Generator(model, params)
        images = {name: unpacked(each) for name, each in question["inputs"][number].items()}
        if images:
            images["num_image_tokens"] = np.array([prompt.count(question["image_token"])])
            inputs = genai.NamedTensors()
            for name, array in {"input_ids": np.array([prompt], np.int32), **images}.items():
                inputs[name] = array
            generator.set_inputs(inputs)
        else:
            generator.append_tokens(np.array(prompt, np.int32))
        while not generator.is_done():
            generator.generate_next_token()
        found["tokens"].append([int(token) for token in generator.get_sequence(0)][len(prompt) :])
    return found


def tokens_of_text(question: dict[str, Any]) -> list[int]:
    import onnxruntime_genai as genai

    tokenizer = genai.Tokenizer(genai.Model(question["folder"]))
    return [int(token) for token in tokenizer.encode(question["text"])]


if __name__ == "__main__":
    reply(answer, tokens_of_text)
