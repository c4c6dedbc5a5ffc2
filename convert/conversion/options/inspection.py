"""Options of functions that look at models and files. Evaluated at run time, see ``declared.py``."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Annotated, Any, Literal

from tmconvert.conversion.options.calibration import ImageOptions, TaskName
from tmconvert.conversion.options.declared import calibration_option, input_option, output_option
from tmconvert.conversion.options.tracing import ProgressOptions, ShapeOptions, TracingOptions


class SignatureOptions(ProgressOptions, total=False):
    """Keywords of functions that run written files."""

    signature: Annotated[
        str | None, input_option("Signature to run of a TFLite file with several.", metavar="NAME")
    ]


class RunOptions(ImageOptions, SignatureOptions, total=False):
    """Keywords of ``run``."""

    watch: Annotated[
        Sequence[str],
        output_option(
            "Also write the tensor NAME, or those that fit a pattern: layer1.*.relu_out.",
            "entries",
            default=(),
            metavar="NAME",
            meaning="Names of tensors to return as well, or patterns such as layer1.*.relu_out.",
        ),
    ]


class CompareOptions(ImageOptions, TracingOptions, total=False):
    """Keywords of ``compare``."""

    on: Annotated[
        Sequence[str],
        input_option(
            "Run B, a written file, on this accelerator, such as litert-gpu.",
            "entries",
            default=(),
            metavar="NAME",
        ),
    ]


class EvaluateOptions(ImageOptions, TracingOptions, total=False):
    """Keywords of ``evaluate``."""

    resize: Annotated[
        Literal["stretch", "crop", "pad"],
        calibration_option("How images of another size are changed.", default="stretch", metavar="HOW"),
    ]
    min_sqnr: Annotated[
        float | None,
        output_option("End with status 1 if the signal-to-noise ratio of an output is lower.", metavar="DB"),
    ]
    min_agreement: Annotated[
        float | None,
        output_option(
            "End with status 1 if a smaller share of samples, from 0 to 1, has the same best class.",
            metavar="R",
        ),
    ]


class ScoreOptions(ImageOptions, TracingOptions, total=False):
    """Keywords of ``score``."""

    task: Annotated[
        TaskName | None,
        calibration_option(
            "Score the files on DATA, rather than their differences: a folder of images by class or a CSV "
            "of file and class (top-1); labels of COCO next to their images (map); a CSV of WAV file and "
            "text (wer); a text (perplexity); a CSV of two sentences and their similarity (similarity).",
            metavar="TASK",
        ),
    ]
    resize: Annotated[
        Literal["stretch", "crop", "pad"],
        calibration_option("How images of another size are changed.", default="stretch", metavar="HOW"),
    ]
    tokenizer: Annotated[
        str | None,
        calibration_option(
            "The tokenizer.json or vocab.json of the model, or their folder.",
            "path",
            default_text="those next to the file",
            metavar="FILE",
        ),
    ]
    window: Annotated[int, calibration_option("Tokens that perplexity takes at once.", default=512)]
    sampling_rate: Annotated[int, calibration_option("Samples of sound in a second.", default=16000)]
    required_score: Annotated[
        float | None,
        output_option("End with status 1 if the score of a file is worse.", metavar="S"),
    ]


class BenchOptions(SignatureOptions, total=False):
    """Keywords of ``bench``."""

    sizes: Annotated[
        Mapping[str, int] | None,
        input_option(
            "Give an open size a number, as in batch=8. The others are small numbers that fit the file.",
            "entries",
            metavar="NAME=N",
            flag="--size",
            meaning='Numbers of open sizes by name, such as ``{"batch": 8}``.',
        ),
    ]
    threads: Annotated[int, input_option("Threads that a runtime may use.", default=1)]
    seconds: Annotated[
        float, input_option("Time to measure each file for, at least ten runs.", default=2.0, metavar="S")
    ]
    warm_up: Annotated[int, input_option("Runs of each file before.", default=3)]


class VerifyOptions(ShapeOptions, SignatureOptions, total=False):
    """Keywords of ``verify``, which repeat those of the conversion."""

    require_verified: Annotated[
        bool, input_option("End with status 1 if the comparison shows nothing, or its reference is our own.")
    ]
    lock: Annotated[
        str | PathLike[str] | None,
        input_option(
            "Compare the file alone with the outputs of its source that this lock records.",
            metavar="FILE.lock",
        ),
    ]
    on: Annotated[
        Sequence[str],
        input_option(
            "Also compare the file on this accelerator, such as litert-gpu, with itself on the processor.",
            "entries",
            default=(),
            metavar="NAME",
        ),
    ]
    input_nodes: Annotated[
        Sequence[str] | None, input_option("The --inputs of the conversion, names of tensors.")
    ]
    outputs: Annotated[
        Sequence[str] | None, input_option("Names of tensors: extract the subgraph that ends at them.")
    ]
    rename: Annotated[
        Mapping[str, str] | None, output_option("New names of inputs and outputs.", metavar="OLD=NEW")
    ]
    calibration: Annotated[
        Any, calibration_option("The --calibration data of the conversion.", "data", metavar="DATA")
    ]
