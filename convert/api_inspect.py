"""The public functions that look at models and written files; ``tmconvert.api`` has the others."""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

from tmconvert.calibration.settings import Settings
from tmconvert.conversion.checks import Findings, check_conversion, unsupported_groups
from tmconvert.conversion.load import load_model
from tmconvert.conversion.options.arguments import entry_point
from tmconvert.conversion.options.declared import expand_options
from tmconvert.conversion.options.inspection import (
    BenchOptions,
    CompareOptions,
    EvaluateOptions,
    ScoreOptions,
)
from tmconvert.conversion.options.tracing import EdgeOptions, SourceOptions
from tmconvert.conversion.prepared_model import loaded
from tmconvert.conversion.request import Model, io_overrides_of, tracing_of, with_profile
from tmconvert.passes.unsupported import UnsupportedGroup
from tmconvert.symbolics.registry import catalogue
from tmconvert.targets.registry import target_named, target_version

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tmconvert.calibration.data import Data
    from tmconvert.conversion.qparams_files import ParameterFile
    from tmconvert.inspection.bench import BenchResult
    from tmconvert.inspection.comparison import ModelComparison
    from tmconvert.inspection.evaluation import Evaluation
    from tmconvert.inspection.forecast import Forecast
    from tmconvert.inspection.given_inputs import Inputs
    from tmconvert.inspection.inspection import Inspection
    from tmconvert.inspection.score import Scores
    from tmconvert.qparams.survey import Quantization
    from tmconvert.targets.violation import Violation


@entry_point
@expand_options(SourceOptions)
def inspect(model: Model, **options: Unpack[SourceOptions]) -> Inspection:
    """Returns what is in a model or in a written file, of any kind: ``str`` of it is the text of the command.

    An ONNX or TFLite file, or a prototxt with its caffemodel, is described as it is stored, also where it has
    operators that cannot be converted.

    Args:
        model: A TracedModule, or the path of a file of any kind that is read or written.

    Returns:
        Inputs and outputs with dtype, shape, layout, scale and zero point; operators by type; parameters as
        PyTorch counts them; multiply-accumulates; bytes of weights and activations.

    Raises:
        LoadError: The file cannot be read.

    Example:
        >>> tmconvert.inspect("model.tflite").inputs  # doctest: +SKIP
        [TensorInfo(name='x', dtype='int8', shape=(1, 32, 32, 3), layout='NHWC', ...)]
    """
    from tmconvert.targets.recognize import written_target

    if isinstance(model, (str, PathLike)) and written_target(model) is not None:
        from tmconvert.inspection.written_file import inspect_file

        return inspect_file(Path(model), options["signature"] or "")
    from tmconvert.inspection.source_model import inspect_source

    tracing = tracing_of(options)
    if isinstance(model, (str, PathLike)):
        module = load_model(model, tracing, check=False)  # a look need not read all weights
        module.name_modules()
        return inspect_source(fspath(model), module, catalogue())
    return inspect_source("", loaded(model), catalogue())


@entry_point
@expand_options(CompareOptions)
def compare(
    first: Model, second: Model, inputs: Inputs | None = None, **options: Unpack[CompareOptions]
) -> ModelComparison:
    """Compares two models or written files of any kinds: outputs first, then layer by layer.

    Written files run in their runtimes, source models by the reference kernels. Tensors of the same name are
    compared. The *local* error of a layer is what remains where the operation of one model gets the operands
    that the suspect, the other one, has itself; so the first layer with a large local error is where the
    suspect goes wrong. The suspect is the second model, or the file where only the first is one.

    Args:
        first: A TracedModule, a PyTorch module, or the path of a model or of a written file.
        second: The same.
        inputs: Real values for the inputs of ``first``, by name or in order, an array for the only one, the
            path of an .npz or .npy file or of an image, or text such as "float32[1,3,8,8]" for random values.
            By default the example that ``first`` recorded, values in the range of quantized inputs, or random
            ones. A PyTorch module is traced with ``inputs``, too, if there are no ``example_inputs``.

    Returns:
        ``ok``, ``outputs``, ``layers`` with local and accumulated errors, and ``first``, the first layer that
        goes wrong; ``str`` of it is the text of the command.

    Raises:
        LoadError: A model cannot be read.
        UnsupportedError: TM2003 for a source model with operations that cannot be run.
        UsageError: TM6003 for models with different inputs.
        VerificationError: TM4002 where a runtime refuses a file, TM4003 where it is not installed; TM4007
            where an accelerator (``on``) does not run the second one.

    Example:
        >>> tmconvert.compare("net.tm", "net.tflite").first  # doctest: +SKIP
    """
    from tmconvert.inspection.compare import compare_sides
    from tmconvert.inspection.compared_models import sides_of
    from tmconvert.inspection.given_inputs import traced_with

    tracing = tracing_of(options)
    tracing = traced_with(inputs, tracing)
    one, other = sides_of((first, second), catalogue(), tracing)
    if options["on"]:
        from tmconvert.inspection.run_on import side_on

        side_on(options["on"], other)
    return compare_sides(one, other, inputs, Settings.of({"mean": options["mean"], "std": options["std"]}))


@entry_point
@expand_options(EvaluateOptions)
def evaluate(first: Model, second: Model, data: Data, **options: Unpack[EvaluateOptions]) -> Evaluation:
    """Runs two models or written files of any kinds on the same samples, and measures how far they differ.

    Written files run in their runtimes, source models by the reference kernels. The data are read as inputs
    of the first model. Where a file has the preprocessing of images in it, it gets pixels, and the other
    model gets them normalized as the file does it, unless ``mean`` and ``std`` are given.

    Args:
        first: A TracedModule, a PyTorch module, or the path of a model or of a written file.
        second: The same, with as many inputs and outputs.
        data: Samples as ``calibrate`` takes them: an .npz file, a folder of .npy or .npz files or of images,
            arrays by input, or a sequence of samples.

    Returns:
        ``outputs``, each with the signal-to-noise ratio in dB, the largest difference, the cosine similarity,
        and for scores of classes the share of samples with the same best class; the ``worst`` samples by
        name; and ``ok``, whether ``min_sqnr`` and ``min_agreement`` are reached. ``str`` of it is the text of
        the command.

    Raises:
        LoadError: A model cannot be read.
        UsageError: TM6002 for limits that apply to no output, TM6003 for models with different inputs or
            outputs, TM6033 for data that do not fit.
        VerificationError: TM4002 where a runtime refuses a file, TM4003 where it is not installed.

    Example:
        >>> tmconvert.evaluate("net.onnx", "int8.tflite", data="images/", std=[1]).ok  # doctest: +SKIP
    """
    from tmconvert.inspection.compared_models import sides_of
    from tmconvert.inspection.evaluate import Gate, evaluate_sides

    gate = Gate(options["min_sqnr"], options["min_agreement"])
    settings = Settings.of({name: options[name] for name in ("mean", "std", "resize")})
    tracing = tracing_of(options)
    one, other = sides_of((first, second), catalogue(), tracing)
    return evaluate_sides(one, other, data, settings, gate)


@entry_point
@expand_options(ScoreOptions)
def score(
    *files: str | PathLike[str],
    data: str | PathLike[str],
    **options: Unpack[ScoreOptions],
) -> Scores:
    """Runs written files in their runtimes on data of a task, and returns the score of each.

    Args:
        *files: Paths of written files or models; a folder of ``package`` stands for its model files.
        data: What the task takes: a folder with a folder of images for each class, or a CSV of file and class
            (top-1); a CSV of WAV file and text (wer); a text (perplexity); a CSV of two sentences and their
            similarity (similarity). Files are relative to the CSV.

    Returns:
        ``files``, each with its ``value`` and the number of ``samples``; and ``ok``, whether all reach the
        ``required_score``. ``str`` of it is a table with the differences from the first file.

    Raises:
        LoadError: A model cannot be read.
        UsageError: TM6002 for an unknown task, TM6003 for a model without the inputs of the task, TM6033 for
            data that do not fit.
        VerificationError: TM4002 where a runtime refuses a file, TM4003 where it is not installed.

    Example:
        >>> tmconvert.score("net.onnx", "int8.onnx", data="val/", task="top-1")  # doctest: +SKIP
    """
    from tmconvert.inspection.compared_models import sides_of
    from tmconvert.inspection.score import score_sides
    from tmconvert.inspection.task_score import model_files

    models = [each for file in files for each in model_files(file)]
    return score_sides(sides_of(models, catalogue(), tracing_of(options)), data, options)


@entry_point
@expand_options(BenchOptions)
def bench(
    *files: str | PathLike[str], inputs: Inputs | None = None, **options: Unpack[BenchOptions]
) -> list[BenchResult]:
    """Measures the latency of written files in their runtimes, several files by turns.

    Each file runs in a process of its own. The processes run in turns of a few milliseconds, so that a load
    of the machine meets all files alike: ratios are more stable than times.

    Args:
        *files: Paths of ONNX and TFLite files and prototxts.
        inputs: The inputs, in any form that ``run`` takes; None are zeros, at ``sizes``.

    Returns:
        A record for each file: milliseconds (``median``, ``low`` and ``high`` of the middle 80 %, ``best``),
        ``runs``, ``ratio`` to the first file, ``memory``, the bytes that the file adds to its process, and
        ``shapes`` of the inputs.

    Raises:
        LoadError: A file is not a written file.
        UsageError: TM6002 for numbers that are not positive, TM6003 for inputs that do not fit, TM6014 for
            sizes.
        VerificationError: TM4002 where a runtime refuses a file, TM4003 where it is not installed.

    Example:
        >>> fast, slow = tmconvert.bench("int8.tflite", "float.tflite")  # doctest: +SKIP
        >>> slow.ratio  # doctest: +SKIP
        2.94
    """
    from tmconvert.inspection.bench import bench_files

    paths = [Path(file) for file in files]
    limits = options["threads"], options["seconds"], options["warm_up"]
    return bench_files(paths, *limits, inputs, options["sizes"], options["signature"] or "")


@entry_point
@expand_options(EdgeOptions)
def check(
    model: Model, target: str, version: int | str | None = None, **options: Unpack[EdgeOptions]
) -> list[UnsupportedGroup]:
    """Returns all operations of the model that would stop a conversion, grouped.

    Args:
        model: A TracedModule, or the path of a model.
        target: "onnx", "tflite" or "caffe", or the target of an installed package.
        version: Opset, runtime or dialect; None is the default of the target.

    Returns:
        A group for each operation and reason; an empty list when a conversion would succeed.

    Raises:
        LoadError: The model cannot be read.
        UsageError: TM6001 for an unknown target or version, TM6014 for invalid inputs and outputs.

    Example:
        >>> [group.op for group in tmconvert.check("net.tm", "caffe")]  # doctest: +SKIP
        ['aten::erfinv']
    """
    overrides = io_overrides_of(options["input_shapes"], options["inputs"], options["outputs"])
    return unsupported_groups(loaded(model), target_named(target).default_options(version), overrides)


@entry_point
@expand_options(EdgeOptions)
def findings(
    model: Model,
    target: str,
    version: int | str | None = None,
    *,
    profile: str | None = None,
    **options: Unpack[EdgeOptions],
) -> Findings:
    """Returns what ``tmconvert check`` prints.

    Args:
        model: A TracedModule, or the path of a model.
        target: "onnx", "tflite" or "caffe", or the target of an installed package.
        version: Opset, runtime or dialect; None is the default of the target, or of the profile.
        profile: The name of a profile, or the path of a TOML file with one.

    Returns:
        The groups of ``check``; without any, violated limits of the target and the profile, and missing
        runtime kernels.

    Raises:
        LoadError: The model cannot be read.
        UsageError: TM6001 for an unknown target or version, TM6014 for invalid inputs and outputs.

    Example:
        >>> from tmconvert import api
        >>> api.findings("net.tm", "caffe", "nnie").violations  # doctest: +SKIP
    """
    overrides = io_overrides_of(options["input_shapes"], options["inputs"], options["outputs"])
    wanted = target_named(target).default_options(version)
    return check_conversion(loaded(model), with_profile(wanted, profile, version), overrides)


@entry_point
def lint(file: str | PathLike[str], dialect: str = "bvlc", *, profile: str | None = None) -> list[Violation]:
    """Checks a file of any origin: a Caffe net against a dialect, a TFLite or an ONNX file against a profile.

    Args:
        file: The path of the file.
        dialect: Of a net: "bvlc", or that of a vendor, such as "nnie".
        profile: The name of a profile, such as "ethos-u55", or the path of a TOML file with one.

    Returns:
        All violations. For a net: of the text, layers and fields, the order and shapes of blobs, and the
        limits of the dialect. For a profile: operators that do not run there, or are computed wrongly, by
        rule. An empty list for a file that keeps to all rules.

    Raises:
        LoadError: The file cannot be read.
        UsageError: TM6001 for an unknown dialect, TM6002 for an unknown profile, TM6070 for a file that is
            no profile.

    Example:
        >>> tmconvert.lint("net.tflite", profile="ethos-u55")  # doctest: +SKIP
        []
    """
    if profile is not None:
        from tmconvert.profiles.files import operations_of_file
        from tmconvert.profiles.judge import file_violations
        from tmconvert.profiles.registry import profile_named

        return file_violations(profile_named(profile), operations_of_file(Path(file), None))
    target_version("caffe", dialect)
    from tmconvert.targets.caffe.lint import lint as lint_net  # which loads protobuf

    return lint_net(Path(file), dialect)


@entry_point
def forecast(file: str | PathLike[str], profile: str) -> Forecast:
    """Predicts where the operators of a TFLite or ONNX file run.

    Args:
        file: The path of the file, of any origin.
        profile: The name of a profile, such as "litert-gpu", or the path of a TOML file with one.

    Returns:
        ``there`` and ``elsewhere``, operators by type; ``parts``, the runs of operators on the device;
        ``crossing``, the bytes that cross between it and the processor; ``rules``, what keeps operators from
        running there. ``lines`` of it are the text of ``tmconvert inspect --profile``.

    Raises:
        LoadError: The file cannot be read.
        UsageError: TM6002 for an unknown profile, or one for files of another kind; TM6070 for a file that is
            no profile.

    Example:
        >>> from tmconvert import api
        >>> api.forecast("net.tflite", "ethos-u55").elsewhere  # doctest: +SKIP
        Counter({'GATHER': 2})
    """
    from tmconvert.inspection.forecast import forecast_file
    from tmconvert.profiles.registry import profile_named

    return forecast_file(Path(file), profile_named(profile))


@entry_point
def params(file: str | PathLike[str], format: str | None = None) -> ParameterFile:
    """Reads a file of quantization parameters, in any format that `tmconvert params --help` lists.

    Args:
        file: The path of the file.
        format: The name of its format; None detects it from the content.

    Returns:
        The file, with a record for each tensor in ``records``; ``str`` of it is a table, and its methods
        convert it to another format and check it against a model.

    Raises:
        UsageError: TM6042 for a file that cannot be read or is damaged, TM6002 for an unknown format.

    Example:
        >>> tmconvert.params("scales.json").convert("net.table", "ncnn")  # doctest: +SKIP
    """
    from tmconvert.conversion.qparams_files import ParameterFile

    return ParameterFile.of(Path(file), format)


@entry_point
def quantization(model: Model) -> Quantization | None:
    """Returns the quantization of the model.

    Args:
        model: A TracedModule, or the path of a model.

    Returns:
        What kind of quantization the model has, and its tensors; None for a float model.

    Raises:
        LoadError: The model cannot be read.

    Example:
        >>> from tmconvert import api
        >>> api.quantization("qat.tm")  # doctest: +SKIP
    """
    from tmconvert.qparams.survey import quantization_of

    return quantization_of(loaded(model), catalogue())
