"""Binds the arguments of a call to the parameters of a function, and explains those that do not fit."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tmconvert.errors import CallError
from tmconvert.errors.values import is_path

# earlier names of keywords, which are still accepted
_EARLIER = {"input_grids": "input_qparams"}
# what other converters call a keyword, or do only where they are asked to
_OF_OTHER_TOOLS = {
    "args": "example_inputs=(x, ...)",
    "sample_args": "example_inputs=(x, ...)",
    "kwargs": 'example_kwargs={"x": x}',
    "f": "path",
    "opset_version": "opset",
    "target_opset": "opset",
    **dict.fromkeys(("dynamic_axes", "dynamic_shape"), 'dynamic_shapes={"x": {0: "batch"}}'),
    **dict.fromkeys(("input_names", "output_names"), 'rename={"old": "new"}'),
    **dict.fromkeys(("representative_dataset", "calibration_data", "dataset"), "calibration"),
    **dict.fromkeys(("use_external_data_format", "save_as_external_data"), "external_data=True"),
}
_WITHOUT_ASKING = ("do_constant_folding", "export_params", "optimize", "simplify")


def with_current_names(keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the keywords of a call, with the names that they have now."""
    return {_EARLIER.get(name, name): value for name, value in keywords.items()}


def bound_arguments(
    function: str, signature: inspect.Signature, args: Sequence[Any], keywords: Mapping[str, Any]
) -> inspect.BoundArguments:
    """Binds the arguments of a call. Raises CallError for arguments that the function does not have."""
    parameters = signature.parameters
    if "input_qparams" in parameters:
        keywords = with_current_names(keywords)
    try:
        return signature.bind(*args, **keywords)
    except TypeError as error:
        reason = str(error)
    takes_any = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    unknown = [] if takes_any else [name for name in keywords if name not in parameters]
    if unknown:
        reason = f"unexpected keyword argument{'s' * (len(unknown) > 1)} {', '.join(map(repr, unknown))}"
    notes = [("help", text) for name in unknown if (text := _advice(name, parameters))]
    if not unknown and len(args) > 2 and is_path(args[2]) and not is_path(args[1]) and "path" in parameters:
        text = f"{function}(model, {str(args[2])!r}, example_inputs=...): the path comes second"
        notes.append(("help", text))
    raise CallError("TM6009", f"{function}: {reason}", notes=notes) from None


def _advice(name: str, known: Iterable[str]) -> str:
    """Returns what to write in place of an unknown keyword; empty where nothing is known."""
    if name in _WITHOUT_ASKING:
        return f"omit {name}: every file is folded and optimized, and has its weights"
    other = _OF_OTHER_TOOLS.get(name, "")
    close = [other] if other.partition("=")[0] in known else difflib.get_close_matches(name, known, n=1)
    return f"use {close[0]}" if close else ""
