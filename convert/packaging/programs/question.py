"""Reads the question of a package's check, and writes the answer; the scripts share it."""

import base64
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def reply(answer: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Answers the question in the folder that the command line names; an exception is the answer, too."""
    folder = Path(sys.argv[1])
    question = json.loads((folder / "question.json").read_text("utf-8"))
    try:
        found = answer(question)
    except ImportError as error:
        found = {"missing": str(error)}
    except Exception as error:
        found = {"error": f"{type(error).__name__}: {error}"}
    (folder / "answer.json").write_text(json.dumps(found), encoding="utf-8")


def unpacked(given: dict[str, Any]) -> Any:
    import numpy as np

    return np.frombuffer(base64.b64decode(given["data"]), given["dtype"]).reshape(given["shape"]).copy()


def packed(array: Any) -> dict[str, Any]:
    import numpy as np

    floats = np.ascontiguousarray(array, np.float32)
    return {"shape": list(floats.shape), "data": base64.b64encode(floats.tobytes()).decode("ascii")}
