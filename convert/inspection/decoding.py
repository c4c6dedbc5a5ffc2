"""Decoders of text, run token by token with their caches, by the names of inputs that optimum gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike, fspath

import numpy as np

from tmconvert.errors import UsageError, VerificationError
from tmconvert.targets.written_model import TensorInfo

Run = Callable[[Mapping[str, np.ndarray]], Mapping[str, np.ndarray]]
# outputs by inputs, before the layer
_PRESENT = {"past_key_values": "present", "past_conv": "present_conv", "past_ssm": "present_ssm"}


class Decoding:
    """A text that a decoder continues: it has the tokens so far, and the cache after them.

    ``run`` computes the outputs of the decoder, whose ``inputs`` are described. ``fixed`` are given in each
    step; ``extra`` computes others from the new tokens.
    """

    def __init__(
        self,
        run: Run,
        inputs: Sequence[TensorInfo],
        fixed: Mapping[str, np.ndarray],
        *,
        extra: Run = lambda feeds: {},
    ) -> None:
        self.run, self.inputs, self.fixed = run, inputs, fixed
        self.extra = extra
        self.tokens: list[int] = []
        self.cache = {each.name: empty(each) for each in inputs if is_cache(each.name)}

    def logits_after(self, tokens: Sequence[int]) -> np.ndarray:
        """Returns the logits after each of further tokens, float64[tokens, vocabulary]. Raises UsageError
        TM6003.
        """
        self.tokens += tokens
        given = np.array([tokens])
        feeds = {**of_tokens(given, len(self.tokens)), **self.fixed, **self.cache}
        made = self.run(typed(self.inputs, {**feeds, **self.extra(feeds)}))
        self.cache = {name: made[_present(name)] for name in self.cache}
        return np.asarray(made["logits"][0], np.float64)


def of_tokens(tokens: np.ndarray, length: int) -> dict[str, np.ndarray]:
    """Returns the inputs for ``tokens`` [1, n], the last ones of a text of ``length`` tokens."""
    count = tokens.shape[1]
    return {
        "input_ids": tokens,
        "attention_mask": np.ones((1, length)),
        "position_ids": np.arange(length - count, length)[None],
        "token_type_ids": np.zeros((1, count)),
    }


def typed(inputs: Sequence[TensorInfo], given: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Returns the arrays for inputs in their types. Raises UsageError TM6003 for one that is not given."""
    unknown = [each.name for each in inputs if each.name not in given]
    if unknown:
        raise UsageError("TM6003", f"no text fills the input {', '.join(unknown)}")
    return {each.name: given[each.name].astype(each.dtype or "float32") for each in inputs}


def is_cache(name: str) -> bool:
    """Whether an input of a decoder is a part of its cache."""
    return name.partition(".")[0] in _PRESENT


def _present(name: str) -> str:
    top, _, rest = name.partition(".")
    return f"{_PRESENT[top]}.{rest}"


def empty(info: TensorInfo) -> np.ndarray:
    """Returns an empty part of a cache: its open sizes are zero, but for the batch."""
    sizes = enumerate(info.shape or ())
    shape = [size if isinstance(size, int) else int(axis == 0) for axis, size in sizes]
    return np.zeros(shape, info.dtype or "float32")


def session(path: str | PathLike[str], outputs: Sequence[str]) -> Run:
    """Returns the function that runs an ONNX file. Raises VerificationError TM4002, TM4003."""
    try:
        import onnxruntime
    except ImportError as error:
        help = ("help", "pip install onnxruntime")
        raise VerificationError("TM4003", "ONNX Runtime is not installed", notes=[help]) from error
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    try:
        made = onnxruntime.InferenceSession(fspath(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # of no common class
        reason = f"ONNX Runtime refuses {fspath(path)}: {str(error).strip():.200}"
        raise VerificationError("TM4002", reason) from error
    return lambda feeds: dict(zip(outputs, made.run(list(outputs), dict(feeds)), strict=True))
