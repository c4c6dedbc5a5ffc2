"""Reads the question of a package's check, and writes the answer; the scripts share it."""

import base64
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def reply(
    answer: Callable[[dict[str, Any]], dict[str, Any]],
    tokens_of_text: Callable[[dict[str, Any]], list[int]] | None = None,
) -> None:
    """Answers the question in the folder that the command line names; an exception is the answer, too.

    ``tokens_of_text`` splits the text of the question. The answer without it is written before, since
    tokenizers of some programs end the process.
    """
    folder = Path(sys.argv[1])
    question = json.loads((folder / "question.json").read_text("utf-8"))
    try:
        found = answer(question)
    except ImportError as error:
        found = {"missing": str(error)}
    except Exception as error:
        found = {"error": f"{type(error).__name__}: {error}"}
    if tokens_of_text and question.get("text") and "tokens" in found:
        _write(folder, {**found, "text_error": "the program ends"})
        try:
            found["text_tokens"] = tokens_of_text(question)
        except Exception as error:
            found["text_error"] = str(error)
    _write(folder, found)


def _write(folder: Path, answer: dict[str, Any]) -> None:
    (folder / "answer.json").write_text(json.dumps(answer), encoding="utf-8")


def unpacked(given: dict[str, Any]) -> Any:
    import numpy as np

    return np.frombuffer(base64.b64decode(given["data"]), given["dtype"]).reshape(given["shape"]).copy()


def packed(array: Any) -> dict[str, Any]:
    import numpy as np

    floats = np.ascontiguousarray(array, np.float32)
    return {"shape": list(floats.shape), "data": base64.b64encode(floats.tobytes()).decode("ascii")}
