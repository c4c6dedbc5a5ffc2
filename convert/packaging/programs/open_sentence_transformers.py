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
    features = model.tokenize(question["texts"])
    return {
        "version": sentence_transformers.__version__,
        "features": {name: each.tolist() for name, each in features.items() if hasattr(each, "tolist")},
        "vectors": packed(model.encode(question["texts"])),
    }


if __name__ == "__main__":
    reply(answer)
