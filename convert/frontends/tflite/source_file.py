"""The file of a TFLite model as the reference, with defined rows of detections."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tmconvert.formats.tflite.records import SubgraphRecord
from tmconvert.frontends.frontend import FileRuntime, SourceFile

DETECTION = "custom.TFLite_Detection_PostProcess"


class DetectionFile(SourceFile):
    """A file whose rows after the number of detections become 0: LiteRT leaves there what was in memory.

    ``rows`` has the positions of boxes, classes, scores and their number among the outputs.
    """

    rows: list[list[int]]

    def run_once(self, runtime: FileRuntime, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        made = [np.array(each) for each in super().run_once(runtime, inputs)]
        for *places, count in self.rows:
            for place in places:
                made[place][:, int(made[count].reshape(-1)[0]) :] = 0
        return made


def rows_of_detections(record: SubgraphRecord) -> list[list[int]]:
    """Returns the positions of the outputs of each operator whose number of detections is an output."""
    at = {index: place for place, index in enumerate(record.outputs)}
    found = [each.outputs for each in record.operators if each.name == DETECTION]
    return [[at[index] for index in each if index in at] for each in found if each[-1] in at]
