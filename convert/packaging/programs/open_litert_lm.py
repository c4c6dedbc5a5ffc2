"""Continues texts in LiteRT-LM, greedily; needs nothing of tmconvert."""

from pathlib import Path
from typing import Any

from question import reply


def answer(question: dict[str, Any]) -> dict[str, Any]:
    from importlib.metadata import version

    import litert_lm

    path = str(Path(question["folder"], question["file"]))
    engine = litert_lm.Engine(path, cache_dir=":nocache")  # else it writes files next to the package
    found: dict[str, Any] = {"version": version("litert-lm-api"), "tokens": [], "replies": [], "decoded": []}
    start = [] if engine.bos_token_id is None else [engine.bos_token_id]
    for text, tokens in zip(question["texts"], question["decoded"], strict=True):
        greedy = litert_lm.SamplerConfig(top_k=1, temperature=0.0)
        session = engine.create_session(
            apply_prompt_template=False, sampler_config=greedy, max_output_tokens=question["steps"]
        )
        with session:
            session.run_prefill([text])
            found["replies"].append("".join(session.run_decode().texts))
        found["tokens"].append([*start, *engine.tokenize(text)])
        counts = range(len(tokens) + 1)
        found["decoded"].append([engine.detokenize(tokens[:count]) if count else "" for count in counts])
    engine.close()
    return found


if __name__ == "__main__":
    reply(answer)
