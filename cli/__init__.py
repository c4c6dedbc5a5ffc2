"""The command line: click commands, one per file, and rich rendering.

Importing this package, and showing any help, loads neither NumPy nor the library of a file format: each
command imports what it needs when it runs.
"""

from __future__ import annotations

import click

from tmconvert._version import __version__
from tmconvert.cli.group import CommandGroup, help_without_command

# heading -> name -> one line of help, known without importing the command's module (which has the same name)
COMMAND_GROUPS = {
    "Convert": {
        "onnx": "Convert a model to ONNX.",
        "tflite": "Convert a model to TFLite.",
        "caffe": "Convert a model to a Caffe prototxt and caffemodel.",
        "convert": "Convert many models, as a configuration file describes it.",
        "init": "Write a commented configuration file for `tmconvert convert`.",
        "package": "Write the folder that onnxruntime-genai and others open.",
        "save": "Convert a model to the safe .tm format.",
        "trace": "Run a PyTorch model once, and save its graph.",
    },
    "Look": {
        "inspect": "Show inputs, outputs, operators and sizes of a model.",
        "view": "Draw a model or written file as one HTML page.",
        "run": "Run a model or file on arrays or an image.",
        "bench": "Measure the latency of written files, by turns.",
        "params": "Show, convert and check files of quantization parameters.",
        "ops": "List the ops that each target supports.",
        "samples": "Copy small trained models and images to a folder.",
    },
    "Change": {
        "calibrate": "Measure quantization parameters of a float model on data.",
        "simplify": "Simplify an ONNX file, at the same opset.",
        "optimize": "Run passes on a model, and save it as a graph of ATen-style ops.",
        "stream": "Make a step file, with states, of a model over time.",
        "code": "Write a model as a Python package for PyTorch.",
    },
    "Check": {
        "check": "List every op that would stop a conversion.",
        "lint": "Check any file against a profile, or a prototxt against a dialect.",
        "verify": "Compare a written file with its source.",
        "compare": "Compare two models or files, layer by layer.",
        "reduce": "Reduce a model that fails to the smallest one that fails alike.",
        "diff": "List what changed between two models or files.",
        "rebuild": "Convert again as a lock records it, and compare the files.",
        "evaluate": "Measure how far two models differ on the samples of a folder.",
        "doctor": "Show versions, runtimes and processor features.",
        "explain": "Explain an error code such as TM2003.",
    },
}
COMMANDS = {name: line for commands in COMMAND_GROUPS.values() for name, line in commands.items()}

SHORT_HELP = """\
Usage: tmconvert MODEL OUT          convert by the suffix of OUT: .onnx, .tflite, .prototxt, .tm
       tmconvert COMMAND ARGS...

  tmconvert model.pt2 model.onnx
  tmconvert model.onnx model.tflite --quantized --calibration images/
  tmconvert torchvision.models:resnet18 resnet18.onnx --input 'float32[1,3,224,224]'
  tmconvert inspect model.tflite

`tmconvert --help` lists all commands, `tmconvert COMMAND --help` the options of one."""
EPILOG = """\b
MODEL is the path of a model file, whose kind is recognised by content, or
PACKAGE.MODULE:FACTORY, what makes a PyTorch module, with --input for each of its inputs.
`tmconvert MODEL OUT` converts by the suffix of OUT: .onnx, .tflite, .prototxt or .tm.
Results go to stdout, messages to stderr.

\b
Exit status:
  0  done
  1  the model could not be loaded, converted or verified
  2  wrong usage
  3  a defect of tmconvert

\b
Completion of commands and options in your shell:
  bash  eval "$(_TMCONVERT_COMPLETE=bash_source tmconvert)"   in ~/.bashrc
  zsh   eval "$(_TMCONVERT_COMPLETE=zsh_source tmconvert)"    in ~/.zshrc
  fish  _TMCONVERT_COMPLETE=fish_source tmconvert | source    in ~/.config/fish/config.fish
  PowerShell  $env:_TMCONVERT_COMPLETE="powershell_source"; tmconvert | Out-String | iex    in $PROFILE
"""


@click.group(
    name="tmconvert",
    cls=CommandGroup,
    groups=COMMAND_GROUPS,
    epilog=EPILOG,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="tmconvert", message="%(prog)s %(version)s")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Convert trained models to ONNX, TFLite and Caffe, and prove the result right."""
    help_without_command(ctx, SHORT_HELP)
