"""Decodes prompts with the signatures of the TFLite model in a .litertlm file; needs nothing of tmconvert."""

import sys
from pathlib import Path
from typing import Any

from question import reply


class Decoder:
    """The signatures with their caches, run as LiteRT-LM does: a prefill is filled up with tokens 0."""

    def __init__(self, interpreter: Any) -> None:
        import numpy as np

        names = interpreter.get_signature_list()
        self.decode = interpreter.get_signature_runner("decode")
        runners = [interpreter.get_signature_runner(name) for name in names if name.startswith("prefill")]
        by_length = {int(each.get_input_details()["tokens"]["shape"][1]): each for each in runners}
        self.prefills = dict(sorted(by_length.items()))
        details = self.decode.get_input_details()
        self.caches = {
            name: np.zeros(each["shape"], each["dtype"])
            for name, each in details.items()
            if name.startswith("kv_cache_")
        }

    def prefill(self, tokens: list[int]) -> None:
        position = 0
        while position < len(tokens):
            left = len(tokens) - position
            length = next((each for each in self.prefills if each >= left), max(self.prefills))
            new = tokens[position : position + length]
            self._run(self.prefills[length], new, position, length)
            position += len(new)

    def step(self, token: int, position: int) -> Any:
        return self._run(self.decode, [token], position, 1)["logits"][0, -1]

    def _run(self, runner: Any, tokens: list[int], position: int, length: int) -> dict[str, Any]:
        import numpy as np

        padding = [0] * (length - len(tokens))
        positions = [*range(position, position + len(tokens)), *padding]
        made = runner(
            tokens=np.array([[*tokens, *padding]], np.int32),
            input_pos=np.array(positions, np.int32),
            **self.caches,
        )
        self.caches = {name: made[name].copy() for name in self.caches}
        return dict(made)


def answer(question: dict[str, Any]) -> dict[str, Any]:
    from importlib.metadata import version

    import numpy as np
    from ai_edge_litert.interpreter import Interpreter
    from litert_lm_builder import litertlm_builder

    litertlm_builder.unpack(str(Path(question["folder"], question["file"])), sys.argv[1])
    (path,) = Path(sys.argv[1]).glob("*.tflite")
    interpreter = Interpreter(model_path=str(path), num_threads=2)
    found: dict[str, Any] = {"version": version("ai-edge-litert"), "tokens": [], "margins": []}
    for prompt in question["prompts"]:
        decoder, tokens, margins = Decoder(interpreter), list(prompt), []
        decoder.prefill(prompt[:-1])
        for _ in range(question["steps"]):
            logits = decoder.step(tokens[-1], len(tokens) - 1).astype(np.float64)
            second, first = np.sort(logits)[-2:]
            tokens.append(int(logits.argmax()))
            margins.append(float((first - second) / max(np.abs(logits).max(), 1e-30)))
        found["tokens"].append(tokens[len(prompt) :])
        found["margins"].append(margins)
    return found


if __name__ == "__main__":
    reply(answer)
