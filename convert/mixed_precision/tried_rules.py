"""Measures what rules for the layers with the most quantization noise gain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tmconvert.calibration.settings import Settings
from tmconvert.conversion.pipeline import convert
from tmconvert.conversion.report import Report
from tmconvert.conversion.request import ConversionRequest
from tmconvert.conversion.suggested_rules import KINDS, cost_text, worst_layers
from tmconvert.errors import InternalError, TmconvertError
from tmconvert.output.atomic import temporary_folder
from tmconvert.passes.manager import PassOptions
from tmconvert.symbolics.op import Ops


def add_tried_rules(report: Report, request: ConversionRequest, catalogue: Ops) -> None:
    """Converts once more for each of the worst modules, and adds the rules to the report, the best first.

    A gain is in dB of the output with the most noise. Rules that the target cannot write are left out, and
    the files of the trials are not kept.
    """
    verification = report.verification
    if verification is None:
        return
    found: list[dict[str, Any]] = []
    for module, layer in worst_layers(verification).items():
        for kind in KINDS:
            after = _decibels(request, catalogue, {module: kind})
            if verification.decibels is not None and after is not None:
                gain = after - verification.decibels
                if np.isfinite(gain):
                    text = f"{cost_text(layer)} The output gains {gain:+.1f} dB with"
                    rule = f"--rule {module}={kind}"
                    found.append({"layer": layer.name, "text": text, "rule": rule, "gain_db": round(gain, 2)})
                    break
    report.advice = sorted(found, key=lambda each: -float(each["gain_db"]))
    report.notes += [f"{each['rule']}: {each['gain_db']:+.1f} dB at the output" for each in report.advice]
    if not report.advice:
        report.notes.append("no rule was found to try: no layer adds much noise, or no rule can be written")


def _decibels(request: ConversionRequest, catalogue: Ops, rules: Mapping[str, str]) -> float | None:
    """Returns the ratio of the noisiest output with further rules; None if the target cannot do them."""
    settings = request.calibration.settings
    settings = Settings.of({**settings._asdict(), "rules": {**settings.rules, **rules}})
    with temporary_folder() as folder:
        trial = replace(
            request,
            paths=tuple(folder / path.name for path in request.paths),
            calibration=request.calibration._replace(settings=settings),
            pass_options=PassOptions(requested=request.pass_options.requested),
        )
        try:
            verification = convert(trial, catalogue).verification
        except InternalError:
            raise
        except TmconvertError:
            return None
    return None if verification is None else verification.decibels
