"""Computes vectors of texts in sentence-transformers, by ONNX; needs nothing of tmconvert."""

from typing import Any

from question import packed, reply


def answer(question: dict[str, Any]) -> dict[str, Any]:
    import sentence_transformers

    model = sentence_transformers.SentenceTransformer(
        question["folder"],
        backend="onnx",
        device="cpu",
        trust_remote_code=False,
        local_files_only=True,
        model_kwargs={"file_name": "onnx/model.onnx", "provider": "CPUExecutionProvider"},
    )
    texts = question["texts"]
    found: dict[str, Any] = {"version": sentence_transformers.__version__, "features": [], "vectors": []}
    for prompt in question["prompts"]:
        features = model.tokenize([prompt + each for each in texts])
        lists = {name: each.tolist() for name, each in features.items() if hasattr(each, "tolist")}
        if prompt:
            owner = model[0] if hasattr(model[0], "_get_prompt_length") else model  # of older releases
            lists["prompt"] = owner._get_prompt_length(prompt)
        found["features"].append(lists)
        found["vectors"].append(packed(model.encode(texts, prompt=prompt)))
    return found


if __name__ == "__main__":
    reply(answer)
